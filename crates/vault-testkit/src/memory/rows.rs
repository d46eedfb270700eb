//! The rows of operations.

use super::{MemoryStore, State};
use crate::clock::lock;
use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard};
use uuid::Uuid;
use vault_core::audit::{AuditEntry, SealedAuditRecord};
use vault_core::entity::{EntityKey, Index};
use vault_core::id::{KeyId, OrganizationId};
use vault_core::integration::Integration;
use vault_core::namespace::Namespace;
use vault_core::operation::{End, Work};
use vault_core::organization::OrganizationState;
use vault_core::port::{
    AuditRows, AuthorityRows, EntityRow, EntityRows, LookupRow, NamePosition, NamespaceRows, RecordedStates, Reply,
    RowStore, Rows, StoreError,
};
use vault_core::principal::{SessionFacts, SessionPrincipal};
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;

/// The rows of one transaction.
struct MemoryRows<'a> {
    state: Mutex<&'a mut State>,
    trail: &'a [SealedAuditRecord],
}

fn done<T>(value: T) -> Reply<'static, T> {
    Either::Left(ready(Ok(value)))
}

impl<'a> MemoryRows<'a> {
    fn state(&self) -> MutexGuard<'_, &'a mut State> {
        lock(&self.state)
    }
}

#[async_trait]
impl RowStore for MemoryStore {
    async fn submit(&self, mut work: Box<dyn Work>) -> Result<Box<dyn Work>, StoreError> {
        self.decide_with(|state, trail| {
            let before = state.clone();
            let rows = MemoryRows { state: Mutex::new(state), trail };
            let ran = work.run(&rows).now_or_never();
            if !matches!(ran, Some(Ok(End::Commit))) {
                *state = before;
            }
            match ran {
                Some(Ok(_)) => Ok(()),
                Some(Err(_)) | None => Err(StoreError::Fault("the operation waited".into())),
            }
        })??;
        Ok(work)
    }
}

impl EntityRows for MemoryRows<'_> {
    fn entity(&self, key: EntityKey) -> Reply<'_, Option<EntityRow>> {
        done(self.state().entities.get(&key.order()).cloned())
    }

    fn insert_entity(&self, row: &EntityRow) -> Reply<'_, bool> {
        let mut state = self.state();
        let is_new = !state.entities.contains_key(&row.key.order());
        if is_new {
            state.entities.insert(row.key.order(), row.clone());
        }
        done(is_new)
    }

    fn replace_entity(&self, before: i64, row: &EntityRow) -> Reply<'_, bool> {
        let mut state = self.state();
        let found = state.entities.get_mut(&row.key.order()).filter(|found| found.version == before);
        done(found.map(|found| *found = row.clone()).is_some())
    }

    fn reseal_entity(&self, row: &EntityRow, sealed: &Blob) -> Reply<'_, bool> {
        let mut state = self.state();
        let found = state.entities.get_mut(&row.key.order()).filter(|found| *found == row);
        done(found.map(|found| found.sealed = sealed.clone()).is_some())
    }

    fn entities_after(&self, after: Option<EntityKey>, limit: usize) -> Reply<'_, Vec<EntityRow>> {
        let after = after.map_or(Unbounded, |after| Excluded(after.order()));
        done(self.state().entities.range((after, Unbounded)).take(limit).map(|(_, row)| row.clone()).collect())
    }

    fn listed_entities(
        &self,
        index: Index,
        of: Option<OrganizationId>,
        after: Option<NamePosition>,
        limit: usize,
    ) -> Reply<'_, Vec<(String, EntityRow)>> {
        let state = self.state();
        let leading = state.lookups.iter().filter(|((owner, name, own), _)| {
            *name == index.as_str()
                && of.is_none_or(|of| of == *owner)
                && after.as_ref().is_none_or(|after| (*owner, own.as_str()) > (after.organization, after.name.as_str()))
        });
        let rows = leading.filter_map(|((owner, _, value), id)| {
            let key = EntityKey { organization: *owner, kind: index.kind(), id: *id };
            Some((value.clone(), state.entities.get(&key.order())?.clone()))
        });
        done(rows.take(limit).collect())
    }

    fn lookups_after(&self, after: Option<LookupRow>, limit: usize) -> Reply<'_, Vec<LookupRow>> {
        let state = self.state();
        let rows = state.lookups.iter().map(|((organization, index, value), id)| LookupRow {
            organization: *organization,
            index: (*index).to_owned(),
            value: value.clone(),
            id: *id,
        });
        done(rows.filter(|row| after.as_ref().is_none_or(|after| row > after)).take(limit).collect())
    }

    fn find(&self, organization: OrganizationId, index: Index, value: &str) -> Reply<'_, Option<Uuid>> {
        done(self.state().lookups.get(&(organization, index.as_str(), value.to_owned())).copied())
    }

    fn enter(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        let mut state = self.state();
        let place = (key.organization, index.as_str(), value.to_owned());
        let is_new = !state.lookups.contains_key(&place);
        if is_new {
            state.lookups.insert(place, key.id);
        }
        done(is_new)
    }

    fn leave(&self, key: EntityKey, index: Index, value: &str) -> Reply<'_, bool> {
        let mut state = self.state();
        let place = (key.organization, index.as_str(), value.to_owned());
        let leads = state.lookups.get(&place) == Some(&key.id);
        if leads {
            state.lookups.remove(&place);
        }
        done(leads)
    }
}

impl AuthorityRows for MemoryRows<'_> {
    fn session_facts(&self, session: &SessionPrincipal, now: Timestamp) -> Reply<'_, SessionFacts> {
        done(self.state().session_facts(session, now))
    }

    fn organization_state(&self, organization: OrganizationId) -> Reply<'_, Option<OrganizationState>> {
        done(self.state().organizations.get(&organization).map(|found| found.state))
    }
}

impl NamespaceRows for MemoryRows<'_> {
    fn count_in(&self, organization: OrganizationId, namespace: &Namespace, most: usize) -> Reply<'_, i64> {
        let state = self.state();
        let within = state.credentials_of(organization).filter(|row| row.stored.namespace == *namespace);
        done(i64::try_from(within.take(most).count()).unwrap_or(i64::MAX))
    }

    fn namespace_after(&self, organization: OrganizationId, after: &str) -> Reply<'_, Option<Namespace>> {
        let state = self.state();
        let used = state.credentials_of(organization).map(|row| &row.stored.namespace);
        done(used.filter(|namespace| namespace.as_str() > after).min().cloned())
    }

    fn lock_integrations(&self, organization: OrganizationId) -> Reply<'_, Vec<Integration>> {
        let state = self.state();
        let own = state.integrations.iter().filter(|((of, _), _)| *of == organization);
        done(own.map(|(_, row)| row.integration.clone()).collect())
    }
}

impl AuditRows for MemoryRows<'_> {
    fn append_entry(&self, entry: &SealedAuditRecord) -> Reply<'_, ()> {
        self.state().audit.push(entry.clone());
        done(())
    }

    fn recorded(&self, query: &RecordedStates) -> Reply<'_, Vec<AuditEntry>> {
        let mut entries: Vec<_> = self.trail.iter().map(SealedAuditRecord::to_entry).collect();
        entries.sort_by(|one, other| one.id.cmp(&other.id));
        done(super::inspection::matching(entries, query))
    }
}

impl Rows for MemoryRows<'_> {
    /// Does nothing: a transaction has the whole store.
    fn lock(&self, _organization: OrganizationId) -> Reply<'_, ()> {
        done(())
    }

    fn active_instance_key(&self) -> Reply<'_, Option<KeyId>> {
        done(self.state().instance.as_ref().map(|instance| instance.instance_key))
    }
}

impl State {
    pub(super) fn is_frozen(&self, organization: OrganizationId, namespace: &Namespace) -> bool {
        let place = (organization, Index::FrozenNamespace.as_str(), namespace.as_str().to_owned());
        self.lookups.contains_key(&place)
    }
}
