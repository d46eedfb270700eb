//! What the maps hold.

use vault_core::account::{Account, AccountGrant};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, CredentialId, OrganizationId};
use vault_core::lockout::{AttemptClass, network_is_known};
use vault_core::passcode::TimeStep;
use vault_core::port::StoredCredential;
use vault_core::sealed::{SealedCredential, SealedPassword, SealedSeed};
use vault_core::time::Timestamp;

pub(super) struct AccountRow {
    pub(super) grant: AccountGrant,
    pub(super) grant_digest: Digest,
    pub(super) address: Digest,
    pub(super) password: SealedPassword,
    pub(super) password_version: i64,
    pub(super) seed: SealedSeed,
    pub(super) last_step: TimeStep,
    pub(super) wrong_passcodes: u32,
    pub(super) recovery_codes: Vec<Digest>,
    /// The attempts from every network that is not known.
    pub(super) shared: AttemptClass,
    pub(super) networks: Vec<NetworkRow>,
    pub(super) version: i64,
    pub(super) created_at: Timestamp,
    pub(super) last_login_at: Option<Timestamp>,
}

pub(super) struct NetworkRow {
    pub(super) network: Digest,
    pub(super) last_login: Timestamp,
    pub(super) class: AttemptClass,
}

pub(super) struct SessionRow {
    pub(super) organization: OrganizationId,
    pub(super) account: AccountId,
    pub(super) expires_at: Timestamp,
}

pub(super) struct CredentialRow {
    pub(super) stored: StoredCredential,
    pub(super) sealed: SealedCredential,
}

pub(super) struct IdempotencyRow {
    pub(super) body: Digest,
    pub(super) credential: CredentialId,
    pub(super) created_at: Timestamp,
}

impl AccountRow {
    /// Where no step was ever used.
    pub(super) const NO_STEP: TimeStep = TimeStep(0);

    pub(super) fn account(&self) -> Account {
        Account {
            grant: self.grant.clone(),
            grant_digest: self.grant_digest,
            version: self.version,
            created_at: self.created_at,
            last_login_at: self.last_login_at,
        }
    }

    pub(super) fn known_network(&mut self, network: Digest, now: Timestamp) -> Option<&mut NetworkRow> {
        self.networks.iter_mut().find(|row| row.network == network && network_is_known(row.last_login, now))
    }
}
