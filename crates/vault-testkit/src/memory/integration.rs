//! Integrations.

use super::{MemoryStore, State};
use async_trait::async_trait;
use vault_core::digest::Digest;
use vault_core::id::OrganizationId;
use vault_core::integration::{Integration, StoredIntegration};
use vault_core::port::{
    ChangeIntegration, ChangeIntegrationOutcome, CreateIntegration, CreateIntegrationOutcome, FindIntegration,
    IntegrationChange, IntegrationKey, IntegrationRepository, IntegrationScope, ListIntegrations, StoreError,
};
use vault_core::principal::Denial;
use vault_core::time::Timestamp;

/// The version of an integration that has just been made.
const FIRST_VERSION: i64 = 1;

#[async_trait]
impl IntegrationRepository for MemoryStore {
    async fn create_integration(&self, command: CreateIntegration) -> Result<CreateIntegrationOutcome, StoreError> {
        self.decide(|state| {
            let CreateIntegration { authority, integration, digest, now, audit } = command;
            if let Err(refusal) = state.judge(&authority, now) {
                return CreateIntegrationOutcome::Refused(refusal);
            }
            let organization = integration.organization;
            if !authority.reaches(organization) || !state.organizations.contains_key(&organization) {
                return CreateIntegrationOutcome::NoOrganization;
            }
            let name = integration.name.uniqueness_key();
            let mut others = state.integrations.values().map(|row| &row.integration);
            if others.any(|other| other.organization == organization && other.name.uniqueness_key() == name) {
                return CreateIntegrationOutcome::NameTaken;
            }
            let row = StoredIntegration { integration, digest, version: FIRST_VERSION };
            state.integrations.insert((organization, row.integration.id), row);
            state.audit.push(audit);
            CreateIntegrationOutcome::Created
        })
    }

    async fn find_integration(
        &self,
        query: FindIntegration,
    ) -> Result<Result<Option<StoredIntegration>, Denial>, StoreError> {
        self.decide(|state| {
            state.judge(&query.authority, query.now)?;
            let wanted = |integration: &Integration| {
                integration.organization == query.organization
                    && query.authority.reaches(integration.organization)
                    && match &query.key {
                        IntegrationKey::Id(id) => integration.id == *id,
                        IntegrationKey::Name(name) => integration.name.uniqueness_key() == name.uniqueness_key(),
                    }
            };
            Ok(state.integrations.values().find(|row| wanted(&row.integration)).cloned())
        })
    }

    async fn find_integration_by_token(&self, token: Digest) -> Result<Option<StoredIntegration>, StoreError> {
        self.decide(|state| {
            let has = |integration: &Integration| {
                integration.token == token || integration.earlier.is_some_and(|earlier| earlier.digest == token)
            };
            let found = state.integrations.values().find(|row| has(&row.integration));
            found.filter(|row| state.organization_is_active(row.integration.organization)).cloned()
        })
    }

    async fn list_integrations(
        &self,
        query: ListIntegrations,
    ) -> Result<Result<Vec<StoredIntegration>, Denial>, StoreError> {
        self.decide(|state| {
            let organization = state.judge_scope(&query.scope, query.now)?;
            let wanted = |row: &&StoredIntegration| organization.is_none_or(|id| row.integration.organization == id);
            let mut listed: Vec<_> = state.integrations.values().filter(wanted).cloned().collect();
            listed.sort_by_key(|row| (row.integration.organization, row.integration.name.uniqueness_key()));
            Ok(listed)
        })
    }

    async fn change_integration(&self, command: ChangeIntegration) -> Result<ChangeIntegrationOutcome, StoreError> {
        self.decide(|state| {
            let ChangeIntegration { authority, organization, integration: id, version, change, now, audit } = command;
            if let Err(refusal) = state.judge(&authority, now) {
                return ChangeIntegrationOutcome::Refused(refusal);
            }
            let reached = authority.reaches(organization);
            let Some(row) = state.integrations.get_mut(&(organization, id)).filter(|_| reached) else {
                return ChangeIntegrationOutcome::NotFound;
            };
            if row.version != version {
                return ChangeIntegrationOutcome::Stale;
            }
            match change {
                IntegrationChange::Replace { integration, digest } => {
                    let Integration { state, token, earlier, expires_at, patterns, .. } = *integration;
                    let kept = row.integration.clone();
                    row.integration = Integration { state, token, earlier, expires_at, patterns, ..kept };
                    row.digest = digest;
                    row.version += 1;
                }
                IntegrationChange::Delete => {
                    state.integrations.remove(&(organization, id));
                    state.activations.retain(|_, activation| activation.integration != id);
                }
            }
            state.audit.push(audit);
            ChangeIntegrationOutcome::Changed
        })
    }
}

impl State {
    /// The organization that the scope is confined to, if it is.
    pub(super) fn judge_scope(
        &self,
        scope: &IntegrationScope,
        now: Timestamp,
    ) -> Result<Option<OrganizationId>, Denial> {
        match scope {
            IntegrationScope::Everywhere => Ok(None),
            IntegrationScope::Organization(organization) => Ok(Some(*organization)),
            IntegrationScope::Session(principal) => {
                self.judge_session(principal, now).map(|()| Some(principal.organization))
            }
        }
    }
}
