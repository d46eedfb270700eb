//! Activations.

use super::{MemoryStore, State};
use async_trait::async_trait;
use std::cmp::Reverse;
use vault_core::activation::Activation;
use vault_core::integration::{IntegrationFacts, IntegrationPrincipal, PrincipalStale, judge_integration};
use vault_core::port::{
    AbortActivation, ActivationRepository, EndActivation, ListActivations, StoreError, TakeCredentials, TakeOutcome,
    TakenCredential,
};
use vault_core::time::Timestamp;

#[async_trait]
impl ActivationRepository for MemoryStore {
    async fn take_credentials(&self, command: TakeCredentials) -> Result<TakeOutcome, StoreError> {
        self.decide(|state| take(state, command))
    }

    async fn list_activations(
        &self,
        query: ListActivations,
    ) -> Result<Result<Vec<Activation>, PrincipalStale>, StoreError> {
        self.decide(|state| {
            state.judge_integration(&query.principal, query.now)?;
            let mut live: Vec<_> = state.live_activations(&query.principal, query.now).cloned().collect();
            live.sort_by_key(|activation| (Reverse(activation.begun_at), activation.id));
            Ok(live)
        })
    }

    async fn end_activation(&self, command: EndActivation) -> Result<Result<bool, PrincipalStale>, StoreError> {
        self.decide(|state| {
            let EndActivation { principal, activation, now, audit } = command;
            state.judge_integration(&principal, now)?;
            let was_there = state.live_activations(&principal, now).any(|live| live.id == activation);
            if was_there {
                state.activations.remove(&activation);
                state.audit.push(audit);
            }
            Ok(was_there)
        })
    }

    async fn abort_activation(&self, command: AbortActivation) -> Result<(), StoreError> {
        self.decide(|state| {
            let AbortActivation { organization, activation, audit } = command;
            state.activations.retain(|id, row| *id != activation || row.organization != organization);
            state.audit.push(audit);
        })
    }
}

fn take(state: &mut State, command: TakeCredentials) -> TakeOutcome {
    let TakeCredentials { principal, namespace, activation, most, now, audit } = command;
    let organization = principal.organization;
    if let Err(stale) = state.judge_integration(&principal, now) {
        return TakeOutcome::Refused(stale);
    }
    if state.frozen.contains_key(&(organization, namespace.clone())) {
        return TakeOutcome::Frozen;
    }
    let within = state.credentials_of(organization).filter(|row| row.stored.namespace == namespace);
    let taken: Vec<_> = within
        .map(|row| TakenCredential {
            id: row.stored.id,
            kind: row.stored.kind,
            version: row.stored.version,
            sealed: row.sealed.clone(),
        })
        .collect();
    if taken.is_empty() {
        return TakeOutcome::Empty;
    }
    if taken.len() > most {
        return TakeOutcome::TooLarge;
    }
    if let Some(new) = activation {
        let live = i64::try_from(state.live_activations(&principal, now).count()).unwrap_or(i64::MAX);
        if live >= new.limit {
            return TakeOutcome::TooManyLive;
        }
        let row = Activation {
            id: new.id,
            organization,
            integration: principal.integration,
            namespace,
            vend: new.vend,
            credentials: u32::try_from(taken.len()).unwrap_or(u32::MAX),
            begun_at: now,
            expires_at: new.expires_at,
        };
        state.activations.insert(new.id, row);
    }
    state.audit.push(audit);
    TakeOutcome::Taken(taken)
}

impl State {
    fn judge_integration(&self, principal: &IntegrationPrincipal, now: Timestamp) -> Result<(), PrincipalStale> {
        let row = self.integrations.get(&(principal.organization, principal.integration));
        let facts = IntegrationFacts {
            digest: row.map(|row| row.digest),
            organization_active: self.organization_is_active(principal.organization),
        };
        judge_integration(principal, facts, now)
    }

    fn live_activations(&self, principal: &IntegrationPrincipal, now: Timestamp) -> impl Iterator<Item = &Activation> {
        let (organization, integration) = (principal.organization, principal.integration);
        let own = move |row: &&Activation| row.organization == organization && row.integration == integration;
        self.activations.values().filter(own).filter(move |row| row.is_live(now))
    }
}
