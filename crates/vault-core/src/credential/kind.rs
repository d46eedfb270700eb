//! The four types of credential.

use super::{AzureIdentity, DirectLink, FieldSpec, Gcs, S3};
use std::fmt;

/// Kind of storage to which a credential gives access, which determines the format of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CredentialType {
    /// A bucket of S3-compatible storage.
    S3,
    /// Azure storage, accessed with an application's identity or a connection string.
    AzureIdentity,
    /// A bucket of Google Cloud Storage.
    Gcs,
    /// A link that contains its own authorization.
    DirectLink,
}

impl CredentialType {
    /// All types, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::S3, Self::AzureIdentity, Self::Gcs, Self::DirectLink];

    /// Returns the type with the name `text` on the wire, compared exactly.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns the name of the type on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::AzureIdentity => "azure_identity",
            Self::Gcs => "gcs",
            Self::DirectLink => "direct-link",
        }
    }

    /// Returns the fields of the type's data.
    pub const fn fields(self) -> &'static [FieldSpec] {
        match self {
            Self::S3 => S3::FIELDS,
            Self::AzureIdentity => AzureIdentity::FIELDS,
            Self::Gcs => Gcs::FIELDS,
            Self::DirectLink => DirectLink::FIELDS,
        }
    }
}

impl fmt::Display for CredentialType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
