//! Activations.

use super::{Answer, Decided, MemoryStore, State};
use async_trait::async_trait;
use uuid::Uuid;
use vault_core::activation::{
    Activation, ActivationFacts, IssuanceFacts, IssuanceRefusal, check_activation, check_issuance,
};
use vault_core::credential::{CredentialUse, DueCheck};
use vault_core::entity::Kind;
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::integration::{
    IntegrationFacts, IntegrationPrincipal, IntegrationRefusal, TokenSlot, check_integration,
};
use vault_core::port::{
    AbortActivation, ActivationRepository, EndActivation, FetchCredentials, FetchedCredential, FindActivation,
    ForIntegration, IssueCredentials, ListActivations, StoreError,
};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

#[async_trait]
impl ActivationRepository for MemoryStore {
    async fn fetch_credentials(
        &self,
        command: ForIntegration<FetchCredentials>,
    ) -> Result<Vec<FetchedCredential>, StoreError> {
        Ok(self.carry_out(command, take)??)
    }

    async fn issue_credentials(
        &self,
        command: ForIntegration<IssueCredentials>,
    ) -> Result<Option<IssuanceRefusal>, StoreError> {
        self.decide(|state| issue_credentials(state, command))
    }

    async fn list_activations(&self, query: ListActivations) -> Result<Vec<Activation>, StoreError> {
        self.decide(|state| {
            state.check_integration(&query.principal, query.now).map_err(Denial::Integration)?;
            let live = state.live_activations(&query.principal, query.now);
            let mut live: Vec<_> = live.filter(|row| query.after.is_none_or(|after| row.id < after)).cloned().collect();
            live.sort_by_key(|activation| std::cmp::Reverse(activation.id));
            live.truncate(query.limit);
            Ok(live)
        })?
    }

    async fn find_activation(&self, query: FindActivation) -> Result<Option<Activation>, StoreError> {
        self.decide(|state| {
            state.check_integration(&query.principal, query.now).map_err(Denial::Integration)?;
            Ok(state.live_activations(&query.principal, query.now).find(|live| live.id == query.activation).cloned())
        })?
    }

    async fn end_activation(&self, command: ForIntegration<EndActivation>) -> Result<bool, StoreError> {
        self.carry_out(command, |state, principal, now, payload| {
            if !state.live_activations(principal, now).any(|live| live.id == payload.activation) {
                return Decided::Refused(false);
            }
            state.activations.remove(&payload.activation);
            let uses = state.uses.iter_mut().filter(|((of, _), _)| *of == principal.organization);
            for used in uses.flat_map(|(_, uses)| uses).filter(|used| used.activation == payload.activation) {
                used.ended_at = Some(now);
            }
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

/// Returns the key of an integration's row.
fn place_of(principal: &IntegrationPrincipal) -> (OrganizationId, &'static str, Uuid) {
    (principal.organization, Kind::Integration.as_str(), *principal.integration.as_uuid())
}

fn take(
    state: &mut State,
    principal: &IntegrationPrincipal,
    now: Timestamp,
    payload: FetchCredentials,
) -> Decided<Answer<Vec<FetchedCredential>>> {
    let FetchCredentials { namespace, activation, most } = payload;
    let organization = principal.organization;
    let within = state.credentials_of(organization).filter(|row| row.stored.namespace == namespace);
    let taken: Vec<_> = within
        .map(|row| FetchedCredential {
            id: row.stored.id,
            kind: row.stored.kind,
            version: row.stored.version,
            sealed: row.sealed.clone(),
            vend: row.stored.vend,
            current: row.stored.version,
            staged: row.stored.staged,
            highest: row.stored.highest,
            listed: row.stored.listed.clone(),
            revision: row.stored.revision,
            metadata_revision: row.stored.state().metadata_revision,
            code: row.stored.code,
            last_activated_at: row.stored.last_activated_at,
        })
        .collect();
    let live = i64::try_from(state.live_activations(principal, now).count()).unwrap_or(i64::MAX);
    let facts = ActivationFacts {
        frozen: state.is_frozen(organization, &namespace),
        credentials: taken.len(),
        live: activation.as_ref().map(|new| (live, new.limit)),
    };
    if let Err(refusal) = check_activation(facts, most) {
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
            started_at: now,
            expires_at: new.expires_at,
        };
        state.activations.insert(new.id, row);
    }
    if principal.slot == TokenSlot::Current
        && let Some(row) = state.entities.get_mut(&place_of(principal))
    {
        row.last_used_at = row.last_used_at.max(Some(now.floor_to_minute()));
    }
    Decided::Done(Ok(taken))
}

fn issue_credentials(state: &mut State, command: ForIntegration<IssueCredentials>) -> Option<IssuanceRefusal> {
    let ForIntegration { principal, now, audit, payload } = command;
    let IssueCredentials { activation, renewal, expires_at, namespace, credentials, purpose, refused } = payload;
    let organization = principal.organization;
    let current: Vec<_> = state
        .credentials_of(organization)
        .filter(|row| row.stored.namespace == namespace)
        .map(|row| (row.stored.id, row.stored.version, row.stored.vend))
        .collect();
    let facts = IssuanceFacts {
        integration: state.check_integration(&principal, now),
        frozen: state.is_frozen(organization, &namespace),
        started: state
            .activations
            .get(&activation)
            .is_some_and(|row| row.integration == principal.integration && (!renewal || row.is_live(now))),
        expires_at,
        current: &current,
    };
    match check_issuance(&facts, &credentials, now) {
        Ok(()) => {
            state.audit.push(audit);
            if renewal && let Some(row) = state.activations.get_mut(&activation) {
                row.expires_at = expires_at;
                row.credentials = u32::try_from(credentials.len()).unwrap_or(u32::MAX);
            }
            let at = state.activations.get(&activation).map_or(now, |row| row.started_at);
            for one in &credentials {
                let uses = state.uses.entry((organization, one.credential)).or_default();
                if let Some(used) = uses.iter_mut().find(|used| used.activation == activation) {
                    (used.version, used.form, used.expires_at) = (one.version, one.form, expires_at);
                    continue;
                }
                uses.push(CredentialUse {
                    activation,
                    at,
                    expires_at,
                    ended_at: None,
                    version: one.version,
                    integration: principal.integration,
                    name: None,
                    form: one.form,
                    purpose: purpose.clone(),
                    workload: principal.subject().map(str::to_owned),
                });
            }
            None
        }
        Err(refusal) => {
            state.activations.retain(|id, row| renewal || *id != activation || row.organization != organization);
            state.audit.push(refused);
            Some(refusal)
        }
    }
}

impl State {
    pub(super) fn due_check(&self, organization: OrganizationId, id: CredentialId, version: i64) -> Option<DueCheck> {
        let row = self.credentials.get(&(organization, id))?;
        let (sealed, before) = match row.others.get(&version) {
            Some(other) => (&other.sealed, other.check),
            None if row.stored.version == version => (&row.sealed, row.stored.check),
            None => return None,
        };
        let credential = FetchedCredential {
            id,
            kind: row.stored.kind,
            version,
            sealed: sealed.clone(),
            vend: row.stored.vend,
            current: row.stored.version,
            staged: row.stored.staged,
            highest: row.stored.highest,
            listed: row.stored.listed.clone(),
            revision: row.stored.revision,
            metadata_revision: row.stored.state().metadata_revision,
            code: row.stored.code,
            last_activated_at: row.stored.last_activated_at,
        };
        Some(DueCheck { organization, namespace: row.stored.namespace.clone(), credential, before })
    }

    pub(super) fn check_integration(
        &self,
        principal: &IntegrationPrincipal,
        now: Timestamp,
    ) -> Result<(), IntegrationRefusal> {
        let row = self.entities.get(&place_of(principal));
        let facts = IntegrationFacts {
            sealed: row.map(|row| row.sealed.clone()),
            organization_active: self.organization_is_active(principal.organization),
        };
        check_integration(principal, &facts, now)
    }

    fn live_activations(&self, principal: &IntegrationPrincipal, now: Timestamp) -> impl Iterator<Item = &Activation> {
        let (organization, integration) = (principal.organization, principal.integration);
        let own = move |row: &&Activation| row.organization == organization && row.integration == integration;
        self.activations.values().filter(own).filter(move |row| row.is_live(now))
    }
}
