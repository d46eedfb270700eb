//! Activation: a namespace's credentials, opened for an integration for a while, in the form that it asks for.

mod form;
mod purpose;
mod refusal;
mod short;
mod ttl;
mod vend;
mod vended;

pub use form::{
    Assignment, CredentialEndpoint, EndpointAnswer, EnvironmentVariables, Form, FormError, FormName, FormSubject,
    PrivateFile,
};
pub use purpose::Purpose;
pub use refusal::{HandOutFacts, HandOutRefusal, HandedOut, TakingFacts, judge_hand_out, judge_taking};
pub use short::{AzureShort, GcsShort, S3Short, ShortData};
pub use ttl::ActivationTtl;
pub use vend::{VendMode, VendRule, VendedForm, allows_short};
pub use vended::Vended;

use crate::credential::{CredentialType, SecretBytes};
use crate::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use crate::namespace::Namespace;
use crate::time::Timestamp;

/// The most credentials that one activation opens.
pub const MAX_CREDENTIALS: usize = 100;
/// How many live activations an integration may have, where no configuration says otherwise.
pub const DEFAULT_LIVE_LIMIT: i64 = 1_000;

/// An activation as stored: that it was, never what it opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// ID of the activation.
    pub id: ActivationId,
    /// The organization.
    pub organization: OrganizationId,
    /// The integration that began it.
    pub integration: IntegrationId,
    /// What it activated.
    pub namespace: Namespace,
    /// Requested form.
    pub vend: VendMode,
    /// How many credentials it opened.
    pub credentials: u32,
    /// Start time.
    pub begun_at: Timestamp,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
}

impl Activation {
    /// Whether it still counts, and is listed.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// One credential of an activation, as its integration gets it.
#[derive(Debug)]
pub struct ActivatedCredential {
    /// The credential.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its version.
    pub version: i64,
    /// The issued credential.
    pub vended: Vended,
}

impl ActivatedCredential {
    /// The member `data` of the answer.
    pub fn data(&self) -> SecretBytes {
        self.vended.to_json()
    }

    /// What the audit says of it.
    pub const fn handed_out(&self) -> HandedOut {
        let expires_at = self.vended.expires_at();
        HandedOut { credential: self.id, version: self.version, form: self.vended.form(), expires_at }
    }
}

/// An activation that has just begun.
#[derive(Debug)]
pub struct Activated {
    /// The activation.
    pub id: ActivationId,
    /// What was activated.
    pub namespace: Namespace,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
    /// The namespace's credentials, oldest first.
    pub credentials: Vec<ActivatedCredential>,
}
