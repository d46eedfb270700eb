//! A credential's row, without its data: what the transactions use that are compiled once per database.

use crate::stored::Column;
use vault_core::activation::VendRule;
use vault_core::digest::Digest;

/// What the code over a row covers and is not read anyway: the rule, the staged version, the revision, that of the metadata; and
/// the code.
pub(crate) type StateColumns = (Column<VendRule>, Option<i64>, i64, Option<i64>, Column<Digest>);

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

/// The columns of [`StateColumns`].
macro_rules! state_columns {
    () => {{
        use crate::schema::credentials as column;
        (column::vend, column::staged_version, column::revision, column::metadata_revision, column::code)
    }};
}

pub(super) use described;
pub(crate) use {of_credential, state_columns};

pub(super) use crate::new_row::expiry_column;
pub(crate) use crate::transaction::credential::row::{CheckColumns, check, read};
