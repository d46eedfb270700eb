//! How an organization's integrations were used, counted from the audit log.

use super::Integrations;
use crate::audit::AuditAction;
use crate::error::Error;
use crate::id::{IntegrationId, OrganizationId};
use crate::integration::{CountActions, CountHours, CountedPeriod, HourlyActions, IntegrationActions};
use crate::namespace::Namespace;
use crate::principal::{Principal, Scope};
use crate::rhythm::Rhythm;
use crate::role::Action;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Longest period of a count, in seconds: 30 days.
const LONGEST_PERIOD_SECONDS: i64 = 30 * 24 * 3_600;

const HOUR_MILLIS: i64 = 3_600_000;

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

/// Activations and denied requests of all namespaces within a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceUsage {
    /// Start of the period.
    pub since: Timestamp,
    /// Number of activations in each hour since then, without renewals.
    pub activations: Vec<i64>,
    /// Number of [denied](AuditAction::is_denied) requests of integrations in each hour since then.
    pub denied: Vec<i64>,
    /// Activations, by integration and namespace.
    pub uses: Vec<NamespaceUse>,
    /// Denied requests, by integration, namespace and action.
    pub denials: Vec<NamespaceDenial>,
}

/// Activations of a namespace by an integration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceUse {
    /// The integration, which may have been deleted.
    pub integration: IntegrationId,
    /// The namespace.
    pub namespace: Namespace,
    /// Number of activations, without renewals.
    pub activations: i64,
    /// Time of the last activation.
    pub last_activated_at: Timestamp,
    /// Their rhythm, if they are regular.
    pub rhythm: Option<Rhythm>,
}

/// Denied requests of an integration, with one namespace and action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceDenial {
    /// The integration, which may have been deleted.
    pub integration: IntegrationId,
    /// The namespace, if the request was authenticated.
    pub namespace: Option<Namespace>,
    /// Action of the audit entries, which is the reason.
    pub action: AuditAction,
    /// Number of requests.
    pub denied: i64,
    /// Time of the last request.
    pub last_denied_at: Timestamp,
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
        let (_, period) = self.period(principal, organization, since, None)?;
        let mut usage = BTreeMap::<IntegrationId, IntegrationUsage>::new();
        let operation = CountActions(organization, period);
        for actions in self.operations.run(&self.environment, principal, operation).await? {
            usage.entry(actions.integration).or_default().add(&actions);
        }
        Ok(usage.into_iter().filter(|(_, usage)| *usage != IntegrationUsage::default()).collect())
    }

    /// Counts the same requests as [`Integrations::usage`] by namespace and by hour, of one or of all integrations. The size of
    /// the result depends on the number of integrations and namespaces, and not on the number of requests.
    ///
    /// # Errors
    /// The principal is not authorized.
    pub async fn namespace_usage(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        since: Option<Timestamp>,
        integration: Option<IntegrationId>,
    ) -> Result<NamespaceUsage, Error> {
        let (now, period) = self.period(principal, organization, since, integration)?;
        let since = period.since;
        let hours = CountHours(organization, period);
        let hours = self.operations.run(&self.environment, principal, hours).await?;
        let actions = CountActions(organization, period);
        let actions = self.operations.run(&self.environment, principal, actions).await?;
        let today = now.millis_since(since) / (24 * HOUR_MILLIS);
        let is_activation = |action| action == AuditAction::NamespaceActivated;
        Ok(NamespaceUsage {
            since,
            activations: by_hour(since, now, &hours, is_activation),
            denied: by_hour(since, now, &hours, AuditAction::is_denied),
            uses: uses(&actions, today),
            denials: denials(actions),
        })
    }

    /// Returns the current time, and the period since `since`.
    fn period(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        since: Option<Timestamp>,
        integration: Option<IntegrationId>,
    ) -> Result<(Timestamp, CountedPeriod), Error> {
        Self::permit_scope(principal, Action::ManageIntegrations, Scope::One(organization))?;
        let now = self.environment.now();
        let earliest = now.plus_seconds(-LONGEST_PERIOD_SECONDS);
        let since = since.map_or(earliest, |since| since.max(earliest));
        Ok((now, CountedPeriod { since, integration }))
    }
}

/// Returns the counts of the hours from `since` to `now`.
fn by_hour(
    since: Timestamp,
    now: Timestamp,
    counted: &[HourlyActions],
    is_counted: impl Fn(AuditAction) -> bool,
) -> Vec<i64> {
    let last = usize::try_from(now.millis_since(since) / HOUR_MILLIS).unwrap_or_default();
    let mut hours = vec![0_i64; last + 1];
    for actions in counted.iter().filter(|actions| is_counted(actions.action)) {
        // A clock that moved back can leave entries before the first or after the last hour.
        let hour = usize::try_from(actions.hour).unwrap_or_default().min(last);
        if let Some(count) = hours.get_mut(hour) {
            *count = count.saturating_add(actions.count);
        }
    }
    hours
}

fn uses(counted: &[IntegrationActions], today: i64) -> Vec<NamespaceUse> {
    let mut uses = BTreeMap::<_, (NamespaceUse, BTreeMap<i64, Timestamp>)>::new();
    for actions in counted.iter().filter(|actions| actions.action == AuditAction::NamespaceActivated) {
        let (integration, Some(namespace)) = (actions.integration, &actions.namespace) else { continue };
        let new = || NamespaceUse {
            integration,
            namespace: namespace.clone(),
            activations: 0,
            last_activated_at: actions.last_at,
            rhythm: None,
        };
        let (used, days) = uses.entry((integration, namespace)).or_insert_with(|| (new(), BTreeMap::new()));
        used.activations = used.activations.saturating_add(actions.count);
        used.last_activated_at = used.last_activated_at.max(actions.last_at);
        days.insert(actions.day, actions.first_at);
    }
    uses.into_values().map(|(used, days)| NamespaceUse { rhythm: Rhythm::of(&days, today), ..used }).collect()
}

fn denials(counted: Vec<IntegrationActions>) -> Vec<NamespaceDenial> {
    let mut denials = BTreeMap::<_, NamespaceDenial>::new();
    for actions in counted.into_iter().filter(|actions| actions.action.is_denied()) {
        let IntegrationActions { integration, namespace, action, count, last_at, .. } = actions;
        let key = (integration, namespace.clone(), action.as_str());
        let new = NamespaceDenial { integration, namespace, action, denied: 0, last_denied_at: last_at };
        let denial = denials.entry(key).or_insert(new);
        denial.denied = denial.denied.saturating_add(count);
        denial.last_denied_at = denial.last_denied_at.max(last_at);
    }
    denials.into_values().collect()
}
