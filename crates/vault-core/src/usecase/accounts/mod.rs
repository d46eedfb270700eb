//! Accounts: logins and sessions, invitations and enrolment, the caller's own account, and the administration of
//! accounts.
//!
//! Every future may be cancelled, unless its method states otherwise: a committed transaction stays committed, and an
//! uncommitted one leaves no change. A login or re-authentication that is cancelled after its attempt was counted has
//! used that attempt.

mod attempt;
mod authenticate;
mod change;
mod change_invitation;
mod change_password;
mod confirm_enrolment;
mod create;
mod enrol;
mod find;
mod invite;
mod list;
mod log_in;
mod log_out;
mod own;
mod replace_passcode;
mod replace_recovery_codes;
mod sessions;
mod show_invitation;

pub use attempt::OwnerProof;
pub use change::{AccountCommand, ChangedAccount};
pub use create::{CreateAccountRequest, CreatedAccount};
pub use enrol::DraftedEnrolment;
pub use find::AccountRef;
pub use invite::Invited;
pub use log_in::{LogInRequest, LoggedIn};
pub use own::ShownOwnAccount;
pub use show_invitation::ShownInvitation;

use self::sessions::SessionUses;
use super::{AuditTally, Environment};
use crate::audit::Origin;
use crate::error::{Error, Refusal};
use crate::id::{InstanceId, OrganizationId, SecretsId};
use crate::operation::Operations;
use crate::organization::{Organization, ReadOrganization};
use crate::port::{Entropy, Event, KeyedDigester, PasscodeVerifier, PasswordHasher, TokenIssuer};
use crate::principal::Principal;
use crate::time::Ttl;
use std::sync::Arc;

/// Ports of [`Accounts`].
#[derive(Clone)]
pub struct AccountPorts {
    /// Environment.
    pub environment: Environment,
    /// Counts refused logins that are not counted as attempts.
    pub tally: Arc<AuditTally>,
    /// Runs operations.
    pub operations: Operations,
    /// Hashes passwords.
    pub hasher: Arc<dyn PasswordHasher>,
    /// Generates and verifies TOTP secrets, passcodes and recovery codes.
    pub passcodes: Arc<dyn PasscodeVerifier>,
    /// Issues access tokens.
    pub tokens: Arc<dyn TokenIssuer>,
    /// Computes lookup digests.
    pub digester: Arc<dyn KeyedDigester>,
    /// Randomness for enrolment codes and generated passwords.
    pub entropy: Arc<dyn Entropy>,
}

/// Operations of users on accounts.
#[derive(Clone)]
pub struct Accounts {
    instance: InstanceId,
    max_ttl: u32,
    environment: Environment,
    tally: Arc<AuditTally>,
    operations: Operations,
    hasher: Arc<dyn PasswordHasher>,
    passcodes: Arc<dyn PasscodeVerifier>,
    tokens: Arc<dyn TokenIssuer>,
    digester: Arc<dyn KeyedDigester>,
    entropy: Arc<dyn Entropy>,
    uses: Arc<SessionUses>,
}

impl Accounts {
    /// Creates the context for the instance `instance`, which all access tokens name.
    pub fn new(instance: InstanceId, ports: AccountPorts) -> Self {
        let AccountPorts { environment, tally, operations, hasher, passcodes, tokens, digester, entropy } = ports;
        Self {
            instance,
            max_ttl: Ttl::MAX,
            environment,
            tally,
            operations,
            hasher,
            passcodes,
            tokens,
            digester,
            entropy,
            uses: Arc::default(),
        }
    }

    /// Returns the same operations for a request from `origin`, which their audit entries name.
    #[must_use]
    pub fn for_request(&self, origin: Origin) -> Self {
        let mut operations = self.clone();
        operations.environment.origin = origin;
        operations
    }

    /// Sets the maximum lifetime of sessions, in seconds.
    #[must_use]
    pub fn with_max_ttl(self, max_ttl: u32) -> Self {
        Self { max_ttl, ..self }
    }

    /// Returns the maximum lifetime of a session, in seconds.
    pub const fn max_ttl(&self) -> u32 {
        self.max_ttl
    }

    async fn organization(&self, id: OrganizationId) -> Result<Organization, Error> {
        let found = self.operations.run(&self.environment, &Principal::Operator, ReadOrganization(id)).await?;
        Ok(found.ok_or(Refusal::NoOrganization)?)
    }

    fn new_secrets_id(&self) -> SecretsId {
        SecretsId::from_uuid(self.environment.ids.random())
    }

    /// Emits the event for a damaged row.
    fn report_damage(&self, table: &'static str, id: impl ToString) {
        self.environment.emit(Event::IntegrityFailure { table, id: id.to_string() });
    }
}
