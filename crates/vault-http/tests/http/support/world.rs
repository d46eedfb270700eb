//! A server with the memory store and accounts.

use super::parts::Fakes;
use super::{Response, Wire, request};
use secrecy::{ExposeSecret, SecretString};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Runtime;
use vault_core::id::InstanceId;
use vault_core::organization::OrganizationName;
use vault_core::passcode::TimeStep;
use vault_core::port::{Clock, CredentialStore, OrganizationRepository as _};
use vault_core::role::Role;
use vault_core::usecase::{AuditTally, CreateAccountRequest, Environment, Operator};
use vault_http::{ListenerSettings, ServerParts, ServerSettings, server};
use vault_testkit::clock::{ManualClock, RecordingEvents, SeededEntropy, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainSealer};
use vault_testkit::memory::MemoryStore;
use vault_testkit::storage::FakeStorage;

pub(crate) const PASSWORD: &str = "correct horse battery";

/// A running server.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) storage: Arc<FakeStorage>,
    pub(crate) fakes: Fakes,
    operator: Operator,
    runtime: Option<Runtime>,
    codes: std::sync::Mutex<std::collections::HashMap<String, Vec<SecretString>>>,
}

type Customise<T> = Box<dyn FnOnce(&mut T)>;

/// Settings of a world that differ from the default.
#[derive(Default)]
pub(crate) struct WorldBuilder {
    settings: Option<Customise<ServerSettings>>,
    parts: Option<Customise<ServerParts>>,
    credentials: Option<Arc<dyn CredentialStore>>,
    hash_permits: Option<usize>,
    limit: Option<i64>,
    verifies: bool,
    accounts_clock: Option<Arc<dyn Clock>>,
}

impl WorldBuilder {
    /// Uses `clock` for account operations.
    pub(crate) fn accounts_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.accounts_clock = Some(clock);
        self
    }

    /// Permits checks of credentials before they are saved.
    pub(crate) fn verifying(mut self) -> Self {
        self.verifies = true;
        self
    }

    pub(crate) fn settings(mut self, change: impl FnOnce(&mut ServerSettings) + 'static) -> Self {
        self.settings = Some(Box::new(change));
        self
    }

    pub(crate) fn parts(mut self, change: impl FnOnce(&mut ServerParts) + 'static) -> Self {
        self.parts = Some(Box::new(change));
        self
    }

    /// Stores credentials in `credentials` instead of the memory store.
    pub(crate) fn credentials(mut self, credentials: impl CredentialStore + 'static) -> Self {
        self.credentials = Some(Arc::new(credentials));
        self
    }

    pub(crate) fn hash_permits(mut self, permits: usize) -> Self {
        self.hash_permits = Some(permits);
        self
    }

    pub(crate) fn limit(mut self, limit: i64) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(crate) fn start(self) -> World {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let instance = InstanceId::from_bytes([7; 16]);
        let clock = Arc::new(ManualClock::default());
        let ids = Arc::new(SequentialIds::default());
        let store = Arc::new(MemoryStore::new());
        let digester = Arc::new(FakeDigester::default());
        let hasher = Arc::new(self.hash_permits.map_or_else(FakeHasher::default, FakeHasher::with_permits));
        let passcodes = Arc::new(FakePasscodes::new(ids.clone()));
        let sealer = Arc::new(PlainSealer::new(store.clone(), ids.clone()));
        let tokens = Arc::new(FakeTokens::new(instance));
        let environment = Environment {
            clock: clock.clone(),
            ids: ids.clone(),
            events: Arc::new(RecordingEvents::default()),
            audit: Arc::new(FakeAuditSealer),
            origin: vault_core::audit::Origin::default(),
        };
        let tally = Arc::new(AuditTally::new(environment.clone(), store.clone()));
        let fakes = Fakes {
            runtime: runtime.handle().clone(),
            instance,
            environment: environment.clone(),
            tally,
            credentials: self.credentials.unwrap_or_else(|| store.clone()),
            limit: self.limit.unwrap_or(1_000_000),
            store: store.clone(),
            hasher: hasher.clone(),
            passcodes: passcodes.clone(),
            digester: digester.clone(),
            sealer: sealer.clone(),
            tokens,
            entropy: Arc::new(SeededEntropy::default()),
            storage: Arc::new(FakeStorage::default()),
            verifies: self.verifies,
        };
        let mut parts = fakes.parts();
        let mut settings = ServerSettings {
            listener: ListenerSettings::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]),
            base_path: Default::default(),
            data_policy: Default::default(),
            activation_url: None,
            rate: None,
            requests_per_account: 256,
            requests_per_organization: 1_024,
        };
        settings.listener.workers = std::num::NonZeroUsize::new(1);
        if let Some(change) = self.settings {
            change(&mut settings);
        }
        if let Some(clock) = self.accounts_clock {
            parts.accounts = fakes.accounts_in(Environment { clock, ..environment.clone() });
        }
        if let Some(change) = self.parts {
            change(&mut parts);
        }
        let bound = runtime.block_on(async { server(&settings, parts) }).expect("a free port");
        let address = bound.addresses[0];
        runtime.spawn(bound.server);
        let tally = Arc::new(AuditTally::new(environment.clone(), store.clone()));
        let operator = Operator::new(environment.clone(), tally, store.clone(), sealer);
        for organization in ["Acme", "Other"] {
            runtime.block_on(operator.create_organization(organization)).expect("an organization");
        }
        let storage = fakes.storage.clone();
        let (runtime, codes) = (Some(runtime), Default::default());
        World { address, store, clock, storage, fakes, operator, runtime, codes }
    }
}

impl World {
    pub(crate) fn start() -> Self {
        WorldBuilder::default().start()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("still running")
    }

    /// Seals the audit entries, so that lists contain them.
    pub(crate) fn seal_audit(&self) {
        self.runtime().block_on(self.operator.seal_audit(1_000)).expect("sealed");
    }

    /// Creates an account whose password is [`PASSWORD`].
    pub(crate) fn account(&self, organization: &str, email: &str, role: Role) {
        let name = OrganizationName::parse(organization).unwrap();
        let created = self.runtime().block_on(async {
            let organization = self.store.find_organization(&name).await.unwrap().unwrap().id;
            let password = Some(PASSWORD.into());
            let request = CreateAccountRequest { organization, email: email.to_owned(), role, password };
            self.fakes.accounts().create(request).await
        });
        let codes = created.expect("an account").recovery_codes.into_iter().map(|code| code.0);
        self.codes.lock().unwrap().insert(email.to_owned(), codes.collect());
    }

    /// Returns an unused recovery code of an account.
    pub(crate) fn code(&self, email: &str) -> String {
        let code = self.codes.lock().unwrap().get_mut(email).and_then(Vec::pop);
        code.expect("a code is left").expose_secret().to_owned()
    }

    /// Returns the body of a login.
    pub(crate) fn login_body(&self, email: &str) -> String {
        serde_json::json!({"email": email, "password": PASSWORD, "passcode": self.code(email)}).to_string()
    }

    /// Returns `Authorization: Bearer …` of a new account of this role in Acme.
    pub(crate) fn token(&self, role: Role) -> String {
        self.token_in("Acme", role)
    }

    /// Returns `Authorization: Bearer …` of a new account of this role.
    pub(crate) fn token_in(&self, organization: &str, role: Role) -> String {
        let email = format!("{role}-{}@{}.example", self.codes.lock().unwrap().len(), organization.to_lowercase());
        self.account(organization, &email, role);
        let body = self.login_body(&email);
        let response = self.send("POST /v1/login", &["Content-Type: application/json"], body);
        assert_eq!(response.status, 200, "{}", response.text());
        format!("Authorization: Bearer {}", response.json()["access_token"].as_str().expect("a token"))
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// Opens a connection, once the host has fewer than its maximum.
    pub(crate) fn served_wire(&self) -> Wire {
        super::until("another connection is served", || {
            let mut wire = self.wire();
            wire.try_exchange(request("GET /livez", &[], "")).map(|_| wire)
        })
    }

    /// Sends one request on a separate connection.
    pub(crate) fn send(&self, line: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Response {
        let mut wire = self.wire();
        wire.try_send(request(line, headers, body));
        wire.receive_for(line.split(' ').next().unwrap_or_default())
    }

    /// Sends one request with a JSON body and the header `token`, which may be empty.
    pub(crate) fn send_json(&self, line: &str, token: &str, body: impl ToString) -> Response {
        let headers = ["Content-Type: application/json", token];
        self.send(line, if token.is_empty() { &headers[..1] } else { &headers }, body.to_string())
    }

    /// Returns the current passcode of an authenticator with this secret.
    pub(crate) fn passcode(&self, totp: &serde_json::Value) -> String {
        let step = TimeStep::at(self.clock.now());
        FakePasscodes::shown_by_authenticator(totp["secret"].as_str().expect("a secret"), step)
            .expect("a seed's secret")
    }

    /// Saves a credential. Returns its ID.
    pub(crate) fn save(&self, token: &str, namespace: &str, bucket: &str) -> String {
        let response = self.send(
            "PATCH /v1/organization-vault",
            &[token, "Content-Type: application/json"],
            s3(namespace, bucket),
        );
        assert_eq!(response.status, 201, "{}", response.text());
        response.json()["id"].as_str().expect("an id").to_owned()
    }
}

/// Returns the body of a save.
pub(crate) fn s3(namespace: &str, bucket: &str) -> String {
    let data = serde_json::json!({
        "access_key_id": "AKIA2TESTONLY7SAMPLE",
        "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET",
        "bucket": bucket,
    });
    serde_json::json!({"type": "s3", "namespace": namespace, "data": data}).to_string()
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
