//! Every use case of the activation side, and organizations with credentials.

use secrecy::SecretString;
use std::sync::Arc;
use vault_core::activation::{Activated, ActivationTtl, DEFAULT_LIVE_LIMIT, Purpose, VendMode};
use vault_core::audit::{AuditAction, AuditRecord};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::{AccountId, CredentialId, OrganizationId};
use vault_core::integration::{IntegrationPrincipal, IntegrationToken};
use vault_core::namespace::Namespace;
use vault_core::port::{Clock, CredentialVendor, Event, IdGenerator};
use vault_core::principal::{EmbedderPrincipal, Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::usecase::*;
use vault_testkit::clock::{ManualClock, RecordingEvents, SeededEntropy, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, PlainSealer};
use vault_testkit::memory::MemoryStore;
use vault_testkit::storage::FakeStorage;

pub(crate) const PLAIN_S3: &str =
    r#"{"access_key_id":"AKIA2TESTONLY7SAMPLE","bucket":"nightly","secret_access_key":"plain secret"}"#;
pub(crate) const ROLE_S3: &str = r#"{"access_key_id":"AKIA2TESTONLY7SAMPLE","bucket":"nightly",
    "role_arn":"arn:aws:iam::123456789012:role/batch","secret_access_key":"plain secret"}"#;

pub(crate) struct Setting {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) events: Arc<RecordingEvents>,
    pub(crate) storage: Arc<FakeStorage>,
    pub(crate) acme: OrganizationId,
    pub(crate) other: OrganizationId,
    pub(crate) live_limit: i64,
    pub(crate) vends: bool,
    pub(crate) tally: Arc<AuditTally>,
    ids: Arc<SequentialIds>,
    entropy: Arc<SeededEntropy>,
    ambient: Ambient,
    digester: Arc<FakeDigester>,
    sealer: Arc<PlainSealer>,
}

impl Setting {
    pub(crate) async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(ManualClock::default());
        let ids = Arc::new(SequentialIds::default());
        let events = Arc::new(RecordingEvents::default());
        let ambient = Ambient {
            clock: clock.clone(),
            ids: ids.clone(),
            events: events.clone(),
            audit: Arc::new(FakeAuditSealer),
        };
        let sealer = Arc::new(PlainSealer::new(store.clone(), ids.clone()));
        let tally = Arc::new(AuditTally::new(ambient.clone(), store.clone()));
        let operator = Operator::new(ambient.clone(), tally.clone(), store.clone(), sealer.clone());
        let acme = operator.create_organization("Acme").await.unwrap().id;
        let other = operator.create_organization("Other").await.unwrap().id;
        Self {
            clock,
            events,
            storage: Arc::new(FakeStorage::default()),
            acme,
            other,
            live_limit: DEFAULT_LIVE_LIMIT,
            vends: true,
            tally,
            ids,
            entropy: Arc::new(SeededEntropy::default()),
            ambient,
            digester: Arc::new(FakeDigester::default()),
            sealer,
            store,
        }
    }

    pub(crate) fn operator(&self) -> Operator {
        Operator::new(self.ambient.clone(), self.tally.clone(), self.store.clone(), self.sealer.clone())
    }

    pub(crate) fn create(&self) -> CreateIntegrationUseCase {
        CreateIntegrationUseCase {
            ambient: self.ambient.clone(),
            entropy: self.entropy.clone(),
            digester: self.digester.clone(),
            organizations: self.store.clone(),
            integrations: self.store.clone(),
        }
    }

    pub(crate) fn change(&self) -> ChangeIntegrationUseCase {
        ChangeIntegrationUseCase {
            ambient: self.ambient.clone(),
            entropy: self.entropy.clone(),
            digester: self.digester.clone(),
            organizations: self.store.clone(),
            integrations: self.store.clone(),
        }
    }

    pub(crate) fn list(&self) -> ListIntegrationsUseCase {
        ListIntegrationsUseCase::new(self.ambient.clone(), self.store.clone())
    }

    pub(crate) fn freeze(&self) -> FreezeNamespaceUseCase {
        FreezeNamespaceUseCase::new(self.ambient.clone(), self.store.clone(), self.store.clone())
    }

    pub(crate) fn authenticate(&self) -> AuthenticateIntegration {
        let (tally, digester) = (self.tally.clone(), self.digester.clone());
        AuthenticateIntegration::new(self.ambient.clone(), tally, digester, self.store.clone())
    }

    fn open(&self) -> OpenNamespace {
        OpenNamespace {
            ambient: self.ambient.clone(),
            authenticate: self.authenticate(),
            activations: self.store.clone(),
            opener: self.sealer.clone(),
            log: self.store.clone(),
        }
    }

    fn vendor(&self) -> Option<Arc<dyn CredentialVendor>> {
        self.vends.then(|| self.storage.clone() as Arc<dyn CredentialVendor>)
    }

    pub(crate) fn activate(&self) -> Activate {
        Activate { live_limit: self.live_limit, open: self.open(), vendor: self.vendor() }
    }

    pub(crate) fn check(&self) -> CheckNamespace {
        CheckNamespace { open: self.open(), probe: Some(self.storage.clone()) }
    }

    pub(crate) fn blind_check(&self) -> CheckNamespace {
        CheckNamespace { open: self.open(), probe: None }
    }

    pub(crate) fn own(&self) -> OwnActivations {
        OwnActivations {
            ambient: self.ambient.clone(),
            authenticate: self.authenticate(),
            activations: self.store.clone(),
            vendor: self.vendor(),
        }
    }

    pub(crate) fn vault(&self) -> Vault {
        let (store, sealer) = (self.store.clone(), self.sealer.clone());
        let probe = self.vends.then(|| self.storage.clone() as Arc<dyn vault_core::port::StorageProbe>);
        let (tally, digester) = (self.tally.clone(), self.digester.clone());
        Vault::new(self.ambient.clone(), tally, store, sealer.clone(), sealer, digester).limit(1_000).probe(probe)
    }

    /// Somebody of an embedding service, who saves.
    pub(crate) fn saver(&self, organization: OrganizationId) -> Principal {
        let account = AccountId::from_uuid(self.ids.random());
        Principal::Embedder(EmbedderPrincipal { organization, account, role: Role::Editor })
    }

    pub(crate) async fn saved(&self, organization: OrganizationId, name: &str, json: &str) -> CredentialId {
        let request = SaveRequest { namespace: namespace(name), data: s3(json), idempotency: None, verify: false };
        self.vault().save(&self.saver(organization), request).await.unwrap()
    }

    /// An admin's session that no store knows.
    pub(crate) fn session(&self, role: Role) -> SessionPrincipal {
        SessionPrincipal {
            organization: self.acme,
            account: AccountId::from_uuid(self.ids.random()),
            session: vault_core::id::SessionId::from_uuid(self.ids.random()),
            role,
        }
    }

    /// An integration of Acme with these namespaces.
    pub(crate) async fn integration(&self, name: &str, namespaces: &[&str]) -> CreatedIntegration {
        let request = CreateIntegrationRequest {
            name: name.to_owned(),
            namespaces: namespaces.iter().map(|text| (*text).to_owned()).collect(),
            expires_at: None,
        };
        self.create().run(operator(), request).await.unwrap()
    }

    pub(crate) async fn principal(&self, token: &IntegrationToken) -> IntegrationPrincipal {
        self.authenticate().run(token.text()).await.unwrap()
    }

    /// Whether the token works.
    pub(crate) async fn works(&self, token: &IntegrationToken) -> bool {
        self.authenticate().run(token.text()).await.is_ok()
    }

    pub(crate) async fn activated(
        &self,
        principal: &IntegrationPrincipal,
        name: &str,
        vend: VendMode,
    ) -> Result<Activated, ActivateError> {
        self.activate().run(principal, request(name, vend)).await
    }

    /// The records of this action, oldest first.
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

pub(crate) fn operator() -> Administrator {
    Administrator::Operator("acme".to_owned())
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
