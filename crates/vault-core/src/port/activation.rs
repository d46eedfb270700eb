//! Activations in the store.

use super::StoreError;
use crate::activation::{Activation, VendMode};
use crate::audit::SealedAuditRecord;
use crate::credential::CredentialType;
use crate::id::{ActivationId, CredentialId, OrganizationId};
use crate::integration::{IntegrationPrincipal, PrincipalStale};
use crate::namespace::Namespace;
use crate::sealed::SealedCredential;
use crate::time::Timestamp;
use async_trait::async_trait;

/// The activation that taking a namespace's credentials begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewActivation {
    /// Its id.
    pub id: ActivationId,
    /// The first moment at which it is over.
    pub expires_at: Timestamp,
    /// The form that was asked for.
    pub vend: VendMode,
    /// How many live activations the integration may have, this one included.
    pub limit: i64,
}

/// Takes the sealed credentials of a namespace.
#[derive(Clone, Debug)]
pub struct TakeCredentials {
    /// For which integration; judged in the decision by [`judge_integration`](crate::integration::judge_integration).
    pub principal: IntegrationPrincipal,
    /// The namespace, compared exactly; the principal's patterns allow it.
    pub namespace: Namespace,
    /// The activation that this begins; `None` for a dry run.
    pub activation: Option<NewActivation>,
    /// The most credentials that it may have.
    pub most: usize,
    /// Now.
    pub now: Timestamp,
    /// The record of it; kept only if they were taken.
    pub audit: SealedAuditRecord,
}

/// A credential as stored, its sealed data included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCredential {
    /// Its id.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// Its version.
    pub version: i64,
    /// Its sealed parts.
    pub sealed: SealedCredential,
}

/// What taking came to, judged in this order. Only [`TakeOutcome::Taken`] changed anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeOutcome {
    /// The integration may not act, or not on what was read of it.
    Refused(PrincipalStale),
    /// The namespace is frozen.
    Frozen,
    /// It has no credentials.
    Empty,
    /// It has more than it may.
    TooLarge,
    /// The integration has as many live activations as it may.
    TooManyLive,
    /// All of the namespace's credentials, oldest first (by id). The activation is there.
    Taken(Vec<TakenCredential>),
}

/// Lists the live activations of an integration.
#[derive(Clone, Debug)]
pub struct ListActivations {
    /// Whose; judged in the decision.
    pub principal: IntegrationPrincipal,
    /// Now.
    pub now: Timestamp,
}

/// Ends an activation.
#[derive(Clone, Debug)]
pub struct EndActivation {
    /// Whose; judged in the decision.
    pub principal: IntegrationPrincipal,
    /// Which.
    pub activation: ActivationId,
    /// Now.
    pub now: Timestamp,
    /// The record of it; kept only if there was a live one.
    pub audit: SealedAuditRecord,
}

/// Takes back an activation of which nothing was handed out.
#[derive(Clone, Debug)]
pub struct AbortActivation {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub activation: ActivationId,
    /// The record of it; kept in any case.
    pub audit: SealedAuditRecord,
}

/// Activations.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ActivationRepository: Send + Sync {
    /// Takes the credentials of a namespace and, where asked to, begins an activation. Safe against others that do
    /// the same, that change the integration or that freeze the namespace: the limit is exact, and what was decided
    /// after such a change knows of it.
    async fn take_credentials(&self, command: TakeCredentials) -> Result<TakeOutcome, StoreError>;

    /// The integration's live activations, newest first (of one moment, by id, ascending).
    async fn list_activations(
        &self,
        query: ListActivations,
    ) -> Result<Result<Vec<Activation>, PrincipalStale>, StoreError>;

    /// Ends one of the integration's own: its row goes. `false`: no live one of this id. Of several at once, one is
    /// told `true`.
    async fn end_activation(&self, command: EndActivation) -> Result<Result<bool, PrincipalStale>, StoreError>;

    /// Removes one, if it is still there, and records that.
    async fn abort_activation(&self, command: AbortActivation) -> Result<(), StoreError>;
}
