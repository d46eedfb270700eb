//! The store keeps the contract of the ports of credentials, for the users of embedding services.

use async_trait::async_trait;
use redb_store::RedbStore;
use std::sync::Arc;
use tempfile::TempDir;
use vault_core::id::OrganizationId;
use vault_core::organization::OrganizationState;
use vault_core::port::{CreateOrganization, CredentialStore};
use vault_testkit::contract::{self, CredentialSubject, Organizations};

struct Subject {
    store: Arc<RedbStore>,
    _directory: TempDir,
}

async fn subject() -> Subject {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(RedbStore::open(&directory.path().join("vault.redb")).unwrap());
    Subject { store, _directory: directory }
}

#[async_trait]
impl contract::Subject for Subject {
    async fn audit_actions(&self, organization: OrganizationId) -> Vec<String> {
        self.store.recorded(organization).await.unwrap()
    }

    async fn rows(&self, organization: OrganizationId) -> Vec<String> {
        self.store.tables_of(organization).await.unwrap()
    }
}

impl CredentialSubject for Subject {
    fn credentials(&self) -> Arc<dyn CredentialStore> {
        self.store.clone()
    }
}

#[async_trait]
impl Organizations for Subject {
    async fn add_organization(&self, command: CreateOrganization) {
        let CreateOrganization { organization, keys, audit } = command;
        self.store.add_organization(organization.id, keys, audit).await.unwrap();
    }

    async fn set_state(&self, organization: OrganizationId, state: OrganizationState) {
        self.store.set_open(organization, state == OrganizationState::Active).await.unwrap();
    }

    async fn delete_organization(&self, organization: OrganizationId) {
        self.store.delete_organization(organization).await.unwrap();
    }
}

vault_testkit::credential_contract!(embedders: subject());
