//! Activations: a namespace's decrypted credentials, issued to an integration for a limited time in the requested form.

mod fetch;
mod issue;
mod own;
mod purpose;
mod refusal;
mod short;
mod ttl;
mod vend;
mod vended;

pub use fetch::{FetchCredentials, FetchedCredential, FetchedNamespace, NewActivation};
pub use issue::IssueCredentials;
pub use own::{AbortActivation, EndActivation, FindActivation, ListActivations};
pub use purpose::Purpose;
pub use refusal::{
    ActivationFacts, IssuanceFacts, IssuanceRefusal, IssuedCredential, check_activation, check_issuance,
};
pub use short::{AzureShort, GcsShort, S3Short, ShortData};
pub use ttl::ActivationTtl;
pub use vend::{VendMode, VendRule, VendedForm, allows_short};
pub use vended::Vended;

use crate::command::Command;
use crate::credential::{CredentialType, SecretBytes};
use crate::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::time::Timestamp;

/// A command of an integration, authorized with [`check_integration`](crate::integration::check_integration).
pub type ForIntegration<A> = Command<A, IntegrationPrincipal>;

/// Maximum number of credentials of one activation.
pub const MAX_CREDENTIALS: usize = 100;
/// Default limit of active activations per integration.
pub const DEFAULT_LIVE_LIMIT: i64 = 1_000;

/// A stored activation, without the data that it issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// ID of the activation.
    pub id: ActivationId,
    /// The organization.
    pub organization: OrganizationId,
    /// Integration that started it.
    pub integration: IntegrationId,
    /// Activated namespace.
    pub namespace: Namespace,
    /// Requested form.
    pub vend: VendMode,
    /// Number of issued credentials.
    pub credentials: u32,
    /// Start time.
    pub started_at: Timestamp,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
}

impl Activation {
    /// Returns whether it is active, so that it counts and is listed.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// One credential of an activation, as issued to its integration.
#[derive(Debug)]
pub struct ActivatedCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Type in which it is issued.
    pub kind: CredentialType,
    /// Issued version.
    pub version: i64,
    /// The issued credential.
    pub vended: Vended,
}

impl ActivatedCredential {
    /// Returns the field `data` of the response.
    pub fn data(&self) -> SecretBytes {
        self.vended.to_json()
    }

    /// Returns the entry in the audit log.
    pub const fn issued_credentials(&self) -> IssuedCredential {
        let expires_at = self.vended.expires_at();
        IssuedCredential { credential: self.id, version: self.version, form: self.vended.form(), expires_at }
    }
}

/// A new activation.
#[derive(Debug)]
pub struct Activated {
    /// ID of the activation.
    pub id: ActivationId,
    /// Activated namespace.
    pub namespace: Namespace,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
    /// The namespace's credentials, oldest first.
    pub credentials: Vec<ActivatedCredential>,
}
