//! Credentials: their types, the data of each type, and its visible parts.
//!
//! The module of each type contains a table of its fields. It determines parsing, the canonical form that is sealed and
//! fingerprinted, and the information shown in lists. [`FieldClass`] determines which parts of a field are shown.

mod aws;
mod azure_cloud;
mod azure_federated;
mod azure_identity;
mod buckets;
mod change;
mod check;
mod connection_string;
mod data;
mod delete;
mod direct_link;
mod gcs;
mod gcs_federated;
mod headers;
mod health;
mod hygiene;
mod idempotency;
mod information;
pub(crate) mod instant;
mod key_file;
mod kind;
mod link;
mod list;
mod mask;
mod matches;
mod metadata;
mod placeholder;
mod reader;
mod request_check;
mod rule;
mod s3;
mod s3_federated;
mod s3_location;
mod save;
mod secret;
mod shape;
mod show;
mod signature;
mod spec;
mod state;
mod table;
mod uses;
mod value;
mod version;
mod violation;

pub use aws::AwsPartition;
pub use azure_cloud::AzureCloud;
pub use azure_federated::AzureFederated;
pub use azure_identity::{Application, AzureIdentity};
pub use buckets::Buckets;
pub use change::{ChangeCredential, ChangeEffects, CredentialChange, NewVersion, VersionEffect};
pub use check::{
    CHECK_AGAIN_SECONDS, CHECKER_SECONDS, CheckRound, ClaimChecks, DueCheck, RecordActivated, RecordCheck, VersionKey,
};
pub use connection_string::ConnectionString;
pub use data::{CredentialData, StoredDataError};
pub use delete::DeleteCredential;
pub use direct_link::DirectLink;
pub use gcs::Gcs;
pub use gcs_federated::GcsFederated;
pub use headers::{Header, Headers};
pub use health::{EXPIRING_SECONDS, Health, HealthState, LastCheck, effective_expiry};
pub use idempotency::{EarlierRequest, FindRequest};
pub use information::{Fingerprint, Information};
pub use key_file::KeyFile;
pub use kind::CredentialType;
pub use link::Link;
pub use list::{LIST_WINDOW, ListCredentials, ListPosition, ListedRows};
pub use matches::MatchCredential;
pub(crate) use metadata::is_label_value;
pub use metadata::{Description, LabelFilter, LabelPatch, Labels, Metadata};
pub use request_check::RequestCheck;
pub use s3::{Addressing, S3};
pub use s3_federated::S3Federated;
pub use s3_location::S3Location;
pub use save::SaveCredential;
pub use secret::{SecretBytes, SecretText};
pub use show::{ListVersions, ShowCredential, VersionsForChange};
pub use spec::{FieldClass, FieldSpec, ValueKind};
pub use state::CredentialState;
pub use uses::{CredentialUse, Holder, ListHolders, ListUses, USE_SECONDS, UsePosition};
pub use version::{Superseded, VersionLimits, VersionList, VersionRecord, VersionState};
