//! Types of credential.

use super::{AzureFederated, AzureIdentity, DirectLink, FieldSpec, Gcs, GcsFederated, S3, S3Federated};
use serde::Serialize;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Kind of storage to which a credential gives access, which determines the format of its data.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr, EnumString, VariantArray,
)]
#[serde(into = "&'static str")]
#[strum(serialize_all = "kebab-case")]
pub enum CredentialType {
    /// A bucket of S3-compatible storage.
    S3,
    /// Azure storage, accessed with an application's identity or a connection string.
    #[strum(to_string = "azure_identity")]
    AzureIdentity,
    /// A bucket of Google Cloud Storage.
    Gcs,
    /// A link that contains its own authorization.
    DirectLink,
    /// A bucket of S3-compatible storage, without a saved secret.
    S3Federated,
    /// A container of Azure storage, without a saved secret.
    AzureFederated,
    /// A bucket of Google Cloud Storage, without a saved secret.
    GcsFederated,
}

named!(CredentialType);

impl CredentialType {
    /// The types that activations issue.
    pub const ISSUED: [Self; 4] = [Self::S3, Self::AzureIdentity, Self::Gcs, Self::DirectLink];

    /// Returns the type in which activations issue a credential of this type.
    pub const fn issued_as(self) -> Self {
        match self {
            Self::S3 | Self::S3Federated => Self::S3,
            Self::AzureIdentity | Self::AzureFederated => Self::AzureIdentity,
            Self::Gcs | Self::GcsFederated => Self::Gcs,
            Self::DirectLink => Self::DirectLink,
        }
    }

    /// Returns whether credentials of the type contain no secret. They are issued only in short-lived form.
    pub const fn is_keyless(self) -> bool {
        matches!(self, Self::S3Federated | Self::AzureFederated | Self::GcsFederated)
    }

    /// Returns the fields of the type's data.
    pub const fn fields(self) -> &'static [FieldSpec] {
        match self {
            Self::S3 => S3::FIELDS,
            Self::AzureIdentity => AzureIdentity::FIELDS,
            Self::Gcs => Gcs::FIELDS,
            Self::DirectLink => DirectLink::FIELDS,
            Self::S3Federated => S3Federated::FIELDS,
            Self::AzureFederated => AzureFederated::FIELDS,
            Self::GcsFederated => GcsFederated::FIELDS,
        }
    }
}

impl fmt::Display for CredentialType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
