//! The audit trail: who did what, when, to what. An allow-list of fields; nothing secret has a place in it.

mod checkpoint;
mod entry;
mod origin;
mod state;
mod verification;

pub use checkpoint::{
    CHECKPOINT_ENTRIES, Checkpoint, CheckpointContent, CheckpointMark, SealedCheckpoint, StoredCheckpoint,
    UnsealedEntry,
};
pub use entry::{AuditEntry, AuditedCredential};
pub use origin::Origin;
pub use state::{Affected, RecordedRow, RowState};
pub use verification::{AuditFinding, AuditVerification};

use crate::activation::{HandedOut, Purpose};
use crate::digest::Digest;
use crate::id::{AccountId, ActivationId, AuditId, CredentialId, IntegrationId, KeyId, OrganizationId, SessionId};
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

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditAction {
    /// The deployment was made.
    InstanceCreated,
    /// The root key was replaced: the instance key is wrapped under another one.
    RootKeyReplaced,
    /// An organization was made.
    OrganizationCreated,
    /// An organization was disabled.
    OrganizationDisabled,
    /// An organization was enabled.
    OrganizationEnabled,
    /// An organization and its keys were destroyed.
    OrganizationDeleted,
    /// An organization's key was replaced.
    OrganizationKeyReplaced,
    /// An organization's key that nothing was sealed under any more was destroyed.
    OrganizationKeyDestroyed,
    /// The instance key was replaced.
    InstanceKeyReplaced,
    /// An instance key was destroyed, because nothing is under it any more.
    InstanceKeyDestroyed,
    /// An account was made.
    AccountCreated,
    /// Somebody was invited.
    AccountInvited,
    /// Nobody was invited, because the address has an account, perhaps of another organization.
    InvitationRefused,
    /// A code was to confirm an enrolment, and was wrong.
    EnrolmentRefused,
    /// An invited person chose a password and was given a passcode seed; not confirmed yet.
    EnrolmentDrafted,
    /// An invited person confirmed: the account was created, or has secrets again.
    AccountEnrolled,
    /// An invitation got another role.
    InvitationChanged,
    /// An invitation was withdrawn.
    InvitationDeleted,
    /// An account was disabled.
    AccountDisabled,
    /// An account was enabled.
    AccountEnabled,
    /// An account was deleted.
    AccountDeleted,
    /// An account's role was changed.
    AccountRoleChanged,
    /// An account's password was changed.
    AccountPasswordChanged,
    /// An account's passcode seed and recovery codes were replaced.
    AccountPasscodeReset,
    /// An account's password, passcode seed and recovery codes were taken, and its owner may enrol again.
    AccountReEnrolled,
    /// An account's owner asked for a new passcode seed; not confirmed yet.
    AccountPasscodeDrafted,
    /// An account's owner replaced the passcode seed.
    AccountPasscodeChanged,
    /// A code that was to confirm a new passcode seed was wrong.
    AccountPasscodeUnconfirmed,
    /// An account's owner replaced the recovery codes.
    AccountRecoveryCodesReplaced,
    /// An account's waits and closed classes were lifted.
    AccountUnlocked,
    /// An account's current passcode was printed.
    AccountPasscodeRead,
    /// The embedded database's key was printed.
    DatabaseKeyRead,
    /// The whole database was copied, or compared with its copy.
    DatabaseCopied,
    /// A backup of the embedded database was begun.
    DatabaseBackedUp,
    /// An earlier state of the database was put in force: sessions, recovery codes and activations ended.
    DatabaseRestored,
    /// A login succeeded.
    LoginSucceeded,
    /// A login was refused after a wrong password or for a closed account.
    LoginRefused,
    /// A login was refused after a right password and a wrong passcode.
    LoginPasscodeRefused,
    /// Logins that were not counted were refused: on unknown addresses, during a wait, or on what is closed or disabled.
    LoginTurnedAway,
    /// So many logins failed in a row that their class was closed.
    LoginClassClosed,
    /// So many passcodes were wrong that time-based ones are disabled.
    LoginPasscodeDisabled,
    /// A session ended itself.
    LoggedOut,
    /// A session was ended by its owner through another one.
    SessionEnded,
    /// A credential was saved.
    CredentialSaved,
    /// A credential's data was replaced.
    CredentialReplaced,
    /// A version of a credential's data was staged.
    CredentialStaged,
    /// A staged or previous version became the current one.
    CredentialPromoted,
    /// A staged or previous version was destroyed.
    CredentialVersionDestroyed,
    /// Labels, description, expiry or rule of a credential were changed.
    CredentialDescribed,
    /// Data was compared with a credential's.
    CredentialMatched,
    /// A check of a credential was requested.
    CredentialCheckRequested,
    /// A check of a credential failed, and the one before did not.
    CredentialFailing,
    /// A check of a credential succeeded, and the one before did not.
    CredentialHealthy,
    /// A credential was deleted.
    CredentialDeleted,
    /// Credentials were listed.
    CredentialsListed,
    /// A credential's information was shown.
    CredentialShown,
    /// An integration was made.
    IntegrationCreated,
    /// An integration got another token.
    IntegrationRotated,
    /// An integration was disabled.
    IntegrationDisabled,
    /// An integration was enabled.
    IntegrationEnabled,
    /// An integration's namespaces or expiry were changed, and perhaps its state.
    IntegrationChanged,
    /// An integration was deleted.
    IntegrationDeleted,
    /// A namespace was frozen: nothing activates it.
    NamespaceFrozen,
    /// A namespace was thawed.
    NamespaceThawed,
    /// An activation began: a namespace's credentials were read, to be opened for an integration.
    ActivationBegun,
    /// A namespace's credentials were issued to an integration.
    NamespaceActivated,
    /// A namespace's credentials were checked for an integration.
    NamespaceChecked,
    /// An integration asked for a namespace that it may not activate.
    ActivationRefusedOutside,
    /// Somebody came with a token of an integration that was replaced or has expired, or of one that is disabled.
    ActivationRefusedToken,
    /// An integration asked for a frozen namespace.
    ActivationRefusedFrozen,
    /// An integration asked for an empty or too large namespace, or has too many live activations.
    ActivationRefused,
    /// An activation that had begun handed nothing out: a credential did not open or has no such form, or the
    /// integration, the namespace or a credential was changed meanwhile.
    ActivationFailed,
    /// An integration ended one of its activations.
    ActivationEnded,
    /// Entries of the audit were read.
    AuditListed,
    /// The oldest entries were removed, because their time was over.
    AuditCut,
    /// The state of a row that grants was recorded, because no entry had it any more.
    StateRecorded,
}

impl AuditAction {
    /// The action's stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InstanceCreated => "instance.created",
            Self::RootKeyReplaced => "instance.root-key-replaced",
            Self::OrganizationCreated => "organization.created",
            Self::OrganizationDisabled => "organization.disabled",
            Self::OrganizationEnabled => "organization.enabled",
            Self::OrganizationDeleted => "organization.deleted",
            Self::InstanceKeyReplaced => "instance.key-replaced",
            Self::InstanceKeyDestroyed => "instance.key-destroyed",
            Self::OrganizationKeyReplaced => "organization.key-replaced",
            Self::OrganizationKeyDestroyed => "organization.key-destroyed",
            Self::AccountCreated => "account.created",
            Self::AccountInvited => "account.invited",
            Self::InvitationRefused => "invitation.address-in-use",
            Self::EnrolmentDrafted => "account.enrolment-drafted",
            Self::EnrolmentRefused => "account.enrolment-refused",
            Self::AccountEnrolled => "account.enrolled",
            Self::InvitationChanged => "invitation.role-changed",
            Self::InvitationDeleted => "invitation.deleted",
            Self::AccountDisabled => "account.disabled",
            Self::AccountEnabled => "account.enabled",
            Self::AccountDeleted => "account.deleted",
            Self::AccountRoleChanged => "account.role-changed",
            Self::AccountPasswordChanged => "account.password-changed",
            Self::AccountPasscodeReset => "account.passcode-reset",
            Self::AccountReEnrolled => "account.re-enrolled",
            Self::AccountPasscodeDrafted => "account.passcode-drafted",
            Self::AccountPasscodeChanged => "account.passcode-changed",
            Self::AccountPasscodeUnconfirmed => "account.passcode-unconfirmed",
            Self::AccountRecoveryCodesReplaced => "account.recovery-codes-replaced",
            Self::AccountUnlocked => "account.unlocked",
            Self::AccountPasscodeRead => "account.passcode-read",
            Self::DatabaseKeyRead => "database.key-read",
            Self::DatabaseCopied => "database.copied",
            Self::DatabaseBackedUp => "database.backed-up",
            Self::DatabaseRestored => "database.restored",
            Self::LoginSucceeded => "login.succeeded",
            Self::LoginRefused => "login.refused",
            Self::LoginPasscodeRefused => "login.passcode-refused",
            Self::LoginTurnedAway => "login.turned-away",
            Self::LoginClassClosed => "login.class-closed",
            Self::LoginPasscodeDisabled => "login.passcode-disabled",
            Self::LoggedOut => "session.logged-out",
            Self::SessionEnded => "session.ended",
            Self::CredentialSaved => "credential.saved",
            Self::CredentialReplaced => "credential.replaced",
            Self::CredentialStaged => "credential.staged",
            Self::CredentialPromoted => "credential.promoted",
            Self::CredentialVersionDestroyed => "credential.version-destroyed",
            Self::CredentialDescribed => "credential.described",
            Self::CredentialMatched => "credential.matched",
            Self::CredentialCheckRequested => "credential.check-requested",
            Self::CredentialFailing => "credential.failing",
            Self::CredentialHealthy => "credential.healthy",
            Self::CredentialDeleted => "credential.deleted",
            Self::CredentialsListed => "credentials.listed",
            Self::CredentialShown => "credential.shown",
            Self::IntegrationCreated => "integration.created",
            Self::IntegrationRotated => "integration.rotated",
            Self::IntegrationDisabled => "integration.disabled",
            Self::IntegrationEnabled => "integration.enabled",
            Self::IntegrationChanged => "integration.changed",
            Self::IntegrationDeleted => "integration.deleted",
            Self::NamespaceFrozen => "namespace.frozen",
            Self::NamespaceThawed => "namespace.thawed",
            Self::ActivationBegun => "activation.begun",
            Self::NamespaceActivated => "namespace.activated",
            Self::NamespaceChecked => "namespace.checked",
            Self::ActivationRefusedOutside => "activation.refused-outside",
            Self::ActivationRefusedToken => "activation.refused-token",
            Self::ActivationRefusedFrozen => "activation.refused-frozen",
            Self::ActivationRefused => "activation.refused",
            Self::ActivationFailed => "activation.failed",
            Self::ActivationEnded => "activation.ended",
            Self::AuditListed => "audit.listed",
            Self::AuditCut => "audit.cut",
            Self::StateRecorded => "row.state-recorded",
        }
    }
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
    /// All addresses that no account has.
    UnknownAddresses,
    /// An integration.
    Integration(IntegrationId),
    /// An activation.
    Activation(ActivationId),
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
            Self::UnknownAddresses => "unknown-addresses".to_owned(),
            Self::Integration(id) => format!("integration:{id}"),
            Self::Activation(id) => format!("activation:{id}"),
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
    /// How often within the minute of the entry; 1 for single acts.
    pub count: i64,
    /// Which namespace it is about, where it is about one.
    pub note: Option<AuditNote>,
    /// The request that it was done by, and where that came from.
    pub origin: Origin,
    /// The rows that it changed, as it left them: those that grant, and credentials.
    pub rows: Vec<(RecordedRow, RowState)>,
}

impl AuditRecord {
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
