//! A credential's row, without its data: what the transactions use that are compiled once per database.

/// The rows of a table that belong to one credential.
macro_rules! of_credential {
    ($table:ident, $organization:expr, $id:expr) => {{
        use crate::schema::$table as rows;
        use crate::stored::StoredId as _;
        rows::table.filter(rows::organization_id.eq($organization.stored())).filter(rows::id.eq($id.stored()))
    }};
}

/// The values of what is said of a credential, but for its labels.
macro_rules! described {
    ($description:expr) => {{
        use crate::schema::credentials as column;
        let metadata = $description.metadata.as_ref();
        (
            column::vend.eq($description.vend.as_str()),
            column::metadata.eq(metadata.map(|metadata| metadata.blob.as_bytes())),
            column::metadata_key_id.eq(metadata.map(|metadata| metadata.key.stored())),
            column::metadata_revision.eq(metadata.map(|metadata| metadata.revision)),
        )
    }};
}

pub(super) use described;
pub(crate) use of_credential;

pub(super) use crate::new_row::expiry_column;
