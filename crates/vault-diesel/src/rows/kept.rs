//! What operations of one transaction share.

use super::organizations::{add_to_count, lock_count};
use super::{TxRows, then};
use crate::db::{Pending, Tx};
use crate::failure::Failure;
use futures_util::FutureExt as _;
use futures_util::future::{Either, ready, try_join_all};
use futures_util::try_join;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use vault_core::entity::EntityKey;
use vault_core::id::{AccountId, OrganizationId, SessionId};
use vault_core::port::{EntityRow, Reply};
use vault_core::time::Timestamp;

/// Rows that operations insert together, and rows that one of them read under the lock of its organization. A statement that
/// may change such rows makes the following operation read them again.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) pending: Pending,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of statements before the rows were read.
    writes: usize,
    facts: Facts,
    counts: HashMap<OrganizationId, Count>,
    /// Subjects of audit entries that are not inserted yet.
    subjects: HashSet<String>,
}

#[derive(Default)]
pub(super) struct Facts {
    pub(super) sessions: HashMap<(OrganizationId, AccountId, SessionId), Option<Timestamp>>,
    pub(super) entities: HashMap<EntityKey, Option<EntityRow>>,
}

/// Number of credentials of a locked organization.
#[derive(Clone, Copy, Default)]
struct Count {
    credentials: i64,
    /// Part of it that its row does not contain yet.
    added: i64,
}

impl Kept {
    /// Creates one for operations whose insertions are executed together.
    pub(crate) fn collecting() -> Self {
        Self { pending: Pending::collecting(), ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let writes = self.pending.writes();
        if state.writes != writes {
            (state.facts, state.writes) = (Facts::default(), writes);
        }
        state
    }

    /// Notes that an audit entry about a subject is inserted later.
    pub(super) fn note_entry(&self, subject: String) {
        self.state().subjects.insert(subject);
    }

    /// Returns whether an audit entry about a subject is not inserted yet. If so, the caller inserts all of them.
    pub(super) fn takes_entries(&self, subject: &str) -> bool {
        let mut state = self.state();
        let is_pending = state.subjects.contains(subject);
        if is_pending {
            state.subjects.clear();
        }
        is_pending
    }

    /// Forgets what was read, after a transaction of another form.
    pub(crate) fn forget(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// Writes what operations have collected, before the transaction ends.
    pub(crate) async fn write<'c>(&'c self, tx: Tx<'c>) -> Result<(), Failure> {
        let tx = &tx.sharing(&self.pending);
        let counts = std::mem::take(&mut self.state().counts);
        let counts = counts.into_iter().filter(|(_, count)| count.added != 0);
        let counts = counts.map(|(organization, count)| add_to_count(tx, organization, count.added));
        try_join!(tx.insert_all_pending(), try_join_all(counts))?;
        Ok(())
    }
}

impl TxRows<'_> {
    /// Returns what `find` finds among the kept facts, or the reply of `read`, which `keep` keeps.
    pub(super) fn kept_or<'t, T: Clone + Send + 't, K: Eq + Hash + Send + 't>(
        &'t self,
        facts: fn(&mut Facts) -> &mut HashMap<K, T>,
        key: K,
        read: impl FnOnce() -> Reply<'t, T>,
    ) -> Reply<'t, T> {
        if !self.writes {
            return read();
        }
        if let Some(kept) = facts(&mut self.kept.state().facts).get(&key) {
            return Either::Left(ready(Ok(kept.clone())));
        }
        let keep = move |value: &T| _ = facts(&mut self.kept.state().facts).insert(key, value.clone());
        match read() {
            Either::Left(now) => Either::Left(ready(now.into_inner().inspect(keep))),
            Either::Right(later) => Either::Right(later.map(|reply| reply.inspect(keep)).boxed()),
        }
    }

    /// Locks the number of credentials of an organization, and with it the organization.
    pub(super) fn lock_count(&self, organization: OrganizationId) -> Reply<'_, ()> {
        if self.kept.state().counts.contains_key(&organization) {
            return Either::Left(ready(Ok(())));
        }
        then(lock_count(&self.tx, organization), move |credentials| {
            let count = Count { credentials: credentials.unwrap_or_default(), added: 0 };
            self.kept.state().counts.insert(organization, count);
            Ok(())
        })
    }

    /// Returns the number of credentials of an organization.
    pub(super) fn count(&self, organization: OrganizationId) -> Reply<'_, i64> {
        match self.kept.state().counts.get(&organization) {
            Some(count) => Either::Left(ready(Ok(count.credentials))),
            None => then(lock_count(&self.tx, organization), |count| Ok(count.unwrap_or_default())),
        }
    }

    /// Adds to the number of credentials of a locked organization.
    pub(super) async fn add_to_count(&self, organization: OrganizationId, change: i64) -> Result<(), Failure> {
        if let Some(count) = self.kept.state().counts.get_mut(&organization) {
            count.credentials += change;
            if self.tx.collects() {
                count.added += change;
                return Ok(());
            }
        }
        self.tx.keeping(|| add_to_count(&self.tx, organization, change)).await?;
        Ok(())
    }
}
