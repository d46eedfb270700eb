//! The API in this process: the real servers on real ports, over the store in memory, a clock that tests advance, and
//! crypto without security.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use vault_core::operation::Operations;
use vault_core::organization::OrganizationState;
use vault_core::passcode::TimeStep;
use vault_core::port::Clock as _;
use vault_core::role::Role;
use vault_core::usecase::{AccountPorts, Accounts, CreateAccountRequest, Vault};
use vault_http::{
    ActivationParts, ActivationSettings, ListenerSettings, Readiness, ServerParts, ServerSettings, UnixSocket,
    activation_server, server,
};
use vault_testkit::crypto::FakePasscodes;
use vault_testkit::fake::FakeVault;
use vault_testkit::faulty::Faulty;
use vault_testkit::memory::MemoryStore;
use vault_testkit::storage::FakeStorage;
use vault_tests::client::Call;
use vault_tests::wire::{Wire, request};
use vault_tests::{Account, Answer, Client, Session};

/// The password of every account.
pub(crate) const PASSWORD: &str = "correct horse battery";
/// Header of a JSON body.
pub(crate) const JSON: &str = "Content-Type: application/json";
/// The ID of no object.
pub(crate) const UNKNOWN: &str = "0193aaaa-0000-7000-8000-000000000000";
/// The time at which every app starts.
pub(crate) const NOW: &str = "2030-01-01T00:00:00Z";

/// A running server.
pub(crate) struct App {
    pub(crate) address: SocketAddr,
    pub(crate) storage: Arc<FakeStorage>,
    fake: FakeVault,
    runtime: Option<Runtime>,
    accounts: AtomicU32,
}

impl Deref for App {
    type Target = FakeVault;

    fn deref(&self) -> &FakeVault {
        &self.fake
    }
}

/// What a server is started with.
pub(crate) struct Setup<'a> {
    pub(crate) settings: ServerSettings,
    pub(crate) parts: ServerParts,
    fake: &'a FakeVault,
    storage: &'a Arc<FakeStorage>,
}

impl Setup<'_> {
    /// Permits checks of credentials before they are saved.
    pub(crate) fn verifying(&mut self) {
        self.parts.vault = self.parts.vault.clone().probe(Some(self.storage.clone()));
    }

    /// Limits the credentials of an organization.
    pub(crate) fn limit(&mut self, limit: i64) {
        self.parts.vault = self.parts.vault.clone().limit(limit);
    }

    /// Changes the ports of accounts.
    pub(crate) fn ports(&mut self, change: impl FnOnce(&mut AccountPorts)) {
        let mut ports = self.fake.account_ports();
        change(&mut ports);
        self.parts.accounts = Accounts::new(FakeVault::INSTANCE, ports);
    }

    /// Operations on credentials access the store through the result of `wrap`.
    pub(crate) fn faulty(&mut self, wrap: impl FnOnce(Faulty<MemoryStore>) -> Faulty<MemoryStore>) {
        let credentials = Arc::new(wrap(Faulty::new(self.fake.store.clone())));
        let operations = Operations { store: credentials, ..self.fake.operations() };
        self.parts.vault = Vault::new(self.fake.environment.clone(), self.fake.tally.clone(), operations);
    }
}

impl App {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// Starts a server with other settings or parts.
    pub(crate) fn with(change: impl FnOnce(&mut Setup<'_>)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (fake, storage) = (FakeVault::new(), Arc::new(FakeStorage::default()));
        let mut settings = ServerSettings {
            listener: local(),
            unix: None,
            base_path: Default::default(),
            example_keys: false,
            activation_url: None,
            rate: None,
            requests_per_account: 256,
            requests_per_organization: 1_024,
        };
        settings.listener.workers = NonZeroUsize::new(1);
        let mut setup =
            Setup { settings, parts: server_parts(&fake, runtime.handle()), fake: &fake, storage: &storage };
        setup.limit(1_000_000);
        change(&mut setup);
        let Setup { settings, parts, .. } = setup;
        let bound = runtime.block_on(async { server(&settings, parts) }).expect("a free port");
        let address = bound.addresses[0];
        runtime.spawn(bound.server);
        for organization in ["Acme", "Other"] {
            runtime.block_on(fake.operator().create_organization(organization)).expect("an organization");
        }
        Self { address, storage, fake, runtime: Some(runtime), accounts: AtomicU32::new(0) }
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("still running")
    }

    pub(crate) fn server_parts(&self) -> ServerParts {
        server_parts(self, self.runtime().handle())
    }

    /// Seals the audit entries, so that lists contain them.
    pub(crate) fn seal_audit(&self) {
        self.runtime().block_on(self.operator().seal_audit(1_000)).expect("sealed");
    }

    pub(crate) fn set_organization_state(&self, name: &str, state: OrganizationState) {
        let operator = self.operator();
        let change = async { operator.set_organization_state(operator.organization(name).await?.id, state).await };
        self.runtime().block_on(change).expect("an organization");
    }

    /// Creates an account of Acme with a unique address.
    pub(crate) fn account(&self, role: &str) -> Account {
        self.account_in("Acme", role)
    }

    pub(crate) fn account_in(&self, organization: &str, role: &str) -> Account {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        self.account_of(organization, &format!("{role}-{number}@{}.example", organization.to_lowercase()), role)
    }

    pub(crate) fn account_of(&self, organization: &str, email: &str, role: &str) -> Account {
        let created = self.runtime().block_on(async {
            let organization = self.operator().organization(organization).await.unwrap().id;
            let (role, password) = (Role::parse(role).unwrap(), Some(PASSWORD.into()));
            let request = CreateAccountRequest { organization, email: email.to_owned(), role, password };
            self.accounts().create(request).await
        });
        let created = created.expect("an account");
        let exposed = |text: &secrecy::SecretString| secrecy::ExposeSecret::expose_secret(text).to_owned();
        let codes: Vec<_> = created.recovery_codes.iter().map(|code| exposed(&code.0)).collect();
        let totp = json!({"secret": exposed(&created.passcode.secret), "uri": exposed(&created.passcode.uri)});
        let account = json!({
            "id": created.grant.account.to_string(), "email": created.grant.email.as_str(), "organization": organization,
            "totp": totp, "recovery_codes": codes,
        });
        Account::new(&account, Some(PASSWORD))
    }

    /// Logs in with a new account of Acme.
    pub(crate) fn session(&self, role: &str) -> Session {
        self.account(role).log_in(&self.client())
    }

    pub(crate) fn admin(&self) -> Session {
        self.session("admin")
    }

    pub(crate) fn editor(&self) -> Session {
        self.session("editor")
    }

    pub(crate) fn viewer(&self) -> Session {
        self.session("viewer")
    }

    /// Logs in with a new admin account of another organization.
    pub(crate) fn stranger(&self) -> Session {
        self.account_in("Other", "admin").log_in(&self.client())
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// Sends one request with any head on a separate connection.
    #[track_caller]
    pub(crate) fn send(&self, line: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
        send(self.address, line, headers, body)
    }

    /// Returns the current passcode of an authenticator with this secret.
    pub(crate) fn passcode(&self, totp: &Value) -> String {
        let step = TimeStep::at(self.clock.now());
        FakePasscodes::shown_by_authenticator(totp["secret"].as_str().expect("a secret"), step).expect("a secret")
    }

    pub(crate) fn activation_parts(&self) -> ActivationParts {
        let storage = || Some(self.storage.clone());
        ActivationParts {
            runtime: self.runtime().handle().clone(),
            activations: self
                .activations()
                .vendor(Some(self.storage.clone()))
                .probe(Some(self.storage.clone()))
                .trust(storage().map(|storage| storage as _)),
            ids: self.ids.clone(),
            readiness: ready(),
        }
    }

    /// Starts an activation listener.
    pub(crate) fn listener(&self) -> Listener {
        self.listener_with(|_, _| {})
    }

    /// Starts an activation listener with other settings.
    pub(crate) fn listener_with(&self, change: impl FnOnce(&mut ActivationSettings, &mut ActivationParts)) -> Listener {
        self.try_listener(local(), None, change).expect("a free port")
    }

    /// Starts an activation listener on a socket in the file system.
    pub(crate) fn socket(
        &self,
        path: impl AsRef<Path>,
        mode: u32,
        change: impl FnOnce(&mut ActivationSettings, &mut ActivationParts),
    ) -> std::io::Result<Listener> {
        let unix = UnixSocket { path: path.as_ref().to_owned(), mode };
        self.try_listener(ListenerSettings::new(Vec::new()), Some(unix), change)
    }

    fn try_listener(
        &self,
        listener: ListenerSettings,
        unix: Option<UnixSocket>,
        change: impl FnOnce(&mut ActivationSettings, &mut ActivationParts),
    ) -> std::io::Result<Listener> {
        let mut settings = ActivationSettings { listener, unix, base_path: Default::default(), rate: None };
        settings.listener.workers = NonZeroUsize::new(1);
        let mut parts = self.activation_parts();
        change(&mut settings, &mut parts);
        let bound = self.runtime().block_on(async { activation_server(&settings, parts) })?;
        let (address, handle) = (bound.addresses.first().copied(), bound.server.handle());
        Ok(Listener { address, handle, running: self.runtime().spawn(bound.server) })
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn server_parts(fake: &FakeVault, runtime: &Handle) -> ServerParts {
    ServerParts {
        runtime: runtime.clone(),
        vault: fake.vault(),
        accounts: fake.accounts(),
        integrations: fake.integrations(),
        receivers: fake.receivers(),
        audit: fake.audit_reader(),
        federation: None,
        ids: fake.ids.clone(),
        readiness: ready(),
    }
}

fn ready() -> Readiness {
    Readiness::new(|| std::future::ready(Ok(())))
}

/// A free port of this host.
fn local() -> ListenerSettings {
    ListenerSettings::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))])
}

#[track_caller]
fn send(address: SocketAddr, line: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
    let mut wire = Wire::connect(address);
    wire.send(request(line, headers, body));
    let answer = if line.starts_with("HEAD ") { wire.head() } else { wire.answer() };
    let answer = answer.unwrap_or_else(|| panic!("no answer to {line}"));
    answer.check_common();
    answer
}

/// A running activation listener.
pub(crate) struct Listener {
    pub(crate) address: Option<SocketAddr>,
    handle: actix_web::dev::ServerHandle,
    running: JoinHandle<std::io::Result<()>>,
}

impl Listener {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("a port")
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address())
    }

    #[track_caller]
    pub(crate) fn send(&self, line: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Answer {
        send(self.address(), line, headers, body)
    }

    /// Creates an integration. Returns a client with its token.
    #[track_caller]
    pub(crate) fn job(&self, admin: &Session, name: &str, namespaces: &[&str]) -> Job {
        self.job_of(&integrate(admin, name, namespaces))
    }

    /// Returns a client with the token of the integration `created`.
    #[track_caller]
    pub(crate) fn job_of(&self, created: &Value) -> Job {
        let token = created["token"].as_str().unwrap_or_else(|| panic!("{created}"));
        Job { id: text(&created["id"]).to_owned(), token: token.to_owned(), client: self.client() }
    }

    /// Stops, and waits for the end.
    pub(crate) fn stop(self, app: &App) {
        app.runtime().block_on(async {
            self.handle.stop(true).await;
            self.running.await.expect("ends").expect("ends well");
        });
    }
}

/// A client of the activation listener with the token of an integration.
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) token: String,
    client: Client,
}

impl Job {
    /// Returns the header with the token.
    pub(crate) fn header(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    pub(crate) fn call(&self, method: &str, path: &str) -> Call<'_> {
        self.client.request(method, &format!("/v1/activations{path}")).bearer(&self.token)
    }

    #[track_caller]
    pub(crate) fn activate(&self, namespace: &str) -> Answer {
        self.activate_with(&json!({"namespace": namespace}))
    }

    #[track_caller]
    pub(crate) fn activate_with(&self, body: &Value) -> Answer {
        self.call("POST", "").json(body).send()
    }

    /// Requests a dry run.
    #[track_caller]
    pub(crate) fn check(&self, namespace: &str, operations: &[&str]) -> Answer {
        self.call("POST", "/check").json(&json!({"namespace": namespace, "operations": operations})).send()
    }

    #[track_caller]
    pub(crate) fn renew(&self, id: &str, body: &Value) -> Answer {
        self.call("POST", &format!("/{id}/renew")).json(body).send()
    }

    #[track_caller]
    pub(crate) fn end(&self, id: &str) -> Answer {
        self.call("DELETE", &format!("/{id}")).send()
    }

    /// Returns the active activations.
    #[track_caller]
    pub(crate) fn live(&self) -> Vec<Value> {
        self.call("GET", "").send().expect(200).json().as_array().expect("an array").clone()
    }
}

/// Creates an integration.
#[track_caller]
pub(crate) fn integrate(admin: &Session, name: &str, namespaces: &[&str]) -> Value {
    admin.post("/integrations", &json!({"name": name, "namespaces": namespaces})).expect(201).json()
}

/// Returns the body of a save.
pub(crate) fn s3(namespace: &str, bucket: &str) -> Value {
    let data = json!({
        "access_key_id": "AKIA2TESTONLY7SAMPLE", "bucket": bucket,
        "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET",
    });
    json!({"type": "s3", "namespace": namespace, "data": data})
}

/// Returns the body of a save with a role to assume.
pub(crate) fn s3_with_role(namespace: &str, bucket: &str) -> Value {
    let mut body = s3(namespace, bucket);
    body["data"]["role_arn"] = json!("arn:aws:iam::123456789012:role/batch");
    body
}

#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// Returns the names of the members of an object.
#[track_caller]
pub(crate) fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect()
}

/// Returns all items of a list, following the links from page to page.
#[track_caller]
pub(crate) fn pages(session: &Session, path: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut next) = (Vec::new(), Some(format!("/v1{path}")));
    while let Some(target) = next {
        let answer = session.call("GET", &target).send().expect(200);
        pages.push(answer.json().as_array().expect("an array").clone());
        let target = |link: &str| link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"").map(str::to_owned);
        next = answer.header("link").map(|link| target(link).expect("a link"));
    }
    pages
}

/// Returns the texts of a member of all items.
pub(crate) fn texts(items: &[Value], member: &str) -> Vec<String> {
    items.iter().map(|item| item[member].as_str().unwrap_or_default().to_owned()).collect()
}

/// Asserts that nothing distinguishes the responses.
#[track_caller]
pub(crate) fn assert_same(answers: impl IntoIterator<Item = Answer>) {
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.indistinct()).collect();
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
}

/// Retries until there is a result.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        match attempt() {
            Some(result) => return result,
            None => assert!(began.elapsed() < Duration::from_secs(60), "waited in vain until {what}"),
        }
        std::thread::sleep(Duration::from_millis(10)); // leaves the processor to the others
    }
}
