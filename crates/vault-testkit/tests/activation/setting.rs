//! All use cases of the activation process, and organizations with credentials.

use secrecy::SecretString;
use std::ops::Deref;
use std::sync::Arc;
use vault_core::Error;
use vault_core::activation::{Activated, Activation, ActivationTtl, DEFAULT_LIVE_LIMIT, Purpose, VendMode};
use vault_core::audit::{AuditAction, AuditRecord};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::cursor::PageRequest;
use vault_core::id::{AccountId, CredentialId, OrganizationId};
use vault_core::integration::{
    IntegrationPrincipal, IntegrationRefusal, IntegrationState, IntegrationToken, Overlap, StoredIntegration,
};
use vault_core::namespace::Freezing;
use vault_core::namespace::Namespace;
use vault_core::port::{Clock, CredentialVendor, Event, IdGenerator};
use vault_core::principal::{Denial, EmbedderPrincipal, Principal};
use vault_core::role::Role;
use vault_core::usecase::activations::ActivationRequest;
use vault_core::usecase::integrations::{CreateIntegrationRequest, IntegrationEdit, IntegrationRef};
use vault_core::usecase::*;
use vault_testkit::fake::FakeVault;
use vault_testkit::storage::FakeStorage;

pub(crate) const PLAIN_S3: &str =
    r#"{"access_key_id":"AKIA2TESTONLY7SAMPLE","bucket":"nightly","secret_access_key":"plain secret"}"#;
pub(crate) const ROLE_S3: &str = r#"{"access_key_id":"AKIA2TESTONLY7SAMPLE","bucket":"nightly",
    "role_arn":"arn:aws:iam::123456789012:role/batch","secret_access_key":"plain secret"}"#;

pub(crate) struct Setting {
    fake: FakeVault,
    pub(crate) storage: Arc<FakeStorage>,
    pub(crate) acme: OrganizationId,
    pub(crate) live_limit: i64,
    pub(crate) vends: bool,
}

impl Deref for Setting {
    type Target = FakeVault;

    fn deref(&self) -> &FakeVault {
        &self.fake
    }
}

impl Setting {
    pub(crate) async fn new() -> Self {
        let fake = FakeVault::new();
        let operator = fake.operator();
        let acme = operator.create_organization("Acme").await.unwrap().id;
        let (storage, live_limit) = (Arc::new(FakeStorage::default()), DEFAULT_LIVE_LIMIT);
        Self { fake, storage, acme, live_limit, vends: true }
    }

    /// Returns the use cases of integrations, without checks of storages.
    pub(crate) fn blind(&self) -> Activations {
        self.fake
            .activations()
            .vendor(self.vends.then(|| self.storage.clone() as Arc<dyn CredentialVendor>))
            .trust(Some(self.storage.clone()))
            .live_limit(self.live_limit)
    }

    pub(crate) fn activations(&self) -> Activations {
        self.blind().probe(Some(self.storage.clone()))
    }

    pub(crate) fn vault(&self) -> Vault {
        let probe = self.vends.then(|| self.storage.clone() as Arc<dyn vault_core::port::StorageProbe>);
        self.fake.vault().limit(1_000).probe(probe)
    }

    /// Returns a user of an embedding service in Acme.
    pub(crate) fn member(&self) -> Principal {
        self.saver(self.acme)
    }

    /// Returns a user of an embedding service who saves.
    pub(crate) fn saver(&self, organization: OrganizationId) -> Principal {
        let account = AccountId::from_uuid(self.ids.random());
        Principal::Embedder(EmbedderPrincipal { organization, account, role: Role::Editor })
    }

    pub(crate) async fn saved(&self, organization: OrganizationId, name: &str, json: &str) -> CredentialId {
        let request = NewCredential::new(namespace(name), s3(json));
        self.vault().save(&self.saver(organization), request).await.unwrap()
    }

    /// Replaces the data of a credential of Acme.
    pub(crate) async fn replace(&self, credential: CredentialId) {
        let request = CredentialReplacement {
            credential: credential.into(),
            data: s3(ROLE_S3),
            expires_at: None,
            stage: false,
            idempotency: None,
            verify: false,
        };
        self.vault().replace(&self.saver(self.acme), request).await.unwrap();
    }

    /// Creates an integration of Acme with these namespaces.
    pub(crate) async fn integration(&self, name: &str, namespaces: &[&str]) -> Made {
        let created = self.integrations().create(&OPERATOR, self.acme, creation(name, namespaces)).await.unwrap();
        Made { integration: created.integration, token: created.token.unwrap() }
    }

    pub(crate) async fn rotate(&self, name: &str, overlap: i64) -> IntegrationToken {
        let overlap = Overlap::parse(Some(overlap), "").unwrap();
        self.integrations().rotate(&OPERATOR, self.acme, &named(name), overlap).await.unwrap().1
    }

    pub(crate) async fn edit(&self, name: &str, edit: IntegrationEdit) {
        self.integrations().change(&OPERATOR, self.acme, &named(name), edit).await.unwrap();
    }

    pub(crate) async fn set_state(&self, name: &str, state: IntegrationState) {
        self.edit(name, IntegrationEdit { state: Some(state), ..IntegrationEdit::default() }).await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.integrations().delete(&OPERATOR, self.acme, &named(name)).await.unwrap();
    }

    pub(crate) async fn freeze(&self, name: &str) -> Freezing {
        self.integrations().freeze(&OPERATOR, self.acme, namespace(name)).await.unwrap()
    }

    pub(crate) async fn principal(&self, token: &IntegrationToken) -> IntegrationPrincipal {
        self.activations().authenticate(token.text(), None).await.unwrap()
    }

    /// Returns the reason why the token is rejected, if it is.
    pub(crate) async fn refusal(&self, text: &SecretString) -> Option<IntegrationRefusal> {
        match self.activations().authenticate(text, None).await {
            Ok(_) => None,
            Err(Error::Denied(Denial::Integration(refusal))) => Some(refusal),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Returns `true` if the token is accepted.
    pub(crate) async fn works(&self, token: &IntegrationToken) -> bool {
        self.refusal(token.text()).await.is_none()
    }

    pub(crate) async fn activated(
        &self,
        principal: &IntegrationPrincipal,
        name: &str,
        vend: VendMode,
    ) -> Result<Activated, Error> {
        self.activations().activate(principal, request(name, vend)).await
    }

    /// Returns the active activations of an integration.
    pub(crate) async fn live(&self, principal: &IntegrationPrincipal) -> Result<Vec<Activation>, Error> {
        let page = PageRequest { limit: 1_000, cursor: None };
        Ok(self.activations().list(principal, page).await?.items)
    }

    /// Returns the records of this action, oldest first.
    pub(crate) fn audited(&self, action: AuditAction) -> Vec<AuditRecord> {
        self.store.audit().into_iter().filter(|record| record.action == action).collect()
    }

    pub(crate) fn saw_damage(&self, table: &str) -> bool {
        let damaged = |event: &Event| matches!(event, Event::IntegrityFailure { table: seen, .. } if *seen == table);
        self.events.events().iter().any(damaged)
    }

    pub(crate) fn now(&self) -> vault_core::time::Timestamp {
        self.clock.now()
    }
}

pub(crate) const OPERATOR: Principal = Principal::Operator;

pub(crate) fn creation(name: &str, namespaces: &[&str]) -> CreateIntegrationRequest {
    let namespaces = namespaces.iter().map(|text| (*text).to_owned()).collect();
    CreateIntegrationRequest {
        name: name.to_owned(),
        namespaces,
        expires_at: None,
        token: true,
        trusts: Vec::new(),
        managed_by: None,
    }
}

/// Returns `true` if the integration was denied for this reason.
pub(crate) fn denied<T>(outcome: Result<T, Error>, refusal: IntegrationRefusal) -> bool {
    matches!(outcome, Err(Error::Denied(Denial::Integration(found))) if found == refusal)
}

pub(crate) fn named(name: &str) -> IntegrationRef {
    IntegrationRef::Name(name.to_owned())
}

pub(crate) fn namespace(text: &str) -> Namespace {
    Namespace::parse(text, "").unwrap()
}

pub(crate) fn s3(json: &str) -> CredentialData {
    CredentialData::from_canonical_json(CredentialType::S3, json.as_bytes()).unwrap()
}

pub(crate) fn request(name: &str, vend: VendMode) -> ActivationRequest {
    ActivationRequest {
        namespace: namespace(name),
        purpose: Some(Purpose::parse("nightly import", "").unwrap()),
        ttl: ActivationTtl::parse(Some(600)).unwrap(),
        vend,
    }
}

pub(crate) fn text(text: &str) -> SecretString {
    SecretString::from(text)
}

/// An integration with a token.
pub(crate) struct Made {
    pub(crate) integration: StoredIntegration,
    pub(crate) token: IntegrationToken,
}
