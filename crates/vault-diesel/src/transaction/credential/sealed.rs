//! A credential with its sealed data.

use crate::db::Db;
use crate::failure::Failure;
use crate::schema::{credential_secrets, credentials};
use crate::stored::Column;
use diesel::dsl::auto_type;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, JoinOnDsl as _, NullableExpressionMethods as _, QueryDsl as _,
    Queryable, Selectable,
};
use vault_core::activation::{FetchedCredential, VendRule};
use vault_core::credential::{CredentialType, VersionList};
use vault_core::digest::Digest;
use vault_core::id::{CredentialId, KeyId};
use vault_core::sealed::{Blob, SealedCredential};
use vault_core::time::Timestamp;

const TABLE: &str = "credentials";

#[derive(Queryable, Selectable)]
#[diesel(table_name = credentials, check_for_backend(Db))]
pub(crate) struct SealedRow {
    id: Column<CredentialId>,
    kind: Column<CredentialType>,
    version: i64,
    key_id: Column<KeyId>,
    information: Vec<u8>,
    #[diesel(select_expression = credential_secrets::data_key.nullable())]
    data_key: Option<Vec<u8>>,
    #[diesel(select_expression = credential_secrets::data.nullable())]
    data: Option<Vec<u8>>,
    vend: Column<VendRule>,
    staged_version: Option<i64>,
    highest_version: i64,
    listed_versions: Vec<u8>,
    revision: i64,
    metadata_revision: Option<i64>,
    code: Column<Digest>,
    last_activated_at: Option<i64>,
}

/// Another version of the credential.
pub(super) struct OtherVersion {
    pub(super) number: i64,
    pub(super) key_id: Column<KeyId>,
    pub(super) information: Vec<u8>,
    pub(super) data_key: Vec<u8>,
    pub(super) data: Vec<u8>,
}

/// Credentials with their sealed data. A credential whose data is missing is included, so that the damage is reported.
#[auto_type(no_type_alias)]
pub(crate) fn with_secrets() -> _ {
    let of_both = credential_secrets::organization_id.eq(credentials::organization_id);
    let is_secret = of_both.and(credential_secrets::id.eq(credentials::id));
    credentials::table.left_join(credential_secrets::table.on(is_secret))
}

impl SealedRow {
    pub(crate) fn decode(self) -> Result<FetchedCredential, Failure> {
        let version = self.version;
        self.decode_version(TABLE, version)
    }

    /// Decodes the credential with the data of another version.
    pub(super) fn decode_other(self, other: OtherVersion) -> Result<FetchedCredential, Failure> {
        let OtherVersion { number, key_id, information, data_key, data } = other;
        let row = Self { key_id, information, data_key: Some(data_key), data: Some(data), ..self };
        row.decode_version("credential_versions", number)
    }

    /// `table` contains the version.
    fn decode_version(self, table: &'static str, version: i64) -> Result<FetchedCredential, Failure> {
        let id = self.id.decode(TABLE, &"unknown", "id")?;
        let missing = || Failure::damaged("credential_secrets", id.to_string(), "missing");
        Ok(FetchedCredential {
            id,
            kind: self.kind.decode(TABLE, &id, "type")?,
            version,
            sealed: SealedCredential {
                key: self.key_id.decode(table, &id, "key_id")?,
                data_key: Blob::from_bytes(self.data_key.ok_or_else(missing)?),
                data: Blob::from_bytes(self.data.ok_or_else(missing)?),
                information: Blob::from_bytes(self.information),
            },
            vend: self.vend.decode(TABLE, &id, "vend")?,
            current: self.version,
            staged: self.staged_version,
            highest: self.highest_version,
            listed: VersionList::from_bytes(self.listed_versions),
            revision: self.revision,
            metadata_revision: self.metadata_revision,
            code: self.code.decode(TABLE, &id, "code")?,
            last_activated_at: self.last_activated_at.map(Timestamp::from_millis),
        })
    }
}
