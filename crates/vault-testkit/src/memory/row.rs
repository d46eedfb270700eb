//! Rows of the in-memory store.

use std::collections::BTreeMap;
use vault_core::account::AccountLogins;
use vault_core::credential::{EarlierRequest, LastCheck};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, KeyId, OrganizationId};
use vault_core::lockout::{ThrottleCounter, ThrottleCounters, WrongPasscodes};
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::passcode::TimeStep;
use vault_core::port::StoredCredential;
use vault_core::sealed::SealedData;
use vault_core::session::NewSession;
use vault_core::time::Timestamp;

#[derive(Clone, Default)]
pub(super) struct AccountRow {
    pub(super) last_step: TimeStep,
    pub(super) wrong_passcodes: WrongPasscodes,
    pub(super) recovery_codes: Vec<Digest>,
    pub(super) classes: ThrottleCounters,
    pub(super) notices: Vec<StoredNotice>,
    pub(super) last_login_at: Option<Timestamp>,
    pub(super) last_refused_at: Option<Timestamp>,
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
    pub(super) fn notify(&mut self, code: NoticeCode, at: Timestamp) {
        if code.replaces_earlier() {
            self.notices.retain(|notice| notice.code != code);
        }
        let notice = StoredNotice { code, at };
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    pub(super) fn logins(&self, now: Timestamp) -> AccountLogins {
        AccountLogins {
            last_login_at: self.last_login_at,
            last_refused_at: self.last_refused_at,
            attempts: self.classes.lock(now),
            wrong_passcodes: self.wrong_passcodes.at(now),
            wrong_passcode_at: self.wrong_passcodes.latest,
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
