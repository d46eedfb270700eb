//! Values in columns: how IDs are written, and how columns are decoded without trusting their content.

use crate::db::{Db, DbValue};
use crate::failure::Failure;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::query_builder::QueryId;
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{Binary, SqlType, Text};
use diesel::sqlite::{Sqlite, SqliteValue};
use std::fmt;
use std::io::Write as _;
use uuid::Uuid;
use vault_core::activation::{Purpose, VendMode, VendRule, VendedForm};
use vault_core::check::CheckReason;
use vault_core::credential::CredentialType;
use vault_core::digest::Digest;
use vault_core::id::{
    AccountId, ActivationId, AuditId, CredentialId, EventId, InstanceId, IntegrationId, IssuerId, KeyId,
    OrganizationId, ReceiverId, SessionId,
};
use vault_core::namespace::Namespace;
use vault_core::notice::NoticeCode;
use vault_core::organization::OrganizationState;
use vault_core::port::StoredRowKey;
use vault_core::receiver::{DeliveryFailure, DeliveryState, EventKind};
use vault_core::sealed::{Blob, KeyState};

/// Type of a column with an ID: 16 bytes, a blob on SQLite and `uuid` on PostgreSQL.
#[derive(Clone, Copy, Debug, Default, QueryId, SqlType)]
#[diesel(sqlite_type(name = "Binary"), postgres_type(oid = 2950, array_oid = 2951))]
pub struct Id;

/// The bytes of an ID, which may be malformed because SQLite stores any bytes. Ordered like the column.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, AsExpression, FromSqlRow)]
#[diesel(sql_type = Id)]
pub(crate) struct AnyId(Vec<u8>);

impl AnyId {
    /// Parses an ID that [`AnyId::to_string`] has written.
    pub(crate) fn from_text(text: &str) -> Self {
        let bytes = match Uuid::try_parse(text) {
            Ok(id) if text.contains('-') => id.as_bytes().to_vec(),
            _ => text
                .as_bytes()
                .chunks(2)
                .filter_map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
                .collect(),
        };
        Self(bytes)
    }

    /// Decodes the ID of a row of `table`.
    pub(crate) fn decode<T: IdForm>(&self, table: &'static str) -> Result<T, Failure> {
        let bytes = self.0.as_slice().try_into().map_err(|_| Failure::damaged(table, self.to_string(), "id"))?;
        Ok(T::from_id(bytes))
    }

    /// Returns the next ID in the order of a SQLite column.
    pub(crate) fn next_bytes(mut self) -> Self {
        self.0.push(0);
        self
    }

    /// Returns the next ID in the order of a `uuid` column.
    pub(crate) fn next_uuid(self) -> Self {
        Self(u128::from_be_bytes(self.padded()).saturating_add(1).to_be_bytes().to_vec())
    }

    /// Returns the first 16 bytes, padded with zeros.
    fn padded(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(&self.0).for_each(|(byte, own)| *byte = *own);
        bytes
    }
}

impl From<IdBytes> for AnyId {
    fn from(id: IdBytes) -> Self {
        Self(id.0.to_vec())
    }
}

impl From<AnyId> for String {
    fn from(id: AnyId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for AnyId {
    /// Writes a UUID, or hexadecimal digits if the bytes are not a UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Uuid::from_slice(&self.0) {
            Ok(id) => id.hyphenated().fmt(f),
            Err(_) => self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl FromSql<Id, Sqlite> for AnyId {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        Ok(Self(value.read_blob().to_vec()))
    }
}

impl FromSql<Id, Pg> for AnyId {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(value.as_bytes().to_vec()))
    }
}

impl ToSql<Id, Db> for AnyId {
    #[inline]
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Db>) -> serialize::Result {
        out.set_value(self.0.as_slice());
        Ok(IsNull::No)
    }
}

impl FromSql<Id, Db> for AnyId {
    #[inline]
    fn from_sql(value: DbValue<'_>) -> deserialize::Result<Self> {
        value.read::<Id, Self>()
    }
}

/// Converts a row key to its columns.
pub(crate) fn columns_of((organization, id): &StoredRowKey) -> (AnyId, AnyId) {
    (AnyId::from_text(organization), AnyId::from_text(id))
}

/// Converts two columns to a row key.
pub(crate) fn place_of((organization, id): (AnyId, AnyId)) -> StoredRowKey {
    (organization.to_string(), id.to_string())
}

/// An ID as a parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, AsExpression)]
#[diesel(sql_type = Id)]
pub(crate) struct IdBytes([u8; 16]);

/// Sorts before every ID that OrgVault generates.
pub(crate) const BEFORE_ALL_IDS: IdBytes = IdBytes([0; 16]);
/// Sorts after every ID that OrgVault generates.
pub(crate) const AFTER_ALL_IDS: IdBytes = IdBytes([u8::MAX; 16]);

/// For statements that name the organization outside of a transaction.
impl ToSql<Id, Pg> for IdBytes {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

impl ToSql<Id, Db> for IdBytes {
    #[inline]
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Db>) -> serialize::Result {
        out.set_value(self.0.as_slice());
        Ok(IsNull::No)
    }
}

/// A type that contains the bytes of an ID.
pub(crate) trait StoredId {
    fn stored(&self) -> IdBytes;
}

/// A type that is stored as the 16 bytes of an ID.
pub(crate) trait IdForm: Sized {
    fn from_id(bytes: [u8; 16]) -> Self;
}

macro_rules! ids {
    ($($id:ty),*) => {$(
        impl StoredId for $id {
            fn stored(&self) -> IdBytes {
                IdBytes(*self.as_bytes())
            }
        }

        impl IdForm for $id {
            fn from_id(bytes: [u8; 16]) -> Self {
                Self::from_bytes(bytes)
            }
        }
    )*};
}

ids!(
    AccountId,
    ActivationId,
    AuditId,
    CredentialId,
    EventId,
    InstanceId,
    IntegrationId,
    IssuerId,
    KeyId,
    OrganizationId,
    ReceiverId,
    SessionId
);

/// A decoded column, empty if its content is invalid. Separate from a failing query, so that damage is reported with
/// table and ID.
#[derive(Clone, Debug, FromSqlRow)]
pub(crate) struct Column<T>(Option<T>);

impl<T> Column<T> {
    /// Returns the value, or a failure that names the row.
    pub(crate) fn decode(self, table: &'static str, id: &dyn ToString, violation: &'static str) -> Result<T, Failure> {
        self.0.ok_or_else(|| Failure::damaged(table, id.to_string(), violation))
    }
}

/// A type that is stored as text.
pub(crate) trait TextForm: Sized {
    fn from_text(text: &str) -> Option<Self>;
}

/// A type that is stored as bytes.
pub(crate) trait BytesForm: Sized {
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl<T: TextForm> FromSql<Text, Sqlite> for Column<T> {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        Ok(Self(T::from_text(value.read_text())))
    }
}

impl<T: TextForm> FromSql<Text, Pg> for Column<T> {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(std::str::from_utf8(value.as_bytes()).ok().and_then(T::from_text)))
    }
}

impl<T: IdForm> FromSql<Id, Sqlite> for Column<T> {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        Ok(Self(value.read_blob().try_into().ok().map(T::from_id)))
    }
}

impl<T: IdForm> FromSql<Id, Pg> for Column<T> {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(value.as_bytes().try_into().ok().map(T::from_id)))
    }
}

impl<T: BytesForm> FromSql<Binary, Sqlite> for Column<T> {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
        Ok(Self(T::from_bytes(value.read_blob())))
    }
}

impl<T: BytesForm> FromSql<Binary, Pg> for Column<T> {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(T::from_bytes(value.as_bytes())))
    }
}

impl<T: TextForm> FromSql<Text, Db> for Column<T> {
    #[inline]
    fn from_sql(value: DbValue<'_>) -> deserialize::Result<Self> {
        value.read::<Text, Self>()
    }
}

impl<T: IdForm> FromSql<Id, Db> for Column<T> {
    #[inline]
    fn from_sql(value: DbValue<'_>) -> deserialize::Result<Self> {
        value.read::<Id, Self>()
    }
}

impl<T: BytesForm> FromSql<Binary, Db> for Column<T> {
    #[inline]
    fn from_sql(value: DbValue<'_>) -> deserialize::Result<Self> {
        value.read::<Binary, Self>()
    }
}

macro_rules! text_forms {
    ($($type:ty => $read:expr;)*) => {$(
        impl TextForm for $type {
            fn from_text(text: &str) -> Option<Self> {
                $read(text)
            }
        }
    )*};
}

text_forms! {
    CredentialType => Self::parse;
    KeyState => Self::parse;
    NoticeCode => Self::parse_stored;
    OrganizationState => Self::parse;
    Namespace => |text: &str| Self::parse(text, "").ok();
    VendMode => Self::parse;
    VendRule => Self::parse;
    VendedForm => Self::parse;
    DeliveryFailure => Self::parse;
    DeliveryState => Self::parse;
    EventKind => Self::parse;
    CheckReason => |text: &str| Self::ALL.iter().copied().find(|reason| reason.as_str() == text);
    Purpose => |text: &str| Self::parse(text, "").ok();
}

impl BytesForm for Digest {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

impl BytesForm for Blob {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::from_bytes(bytes.to_vec()))
    }
}
