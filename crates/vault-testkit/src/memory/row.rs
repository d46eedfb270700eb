//! Rows of the in-memory store.

use std::collections::BTreeMap;
use vault_core::account::{Account, AccountLogins, NewAccount, SignedAccount};
use vault_core::credential::{EarlierRequest, LastCheck};
use vault_core::digest::{Digest, RowMac};
use vault_core::id::{AccountId, KeyId, OrganizationId};
use vault_core::lockout::{ThrottleCounter, ThrottleCounters, WrongPasscodes};
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::passcode::{PendingSeed, TimeStep};
use vault_core::port::StoredCredential;
use vault_core::sealed::{SealedData, SealedPassword, SealedSeed};
use vault_core::session::NewSession;
use vault_core::time::Timestamp;

#[derive(Clone)]
pub(super) struct AccountRow {
    pub(super) signed: SignedAccount,
    pub(super) digest: RowMac,
    pub(super) password: SealedPassword,
    pub(super) seed: SealedSeed,
    pub(super) passcode_enrolled_at: Timestamp,
    /// TOTP secret that is not confirmed yet.
    pub(super) pending: Option<TriedSeed>,
    pub(super) last_step: TimeStep,
    pub(super) wrong_passcodes: WrongPasscodes,
    pub(super) recovery_codes: Vec<Digest>,
    pub(super) classes: ThrottleCounters,
    pub(super) notices: Vec<StoredNotice>,
    pub(super) created_at: Timestamp,
    pub(super) last_login_at: Option<Timestamp>,
    pub(super) last_refused_at: Option<Timestamp>,
}

#[derive(Clone)]
pub(super) struct TriedSeed {
    pub(super) pending: PendingSeed,
    /// Number of passcodes tried so far.
    pub(super) tried: u32,
}

#[derive(Clone)]
pub(super) struct SessionRow {
    pub(super) organization: OrganizationId,
    pub(super) account: AccountId,
    pub(super) session: NewSession,
    pub(super) last_used_at: Timestamp,
}

#[derive(Clone)]
pub(super) struct CredentialRow {
    pub(super) stored: StoredCredential,
    /// The key that may seal a part of it.
    pub(super) key: KeyId,
    pub(super) labels: Vec<Digest>,
    /// The data of all versions.
    pub(super) data: BTreeMap<i64, DataRow>,
}

#[derive(Clone)]
pub(super) struct DataRow {
    pub(super) data: SealedData,
    pub(super) destroy_at: Option<Timestamp>,
    pub(super) check: Option<LastCheck>,
}

/// Check that waits.
#[derive(Clone)]
pub(super) struct CheckRow {
    pub(super) version: i64,
    pub(super) requested_at: Timestamp,
    /// Time at which an activation process claimed it.
    pub(super) taken_at: Option<Timestamp>,
}

#[derive(Clone)]
pub(super) struct IdempotencyRow {
    pub(super) request: EarlierRequest,
    pub(super) created_at: Timestamp,
}

impl AccountRow {
    pub(super) fn new(new: NewAccount) -> Self {
        let NewAccount { signed, digest, password, seed, recovery_codes, last_step, created_at } = new;
        Self {
            signed,
            digest,
            password,
            seed,
            passcode_enrolled_at: created_at,
            pending: None,
            last_step,
            wrong_passcodes: WrongPasscodes::default(),
            recovery_codes,
            classes: ThrottleCounters::default(),
            notices: Vec::new(),
            created_at,
            last_login_at: None,
            last_refused_at: None,
        }
    }

    pub(super) fn notify(&mut self, code: NoticeCode, at: Timestamp) {
        if code.replaces_earlier() {
            self.notices.retain(|notice| notice.code != code);
        }
        let notice = StoredNotice { code, at };
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    pub(super) fn account(&self, now: Timestamp) -> Account {
        Account {
            signed: self.signed.clone(),
            digest: self.digest,
            created_at: self.created_at,
            logins: AccountLogins {
                last_login_at: self.last_login_at,
                last_refused_at: self.last_refused_at,
                attempts: self.classes.lock(now),
                wrong_passcodes: self.wrong_passcodes.at(now),
                wrong_passcode_at: self.wrong_passcodes.latest,
            },
            enrolment_until: None,
        }
    }

    /// Ends waits and lockouts.
    pub(super) fn unlock(&mut self) {
        self.classes.shared = ThrottleCounter::default();
        for network in &mut self.classes.networks {
            network.class = ThrottleCounter::default();
        }
    }
}
