//! Rows of activations.

use super::rows::{MemoryRows, done};
use super::{Defect, State};
use vault_core::activation::{Activation, FetchedCredential, ListActivations, VendRule};
use vault_core::credential::{CredentialUse, DueCheck};
use vault_core::id::{ActivationId, CredentialId, IntegrationId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{ActivationRows, Reply};
use vault_core::time::Timestamp;

impl ActivationRows for MemoryRows<'_> {
    fn sealed_credentials(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        limit: usize,
    ) -> Reply<'_, Vec<FetchedCredential>> {
        let state = self.state();
        let within = state.credentials_of(organization).filter(|row| row.stored.namespace == *namespace);
        let fetched = within.take(limit).filter_map(|row| row.fetched(row.stored.version));
        let mut fetched: Vec<_> = fetched.collect();
        if self.has(Defect::ReversesCredentials) {
            fetched.reverse();
        }
        done(fetched)
    }

    fn issuable_versions(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        credentials: &[CredentialId],
    ) -> Reply<'_, Vec<(CredentialId, i64, VendRule)>> {
        let state = self.state();
        let found = credentials.iter().filter_map(|id| Some(&state.credentials.get(&(organization, *id))?.stored));
        let found = found.filter(|stored| stored.namespace == *namespace);
        let vend = |rule| if self.has(Defect::IgnoresVendRules) { VendRule::Any } else { rule };
        done(found.map(|stored| (stored.id, stored.version, vend(stored.vend))).collect())
    }

    fn count_activations(
        &self,
        organization: OrganizationId,
        integration: IntegrationId,
        now: Timestamp,
    ) -> Reply<'_, i64> {
        let count = self.state().live_activations(organization, integration, now).count();
        let count = if self.has(Defect::CountsLess) { count.saturating_sub(1) } else { count };
        done(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn active_activations(&self, query: &ListActivations) -> Reply<'_, Vec<Activation>> {
        let (organization, integration) = (query.principal.organization, query.principal.integration);
        let state = self.state();
        let live = state.live_activations(organization, integration, query.now);
        let mut live: Vec<_> = live.filter(|row| query.after.is_none_or(|after| row.id < after)).cloned().collect();
        live.sort_by_key(|activation| std::cmp::Reverse(activation.id));
        live.truncate(query.limit);
        done(live)
    }

    fn activation(&self, organization: OrganizationId, id: ActivationId) -> Reply<'_, Option<Activation>> {
        done(self.state().activations.get(&id).filter(|row| row.organization == organization).cloned())
    }

    fn insert_activation(&self, activation: &Activation) -> Reply<'_, ()> {
        self.state().activations.insert(activation.id, activation.clone());
        done(())
    }

    fn renew_activation(&self, activation: &Activation) -> Reply<'_, ()> {
        if self.has(Defect::RenewsNothing) {
            return done(());
        }
        self.state().activations.insert(activation.id, activation.clone());
        done(())
    }

    fn remove_activation(&self, organization: OrganizationId, id: ActivationId) -> Reply<'_, ()> {
        if !self.has(Defect::KeepsActivations) {
            self.state().activations.retain(|of, row| *of != id || row.organization != organization);
        }
        done(())
    }

    fn remove_activations(&self, organization: OrganizationId, integration: IntegrationId) -> Reply<'_, ()> {
        let of_it = |row: &Activation| (row.organization, row.integration) == (organization, integration);
        self.state().activations.retain(|_, row| !of_it(row));
        done(())
    }

    fn set_uses(&self, organization: OrganizationId, uses: &[(CredentialId, CredentialUse)]) -> Reply<'_, ()> {
        let mut state = self.state();
        for (id, new) in uses {
            let uses = state.uses.entry((organization, *id)).or_default();
            match uses.iter_mut().find(|used| used.activation == new.activation) {
                Some(used) => (used.version, used.form, used.expires_at) = (new.version, new.form, new.expires_at),
                None => uses.push(new.clone()),
            }
        }
        done(())
    }

    fn end_uses(&self, activation: &Activation, at: Timestamp) -> Reply<'_, ()> {
        let mut state = self.state();
        let uses = state.uses.iter_mut().filter(|((of, _), _)| *of == activation.organization);
        for used in uses.flat_map(|(_, uses)| uses).filter(|used| used.activation == activation.id) {
            used.ended_at = Some(at);
        }
        done(())
    }
}

impl State {
    pub(super) fn due_check(&self, organization: OrganizationId, id: CredentialId, version: i64) -> Option<DueCheck> {
        let row = self.credentials.get(&(organization, id))?;
        let before = row.data.get(&version)?.check;
        Some(DueCheck { organization, credential: row.fetched(version)?, before })
    }

    fn live_activations(
        &self,
        organization: OrganizationId,
        integration: IntegrationId,
        now: Timestamp,
    ) -> impl Iterator<Item = &Activation> {
        let own = move |row: &&Activation| (row.organization, row.integration) == (organization, integration);
        self.activations.values().filter(own).filter(move |row| row.is_live(now))
    }
}
