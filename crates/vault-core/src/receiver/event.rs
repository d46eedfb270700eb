//! Kinds of events of which receivers are notified.

use crate::field::{FieldCode, FieldError};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

macro_rules! events {
    ($($kind:ident = $name:literal, $scope:ident, $title:literal, $advice:literal;)*) => {
        /// Kind of an event. Its name is `type` in a webhook's body.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum EventKind {
            $(#[doc = $title] $kind,)*
        }

        impl EventKind {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns its name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns what happened, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)* }
            }

            /// Returns the relevance and the next step.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$kind => $advice,)* }
            }

            const fn scope(self) -> Scope {
                match self { $(Self::$kind => Scope::$scope,)* }
            }
        }
    };
}

#[derive(PartialEq, Eq)]
enum Scope {
    Organization,
    Instance,
    Both,
}

events! {
    ReceiverTest = "receiver.test", Both, "This is a test.",
        "No action is required: this receiver works.";
    CredentialExpiring = "credential.expiring", Organization, "A credential is about to expire.",
        "Jobs that use it fail from then on. Create a new key at the provider, and replace the credential with it.";
    CredentialExpired = "credential.expired", Organization, "A credential has expired.",
        "Jobs that use it fail. Create a new key at the provider, and replace the credential with it.";
    CredentialFailing = "credential.failing", Organization, "A credential no longer works.",
        "Its storage rejects it or cannot be reached. Check it at the provider, and replace it if the key was withdrawn.";
    CredentialHealthyAgain = "credential.healthy-again", Organization, "A credential works again.",
        "No action is required.";
    CredentialReplaced = "credential.replaced", Organization, "A credential was replaced.",
        "Jobs get the new key at their next activation or renewal. Disable the old key at the provider when no job uses it.";
    CredentialDeleted = "credential.deleted", Organization, "A credential was deleted.",
        "Jobs can no longer activate it.";
    IntegrationTokenExpiring = "integration.token-expiring", Organization, "An integration is about to expire.",
        "Its token and its trusts are then rejected. Set a later expiry, or create another integration.";
    IntegrationRefusedAfterFreeze = "integration.refused-after-freeze", Organization,
        "A job was rejected because its namespace is frozen.",
        "It is rejected until the namespace is thawed.";
    AccountLocked = "account.locked", Organization, "An account was locked after many failed attempts.",
        "If this was not its owner, someone is guessing. An admin can unlock the account.";
    AccountReEnrolled = "account.re-enrolled", Organization, "An account's password and passcode were revoked.",
        "Its owner sets new ones with the enrolment code. If no one requested this, see the audit log for the actor.";
    AccountReEnrolmentConfirmed = "account.re-enrolment-confirmed", Organization,
        "A user has enrolled again.", "If this was not its owner, disable the account.";
    AccountRecoveryCodeUsed = "account.recovery-code-used", Organization,
        "A user logged in with a recovery code.", "If this was not the account's owner, disable the account.";
    AccountAdminAdded = "account.admin-added", Organization, "An account has become an admin.",
        "If no admin of your organization did this, disable the account.";
    NamespaceFrozen = "namespace.frozen", Organization, "A namespace was frozen.",
        "Jobs can no longer activate it until it is thawed.";
    NamespaceThawed = "namespace.thawed", Organization, "A namespace was thawed.",
        "Jobs can activate it again.";
    BackupFailed = "backup.failed", Instance, "A backup failed.",
        "The server's log contains the reason. The server retries automatically.";
    BackupOverdue = "backup.overdue", Instance, "No backup has succeeded for twice the interval.",
        "Data that was saved since then is lost if the disk fails. The server's log contains the reason.";
    AnchorRefused = "anchor.refused", Instance, "The database was rolled back to an earlier state while a server used it.",
        "The server has stopped. Use the newest database, or restore one with `orgvault restore`.";
    InspectionFound = "inspection.found", Instance, "Stored rows are damaged or were modified outside the service.",
        "Run `orgvault doctor --deep`, which lists them.";
    AuditSinkBehind = "audit.sink-behind", Instance, "The audit sink has not accepted entries for 15 minutes.",
        "Entries are kept in the vault. The server's log contains the reason.";
    KeyNearingLimit = "key.nearing-limit", Instance, "An organization's key has reached 80 % of its usage limit.",
        "At the limit it cannot encrypt. Run `orgvault key rotate`.";
    FederationUnpublished = "federation.unpublished", Instance, "Storage providers cannot read the signing keys of this vault.",
        "Keyless credentials fail when the providers' caches expire. Run `orgvault federation status`, which shows the reason.";
    IssuerUnreachable = "issuer.unreachable", Instance, "The keys of an issuer of identity tokens cannot be fetched.",
        "Cached keys are used for at most a day. `orgvault issuer list NAME` shows the reason.";
}

impl EventKind {
    /// Returns the event with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }

    /// Returns whether receivers of an organization (`true`) or of the instance (`false`) may be notified of it.
    pub fn is_for(self, organization: bool) -> bool {
        match self.scope() {
            Scope::Both => true,
            scope => (scope == Scope::Organization) == organization,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Events of which a receiver is notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventKinds(Vec<EventKind>);

impl EventKinds {
    /// Returns all events for receivers of an organization, or of the instance.
    pub fn all(organization: bool) -> Self {
        let wanted = |kind: &EventKind| kind.is_for(organization) && *kind != EventKind::ReceiverTest;
        Self(EventKind::ALL.iter().copied().filter(wanted).collect())
    }

    /// Parses names of events. An empty list selects all.
    ///
    /// # Errors
    /// [`FieldCode::OutOfRange`] at `/events/…` if the name is unknown or not available for this kind of receiver.
    pub fn parse(names: &[String], organization: bool, pointer: &str) -> Result<Self, Vec<FieldError>> {
        if names.is_empty() {
            return Ok(Self::all(organization));
        }
        let all = Self::all(organization);
        let (mut kinds, mut errors) = (Vec::new(), Vec::new());
        for (index, name) in names.iter().enumerate() {
            match EventKind::parse(name).filter(|kind| all.contains(*kind)) {
                Some(kind) => kinds.push(kind),
                None => {
                    let detail = format!("must be one of {all}");
                    errors.push(FieldError::new(format!("{pointer}/{index}"), FieldCode::OutOfRange, detail));
                }
            }
        }
        kinds.sort();
        kinds.dedup();
        if errors.is_empty() { Ok(Self(kinds)) } else { Err(errors) }
    }

    /// Returns whether `kind` is one of them.
    pub fn contains(&self, kind: EventKind) -> bool {
        self.0.contains(&kind)
    }

    /// Iterates over the events.
    pub fn iter(&self) -> impl Iterator<Item = EventKind> {
        self.0.iter().copied()
    }
}

impl Serialize for EventKinds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|kind| kind.as_str()))
    }
}

/// Events that no longer exist are left out.
impl<'de> Deserialize<'de> for EventKinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(Self(names.iter().filter_map(|name| EventKind::parse(name)).collect()))
    }
}

impl fmt::Display for EventKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|kind| kind.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}
