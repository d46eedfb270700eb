//! Lists of audit entries, for operators and for admins of an organization.

use super::{AuditTally, Environment};
use crate::audit::{Actor, AuditAction, AuditEntry, ListEntries, Origin, Subject};
use crate::cursor::{self, ListName, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::AuditId;
use crate::operation::Operations;
use crate::port::{AuditOrder, AuditRange, KeyedDigester};
use crate::principal::{Principal, Scope};
use crate::role::Action;
use crate::time::Timestamp;
use serde::Serialize;
use std::sync::Arc;

/// Number of entries that are read at a time.
const SLICE: usize = 1_000;
/// Maximum number of entries that are read for one page.
const WINDOW: usize = 10_000;
/// Maximum time by which the time in an ID can be ahead of its entry's after a clock moved back, in seconds: one hour.
const ID_AHEAD_SECONDS: i64 = 3_600;

/// Filter of a list of entries, which must match all fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditFilter {
    /// Earliest time of entries.
    pub since: Option<Timestamp>,
    /// Exclusive latest time of entries.
    pub until: Option<Timestamp>,
    /// Actions, of which an entry must have one, also if another action of the same request determined the name of the
    /// entry. Without actions, all entries match.
    pub actions: Vec<String>,
    /// Filter: only [denied](AuditAction::is_denied) requests.
    pub denied: bool,
    /// Filter: no [reads](AuditAction::is_read).
    pub without_reads: bool,
    /// Object that is involved: `credential:<id>`, or only an ID. See [`AuditEntry::concerns`].
    pub subject: Option<String>,
    /// Actor: a kind such as `operator`, or the ID of an account or integration.
    pub actor: Option<String>,
    /// Namespace of the entries.
    pub namespace: Option<String>,
}

impl AuditFilter {
    /// Returns whether the list contains `entry`.
    pub fn fits(&self, entry: &AuditEntry) -> bool {
        let AuditEntry { actor, account, integration, .. } = entry;
        let actors = [Some(actor), account.as_ref(), integration.as_ref()];
        let is = |property: fn(AuditAction) -> bool| AuditAction::parse(&entry.action).is_some_and(property);
        self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
            && (self.actions.is_empty() || self.actions.iter().any(|action| entry.is_action(action)))
            && (!self.denied || is(AuditAction::is_denied))
            && (!self.without_reads || !is(AuditAction::is_read))
            && self.subject.as_ref().is_none_or(|wanted| entry.concerns(wanted))
            && self.namespace.as_ref().is_none_or(|wanted| entry.namespace.as_ref() == Some(wanted))
            && self.actor.as_ref().is_none_or(|wanted| actors.contains(&Some(wanted)))
    }

    /// Returns the range of IDs that contains its entries.
    fn range(&self, scope: Scope, order: AuditOrder) -> AuditRange {
        let from = self.since.map(AuditId::first_at);
        let until = self.until.map(|until| AuditId::first_at(until.plus_seconds(ID_AHEAD_SECONDS)));
        AuditRange { scope, from, until, order }
    }
}

/// Lists of audit entries.
///
/// All methods may be cancelled.
#[derive(Clone)]
pub struct AuditReader {
    environment: Environment,
    tally: Arc<AuditTally>,
    operations: Operations,
    digester: Arc<dyn KeyedDigester>,
}

impl AuditReader {
    /// Creates the context on these ports.
    pub fn new(
        environment: Environment,
        tally: Arc<AuditTally>,
        operations: Operations,
        digester: Arc<dyn KeyedDigester>,
    ) -> Self {
        Self { environment, tally, operations, digester }
    }

    /// Returns the same operations for a request from `origin`, which their audit entries name.
    #[must_use]
    pub fn for_request(&self, origin: Origin) -> Self {
        let mut reader = self.clone();
        reader.environment.origin = origin;
        reader
    }

    /// Reads a page of the entries in `scope` that match `filter`. At most 10,000 entries are read, so a page may be
    /// short or empty although another one follows. For one organization, only entries in a checkpoint are returned.
    ///
    /// # Errors
    /// The principal is not authorized. [`Refusal::Cursor`], also for a cursor of another filter or order.
    pub async fn list(
        &self,
        principal: &Principal,
        scope: Scope,
        order: AuditOrder,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<Page<AuditEntry>, Error> {
        principal.administers(Action::ReadAudit)?;
        let (digester, bound) = (&*self.digester, (filter, order == AuditOrder::NewestFirst));
        let mut read = match page.cursor.as_deref() {
            Some(text) => {
                let position = cursor::decode_filtered(digester, ListName::Audit, scope, &bound, text).await?;
                Some(String::from_utf8(position).map_err(|_| Refusal::Cursor)?)
            }
            None => None,
        };
        let (range, now) = (filter.range(scope, order), self.environment.now());
        let (mut items, mut looked_at, mut after) = (Vec::new(), 0, read.clone());
        let more = 'window: loop {
            let list = ListEntries { range, after: read.clone(), limit: SLICE };
            let slice = self.operations.run(&self.environment, principal, list).await?;
            let last = slice.len() < SLICE;
            looked_at += slice.len();
            read = slice.last().map(|entry| entry.id.clone());
            for entry in slice {
                if filter.fits(&entry) {
                    if items.len() == page.limit {
                        break 'window true;
                    }
                    after = Some(entry.id.clone());
                    items.push(entry);
                } else if items.len() < page.limit {
                    after = Some(entry.id);
                }
            }
            if last {
                break false;
            }
            if looked_at >= WINDOW {
                break true;
            }
        };
        let next = after.filter(|_| more);
        let next = next.map(|id| cursor::encode_filtered(digester, ListName::Audit, scope, &bound, id.as_bytes()));
        if page.cursor.is_none() {
            let (organization, subject) = (principal.organization(), Subject::Audit);
            self.tally.count(now, organization, Actor::from(principal), AuditAction::AuditListed, subject);
        }
        Ok(Page { items, next })
    }
}
