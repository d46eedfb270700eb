//! Integrations.

use super::{Decided, MemoryStore, State};
use crate::clock::lock;
use async_trait::async_trait;
use std::collections::BTreeMap;
use vault_core::audit::{AuditAction, AuditEntry};
use vault_core::id::{AuditId, IntegrationId};
use vault_core::integration::{Integration, StoredIntegration};
use vault_core::namespace::Namespace;
use vault_core::port::{
    ChangeIntegration, CountedPeriod, CreateIntegration, Find, HourlyActions, IntegrationActions, IntegrationChange,
    IntegrationKey, IntegrationRepository, List, NamePosition, StoreError,
};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

const HOUR_MILLIS: i64 = 3_600_000;

#[async_trait]
impl IntegrationRepository for MemoryStore {
    async fn create_integration(&self, command: Command<CreateIntegration>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, |state, principal, _, payload| {
            let limit_reached = payload.limit_reached();
            if let Err(refusal) = state.require_active([payload.digest.key]) {
                return Decided::Refused(Err(refusal));
            }
            let CreateIntegration { integration, digest, limit } = payload;
            let organization = integration.organization;
            if !principal.reaches(organization) || !state.organizations.contains_key(&organization) {
                return Decided::Refused(Err(Refusal::NoOrganization));
            }
            let name = integration.name.uniqueness_key();
            let others = || state.integrations.values().filter(|row| row.integration.organization == organization);
            if i64::try_from(others().count()).unwrap_or(i64::MAX) >= limit {
                return Decided::Refused(Err(limit_reached));
            }
            if others().any(|other| other.integration.name.uniqueness_key() == name) {
                return Decided::Refused(Err(Refusal::NameTaken));
            }
            let row = StoredIntegration { integration, digest, last_used_at: None };
            state.integrations.insert((organization, row.integration.id), row);
            Decided::Done(Ok(()))
        })??)
    }

    async fn find_integration(&self, query: Find<IntegrationKey>) -> Result<Option<StoredIntegration>, StoreError> {
        self.decide(|state| {
            state.authorize(&query.principal, query.now)?;
            let wanted = |integration: &Integration| {
                integration.organization == query.of
                    && query.principal.reaches(integration.organization)
                    && match &query.key {
                        IntegrationKey::Id(id) => integration.id == *id,
                        IntegrationKey::Name(name) => integration.name.uniqueness_key() == name.uniqueness_key(),
                    }
            };
            Ok(state.integrations.values().find(|row| wanted(&row.integration)).cloned())
        })?
    }

    async fn list_integrations(&self, query: List<NamePosition>) -> Result<Vec<StoredIntegration>, StoreError> {
        self.decide(|state| {
            let List { principal, of: scope, after, limit, now } = query;
            state.check_scope(&principal, scope, now)?;
            let after = after.map(|after| (after.organization, after.name));
            let place = |row: &StoredIntegration| (row.integration.organization, row.integration.name.uniqueness_key());
            let wanted = |row: &&StoredIntegration| {
                scope.covers(row.integration.organization) && after.as_ref().is_none_or(|after| place(row) > *after)
            };
            let mut listed: Vec<_> = state.integrations.values().filter(wanted).cloned().collect();
            listed.sort_by_key(place);
            listed.truncate(limit);
            Ok(listed)
        })?
    }

    async fn count_integration_actions(
        &self,
        query: Find<CountedPeriod>,
    ) -> Result<Vec<IntegrationActions>, StoreError> {
        let mut counts = BTreeMap::<_, IntegrationActions>::new();
        for (integration, action, entry) in self.entries_of_integrations(&query)? {
            let day = entry.at.millis_since(query.key.since) / (24 * HOUR_MILLIS);
            let namespace = entry.namespace.as_deref().and_then(|text| Namespace::parse(text, "").ok());
            let key = (integration, entry.namespace, entry.action, day);
            let (first_at, last_at) = (entry.at, entry.at);
            let new = IntegrationActions { integration, namespace, action, day, count: 0, first_at, last_at };
            let counted = counts.entry(key).or_insert(new);
            counted.count += entry.count;
            counted.first_at = counted.first_at.min(entry.at);
            counted.last_at = counted.last_at.max(entry.at);
        }
        Ok(counts.into_values().collect())
    }

    async fn count_hourly_actions(&self, query: Find<CountedPeriod>) -> Result<Vec<HourlyActions>, StoreError> {
        let mut counts = BTreeMap::<_, HourlyActions>::new();
        for (_, action, entry) in self.entries_of_integrations(&query)? {
            let hour = entry.at.millis_since(query.key.since) / HOUR_MILLIS;
            let new = HourlyActions { action, hour, count: 0 };
            counts.entry((entry.action, hour)).or_insert(new).count += entry.count;
        }
        Ok(counts.into_values().collect())
    }

    async fn change_integration(&self, command: Command<ChangeIntegration>) -> Result<(), StoreError> {
        Ok(self.carry_out(command, |state, principal, _, payload| {
            let ChangeIntegration { organization, integration: id, version, change } = payload;
            let signed = match &change {
                IntegrationChange::Replace { digest, .. } => Some(digest.key),
                IntegrationChange::Delete => None,
            };
            if let Err(refusal) = state.require_active(signed) {
                return Decided::Refused(Err(refusal));
            }
            let reached = principal.reaches(organization);
            let Some(row) = state.integrations.get_mut(&(organization, id)).filter(|_| reached) else {
                return Decided::Refused(Err(Refusal::NotFound));
            };
            if row.integration.version != version {
                return Decided::Refused(Err(Refusal::Contended));
            }
            match change {
                IntegrationChange::Replace { integration, digest } => {
                    row.last_used_at = row.last_used_at.filter(|_| row.integration.token == integration.token);
                    let Integration { id, organization, ref name, created_at, .. } = row.integration;
                    let name = name.clone();
                    row.integration = Integration { id, organization, name, created_at, ..*integration };
                    row.digest = digest;
                }
                IntegrationChange::Delete => {
                    state.integrations.remove(&(organization, id));
                    state.activations.retain(|_, activation| activation.integration != id);
                }
            }
            Decided::Done(Ok(()))
        })??)
    }
}

impl MemoryStore {
    /// Returns the sealed entries of an organization's integrations within a period.
    fn entries_of_integrations(
        &self,
        query: &Find<CountedPeriod>,
    ) -> Result<Vec<(IntegrationId, AuditAction, AuditEntry)>, StoreError> {
        self.decide(|state| state.authorize(&query.principal, query.now))??;
        let (own, from) = (Some(query.of.to_string()), AuditId::first_at(query.key.since).to_string());
        let wanted = query.key.integration;
        let entries = lock(&self.inner).entries().into_iter();
        let counted =
            entries.filter(|entry| entry.organization == own && entry.checkpoint.is_some() && entry.id >= from);
        let known = counted.filter_map(|entry| {
            let integration = entry.integration.as_ref()?.parse().ok()?;
            if wanted.is_some_and(|wanted| wanted != integration) {
                return None;
            }
            Some((integration, AuditAction::parse(&entry.action)?, entry))
        });
        Ok(known.collect())
    }
}

impl State {
    /// Checks that `principal` may read the rows of `scope`.
    pub(super) fn check_scope(&self, principal: &Principal, scope: Scope, now: Timestamp) -> Result<(), Denial> {
        if principal.may_see(scope) { self.authorize(principal, now) } else { Err(Denial::InsufficientRole) }
    }
}
