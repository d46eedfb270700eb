//! Organizations.

use super::{Defect, MemoryStore};
use async_trait::async_trait;
use vault_core::id::OrganizationId;
use vault_core::organization::{Organization, OrganizationName, OrganizationState};
use vault_core::port::{
    CreateOrganization, DeleteOrganization, OrganizationRepository, SetOrganizationState, StoreError,
};
use vault_core::sealed::Blob;

#[async_trait]
impl OrganizationRepository for MemoryStore {
    async fn create_organization(&self, command: CreateOrganization) -> Result<bool, StoreError> {
        self.decide(|state| {
            let wrapped = command.keys.keys.iter().map(|key| &key.wrapped).chain([&command.keys.fingerprint_wrapped]);
            state.require_active(wrapped.filter_map(Blob::key))?;
            let name = command.organization.name.uniqueness_key();
            if state.organizations.values().any(|other| other.name.uniqueness_key() == name) {
                return Ok(false);
            }
            let id = command.organization.id;
            state.organizations.insert(id, command.organization);
            state.organization_keys.insert(id, command.keys);
            state.audit.push(command.audit);
            Ok(true)
        })?
    }

    async fn find_organization(&self, name: &OrganizationName) -> Result<Option<Organization>, StoreError> {
        let name = name.uniqueness_key();
        self.decide(|state| state.organizations.values().find(|other| other.name.uniqueness_key() == name).cloned())
    }

    async fn organization(&self, id: OrganizationId) -> Result<Option<Organization>, StoreError> {
        self.decide(|state| state.organizations.get(&id).cloned())
    }

    async fn list_organizations(&self) -> Result<Vec<Organization>, StoreError> {
        self.decide(|state| {
            let mut organizations: Vec<_> = state.organizations.values().cloned().collect();
            organizations.sort_by_key(|organization| organization.name.uniqueness_key());
            organizations
        })
    }

    async fn set_organization_state(&self, command: SetOrganizationState) -> Result<bool, StoreError> {
        self.decide(|state| {
            let Some(organization) = state.organizations.get_mut(&command.organization) else { return false };
            organization.state = command.state;
            if command.state == OrganizationState::Disabled {
                state.sessions.retain(|_, session| session.organization != command.organization);
            }
            state.audit.push(command.audit);
            true
        })
    }

    async fn delete_organization(&self, command: DeleteOrganization) -> Result<bool, StoreError> {
        let rows_stay = self.defect == Some(Defect::RowsOutliveTheirOrganization);
        self.decide(|state| {
            let id = command.organization;
            if state.organizations.remove(&id).is_none() {
                return false;
            }
            state.organization_keys.remove(&id);
            state.accounts.retain(|_, account| account.signed.grant.organization != id);
            state.hourly.retain(|(organization, _), _| *organization != id);
            state.uses.retain(|(organization, _), _| *organization != id);
            state.checks.retain(|(organization, _), _| *organization != id);
            state.invitations.retain(|_, row| row.stored.invitation.grant.organization != id);
            state.sessions.retain(|_, session| session.organization != id);
            state.credentials.retain(|(organization, _), _| *organization != id || rows_stay);
            state.receiver_status.retain(|key, _| key.owner != Some(id));
            state.deliveries.retain(|(key, _), _| key.owner != Some(id));
            state.entities.retain(|(organization, ..), _| *organization != id);
            state.lookups.retain(|(organization, ..), _| *organization != id);
            state.global_lookups.retain(|_, (organization, _)| *organization != id);
            state.activations.retain(|_, activation| activation.organization != id);
            state.idempotency.retain(|(organization, ..), _| *organization != id);
            state.audit.push(command.audit);
            true
        })
    }
}
