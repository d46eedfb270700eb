//! Namespaces: frozen, thawed and listed.

use super::{Decided, MemoryStore, State};
use async_trait::async_trait;
use std::collections::BTreeMap;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::namespace::Namespace;
use vault_core::port::{
    FreezeNamespace, FreezeRepository, Freezing, FrozenNamespace, List, ListedNamespace, NAMESPACE_COUNT_LIMIT,
    NamePosition, StoreError,
};
use vault_core::principal::Scope;

#[async_trait]
impl FreezeRepository for MemoryStore {
    async fn freeze_namespace(&self, command: Command<FreezeNamespace>) -> Result<Option<Freezing>, StoreError> {
        self.carry_out(command, |state, principal, now, payload| {
            let FreezeNamespace { organization, namespace, frozen } = payload;
            if !principal.reaches(organization) || !state.organizations.contains_key(&organization) {
                return Decided::Refused(None);
            }
            let integrations = state.integrations.values().map(|row| &row.integration);
            let covers =
                integrations.filter(|one| one.organization == organization && one.may_activate(&namespace, now));
            let integrations = i64::try_from(covers.count()).unwrap_or(i64::MAX);
            let credentials = state.count_in(organization, &namespace);
            let place = (organization, namespace);
            let changed = state.frozen.contains_key(&place) != frozen;
            let freezing = Some(Freezing { changed, credentials, integrations });
            if !changed {
                return Decided::Refused(freezing);
            }
            if frozen {
                state.frozen.insert(place, now);
            } else {
                state.frozen.remove(&place);
            }
            Decided::Done(freezing)
        })
    }

    async fn list_frozen(&self, query: List<NamePosition>) -> Result<Vec<FrozenNamespace>, StoreError> {
        self.decide(|state| {
            let List { principal, of: scope, after, limit, now } = query;
            state.check_scope(&principal, scope, now)?;
            let after = after.map(|after| (after.organization, after.name));
            let frozen = state.frozen.iter().filter(|((organization, namespace), _)| {
                scope.covers(*organization)
                    && after
                        .as_ref()
                        .is_none_or(|(after, name)| (*organization, namespace.as_str()) > (*after, name.as_str()))
            });
            let row = |((organization, namespace), frozen_at): (&(OrganizationId, Namespace), &_)| FrozenNamespace {
                organization: *organization,
                namespace: namespace.clone(),
                frozen_at: *frozen_at,
            };
            Ok(frozen.map(row).take(limit).collect())
        })?
    }

    async fn list_namespaces(
        &self,
        query: List<Namespace, OrganizationId>,
    ) -> Result<Vec<ListedNamespace>, StoreError> {
        self.decide(|state| {
            let List { principal, of: organization, after, limit, now } = query;
            state.check_scope(&principal, Scope::One(organization), now)?;
            let used = state.credentials_of(organization).map(|row| (row.stored.namespace.clone(), None));
            let frozen = state.frozen.iter().filter(|((owner, _), _)| *owner == organization);
            let frozen = frozen.map(|((_, namespace), at)| (namespace.clone(), Some(*at)));
            // Later entries win: a namespace that has credentials and is frozen is frozen.
            let all: BTreeMap<_, _> = used.chain(frozen).collect();
            let page = all.into_iter().filter(|(namespace, _)| after.as_ref().is_none_or(|after| namespace > after));
            let row = |(namespace, frozen_at)| {
                let credentials = state.count_in(organization, &namespace);
                ListedNamespace { namespace, credentials, frozen_at }
            };
            Ok(page.take(limit).map(row).collect())
        })?
    }
}

impl State {
    fn count_in(&self, organization: OrganizationId, namespace: &Namespace) -> i64 {
        let within = self.credentials_of(organization).filter(|row| row.stored.namespace == *namespace);
        i64::try_from(within.count()).unwrap_or(i64::MAX).min(NAMESPACE_COUNT_LIMIT)
    }
}
