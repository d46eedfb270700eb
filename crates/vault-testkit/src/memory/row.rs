//! What the maps hold.

use vault_core::account::{Account, AccountGrant};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, CredentialId, OrganizationId};
use vault_core::invitation::{EnrolmentDraft, StoredInvitation};
use vault_core::lockout::{AttemptClass, network_is_known};
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::passcode::TimeStep;
use vault_core::port::StoredCredential;
use vault_core::sealed::{SealedCredential, SealedPassword, SealedSeed};
use vault_core::session::NewSession;
use vault_core::time::Timestamp;

pub(super) struct AccountRow {
    pub(super) grant: AccountGrant,
    pub(super) grant_digest: Digest,
    pub(super) address: Digest,
    pub(super) password: SealedPassword,
    pub(super) password_version: i64,
    pub(super) seed: SealedSeed,
    pub(super) passcode_enrolled_at: Timestamp,
    /// A seed that waits to be confirmed.
    pub(super) pending: Option<PendingSeed>,
    pub(super) last_step: TimeStep,
    pub(super) wrong_passcodes: u32,
    pub(super) recovery_codes: Vec<Digest>,
    /// The attempts from every network that is not known.
    pub(super) shared: AttemptClass,
    pub(super) networks: Vec<NetworkRow>,
    pub(super) notices: Vec<StoredNotice>,
    pub(super) version: i64,
    pub(super) created_at: Timestamp,
    pub(super) last_login_at: Option<Timestamp>,
}

/// What an account begins with.
pub(super) struct NewAccount {
    pub(super) grant: AccountGrant,
    pub(super) grant_digest: Digest,
    pub(super) address: Digest,
    pub(super) password: SealedPassword,
    pub(super) seed: SealedSeed,
    pub(super) recovery_codes: Vec<Digest>,
    pub(super) created_at: Timestamp,
}

pub(super) struct PendingSeed {
    pub(super) seed: SealedSeed,
    pub(super) expires_at: Timestamp,
    /// Codes tried so far.
    pub(super) tried: u32,
}

pub(super) struct InvitationRow {
    pub(super) stored: StoredInvitation,
    pub(super) address: Digest,
    pub(super) draft: Option<EnrolmentDraft>,
}

pub(super) struct NetworkRow {
    pub(super) network: Digest,
    pub(super) last_login: Timestamp,
    pub(super) class: AttemptClass,
}

pub(super) struct SessionRow {
    pub(super) organization: OrganizationId,
    pub(super) account: AccountId,
    pub(super) session: NewSession,
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

    pub(super) fn new(new: NewAccount) -> Self {
        let NewAccount { grant, grant_digest, address, password, seed, recovery_codes, created_at } = new;
        Self {
            grant,
            grant_digest,
            address,
            password,
            password_version: 1,
            seed,
            passcode_enrolled_at: created_at,
            pending: None,
            last_step: Self::NO_STEP,
            wrong_passcodes: 0,
            recovery_codes,
            shared: AttemptClass::default(),
            networks: Vec::new(),
            notices: Vec::new(),
            version: 1,
            created_at,
            last_login_at: None,
        }
    }

    pub(super) fn notify(&mut self, code: NoticeCode, at: Timestamp) {
        let notice = StoredNotice { code, at };
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    pub(super) fn account(&self) -> Account {
        Account {
            grant: self.grant.clone(),
            grant_digest: self.grant_digest,
            version: self.version,
            created_at: self.created_at,
            last_login_at: self.last_login_at,
        }
    }

    /// The class that counts attempts from the network.
    pub(super) fn class(&mut self, network: Digest, now: Timestamp) -> &mut AttemptClass {
        let known =
            self.networks.iter().position(|row| row.network == network && network_is_known(row.last_login, now));
        match known {
            Some(place) => &mut self.networks[place].class,
            None => &mut self.shared,
        }
    }

    pub(super) fn known_network(&mut self, network: Digest, now: Timestamp) -> Option<&mut NetworkRow> {
        self.networks.iter_mut().find(|row| row.network == network && network_is_known(row.last_login, now))
    }
}
