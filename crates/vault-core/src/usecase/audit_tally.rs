//! Frequent actions that change nothing: counted in memory and recorded once a minute.

use super::Environment;
use crate::audit::{Actor, AppendEntries, AuditAction, AuditChange, AuditRecord, ChangedField, Origin, Subject};
use crate::error::Error;
use crate::id::{AuditId, OrganizationId};
use crate::operation::Operations;
use crate::principal::Principal;
use crate::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

const MINUTE: i64 = 60_000;
/// Number of records per append.
const APPEND_SLICE: usize = 500;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    minute: i64,
    organization: Option<OrganizationId>,
    actor: Actor,
    action: AuditAction,
    subject: Subject,
}

/// Counts lists and reads per session and minute, and refused logins per account or bucket and minute.
///
/// They disclose no secret, so they may be recorded after the response. [`AuditTally::flush`] is called every few
/// seconds, and with everything at shutdown.
pub struct AuditTally {
    environment: Environment,
    operations: Operations,
    counts: Mutex<HashMap<Key, Count>>,
}

/// Number of occurrences, and the cause of the last refusal if that is recorded.
#[derive(Default)]
struct Count {
    times: i64,
    cause: Option<String>,
}

impl Count {
    fn add(&mut self, times: i64, cause: Option<String>) {
        self.times += times;
        self.cause = cause.or_else(|| self.cause.take());
    }
}

impl AuditTally {
    /// Creates an empty tally that writes with `operations`.
    pub fn new(environment: Environment, operations: Operations) -> Self {
        Self { environment, operations, counts: Mutex::default() }
    }

    /// Counts one action at `at`.
    pub fn count(
        &self,
        at: Timestamp,
        organization: Option<OrganizationId>,
        actor: Actor,
        action: AuditAction,
        subject: Subject,
    ) {
        self.count_because(at, organization, actor, action, subject, None);
    }

    /// Counts one action with the cause of a workload's refusal. Only the last cause of each minute is recorded.
    pub(crate) fn count_because(
        &self,
        at: Timestamp,
        organization: Option<OrganizationId>,
        actor: Actor,
        action: AuditAction,
        subject: Subject,
        cause: Option<String>,
    ) {
        let key = Key { minute: at.as_millis().div_euclid(MINUTE), organization, actor, action, subject };
        self.lock().entry(key).or_default().add(1, cause);
    }

    /// Records the past minutes, or all with `everything`. Counts that are not written are kept for the next call, also
    /// if this one is cancelled. If the response of the store was lost, they may be recorded twice.
    ///
    /// # Errors
    /// The log could not be written.
    pub async fn flush(&self, everything: bool) -> Result<(), Error> {
        let current = self.environment.now().as_millis().div_euclid(MINUTE);
        let mut due: Vec<(Key, Count)> = {
            let mut counts = self.lock();
            counts.extract_if(|key, _| everything || key.minute < current).collect()
        };
        // IDs of entries are ordered by time, so an earlier minute must get the earlier ID.
        due.sort_unstable_by_key(|(key, _)| key.minute);
        let mut unwritten = Unwritten { tally: self, counts: due };
        while !unwritten.counts.is_empty() {
            let slice = unwritten.counts.iter().take(APPEND_SLICE);
            // Do not use the counted minute as the time: a reader of entries after the last read time would miss an
            // entry that is written late.
            let now = self.environment.now();
            let records = slice.map(|(key, count)| self.environment.audit.seal(self.record(now, key, count)));
            let records: Vec<_> = records.collect();
            let ids: Vec<AuditId> = records.iter().map(|sealed| sealed.record.id).collect();
            self.operations.run(&self.environment, &Principal::Operator, AppendEntries(records)).await?;
            self.environment.awaited.add(ids);
            unwritten.counts.drain(..unwritten.counts.len().min(APPEND_SLICE));
        }
        Ok(())
    }

    fn record(&self, at: Timestamp, key: &Key, count: &Count) -> AuditRecord {
        let cause = count.cause.clone().map(|cause| AuditChange::new(ChangedField::Workload, None, Some(cause)));
        AuditRecord {
            id: AuditId::from_uuid(self.environment.ids.ordered(at)),
            at,
            organization: key.organization,
            actor: key.actor,
            action: key.action,
            subject: key.subject,
            count: count.times,
            note: None,
            origin: Origin::default(),
            rows: Vec::new(),
            changes: cause.into_iter().collect(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Count>> {
        // A count is consistent at every point, so a panic elsewhere does not leave a partial change.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts to be written. If they are dropped before that, they are added to the tally again.
struct Unwritten<'tally> {
    tally: &'tally AuditTally,
    counts: Vec<(Key, Count)>,
}

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        let mut counts = self.tally.lock();
        for (key, count) in self.counts.drain(..) {
            counts.entry(key).or_default().add(count.times, count.cause);
        }
    }
}
