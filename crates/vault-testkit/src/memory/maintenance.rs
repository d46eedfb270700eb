//! Maintenance.

use super::row::{AccountRow, DataRow, IdempotencyRow, SessionRow};
use super::{MemoryStore, State};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use vault_core::credential::{CredentialUse, LastCheck, USE_SECONDS};
use vault_core::credential_counts::{Checked, CountedCredentials};
use vault_core::entity::{EntityKey, Kind};
use vault_core::hourly::{HOUR_SECONDS, HourlyLimit};
use vault_core::lockout::{LoginNetwork, network_is_known};
use vault_core::port::{
    CountCredentials, CountedSlice, EXPIRED_SLICE, EntityRow, Expired, IDEMPOTENCY_SECONDS, Maintenance, StoreError,
};
use vault_core::time::Timestamp;

#[async_trait]
impl Maintenance for MemoryStore {
    async fn delete_expired(&self, expired: Expired, now: Timestamp) -> Result<usize, StoreError> {
        self.decide(|state| match expired {
            Expired::Sessions => sweep_ordered(&mut state.sessions, |row: &SessionRow| row.session.expires_at <= now),
            Expired::IdempotencyKeys => sweep_hashed(&mut state.idempotency, |row: &IdempotencyRow| {
                row.created_at.plus_seconds(IDEMPOTENCY_SECONDS) <= now
            }),
            Expired::Invitations => sweep_due(state, Kind::Invitation, now),
            Expired::PendingSeeds => sweep_due(state, Kind::PendingSeed, now),
            Expired::Activations => sweep_ordered(&mut state.activations, |row| !row.is_live(now)),
            Expired::Attempts => sweep_lists(state, |account| {
                let known = |network: &mut LoginNetwork| !network_is_known(network.last_login_at, now);
                account.classes.networks.extract_if(.., known).next().is_some()
            }),
            Expired::Notices => sweep_lists(state, |account| {
                account.notices.extract_if(.., |notice| !notice.is_kept(now)).next().is_some()
            }),
            Expired::PreviousVersions => {
                let mut taken = 0;
                for row in state.credentials.values_mut() {
                    let over = |_: &i64, version: &mut DataRow| version.destroy_at.is_some_and(|at| at <= now);
                    taken += row.data.extract_if(.., over).take(EXPIRED_SLICE - taken).count();
                }
                taken
            }
            Expired::CredentialUses => {
                let mut taken = 0;
                for uses in state.uses.values_mut() {
                    let over = |one: &mut CredentialUse| one.expires_at.plus_seconds(USE_SECONDS) <= now;
                    taken += uses.extract_if(.., over).take(EXPIRED_SLICE - taken).count();
                }
                state.uses.retain(|_, uses| !uses.is_empty());
                taken
            }
            Expired::HourlyCounts => sweep_hashed(&mut state.hourly, |row: &HourlyLimit| {
                row.since.is_none_or(|since| since.plus_seconds(HOUR_SECONDS) <= now)
            }),
            // Here, deleting an organization deletes its rows immediately.
            Expired::Erasures => 0,
        })
    }

    async fn check(&self, _now: Timestamp) -> Result<Option<i64>, StoreError> {
        self.decide(|_| None)
    }

    async fn count_credentials(&self, query: CountCredentials) -> Result<CountedSlice, StoreError> {
        self.decide(|state| {
            let mut counted = CountedSlice::default();
            let following =
                state.credentials.iter().filter(|(place, _)| query.after.is_none_or(|after| **place > after));
            for (place, row) in following.take(query.limit) {
                counted.last = Some(*place);
                let checked = match row.stored.check {
                    None => Checked::Never,
                    Some(LastCheck { failed: None, .. }) => Checked::Succeeded,
                    Some(_) => Checked::Failed,
                };
                let bounds_before = query.bounds.before(row.stored.expires_at);
                let alike =
                    |group: &&mut CountedCredentials| (group.checked, group.bounds_before) == (checked, bounds_before);
                match counted.groups.iter_mut().find(alike) {
                    Some(group) => group.credentials += 1,
                    None => counted.groups.push(CountedCredentials { checked, bounds_before, credentials: 1 }),
                }
            }
            counted
        })
    }

    async fn most_key_uses(&self) -> Result<i64, StoreError> {
        self.decide(|state| state.organizations.values().copied().max().unwrap_or(0))
    }
}

/// Removes entities of a kind that are due. A draft is removed with its invitation.
fn sweep_due(state: &mut State, kind: Kind, now: Timestamp) -> usize {
    let is_due = |row: &&EntityRow| row.key.kind == kind && row.due_at.is_some_and(|at| at <= now);
    let keys: Vec<EntityKey> = state.entities.values().filter(is_due).map(|row| row.key).take(EXPIRED_SLICE).collect();
    for key in &keys {
        if kind == Kind::Invitation {
            state.remove_entity(EntityKey { kind: Kind::EnrolmentDraft, ..*key });
        }
        state.remove_entity(*key);
    }
    keys.len()
}

/// Calls `take_one` on each account repeatedly until it removes nothing, or until a slice is full.
fn sweep_lists(state: &mut State, take_one: impl Fn(&mut AccountRow) -> bool) -> usize {
    let mut taken = 0;
    for account in state.accounts.values_mut() {
        while taken < EXPIRED_SLICE && take_one(account) {
            taken += 1;
        }
    }
    taken
}

fn sweep_ordered<K: Ord + Clone, V>(rows: &mut BTreeMap<K, V>, condemned: impl Fn(&V) -> bool) -> usize {
    let keys: Vec<K> =
        rows.iter().filter(|(_, row)| condemned(row)).take(EXPIRED_SLICE).map(|(key, _)| key.clone()).collect();
    keys.iter().filter(|key| rows.remove(key).is_some()).count()
}

fn sweep_hashed<K: Eq + Hash + Clone, V>(rows: &mut HashMap<K, V>, condemned: impl Fn(&V) -> bool) -> usize {
    let keys: Vec<K> =
        rows.iter().filter(|(_, row)| condemned(row)).take(EXPIRED_SLICE).map(|(key, _)| key.clone()).collect();
    keys.iter().filter(|key| rows.remove(key).is_some()).count()
}
