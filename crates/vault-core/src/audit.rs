//! The audit log: who did what, when and to which object. Entries have a fixed list of fields, none of which can
//! contain a secret.

mod append;
mod awaited;
mod change;
mod checkpoint;
mod checkpoints;
mod delivery;
mod entry;
mod list;
mod origin;
mod state;
mod verification;

pub use append::{AppendEntries, RecordEntry};
pub use awaited::AwaitedEntries;
pub use change::{AuditChange, ChangedField};
pub use checkpoint::{
    CHECKPOINT_ENTRIES, Checkpoint, CheckpointContent, CheckpointRef, SealedCheckpoint, StoredCheckpoint, UnsealedEntry,
};
pub use checkpoints::{AddCheckpoint, CutAudit, FindEntries, ReadCheckpoints, UnsealedEntries};
pub use delivery::{DeliveryBreach, DeliveryLease, DeliveryPosition, DeliveryState, ReadDelivery, RecordDelivered};
pub use entry::{AuditEntry, AuditedCredential};
pub use list::ListEntries;
pub use origin::Origin;
pub use state::{Affected, RecordedRow, RowState};
pub use verification::{AuditFinding, AuditVerification};

use crate::activation::{IssuedCredential, Purpose};
use crate::digest::Digest;
use crate::id::{
    AccountId, ActivationId, AuditId, CredentialId, IntegrationId, IssuerId, KeyId, OrganizationId, ReceiverId,
    SessionId,
};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::network::Network;
use crate::principal::{Principal, SessionPrincipal};
use crate::time::Timestamp;

/// The actor of an audit entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// An account, authenticated by a session.
    Account(AccountId, SessionId),
    /// A user of an embedding service.
    Embedder(AccountId),
    /// An integration, authenticated by its token or an identity token.
    Integration(IntegrationId),
    /// A person with access to the command line of the host.
    Operator,
    /// The server itself.
    System,
    /// A client that has not authenticated.
    Unknown,
}

impl Actor {
    /// Returns the stored name of the kind.
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

    /// Returns the account, if one is identified.
    pub const fn account(self) -> Option<AccountId> {
        match self {
            Self::Account(account, _) | Self::Embedder(account) => Some(account),
            Self::Integration(_) | Self::Operator | Self::System | Self::Unknown => None,
        }
    }

    /// Returns the integration, if the actor is one.
    pub const fn integration(self) -> Option<IntegrationId> {
        match self {
            Self::Integration(integration) => Some(integration),
            _ => None,
        }
    }

    /// Returns the session, if one is identified.
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
        /// An audited action.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum AuditAction {
            $($(#[$doc])* $action,)*
        }

        impl AuditAction {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$action),*];

            /// Returns the stored name of the action.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    /// The instance was created.
    InstanceCreated = "instance.created",
    /// The root key was replaced: the instance key is wrapped by another one.
    RootKeyReplaced = "instance.root-key-replaced",
    /// An organization was created.
    OrganizationCreated = "organization.created",
    /// An organization was disabled.
    OrganizationDisabled = "organization.disabled",
    /// An organization was enabled.
    OrganizationEnabled = "organization.enabled",
    /// An organization and its keys were destroyed.
    OrganizationDeleted = "organization.deleted",
    /// An organization's key was replaced.
    OrganizationKeyReplaced = "organization.key-replaced",
    /// A retired key of an organization was destroyed, because no data remained sealed with it.
    OrganizationKeyDestroyed = "organization.key-destroyed",
    /// The instance key was replaced.
    InstanceKeyReplaced = "instance.key-replaced",
    /// A retired instance key was destroyed, because no row used it any more.
    InstanceKeyDestroyed = "instance.key-destroyed",
    /// An account was created.
    AccountCreated = "account.created",
    /// A user was invited.
    AccountInvited = "account.invited",
    /// An invitation was refused because the address already has an account, perhaps in another organization.
    InvitationRefused = "invitation.address-in-use",
    /// A confirmation of an enrolment failed because of a wrong passcode.
    EnrolmentRefused = "account.enrolment-refused",
    /// An invited user set a password and received a TOTP secret, but has not confirmed it yet.
    EnrolmentDrafted = "account.enrolment-drafted",
    /// An invited user confirmed the enrolment: the account was created, or has a password and passcode again.
    AccountEnrolled = "account.enrolled",
    /// The role of an invitation was changed.
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
    /// The password, TOTP secret and recovery codes of an account were deleted, and its user may enrol again.
    AccountReEnrolled = "account.re-enrolled",
    /// A user requested a new TOTP secret, but has not confirmed it yet.
    AccountPasscodeDrafted = "account.passcode-drafted",
    /// A user replaced the TOTP secret of their account.
    AccountPasscodeChanged = "account.passcode-changed",
    /// The confirmation of a new TOTP secret failed because of a wrong passcode.
    AccountPasscodeChangeRefused = "account.passcode-change-refused",
    /// A user replaced the recovery codes of their account.
    AccountRecoveryCodesReplaced = "account.recovery-codes-replaced",
    /// The lockouts and locked throttle buckets of an account were cleared.
    AccountUnlocked = "account.unlocked",
    /// The whole database was copied, or compared with its copy.
    DatabaseCopied = "database.copied",
    /// A backup of the embedded database was started.
    DatabaseBackedUp = "database.backed-up",
    /// An earlier state of the database was restored: sessions, recovery codes and activations were revoked.
    DatabaseRestored = "database.restored",
    /// A login succeeded.
    LoginSucceeded = "login.succeeded",
    /// A login failed because of a wrong password or a locked bucket.
    LoginRefused = "login.refused",
    /// A login failed because of a wrong passcode after a correct password.
    LoginPasscodeRefused = "login.passcode-refused",
    /// Uncounted logins were refused: on unknown addresses, during a lockout, or on locked or disabled accounts.
    LoginThrottled = "login.throttled",
    /// A login throttle bucket was locked after too many failed logins in a row.
    LoginLocked = "login.locked",
    /// Time-based passcodes were disabled after too many wrong passcodes.
    LoginPasscodeDisabled = "login.passcode-disabled",
    /// A session was ended by its own logout.
    LoggedOut = "session.logged-out",
    /// A session was ended by its user through another session.
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
    /// The vend rule of a credential was relaxed: it may be issued in any form.
    CredentialVendRelaxed = "credential.vend-relaxed",
    /// The vend rule of a credential was restricted: it is issued only in short-lived form.
    CredentialVendRestricted = "credential.vend-restricted",
    /// Data was compared with that of a credential.
    CredentialMatched = "credential.matched",
    /// A check of a credential was requested.
    CredentialCheckRequested = "credential.check-requested",
    /// A check of a credential failed, and the previous one had not.
    CredentialFailing = "credential.failing",
    /// A check of a credential succeeded, and the previous one had not.
    CredentialHealthy = "credential.healthy",
    /// A credential was deleted.
    CredentialDeleted = "credential.deleted",
    /// Credentials were listed.
    CredentialsListed = "credentials.listed",
    /// The information of a credential was read.
    CredentialShown = "credential.shown",
    /// An integration was created.
    IntegrationCreated = "integration.created",
    /// The token of an integration was replaced.
    IntegrationRotated = "integration.rotated",
    /// An integration was disabled.
    IntegrationDisabled = "integration.disabled",
    /// An integration was enabled.
    IntegrationEnabled = "integration.enabled",
    /// The namespaces or expiry of an integration were changed.
    IntegrationChanged = "integration.changed",
    /// An integration was deleted.
    IntegrationDeleted = "integration.deleted",
    /// A trust was added: workloads of an issuer may use an integration.
    IntegrationTrusted = "integration.trusted",
    /// A trust was removed: workloads of an issuer may no longer use an integration.
    IntegrationDistrusted = "integration.distrusted",
    /// An issuer of identity tokens was added.
    IssuerAdded = "issuer.added",
    /// An issuer of identity tokens was removed.
    IssuerRemoved = "issuer.removed",
    /// A signing key of federation tokens was added.
    FederationKeyAdded = "federation.key-added",
    /// A signing key became current.
    FederationKeyPromoted = "federation.key-promoted",
    /// A signing key was retired: it does not sign any more.
    FederationKeyRetired = "federation.key-retired",
    /// A signing key was removed.
    FederationKeyRemoved = "federation.key-removed",
    /// A receiver of events was added.
    ReceiverAdded = "receiver.added",
    /// The events of a receiver were changed, or it was enabled or disabled.
    ReceiverChanged = "receiver.changed",
    /// The signing secret of a receiver was replaced.
    ReceiverSecretReplaced = "receiver.secret-replaced",
    /// A receiver was removed.
    ReceiverRemoved = "receiver.removed",
    /// A receiver was disabled, because its endpoint responded that it is gone or its mail address does not exist.
    ReceiverDisabled = "receiver.disabled",
    /// A test event was queued for a receiver.
    ReceiverTested = "receiver.tested",
    /// An event was queued again for a receiver.
    ReceiverResent = "receiver.resent",
    /// A namespace was frozen: its credentials are not issued.
    NamespaceFrozen = "namespace.frozen",
    /// A namespace was thawed.
    NamespaceThawed = "namespace.thawed",
    /// An activation started: the credentials of a namespace were read for issuance to an integration.
    ActivationStarted = "activation.started",
    /// A namespace's credentials were issued to an integration.
    NamespaceActivated = "namespace.activated",
    /// A namespace's credentials were checked for an integration.
    NamespaceChecked = "namespace.checked",
    /// An integration requested a namespace that it may not activate.
    ActivationRefusedOutside = "activation.refused-outside",
    /// A request had a replaced or expired token of an integration, or the token of a disabled one.
    ActivationRefusedToken = "activation.refused-token",
    /// An identity token matched no trust of the integration. At most one entry per minute, with the number of
    /// occurrences.
    ActivationRefusedWorkload = "activation.refused-workload",
    /// An integration requested a frozen namespace.
    ActivationRefusedFrozen = "activation.refused-frozen",
    /// An integration requested an empty or too large namespace, or has too many active activations.
    ActivationRefused = "activation.refused",
    /// A started activation issued nothing: a credential could not be decrypted or has no such form, or the
    /// integration, the namespace or a credential was changed concurrently.
    ActivationFailed = "activation.failed",
    /// A renewal started: the credentials of an activation's namespace were read for issuance to its integration again.
    ActivationRenewalStarted = "activation.renewal-started",
    /// The current credentials of an activation's namespace were issued to its integration again, with a new expiry.
    ActivationRenewed = "activation.renewed",
    /// A started renewal issued nothing, for the reasons of [`AuditAction::ActivationFailed`]. The activation stays
    /// active until it expires.
    ActivationRenewalFailed = "activation.renewal-failed",
    /// An integration ended one of its activations.
    ActivationEnded = "activation.ended",
    /// Entries of the audit log were read.
    AuditListed = "audit.listed",
    /// The oldest entries were deleted at the end of their retention.
    AuditTruncated = "audit.truncated",
    /// The delivery position of the audit log was changed outside the server: all entries are delivered again.
    AuditDeliveryReset = "audit.delivery-reset",
    /// The state of a privileged row was recorded, because no remaining entry contains it.
    StateRecorded = "row.state-recorded",
}

impl AuditAction {
    /// Returns whether the action is a login, or its refusal, which has its own event.
    pub const fn is_login(self) -> bool {
        matches!(
            self,
            Self::LoginSucceeded
                | Self::LoginRefused
                | Self::LoginPasscodeRefused
                | Self::LoginLocked
                | Self::LoginPasscodeDisabled
        )
    }

    /// Returns whether the action is a request that was denied, or a credential that could not be issued.
    pub const fn is_denied(self) -> bool {
        matches!(
            self,
            Self::InvitationRefused
                | Self::EnrolmentRefused
                | Self::AccountPasscodeChangeRefused
                | Self::LoginRefused
                | Self::LoginPasscodeRefused
                | Self::LoginThrottled
                | Self::LoginLocked
                | Self::LoginPasscodeDisabled
                | Self::ActivationRefusedOutside
                | Self::ActivationRefusedToken
                | Self::ActivationRefusedWorkload
                | Self::ActivationRefusedFrozen
                | Self::ActivationRefused
                | Self::ActivationFailed
                | Self::ActivationRenewalFailed
        )
    }

    /// Returns whether the action only reads lists or information that contains no secret.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::CredentialsListed | Self::CredentialShown | Self::AuditListed)
    }

    /// Returns the action with this stored name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.as_str() == name)
    }
}

/// The object of an audit entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The whole instance.
    Instance,
    /// An organization.
    Organization(OrganizationId),
    /// An account.
    Account(AccountId),
    /// A session.
    Session(SessionId),
    /// A credential.
    Credential(CredentialId),
    /// The credentials of an organization.
    Vault,
    /// A namespace, whose name is in the entry's note.
    Namespace,
    /// All addresses without an account.
    UnknownAddresses,
    /// An integration.
    Integration(IntegrationId),
    /// An activation.
    Activation(ActivationId),
    /// A receiver of events.
    Receiver(ReceiverId),
    /// An issuer of identity tokens.
    Issuer(IssuerId),
    /// The signing keys of federation tokens, by the ID of their document.
    SigningKeys(KeyId),
    /// The audit log.
    Audit,
}

impl Subject {
    /// Returns the stored text of the subject.
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
            Self::Issuer(id) => format!("issuer:{id}"),
            Self::SigningKeys(id) => format!("signing-keys:{id}"),
            Self::Audit => "audit".to_owned(),
        }
    }
}

/// Additional fields of an entry about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditNote {
    /// The namespace.
    pub namespace: Namespace,
    /// Purpose that the integration stated.
    pub purpose: Option<Purpose>,
    /// The network that the integration's request came from.
    pub network: Option<Network>,
    /// The issued credentials. If the activation failed: the short-lived credentials already requested for it, which
    /// cannot be revoked.
    pub credentials: Vec<IssuedCredential>,
}

impl AuditNote {
    /// Creates a note with only a namespace.
    pub const fn of(namespace: Namespace) -> Self {
        Self { namespace, purpose: None, network: None, credentials: Vec::new() }
    }

    /// Returns [`AuditNote::credentials`] as stored: per line, ID, version, form and, if any, the expiry in
    /// milliseconds. Returns `None` if there are none.
    pub fn credentials_text(&self) -> Option<String> {
        let line = |one: &IssuedCredential| {
            let IssuedCredential { credential, version, form, expires_at } = one;
            let end = expires_at.map(|end| format!(" {}", end.as_millis())).unwrap_or_default();
            format!("{credential} {version} {}{end}", form.as_str())
        };
        let lines: Vec<_> = self.credentials.iter().map(line).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// ID of the entry, which orders entries of the same time.
    pub id: AuditId,
    /// Time of the event.
    pub at: Timestamp,
    /// Organization, if the entry belongs to one.
    pub organization: Option<OrganizationId>,
    /// Actor.
    pub actor: Actor,
    /// Action.
    pub action: AuditAction,
    /// Affected object.
    pub subject: Subject,
    /// Number of occurrences within a minute that the entry summarizes. 1 for single events.
    pub count: i64,
    /// Details, if the entry is about a namespace.
    pub note: Option<AuditNote>,
    /// Origin of the request.
    pub origin: Origin,
    /// States of the changed privileged rows and credentials after the change.
    pub rows: Vec<(RecordedRow, RowState)>,
    /// Changed values, old and new.
    pub changes: Vec<AuditChange>,
}

impl AuditRecord {
    /// Returns [`AuditRecord::changes`] as stored, or `None` if there are none.
    pub fn changes_text(&self) -> Option<String> {
        change::text(&self.changes)
    }

    /// Returns [`AuditRecord::rows`] as stored, one per line, or `None` if there are none.
    pub fn rows_text(&self) -> Option<String> {
        state::text(&self.rows)
    }

    /// Returns the network of the request as stored.
    pub fn network_text(&self) -> Option<String> {
        let noted = self.note.as_ref().and_then(|note| note.network);
        noted.or(self.origin.network).map(|network| network.to_string())
    }
}

/// An entry with its MAC, as the store appends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedAuditRecord {
    /// The entry.
    pub record: AuditRecord,
    /// Key of the MAC.
    pub key: KeyId,
    /// MAC of the entry.
    pub mac: Digest,
}
