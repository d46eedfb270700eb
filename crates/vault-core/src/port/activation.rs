//! Activations in the store.

use super::IssuerRepository;
use super::{AuditLog, KeyedDigester, StoreError};
use crate::activation::{Activation, HandOutRefusal, HandedOut, Purpose, VendMode, VendRule};
use crate::audit::SealedAuditRecord;
use crate::command::Command;
use crate::credential::{CredentialState, CredentialType, LastCheck};
use crate::digest::Digest;
use crate::id::{ActivationId, CredentialId, OrganizationId};
use crate::integration::{IntegrationPrincipal, StoredIntegration};
use crate::namespace::Namespace;
use crate::sealed::SealedCredential;
use crate::time::Timestamp;
use async_trait::async_trait;

/// An integration's command. The store checks its principal with
/// [`judge_integration`](crate::integration::judge_integration).
pub type ForIntegration<A> = Command<A, IntegrationPrincipal>;

/// The activation that taking a namespace's credentials begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewActivation {
    /// Its id.
    pub id: ActivationId,
    /// The first moment at which it is over.
    pub expires_at: Timestamp,
    /// The form that was requested.
    pub vend: VendMode,
    /// How many live activations the integration may have, this one included.
    pub limit: i64,
}

/// Takes the sealed credentials of a namespace.
#[derive(Clone, Debug)]
pub struct TakeCredentials {
    /// The namespace, compared exactly; the principal's patterns cover it.
    pub namespace: Namespace,
    /// The activation that this begins; `None` for a check, and for the renewal of one.
    pub activation: Option<NewActivation>,
    /// The most credentials that the namespace may have.
    pub most: usize,
}

/// A credential as stored, its sealed data included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenCredential {
    /// Its id.
    pub id: CredentialId,
    /// Its type.
    pub kind: CredentialType,
    /// The version that was taken.
    pub version: i64,
    /// Its sealed parts.
    pub sealed: SealedCredential,
    /// In which forms it may be handed out.
    pub vend: VendRule,
    /// The current version.
    pub current: i64,
    /// The staged version, if there is one.
    pub staged: Option<i64>,
    /// How many changes clients have made to it, the save included.
    pub revision: i64,
    /// The revision that made its labels, description and declared expiries, if there are any.
    pub metadata_revision: Option<i64>,
    /// The [code](CredentialState::code) over the row.
    pub code: Digest,
    /// When it was last activated, to the minute.
    pub last_activated_at: Option<Timestamp>,
}

impl TakenCredential {
    /// Whether the row, in `namespace`, says what its code covers.
    pub fn is_sound(&self, digester: &dyn KeyedDigester, organization: OrganizationId, namespace: &Namespace) -> bool {
        let state = CredentialState {
            kind: self.kind,
            namespace,
            vend: self.vend,
            version: self.current,
            staged: self.staged,
            revision: self.revision,
            metadata_revision: self.metadata_revision,
        };
        state.fits(digester, (organization, self.id), &self.code)
    }
}

/// How long an activation side that took checks counts as there, in seconds.
pub const CHECKER_SECONDS: i64 = 60;
/// After how long a check that was taken, and whose result is missing, is taken again, in seconds.
pub const CHECK_AGAIN_SECONDS: i64 = 60;

/// Takes checks that are due: those that were requested, then those whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct TakeChecks {
    /// Now.
    pub now: Timestamp,
    /// At most so many of those requested.
    pub most: usize,
    /// At most so many of all credentials, in turn; a round begins this many seconds after the one before at the earliest.
    /// `None`: only those requested.
    pub turn: Option<(usize, i64)>,
}

/// How far a round of checks over all credentials has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckRound {
    /// When it began; `None`: there was none yet.
    pub began_at: Option<Timestamp>,
    /// The last credential whose turn it was, in the order of organizations and ids; `None`: the round is over.
    pub after: Option<(OrganizationId, CredentialId)>,
}

impl CheckRound {
    /// The round to go on with at `now`; `None`: the next one does not begin yet.
    pub fn due(self, every_seconds: i64, now: Timestamp) -> Option<Self> {
        if self.after.is_some() {
            return Some(self);
        }
        let due = self.began_at.is_none_or(|began| began.plus_seconds(every_seconds) <= now);
        due.then_some(Self { began_at: Some(now), after: None })
    }

    /// The round after `taken` had their turn, of which there could have been `most`.
    #[must_use]
    pub fn past(self, taken: &[(OrganizationId, CredentialId)], most: usize) -> Self {
        let after = taken.last().copied().filter(|_| taken.len() >= most);
        Self { after, ..self }
    }
}

/// Notes when credentials were last activated.
#[derive(Clone, Debug)]
pub struct NoteActivated {
    /// The organization.
    pub organization: OrganizationId,
    /// The credentials.
    pub credentials: Vec<CredentialId>,
    /// The minute.
    pub minute: Timestamp,
}

/// A check that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCheck {
    /// The organization.
    pub organization: OrganizationId,
    /// The credential's namespace.
    pub namespace: Namespace,
    /// The credential with the version to check.
    pub credential: TakenCredential,
    /// What the last check of this version found.
    pub before: Option<LastCheck>,
}

/// Stores what a check found, if the credential still has that version.
#[derive(Clone, Debug)]
pub struct RecordCheck {
    /// The organization.
    pub organization: OrganizationId,
    /// The credential.
    pub id: CredentialId,
    /// The version.
    pub version: i64,
    /// What was found.
    pub check: LastCheck,
    /// The record of a change of state.
    pub audit: Option<SealedAuditRecord>,
}

/// Decides, after all waiting, whether what was made ready for an activation may leave.
#[derive(Clone, Debug)]
pub struct HandOut {
    /// The activation that was begun.
    pub activation: ActivationId,
    /// Whether it was handed out before, and is renewed: then it must still live, gets the end and the number of
    /// credentials that this command says, and outlives a refusal.
    pub renewal: bool,
    /// The first moment at which it is over.
    pub expires_at: Timestamp,
    /// Its namespace.
    pub namespace: Namespace,
    /// What is to leave. Each of them is a use of its credential.
    pub credentials: Vec<HandedOut>,
    /// What the integration said it is for.
    pub purpose: Option<Purpose>,
    /// The record of a refusal; takes the place of the command's.
    pub refused: SealedAuditRecord,
}

/// Reads a page of an integration's live activations.
#[derive(Clone, Debug)]
pub struct ListActivations {
    /// Whose.
    pub principal: IntegrationPrincipal,
    /// Those older than this one.
    pub after: Option<ActivationId>,
    /// At most so many.
    pub limit: usize,
    /// Now.
    pub now: Timestamp,
}

/// Reads one live activation of an integration.
#[derive(Clone, Debug)]
pub struct FindActivation {
    /// Whose.
    pub principal: IntegrationPrincipal,
    /// Which.
    pub activation: ActivationId,
    /// Now.
    pub now: Timestamp,
}

/// Ends an activation.
#[derive(Clone, Copy, Debug)]
pub struct EndActivation {
    /// Which.
    pub activation: ActivationId,
}

/// Removes an activation that issued nothing.
#[derive(Clone, Debug)]
pub struct AbortActivation {
    /// The organization.
    pub organization: OrganizationId,
    /// Which.
    pub activation: ActivationId,
    /// The record of it; kept in any case.
    pub audit: SealedAuditRecord,
}

/// An integration as its token finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundIntegration {
    /// The integration, in whatever state and age.
    pub stored: StoredIntegration,
    /// Whether its organization is active.
    pub organization_active: bool,
}

/// Activations. Methods with a principal refuse one that may no longer act with
/// [`Denial::Integration`](crate::principal::Denial::Integration), in the same transaction.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ActivationRepository: Send + Sync {
    /// The integration whose current or previous token has this digest. The caller checks whether the token is valid.
    async fn find_integration_by_token(&self, token: Digest) -> Result<Option<FoundIntegration>, StoreError>;

    /// Reads the credentials of a namespace, oldest first (by id), and, if requested, begins an activation. Serialised
    /// with other activations (the limit is exact), changes of the integration and freezes of the namespace. Records the
    /// last use of the integration's current token, at most once a minute.
    ///
    /// Refused by [`judge_taking`](crate::activation::judge_taking).
    async fn take_credentials(
        &self,
        command: ForIntegration<TakeCredentials>,
    ) -> Result<Vec<TakenCredential>, StoreError>;

    /// Decides by [`judge_hand_out`](crate::activation::judge_hand_out) whether the prepared credentials may be issued,
    /// serialised like the first transaction, and also with deletion and replacement of the credentials. `None`: they are
    /// issued, and the command's record says so. After a refusal [`HandOut::refused`] is recorded, and the activation is
    /// gone, unless this was to renew it. Renewals and the end of one activation are decided one after the other.
    /// A principal that may not act is [`HandOutRefusal::Denied`], not an error.
    async fn hand_out(&self, command: ForIntegration<HandOut>) -> Result<Option<HandOutRefusal>, StoreError>;

    /// Reads a page of the integration's live activations, newest first (by id, descending).
    async fn list_activations(&self, query: ListActivations) -> Result<Vec<Activation>, StoreError>;

    /// The integration's activation, if it has a live one with this id.
    async fn find_activation(&self, query: FindActivation) -> Result<Option<Activation>, StoreError>;

    /// Ends an activation of the integration and deletes its row. `false`: it has no live one with this id. Of several
    /// calls at once, one returns `true`.
    async fn end_activation(&self, command: ForIntegration<EndActivation>) -> Result<bool, StoreError>;

    /// Removes one, if it still exists, and records that.
    async fn abort_activation(&self, command: AbortActivation) -> Result<(), StoreError>;

    /// Takes checks, and notes that an activation side is there. Checks of organizations that are not active are left out.
    async fn take_checks(&self, act: TakeChecks) -> Result<Vec<DueCheck>, StoreError>;

    /// Stores what a check found and records a change of state. `false`: the credential no longer has this version.
    async fn record_check(&self, act: RecordCheck) -> Result<bool, StoreError>;

    /// Notes that credentials were last activated in this minute, unless a later one was noted.
    async fn note_activated(&self, act: NoteActivated) -> Result<(), StoreError>;
}

/// What activating needs of a store: the only group that gives out sealed data.
pub trait ActivationStore: ActivationRepository + AuditLog + IssuerRepository {}

impl<S: ActivationRepository + AuditLog + IssuerRepository + ?Sized> ActivationStore for S {}
