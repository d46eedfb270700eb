//! Values in their columns: how ids are written, and how a column is read without trusting it.

use crate::failure::Failure;
use diesel::Queryable;
use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::{Pg, PgValue};
use diesel::serialize::{self, IsNull, Output, ToSql};
use diesel::sql_types::{Binary, Text};
use diesel::sqlite::{Sqlite, SqliteValue};
use std::io::Write as _;
use vault_core::account::AccountState;
use vault_core::activation::{Purpose, VendMode, VendRule, VendedForm};
use vault_core::check::CheckReason;
use vault_core::credential::CredentialType;
use vault_core::digest::{Digest, RowMac};
use vault_core::email::EmailAddress;
use vault_core::id::{
    AccountId, ActivationId, CredentialId, EventId, InstanceId, IntegrationId, KeyId, OrganizationId, ReceiverId,
    SeedId,
};
use vault_core::identity::Trusts;
use vault_core::integration::{IntegrationName, IntegrationState, ManagedBy, NamespacePatterns};
use vault_core::namespace::Namespace;
use vault_core::notice::NoticeCode;
use vault_core::organization::{OrganizationName, OrganizationState};
use vault_core::receiver::{Channel, DeliveryFailure, DeliveryState, EventKind, EventKinds, ReceiverState};
use vault_core::role::Role;
use vault_core::sealed::{Blob, InstanceKeyPurpose, KeyState};

/// An id as its 36 characters, without a heap allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, AsExpression)]
#[diesel(sql_type = Text)]
pub(crate) struct IdText([u8; 36]);

impl IdText {
    pub(crate) fn as_str(&self) -> &str {
        // Only ever hexadecimal digits and hyphens.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// What has an id's text.
pub(crate) trait ToIdText {
    fn text(&self) -> IdText;
}

macro_rules! id_texts {
    ($($id:ty),*) => {$(
        impl ToIdText for $id {
            fn text(&self) -> IdText {
                let mut text = [0; 36];
                self.as_uuid().hyphenated().encode_lower(&mut text);
                IdText(text)
            }
        }
    )*};
}

id_texts!(
    AccountId,
    ActivationId,
    CredentialId,
    EventId,
    InstanceId,
    IntegrationId,
    KeyId,
    OrganizationId,
    ReceiverId,
    SeedId,
    vault_core::id::AuditId,
    vault_core::id::SessionId
);

impl ToSql<Text, Sqlite> for IdText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.as_str());
        Ok(IsNull::No)
    }
}

impl ToSql<Text, Pg> for IdText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(&self.0)?;
        Ok(IsNull::No)
    }
}

/// A column as read: nothing, where it holds none of the values it may hold. Told apart from a failing
/// query, so that damage is reported with its table and id.
#[derive(Clone, Debug, FromSqlRow)]
pub(crate) struct Column<T>(Option<T>);

impl<T> Column<T> {
    /// The value.
    pub(crate) fn decode(self, table: &'static str, id: &dyn ToString, flaw: &'static str) -> Result<T, Failure> {
        self.0.ok_or_else(|| Failure::damaged(table, id.to_string(), flaw))
    }
}

/// What is stored as text.
pub(crate) trait TextForm: Sized {
    fn from_text(text: &str) -> Option<Self>;
}

/// What is stored as bytes.
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
    AccountId => |text: &str| text.parse().ok();
    ActivationId => |text: &str| text.parse().ok();
    CredentialId => |text: &str| text.parse().ok();
    InstanceId => |text: &str| text.parse().ok();
    IntegrationId => |text: &str| text.parse().ok();
    KeyId => |text: &str| text.parse().ok();
    OrganizationId => |text: &str| text.parse().ok();
    SeedId => |text: &str| text.parse().ok();
    vault_core::id::SessionId => |text: &str| text.parse().ok();
    AccountState => Self::parse;
    CredentialType => Self::parse;
    InstanceKeyPurpose => Self::parse;
    IntegrationName => |text: &str| Self::parse(text, "").ok();
    IntegrationState => Self::parse;
    ManagedBy => |text: &str| Self::parse(text, "").ok();
    KeyState => Self::parse;
    NoticeCode => Self::parse_stored;
    OrganizationState => Self::parse;
    Role => Self::parse;
    EmailAddress => |text: &str| Self::parse(text).ok().filter(|email| email.as_str() == text);
    Namespace => |text: &str| Self::parse(text, "").ok();
    NamespacePatterns => Self::from_stored;
    Trusts => Self::from_stored;
    OrganizationName => |text: &str| Self::parse(text).ok();
    VendMode => Self::parse;
    VendRule => Self::parse;
    VendedForm => Self::parse;
    Channel => Self::parse;
    DeliveryFailure => Self::parse;
    DeliveryState => Self::parse;
    EventId => |text: &str| text.parse().ok();
    EventKind => Self::parse;
    EventKinds => Self::from_stored;
    ReceiverId => |text: &str| text.parse().ok();
    ReceiverState => Self::parse;
    CheckReason => |text: &str| Self::ALL.iter().copied().find(|reason| reason.as_str() == text);
    Purpose => |text: &str| Self::parse(text, "").ok();
}

impl BytesForm for Digest {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_bytes)
    }
}

/// The code of a row, as its two columns hold it: the digest, and the key that made it.
#[derive(Clone, Debug, Queryable)]
pub(crate) struct CodeColumns {
    code: Column<Digest>,
    key: Column<KeyId>,
}

impl CodeColumns {
    /// The code.
    pub(crate) fn decode(self, table: &'static str, id: &dyn ToString, flaw: &'static str) -> Result<RowMac, Failure> {
        let code = self.code.decode(table, id, flaw)?;
        Ok(RowMac { key: self.key.decode(table, id, flaw)?, code })
    }
}

/// Several digests, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Digests(pub(crate) Vec<Digest>);

impl Digests {
    pub(crate) fn bytes(digests: &[Digest]) -> Vec<u8> {
        digests.iter().flat_map(|digest| *digest.as_bytes()).collect()
    }
}

impl BytesForm for Digests {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.chunks(32).map(<Digest as BytesForm>::from_bytes).collect::<Option<_>>().map(Self)
    }
}

impl BytesForm for Blob {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::from_bytes(bytes.to_vec()))
    }
}
