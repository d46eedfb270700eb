//! Maintenance.

use super::State;
use super::row::{AccountRow, DataRow};
use super::rows::{MemoryRows, done};
use std::mem::take;
use vault_core::credential::{CredentialUse, LastCheck, USE_SECONDS};
use vault_core::credential_counts::{Checked, CountedCredentials};
use vault_core::entity::{EntityKey, Kind};
use vault_core::hourly::HOUR_SECONDS;
use vault_core::lockout::{LoginNetwork, network_is_known};
use vault_core::maintenance::{CountCredentials, CountedSlice, EXPIRED_SLICE, Expired, IDEMPOTENCY_SECONDS, Settled};
use vault_core::passcode::TimeStep;
use vault_core::port::{EntityRow, MaintenanceRows, Reply};
use vault_core::time::Timestamp;

impl MaintenanceRows for MemoryRows<'_> {
    fn delete_expired(&self, expired: Expired, now: Timestamp) -> Reply<'_, usize> {
        let state = &mut **self.state();
        done(match expired {
            Expired::Sessions => {
                state.sessions.extract_if(.., |_, row| row.session.expires_at <= now).take(EXPIRED_SLICE).count()
            }
            Expired::IdempotencyKeys => {
                let over = |row: &Timestamp| row.plus_seconds(IDEMPOTENCY_SECONDS) <= now;
                state.idempotency.extract_if(|_, row| over(&row.created_at)).take(EXPIRED_SLICE).count()
            }
            Expired::Invitations => sweep_due(state, Kind::Invitation, now),
            Expired::PendingSeeds => sweep_due(state, Kind::PendingSeed, now),
            Expired::Activations => {
                state.activations.extract_if(.., |_, row| !row.is_live(now)).take(EXPIRED_SLICE).count()
            }
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
            Expired::HourlyCounts => {
                let over = |since: Timestamp| since.plus_seconds(HOUR_SECONDS) <= now;
                state.hourly.extract_if(|_, row| row.since.is_none_or(over)).take(EXPIRED_SLICE).count()
            }
            // Here, deleting an organization deletes its rows immediately.
            Expired::Erasures => 0,
        })
    }

    fn count_credentials(&self, query: &CountCredentials) -> Reply<'_, CountedSlice> {
        let state = self.state();
        let mut counted = CountedSlice::default();
        let following = state.credentials.iter().filter(|(place, _)| query.after.is_none_or(|after| **place > after));
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
        done(counted)
    }

    fn most_key_uses(&self) -> Reply<'_, i64> {
        done(self.state().organizations.values().copied().max().unwrap_or(0))
    }

    fn server_time(&self) -> Reply<'_, Option<Timestamp>> {
        done(self.state().server_time)
    }

    fn prove_space(&self) -> Reply<'_, ()> {
        done(())
    }

    fn revoke_restored(&self, step: TimeStep, ends_invitations: bool) -> Reply<'_, Settled> {
        let mut state = self.state();
        let mut settled = Settled {
            sessions: take(&mut state.sessions).len() as u64,
            activations: take(&mut state.activations).len() as u64,
            ..Settled::default()
        };
        for account in state.accounts.values_mut() {
            settled.recovery_codes += take(&mut account.recovery_codes).len() as u64;
            account.last_step = account.last_step.max(step);
        }
        let unconfirmed = [Kind::PendingSeed.as_str(), Kind::EnrolmentDraft.as_str()];
        state.entities.retain(|(_, kind, _), _| !unconfirmed.contains(kind));
        if ends_invitations {
            let keys = state.entities.values().map(|row| row.key).filter(|key| key.kind == Kind::Invitation);
            for key in keys.collect::<Vec<_>>() {
                settled.invitations += u64::from(state.remove_entity(key));
            }
        }
        done(settled)
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
