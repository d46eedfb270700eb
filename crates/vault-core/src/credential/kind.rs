//! The four types of credential.

use super::{AzureIdentity, DirectLink, FieldSpec, Gcs, S3};
use std::fmt;

/// What kind of store a credential opens, and so the shape of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CredentialType {
    /// A bucket of an S3-style store.
    S3,
    /// Azure storage by an application's identity.
    AzureIdentity,
    /// A bucket of Google Cloud Storage.
    Gcs,
    /// A link that carries its own permission.
    DirectLink,
}

impl CredentialType {
    /// Every type, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::S3, Self::AzureIdentity, Self::Gcs, Self::DirectLink];

    /// The type whose name on the wire is `text`, compared exactly.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The type's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::AzureIdentity => "azure_identity",
            Self::Gcs => "gcs",
            Self::DirectLink => "direct-link",
        }
    }

    /// The fields of the type's data.
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
