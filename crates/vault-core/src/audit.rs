//! The audit trail: who did what, when, to what. An allow-list of fields; nothing secret has a place in it.

mod change;
mod checkpoint;
mod delivery;
mod entry;
mod origin;
mod state;
mod verification;

pub use change::{AuditChange, ChangedField};
pub use checkpoint::{
    CHECKPOINT_ENTRIES, Checkpoint, CheckpointContent, CheckpointMark, SealedCheckpoint, StoredCheckpoint,
    UnsealedEntry,
};
pub use delivery::{DeliveryBreach, DeliveryPosition, DeliveryState};
pub use entry::{AuditEntry, AuditedCredential};
pub use origin::Origin;
pub use state::{Affected, RecordedGrant, RecordedRow, RowState};
pub use verification::{AuditFinding, AuditVerification};

use crate::activation::{HandedOut, Purpose};
use crate::digest::Digest;
use crate::id::{
    AccountId, ActivationId, AuditId, CredentialId, IntegrationId, KeyId, OrganizationId, ReceiverId, SessionId,
};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::network::Network;
use crate::principal::{Principal, SessionPrincipal};
use crate::time::Timestamp;

/// Who acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// An account through a session.
    Account(AccountId, SessionId),
    /// A user of an embedding service.
    Embedder(AccountId),
    /// An integration through its token.
    Integration(IntegrationId),
    /// Somebody with access to the machine, by the command line.
    Operator,
    /// The service itself.
    System,
    /// Somebody who has not proven who they are.
    Unknown,
}

impl Actor {
    /// The kind's stored name.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Account(..) => "account",
            Self::Embedder(_) => "embedder",
            Self::Integration(_) => "integration",
            Self::Operator => "operator",
            Self::System => "system",
            Self::Unknown => "unknown",
        }
    }

    /// The account, where one is known.
    pub const fn account(self) -> Option<AccountId> {
        match self {
            Self::Account(account, _) | Self::Embedder(account) => Some(account),
            Self::Integration(_) | Self::Operator | Self::System | Self::Unknown => None,
        }
    }

    /// The integration, where it was one.
    pub const fn integration(self) -> Option<IntegrationId> {
        match self {
            Self::Integration(integration) => Some(integration),
            _ => None,
        }
    }

    /// The session, where one is known.
    pub const fn session(self) -> Option<SessionId> {
        match self {
            Self::Account(_, session) => Some(session),
            _ => None,
        }
    }
}

impl From<&Principal> for Actor {
    fn from(principal: &Principal) -> Self {
        match principal {
            Principal::Operator => Self::Operator,
            Principal::Session(session) => Self::from(session),
            Principal::Embedder(embedder) => Self::Embedder(embedder.account),
        }
    }
}

impl From<&SessionPrincipal> for Actor {
    fn from(principal: &SessionPrincipal) -> Self {
        Self::Account(principal.account, principal.session)
    }
}

impl From<&IntegrationPrincipal> for Actor {
    fn from(principal: &IntegrationPrincipal) -> Self {
        Self::Integration(principal.integration)
    }
}

macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $name:literal,)*) => {
        /// What was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum AuditAction {
            $($(#[$doc])* $action,)*
        }

        impl AuditAction {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$action),*];

            /// The action's stored name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    /// The deployment was made.
    InstanceCreated = "instance.created",
    /// The root key was replaced: the instance key is wrapped under another one.
    RootKeyReplaced = "instance.root-key-replaced",
    /// An organization was made.
    OrganizationCreated = "organization.created",
    /// An organization was disabled.
    OrganizationDisabled = "organization.disabled",
    /// An organization was enabled.
    OrganizationEnabled = "organization.enabled",
    /// An organization and its keys were destroyed.
    OrganizationDeleted = "organization.deleted",
    /// An organization's key was replaced.
    OrganizationKeyReplaced = "organization.key-replaced",
    /// An organization's key that nothing was sealed under any more was destroyed.
    OrganizationKeyDestroyed = "organization.key-destroyed",
    /// The instance key was replaced.
    InstanceKeyReplaced = "instance.key-replaced",
    /// An instance key was destroyed, because nothing is under it any more.
    InstanceKeyDestroyed = "instance.key-destroyed",
    /// An account was made.
    AccountCreated = "account.created",
    /// Somebody was invited.
    AccountInvited = "account.invited",
    /// Nobody was invited, because the address has an account, perhaps of another organization.
    InvitationRefused = "invitation.address-in-use",
    /// A code was to confirm an enrolment, and was wrong.
    EnrolmentRefused = "account.enrolment-refused",
    /// An invited person chose a password and was given a passcode seed; not confirmed yet.
    EnrolmentDrafted = "account.enrolment-drafted",
    /// An invited person confirmed: the account was created, or has secrets again.
    AccountEnrolled = "account.enrolled",
    /// An invitation got another role.
    InvitationChanged = "invitation.role-changed",
    /// An invitation was withdrawn.
    InvitationDeleted = "invitation.deleted",
    /// An account was disabled.
    AccountDisabled = "account.disabled",
    /// An account was enabled.
    AccountEnabled = "account.enabled",
    /// An account was deleted.
    AccountDeleted = "account.deleted",
    /// An account's role was changed.
    AccountRoleChanged = "account.role-changed",
    /// An account's password was changed.
    AccountPasswordChanged = "account.password-changed",
    /// An account's passcode seed and recovery codes were replaced.
    AccountPasscodeReset = "account.passcode-reset",
    /// An account's password, passcode seed and recovery codes were taken, and its owner may enrol again.
    AccountReEnrolled = "account.re-enrolled",
    /// An account's owner asked for a new passcode seed; not confirmed yet.
    AccountPasscodeDrafted = "account.passcode-drafted",
    /// An account's owner replaced the passcode seed.
    AccountPasscodeChanged = "account.passcode-changed",
    /// A code that was to confirm a new passcode seed was wrong.
    AccountPasscodeUnconfirmed = "account.passcode-unconfirmed",
    /// An account's owner replaced the recovery codes.
    AccountRecoveryCodesReplaced = "account.recovery-codes-replaced",
    /// An account's waits and closed classes were lifted.
    AccountUnlocked = "account.unlocked",
    /// An account's current passcode was printed.
    AccountPasscodeRead = "account.passcode-read",
    /// The embedded database's key was printed.
    DatabaseKeyRead = "database.key-read",
    /// The whole database was copied, or compared with its copy.
    DatabaseCopied = "database.copied",
    /// A backup of the embedded database was begun.
    DatabaseBackedUp = "database.backed-up",
    /// An earlier state of the database was put in force: sessions, recovery codes and activations ended.
    DatabaseRestored = "database.restored",
    /// A login succeeded.
    LoginSucceeded = "login.succeeded",
    /// A login was refused after a wrong password or for a closed account.
    LoginRefused = "login.refused",
    /// A login was refused after a right password and a wrong passcode.
    LoginPasscodeRefused = "login.passcode-refused",
    /// Logins that were not counted were refused: on unknown addresses, during a wait, or on what is closed or disabled.
    LoginThrottled = "login.turned-away",
    /// So many logins failed in a row that their class was closed.
    LoginClassClosed = "login.class-closed",
    /// So many passcodes were wrong that time-based ones are disabled.
    LoginPasscodeDisabled = "login.passcode-disabled",
    /// A session ended itself.
    LoggedOut = "session.logged-out",
    /// A session was ended by its owner through another one.
    SessionEnded = "session.ended",
    /// A credential was saved.
    CredentialSaved = "credential.saved",
    /// A credential's data was replaced.
    CredentialReplaced = "credential.replaced",
    /// A version of a credential's data was staged.
    CredentialStaged = "credential.staged",
    /// A staged or previous version became the current one.
    CredentialPromoted = "credential.promoted",
    /// A staged or previous version was destroyed.
    CredentialVersionDestroyed = "credential.version-destroyed",
    /// Labels, description or expiry of a credential were changed.
    CredentialDescribed = "credential.described",
    /// A credential's rule was relaxed: it may be handed out in any form.
    CredentialVendRelaxed = "credential.vend-relaxed",
    /// A credential's rule was restricted: it is handed out in short-lived form only.
    CredentialVendRestricted = "credential.vend-restricted",
    /// Data was compared with a credential's.
    CredentialMatched = "credential.matched",
    /// A check of a credential was requested.
    CredentialCheckRequested = "credential.check-requested",
    /// A check of a credential failed, and the one before did not.
    CredentialFailing = "credential.failing",
    /// A check of a credential succeeded, and the one before did not.
    CredentialHealthy = "credential.healthy",
    /// A credential was deleted.
    CredentialDeleted = "credential.deleted",
    /// Credentials were listed.
    CredentialsListed = "credentials.listed",
    /// A credential's information was shown.
    CredentialShown = "credential.shown",
    /// An integration was made.
    IntegrationCreated = "integration.created",
    /// An integration got another token.
    IntegrationRotated = "integration.rotated",
    /// An integration was disabled.
    IntegrationDisabled = "integration.disabled",
    /// An integration was enabled.
    IntegrationEnabled = "integration.enabled",
    /// An integration's namespaces or expiry were changed.
    IntegrationChanged = "integration.changed",
    /// An integration was deleted.
    IntegrationDeleted = "integration.deleted",
    /// Workloads of an issuer may act for an integration.
    IntegrationTrusted = "integration.trusted",
    /// Workloads of an issuer may no longer act for an integration.
    IntegrationDistrusted = "integration.distrusted",
    /// An issuer of identity tokens was added.
    IssuerAdded = "issuer.added",
    /// An issuer of identity tokens was removed.
    IssuerRemoved = "issuer.removed",
    /// A receiver of events was added.
    ReceiverAdded = "receiver.added",
    /// What a receiver is told, or whether it is told anything, was changed.
    ReceiverChanged = "receiver.changed",
    /// A receiver got another signing secret.
    ReceiverSecretReplaced = "receiver.secret-replaced",
    /// A receiver was removed.
    ReceiverRemoved = "receiver.removed",
    /// A receiver said that it is gone, or its address belongs to nobody any more: it is told nothing.
    ReceiverDisabled = "receiver.disabled",
    /// A test was sent to a receiver.
    ReceiverTested = "receiver.tested",
    /// An event is sent to a receiver again.
    ReceiverResent = "receiver.resent",
    /// A namespace was frozen: nothing activates it.
    NamespaceFrozen = "namespace.frozen",
    /// A namespace was thawed.
    NamespaceThawed = "namespace.thawed",
    /// An activation began: a namespace's credentials were read, to be opened for an integration.
    ActivationBegun = "activation.begun",
    /// A namespace's credentials were issued to an integration.
    NamespaceActivated = "namespace.activated",
    /// A namespace's credentials were checked for an integration.
    NamespaceChecked = "namespace.checked",
    /// An integration asked for a namespace that it may not activate.
    ActivationRefusedOutside = "activation.refused-outside",
    /// Somebody came with a token of an integration that was replaced or has expired, or of one that is disabled.
    ActivationRefusedToken = "activation.refused-token",
    /// An identity token was shown that no trust of the integration allows. At most one entry a minute, with their number.
    ActivationRefusedWorkload = "activation.refused-workload",
    /// An integration asked for a frozen namespace.
    ActivationRefusedFrozen = "activation.refused-frozen",
    /// An integration asked for an empty or too large namespace, or has too many live activations.
    ActivationRefused = "activation.refused",
    /// An activation that had begun handed nothing out: a credential did not open or has no such form, or the
    /// integration, the namespace or a credential was changed meanwhile.
    ActivationFailed = "activation.failed",
    /// A renewal began: the credentials of an activation's namespace were read, to be opened for its integration again.
    ActivationRenewalBegun = "activation.renewal-begun",
    /// The current credentials of an activation's namespace were issued to its integration again, with a new end.
    ActivationRenewed = "activation.renewed",
    /// A renewal that had begun handed nothing out, for the reasons of [`AuditAction::ActivationFailed`]. The activation
    /// lives until it expires.
    ActivationRenewalFailed = "activation.renewal-failed",
    /// An integration ended one of its activations.
    ActivationEnded = "activation.ended",
    /// Entries of the audit were read.
    AuditListed = "audit.listed",
    /// The oldest entries were removed, because their time was over.
    AuditCut = "audit.cut",
    /// The position of the audit's delivery was changed outside the service: all entries are delivered anew.
    AuditDeliveryReset = "audit.delivery-reset",
    /// The state of a row that grants was recorded, because no entry had it any more.
    StateRecorded = "row.state-recorded",
}

/// What was acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The deployment as a whole.
    Instance,
    /// An organization.
    Organization(OrganizationId),
    /// An account.
    Account(AccountId),
    /// A session.
    Session(SessionId),
    /// A credential.
    Credential(CredentialId),
    /// An organization's vault.
    Vault,
    /// A namespace. Its entry names it.
    Namespace,
    /// All addresses that no account has.
    UnknownAddresses,
    /// An integration.
    Integration(IntegrationId),
    /// An activation.
    Activation(ActivationId),
    /// A receiver of events.
    Receiver(ReceiverId),
    /// The audit.
    Audit,
}

impl Subject {
    /// The subject's stored text.
    pub fn text(self) -> String {
        match self {
            Self::Instance => "instance".to_owned(),
            Self::Organization(id) => format!("organization:{id}"),
            Self::Account(id) => format!("account:{id}"),
            Self::Session(id) => format!("session:{id}"),
            Self::Credential(id) => format!("credential:{id}"),
            Self::Vault => "vault".to_owned(),
            Self::Namespace => "namespace".to_owned(),
            Self::UnknownAddresses => "unknown-addresses".to_owned(),
            Self::Integration(id) => format!("integration:{id}"),
            Self::Activation(id) => format!("activation:{id}"),
            Self::Receiver(id) => format!("receiver:{id}"),
            Self::Audit => "audit".to_owned(),
        }
    }
}

/// What an entry about a namespace says in addition to its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditNote {
    /// The namespace.
    pub namespace: Namespace,
    /// What the integration said it is for.
    pub purpose: Option<Purpose>,
    /// The network that the integration's request came from.
    pub network: Option<Network>,
    /// The issued credentials. If the activation failed: the short-lived credentials already requested for it, which
    /// cannot be revoked.
    pub credentials: Vec<HandedOut>,
}

impl AuditNote {
    /// A note of a namespace alone.
    pub const fn of(namespace: Namespace) -> Self {
        Self { namespace, purpose: None, network: None, credentials: Vec::new() }
    }

    /// [`AuditNote::credentials`] as they are stored: a line for each, with id, version and form, and the end where it
    /// has one, in milliseconds. `None` without any.
    pub fn credentials_text(&self) -> Option<String> {
        let line = |one: &HandedOut| {
            let HandedOut { credential, version, form, expires_at } = one;
            let end = expires_at.map(|end| format!(" {}", end.as_millis())).unwrap_or_default();
            format!("{credential} {version} {}{end}", form.as_str())
        };
        let lines: Vec<_> = self.credentials.iter().map(line).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// One entry of the trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Its id; orders the entries of one moment.
    pub id: AuditId,
    /// When it happened.
    pub at: Timestamp,
    /// In which organization, where in one.
    pub organization: Option<OrganizationId>,
    /// Who acted.
    pub actor: Actor,
    /// What was done.
    pub action: AuditAction,
    /// To what.
    pub subject: Subject,
    /// How often within a minute, before the entry was written; 1 for single acts.
    pub count: i64,
    /// Which namespace it is about, where it is about one.
    pub note: Option<AuditNote>,
    /// The request that it was done by, and where that came from.
    pub origin: Origin,
    /// The rows that it changed, as it left them: those that grant, and credentials.
    pub rows: Vec<(RecordedRow, RowState)>,
    /// What it changed, from what to what.
    pub changes: Vec<AuditChange>,
}

impl AuditRecord {
    /// [`AuditRecord::changes`] as they are stored. `None` without any.
    pub fn changes_text(&self) -> Option<String> {
        change::text(&self.changes)
    }

    /// [`AuditRecord::rows`] as they are stored: a line for each. `None` without any.
    pub fn rows_text(&self) -> Option<String> {
        state::text(&self.rows)
    }

    /// The network that the request came from, as it is stored.
    pub fn network_text(&self) -> Option<String> {
        let noted = self.note.as_ref().and_then(|note| note.network);
        noted.or(self.origin.network).map(|network| network.to_string())
    }
}

/// An entry with its code: what the store appends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedAuditRecord {
    /// The entry.
    pub record: AuditRecord,
    /// The key of its code.
    pub key: KeyId,
    /// The code over the entry.
    pub code: Digest,
}
