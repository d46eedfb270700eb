//! Activations.

use super::{Answer, Decided, MemoryStore, State};
use async_trait::async_trait;
use vault_core::activation::{Activation, HandOutFacts, HandOutRefusal, TakingFacts, judge_hand_out, judge_taking};
use vault_core::digest::Digest;
use vault_core::integration::{
    Integration, IntegrationFacts, IntegrationPrincipal, IntegrationRefusal, TokenSlot, judge_integration,
};
use vault_core::port::{
    AbortActivation, ActivationRepository, EndActivation, ForIntegration, FoundIntegration, HandOut, ListActivations,
    StoreError, TakeCredentials, TakenCredential,
};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

#[async_trait]
impl ActivationRepository for MemoryStore {
    async fn find_integration_by_token(&self, token: Digest) -> Result<Option<FoundIntegration>, StoreError> {
        self.decide(|state| {
            let has = |integration: &Integration| {
                integration.token == token || integration.previous.is_some_and(|previous| previous.digest == token)
            };
            let found = state.integrations.values().find(|row| has(&row.integration))?;
            let organization_active = state.organization_is_active(found.integration.organization);
            Some(FoundIntegration { stored: found.clone(), organization_active })
        })
    }

    async fn take_credentials(
        &self,
        command: ForIntegration<TakeCredentials>,
    ) -> Result<Vec<TakenCredential>, StoreError> {
        Ok(self.carry_out(command, take)??)
    }

    async fn hand_out(&self, command: ForIntegration<HandOut>) -> Result<Option<HandOutRefusal>, StoreError> {
        self.decide(|state| hand_out(state, command))
    }

    async fn list_activations(&self, query: ListActivations) -> Result<Vec<Activation>, StoreError> {
        self.decide(|state| {
            state.judge_integration(&query.principal, query.now).map_err(Denial::Integration)?;
            let live = state.live_activations(&query.principal, query.now);
            let mut live: Vec<_> = live.filter(|row| query.after.is_none_or(|after| row.id < after)).cloned().collect();
            live.sort_by_key(|activation| std::cmp::Reverse(activation.id));
            live.truncate(query.limit);
            Ok(live)
        })?
    }

    async fn end_activation(&self, command: ForIntegration<EndActivation>) -> Result<bool, StoreError> {
        self.carry_out(command, |state, principal, now, act| {
            if !state.live_activations(principal, now).any(|live| live.id == act.activation) {
                return Decided::Refused(false);
            }
            state.activations.remove(&act.activation);
            Decided::Done(true)
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

fn take(
    state: &mut State,
    principal: &IntegrationPrincipal,
    now: Timestamp,
    act: TakeCredentials,
) -> Decided<Answer<Vec<TakenCredential>>> {
    let TakeCredentials { namespace, activation, most } = act;
    let organization = principal.organization;
    let within = state.credentials_of(organization).filter(|row| row.stored.namespace == namespace);
    let taken: Vec<_> = within
        .map(|row| TakenCredential {
            id: row.stored.id,
            kind: row.stored.kind,
            version: row.stored.version,
            sealed: row.sealed.clone(),
        })
        .collect();
    let live = i64::try_from(state.live_activations(principal, now).count()).unwrap_or(i64::MAX);
    let facts = TakingFacts {
        frozen: state.frozen.contains_key(&(organization, namespace.clone())),
        credentials: taken.len(),
        live: activation.as_ref().map(|new| (live, new.limit)),
    };
    if let Err(refusal) = judge_taking(facts, most) {
        return Decided::Refused(Err(refusal));
    }
    if let Some(new) = activation {
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
    if principal.slot == TokenSlot::Current
        && let Some(row) = state.integrations.get_mut(&(organization, principal.integration))
    {
        row.last_used_at = row.last_used_at.max(Some(now.floor_to_minute()));
    }
    Decided::Done(Ok(taken))
}

fn hand_out(state: &mut State, command: ForIntegration<HandOut>) -> Option<HandOutRefusal> {
    let ForIntegration { principal, now, audit, act } = command;
    let HandOut { activation, expires_at, namespace, credentials, refused } = act;
    let organization = principal.organization;
    let current: Vec<_> = state
        .credentials_of(organization)
        .filter(|row| row.stored.namespace == namespace)
        .map(|row| (row.stored.id, row.stored.version))
        .collect();
    let facts = HandOutFacts {
        integration: state.judge_integration(&principal, now),
        frozen: state.frozen.contains_key(&(organization, namespace)),
        begun: state.activations.get(&activation).is_some_and(|row| row.integration == principal.integration),
        expires_at,
        current: &current,
    };
    match judge_hand_out(&facts, &credentials, now) {
        Ok(()) => {
            state.audit.push(audit);
            None
        }
        Err(refusal) => {
            state.activations.retain(|id, row| *id != activation || row.organization != organization);
            state.audit.push(refused);
            Some(refusal)
        }
    }
}

impl State {
    pub(super) fn judge_integration(
        &self,
        principal: &IntegrationPrincipal,
        now: Timestamp,
    ) -> Result<(), IntegrationRefusal> {
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
