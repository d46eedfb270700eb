//! Upkeep.

use super::MemoryStore;
use super::row::{IdempotencyRow, PendingSeed, SessionRow};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use vault_core::lockout::network_is_known;
use vault_core::port::{Housekeeping, IDEMPOTENCY_SECONDS, SWEEP_SLICE, StoreError, Swept};
use vault_core::time::Timestamp;

#[async_trait]
impl Housekeeping for MemoryStore {
    async fn sweep(&self, now: Timestamp) -> Result<Swept, StoreError> {
        self.decide(|state| {
            let expired = |session: &SessionRow| session.session.expires_at <= now;
            let stale = |key: &IdempotencyRow| key.created_at.plus_seconds(IDEMPOTENCY_SECONDS) <= now;
            let mut swept = Swept {
                sessions: sweep_ordered(&mut state.sessions, expired),
                idempotency_keys: sweep_hashed(&mut state.idempotency, stale),
                invitations: sweep_ordered(&mut state.invitations, |row| !row.stored.invitation.is_open(now)),
                activations: sweep_ordered(&mut state.activations, |row| !row.is_live(now)),
                ..Swept::default()
            };
            for account in state.accounts.values_mut() {
                account.networks.retain(|network| {
                    let kept = network_is_known(network.last_login, now) || swept.attempts >= slice();
                    swept.attempts += usize::from(!kept);
                    kept
                });
                account.notices.retain(|notice| {
                    let kept = notice.is_kept(now) || swept.notices >= slice();
                    swept.notices += usize::from(!kept);
                    kept
                });
                let over = |pending: &mut PendingSeed| pending.expires_at <= now && swept.pending_seeds < slice();
                let dropped = account.pending.take_if(over).is_some();
                swept.pending_seeds += usize::from(dropped);
            }
            swept
        })
    }

    async fn check(&self, _now: Timestamp) -> Result<Option<i64>, StoreError> {
        self.decide(|_| None)
    }
}

fn slice() -> usize {
    usize::try_from(SWEEP_SLICE).unwrap_or(usize::MAX)
}

fn sweep_ordered<K: Ord + Clone, V>(rows: &mut BTreeMap<K, V>, condemned: impl Fn(&V) -> bool) -> usize {
    let keys: Vec<K> =
        rows.iter().filter(|(_, row)| condemned(row)).take(slice()).map(|(key, _)| key.clone()).collect();
    keys.iter().filter(|key| rows.remove(key).is_some()).count()
}

fn sweep_hashed<K: Eq + Hash + Clone, V>(rows: &mut HashMap<K, V>, condemned: impl Fn(&V) -> bool) -> usize {
    let keys: Vec<K> =
        rows.iter().filter(|(_, row)| condemned(row)).take(slice()).map(|(key, _)| key.clone()).collect();
    keys.iter().filter(|key| rows.remove(key).is_some()).count()
}
