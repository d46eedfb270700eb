//! How an organization's integrations were used, counted from the audit log.

use super::Integrations;
use crate::audit::AuditAction;
use crate::error::Error;
use crate::id::{IntegrationId, OrganizationId};
use crate::port::{Find, IntegrationActions};
use crate::principal::{Principal, Scope};
use crate::time::Timestamp;
use crate::usecase::audit_reader::first_id;
use std::collections::BTreeMap;

/// Longest period of a count, in seconds: 30 days.
const LONGEST_PERIOD_SECONDS: i64 = 30 * 24 * 3_600;

/// Activations and denied requests of an integration within a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrationUsage {
    /// Number of activations, without renewals.
    pub activations: i64,
    /// Time of the last activation.
    pub last_activated_at: Option<Timestamp>,
    /// Number of [denied](AuditAction::is_denied) requests.
    pub denied: i64,
    /// Time of the last denied request.
    pub last_denied_at: Option<Timestamp>,
}

impl IntegrationUsage {
    /// Adds entries of one action.
    fn add(&mut self, actions: &IntegrationActions) {
        let (count, last) = match actions.action {
            AuditAction::NamespaceActivated => (&mut self.activations, &mut self.last_activated_at),
            action if action.is_denied() => (&mut self.denied, &mut self.last_denied_at),
            _ => return,
        };
        *count = count.saturating_add(actions.count);
        *last = (*last).max(Some(actions.last_at));
    }
}

impl Integrations {
    /// Counts the activations and denied requests of the organization's integrations since `since`, at most of the last
    /// 30 days. Without `since`, counts the last 30 days. Deleted integrations are included. An integration without
    /// activations and denied requests is omitted, as are entries that were deleted at the end of their retention.
    ///
    /// # Errors
    /// The principal is not authorized.
    pub async fn usage(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        since: Option<Timestamp>,
    ) -> Result<Vec<(IntegrationId, IntegrationUsage)>, Error> {
        Self::permit_scope(principal, Scope::One(organization))?;
        let now = self.environment.now();
        let earliest = now.plus_seconds(-LONGEST_PERIOD_SECONDS);
        let from = first_id(since.map_or(earliest, |since| since.max(earliest)));
        let query = Find { principal: principal.clone(), of: organization, key: from, now };
        let mut usage = BTreeMap::<IntegrationId, IntegrationUsage>::new();
        for actions in self.store.count_integration_actions(query).await? {
            usage.entry(actions.integration).or_default().add(&actions);
        }
        Ok(usage.into_iter().filter(|(_, usage)| *usage != IntegrationUsage::default()).collect())
    }
}
