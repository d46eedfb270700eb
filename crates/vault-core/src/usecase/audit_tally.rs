//! Acts that change nothing and may be many: counted in memory, recorded once a minute.

use super::Environment;
use crate::audit::{Actor, AuditAction, AuditChange, AuditRecord, ChangedField, Origin, Subject};
use crate::id::{AuditId, OrganizationId};
use crate::port::{AuditLog, StoreError};
use crate::time::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

const MINUTE: i64 = 60_000;
/// Records written in one append.
const APPEND_SLICE: usize = 500;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    minute: i64,
    organization: Option<OrganizationId>,
    actor: Actor,
    action: AuditAction,
    subject: Subject,
}

/// Counts lists and shows per session and minute, and logins turned away per account or bucket and minute.
///
/// They reveal no secret, so their record may follow the answer. [`AuditTally::flush`] is called every few
/// seconds, and with everything at shutdown.
pub struct AuditTally {
    environment: Environment,
    log: Arc<dyn AuditLog>,
    counts: Mutex<HashMap<Key, Count>>,
}

/// How often something was done, and why it was refused the last time, where that is recorded.
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
    /// An empty tally that writes to `log`.
    pub fn new(environment: Environment, log: Arc<dyn AuditLog>) -> Self {
        Self { environment, log, counts: Mutex::default() }
    }

    /// Counts one act at `at`.
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

    /// The same, with the cause of a workload's refusal. Of one minute, the last cause is recorded.
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

    /// Records the minutes that are over, or all with `everything`. What is not written is kept for the next call,
    /// also if this one is cancelled; what the store wrote although its answer was lost is then recorded twice.
    ///
    /// # Errors
    /// The log could not be written.
    pub async fn flush(&self, everything: bool) -> Result<(), StoreError> {
        let current = self.environment.now().as_millis().div_euclid(MINUTE);
        let due: Vec<(Key, Count)> = {
            let mut counts = self.lock();
            counts.extract_if(|key, _| everything || key.minute < current).collect()
        };
        let mut unwritten = Unwritten { tally: self, counts: due };
        while !unwritten.counts.is_empty() {
            let slice = unwritten.counts.iter().take(APPEND_SLICE);
            // Not the minute: whoever reads what came after the last time would miss what is written late.
            let now = self.environment.now();
            let records = slice.map(|(key, count)| self.environment.audit.seal(self.record(now, key, count))).collect();
            self.log.append(records).await?;
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
        // A count is whole at every point, so a panic elsewhere leaves nothing half done.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts on their way to the log: those that are dropped before they are written are counted again.
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
