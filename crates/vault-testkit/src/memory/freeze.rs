//! Frozen namespaces.

use super::MemoryStore;
use async_trait::async_trait;
use vault_core::port::{FreezeNamespace, FreezeOutcome, FreezeRepository, FrozenNamespace, ListFrozen, StoreError};
use vault_core::principal::Denial;

#[async_trait]
impl FreezeRepository for MemoryStore {
    async fn freeze_namespace(&self, command: FreezeNamespace) -> Result<FreezeOutcome, StoreError> {
        self.decide(|state| {
            let FreezeNamespace { authority, organization, namespace, frozen, now, audit } = command;
            if let Err(refusal) = state.judge(&authority, now) {
                return FreezeOutcome::Refused(refusal);
            }
            if !authority.reaches(organization) || !state.organizations.contains_key(&organization) {
                return FreezeOutcome::NoOrganization;
            }
            let place = (organization, namespace);
            if state.frozen.contains_key(&place) == frozen {
                return FreezeOutcome::Unchanged;
            }
            if frozen {
                state.frozen.insert(place, now);
            } else {
                state.frozen.remove(&place);
            }
            state.audit.push(audit);
            FreezeOutcome::Changed
        })
    }

    async fn list_frozen(&self, query: ListFrozen) -> Result<Result<Vec<FrozenNamespace>, Denial>, StoreError> {
        self.decide(|state| {
            let organization = state.judge_scope(&query.scope, query.now)?;
            let frozen = state.frozen.iter().map(|((organization, namespace), frozen_at)| FrozenNamespace {
                organization: *organization,
                namespace: namespace.clone(),
                frozen_at: *frozen_at,
            });
            Ok(frozen.filter(|row| organization.is_none_or(|id| row.organization == id)).collect())
        })
    }
}
