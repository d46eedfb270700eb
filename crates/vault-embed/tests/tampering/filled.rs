//! A vault with rows of every kind, and what its users know.

use super::rows::{Rows, sql};
use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error as StdError;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;
use vault_core::Error;
use vault_core::activation::{Activated, ActivationTtl, VendMode};
use vault_core::audit::AuditEntry;
use vault_core::credential::{CredentialData, CredentialType, Labels};
use vault_core::federation::*;
use vault_core::id::*;
use vault_core::identity::*;
use vault_core::integration::{IntegrationRef, Overlap};
use vault_core::json::{self, Limits};
use vault_core::namespace::{Freezing, Namespace};
use vault_core::network::Network;
use vault_core::passcode::{PasscodeSecret, TimeStep};
use vault_core::port::*;
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::receiver::{Channel, DeliveryFailure, EventDelivery};
use vault_core::role::Role;
use vault_core::usecase::activations::{ActivationRequest, Identity};
use vault_core::usecase::federation::{FederationPublisher, PublishedKeys};
use vault_core::usecase::integrations::{CreateIntegrationRequest, IntegrationEdit};
use vault_core::usecase::receivers::AddReceiverRequest;
use vault_core::usecase::*;
use vault_crypto::{FederationSigner, passcode_of};
use vault_embed::{Database, OpenVault, Opening, RootKey};
use vault_testkit::stores::SERVICE_ACCOUNT_KEY;

pub(super) const OPERATOR: Principal = Principal::Operator;
/// The process that reads events and delivers the audit log.
pub(super) const HOLDER: Uuid = Uuid::from_u128(1);
const PASSWORD: &str = "correct horse battery staple";
pub(super) const LATER_PASSWORD: &str = "another long sentence of words";

/// Accepts everything, and keeps the secrets of webhooks.
#[derive(Default)]
pub(super) struct World(Mutex<Vec<SecretString>>);

impl World {
    /// Returns the secrets with which received messages were signed.
    pub(super) fn signed_with(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|secret| secret.expose_secret().to_owned()).collect()
    }
}

#[async_trait]
impl EventCarrier for World {
    async fn post(&self, message: &WebhookMessage) -> Result<(), DeliveryFailure> {
        self.0.lock().unwrap().extend(message.secrets.iter().cloned());
        Ok(())
    }

    async fn mail(&self, _: &SecretString, _: &str, _: &[EventDelivery]) -> Result<(), DeliveryFailure> {
        Ok(())
    }
}

#[async_trait]
impl AuditSink for World {
    async fn deliver(&self, _: &[AuditEntry]) -> Result<(), Box<dyn StdError + Send + Sync>> {
        Ok(())
    }
}

/// The documents of the federation issuer, if they are published.
struct Published(Option<[String; 2]>);

#[async_trait]
impl IssuerPublication for Published {
    async fn fetch(&self, _: &FederationIssuer) -> Result<PublishedDocuments, PublicationFailure> {
        let Some([discovery, keys]) = self.0.clone() else { return Err(PublicationFailure::Unreachable) };
        Ok(PublishedDocuments { discovery: discovery.into(), key_set: keys.into(), cache_control: None })
    }
}

/// Identity tokens for an integration with these claims. A token is the name of the key that signed it, after `ey`.
struct Tokens(Value);

impl TokenVerifier for Tokens {
    fn read_unverified(&self, _: &SecretString) -> Option<UnverifiedToken> {
        let text = |claim: &str| Some(self.0[claim].as_str()?.to_owned());
        Some(UnverifiedToken { issuer: text("iss"), subject: text("sub"), audience: text("aud") })
    }

    fn verify(&self, token: &SecretString, keys: &str, _: KeyUse) -> Result<Value, SignatureError> {
        if keys == token.expose_secret() { Ok(self.0.clone()) } else { Err(SignatureError::UnknownKey) }
    }

    fn count_keys(&self, _: &str, _: KeyUse) -> Option<KeyCount> {
        None
    }
}

/// Notes whether damage was reported.
struct Damage(Arc<AtomicBool>);

impl EventSink for Damage {
    fn emit(&self, event: Event) {
        self.0.fetch_or(matches!(event, Event::IntegrityFailure { .. }), Ordering::SeqCst);
    }
}

fn named(text: &str) -> Namespace {
    Namespace::parse(text, "").unwrap()
}

fn link(number: u8) -> CredentialData {
    let body = format!(r#"{{"url":"https://files.example/a?sig=7sGhTk{number}"}}"#);
    CredentialData::from_json(CredentialType::DirectLink, body.as_bytes()).unwrap()
}

/// Returns a new credential, whose label has the name of its namespace.
pub(super) fn new(namespace: &str) -> NewCredential {
    let labels = json::parse(format!(r#"{{"team":"{namespace}"}}"#).as_bytes(), Limits::REQUEST).unwrap().root;
    NewCredential { labels: Labels::parse(labels, "").unwrap(), ..NewCredential::new(named(namespace), link(1)) }
}

/// Returns a request that is repeated with its key.
pub(super) fn repeated() -> NewCredential {
    NewCredential { idempotency: Some(IdempotencyKey::parse("once").unwrap()), ..new("repeated") }
}

/// Returns the user of an embedding service, who may save.
pub(super) fn editor(organization: Uuid) -> Principal {
    Principal::embedder(OrganizationId::from_uuid(organization), AccountId::from_bytes([7; 16]), Role::Editor)
}

pub(super) fn federation() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

/// An open vault, and whether it has reported damage.
pub(super) struct Open {
    pub(super) vault: OpenVault,
    pub(super) opener: Arc<dyn Opener>,
    damage: Arc<AtomicBool>,
}

impl Open {
    pub(super) async fn at(directory: &Path) -> Result<Self, vault_embed::Error> {
        Self::with(vault_embed::open, directory).await
    }

    async fn with(open: fn(RootKey, Database) -> Opening, directory: &Path) -> Result<Self, vault_embed::Error> {
        let (root_key, database) = (directory.join("root.key"), directory.join("vault.db"));
        let opening = open(RootKey::file(root_key), Database::sqlite(database)).without_maintenance();
        let damage = Arc::<AtomicBool>::default();
        let opening = opening.anchor(directory.join("anchor"), false).events(Damage(damage.clone()));
        let (vault, opener) = opening.with_opener().await?;
        Ok(Self { vault, opener, damage })
    }

    /// Returns whether the vault has reported damage since this was called last.
    pub(super) fn has_reported(&self) -> bool {
        self.damage.swap(false, Ordering::SeqCst)
    }

    /// Reads events, delivers and seals the audit log, moves the anchor, and closes the vault.
    async fn end(self, directory: &Path) {
        let (operator, notifier) = (self.vault.operator(), self.vault.notifier(Arc::new(World::default())));
        operator.seal_audit(10_000).await.unwrap();
        operator.deliver_audit(&World::default(), HOLDER, 10_000).await.unwrap();
        operator.end_delivery(HOLDER).await.unwrap();
        notifier.read_events(HOLDER).await.unwrap().unwrap();
        notifier.end(HOLDER).await.unwrap();
        operator.seal_audit(10_000).await.unwrap();
        self.vault.re_anchor(&directory.join("anchor")).await.unwrap();
        self.vault.close().await.unwrap();
    }

    /// Logs in with an unused recovery code.
    pub(super) async fn log_in(&self, person: &Person) -> Result<SessionPrincipal, Error> {
        self.log_in_with(person, person.proof()).await
    }

    pub(super) async fn log_in_with(&self, person: &Person, proof: OwnerProof) -> Result<SessionPrincipal, Error> {
        let (email, OwnerProof { password, passcode, network }) = (person.email.clone(), proof);
        let request = LogInRequest { email, password, passcode, ttl: None, network, client: None };
        let token = self.vault.accounts().log_in(request).await?.token;
        self.vault.accounts().authenticate(token.0.expose_secret())
    }

    pub(super) async fn enrol(&self, code: &SecretString) -> Result<PasscodeSecret, Error> {
        Ok(self.vault.accounts().enrol(code, PASSWORD.into()).await?.passcode)
    }

    pub(super) fn passcode(&self, secret: &PasscodeSecret) -> SecretString {
        passcode_of(secret, TimeStep::at(self.vault.ports().environment.now())).unwrap()
    }

    pub(super) async fn activate(&self, token: &SecretString, namespace: &str) -> Result<Activated, Error> {
        let activations = self.vault.activations(self.opener.clone());
        let principal = activations.authenticate(token, None).await?;
        let (purpose, ttl, vend) = (None, ActivationTtl::parse(None).unwrap(), VendMode::default());
        activations.activate(&principal, ActivationRequest { namespace: named(namespace), purpose, ttl, vend }).await
    }

    /// Authenticates a workload with an identity token that this key signed.
    pub(super) async fn identify(&self, workload: Uuid, key: &str) -> Result<(), Error> {
        let (now, aud) =
            (self.vault.ports().environment.now().as_seconds(), audience(IntegrationId::from_uuid(workload)));
        let claims = json!({"iss": "https://own.example", "aud": aud, "sub": "job", "iat": now, "exp": now + 300});
        let identity = Identity { verifier: Arc::new(Tokens(claims)), keys: None };
        let activations = self.vault.activations(self.opener.clone()).identity(Some(identity));
        activations.authenticate(&format!("ey{key}").into(), None).await.map(drop)
    }

    /// Returns whether federation tokens are signed.
    pub(super) async fn signs(&self) -> bool {
        let (signer, published) = (Arc::new(FederationSigner::new(federation())), PublishedKeys::new(federation()));
        let keys = self.vault.federation();
        FederationPublisher::new(keys, Arc::new(published), Some(signer.clone())).refresh().await.unwrap();
        let (organization, credential) = (OrganizationId::from_bytes([2; 16]), CredentialId::from_bytes([3; 16]));
        let claims = FederationClaims {
            issuer: federation(),
            subject: FederationSubject::new(organization, credential),
            audience: FederationAudience::of_sts("https://sts.amazonaws.com").unwrap(),
            now: self.vault.ports().environment.now(),
            id: HOLDER,
        };
        signer.sign(&claims).await.is_ok()
    }

    async fn check_publication(&self, is_published: bool) {
        let (keys, issuer) = (self.vault.federation(), federation());
        let documents = if is_published { Some(keys.documents(&issuer).await.unwrap()) } else { None };
        keys.check(&issuer, &Published(documents)).await.unwrap();
    }
}

/// A user, with the unused recovery codes.
pub(super) struct Person {
    email: String,
    codes: Vec<SecretString>,
}

impl Person {
    /// Returns password and passcode of a login.
    pub(super) fn proof(&self) -> OwnerProof {
        let network = Network::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
        OwnerProof { password: PASSWORD.into(), passcode: self.codes.last().unwrap().clone(), network }
    }
}

/// Objects of a vault with rows of every kind. Most names say what happened to them after the earlier state.
#[derive(Default)]
pub(super) struct Filled {
    ids: HashMap<String, Uuid>,
    pub(super) people: HashMap<&'static str, Person>,
    pub(super) sessions: HashMap<&'static str, SessionPrincipal>,
    pub(super) totp: HashMap<&'static str, PasscodeSecret>,
    /// Tokens, codes and signing secrets.
    pub(super) secrets: HashMap<&'static str, SecretString>,
    pub(super) kid: String,
}

impl Filled {
    #[track_caller]
    pub(super) fn id(&self, name: &str) -> Uuid {
        *self.ids.get(name).unwrap_or_else(|| panic!("no object {name}"))
    }

    /// Returns a condition with IDs instead of names in braces.
    pub(super) fn sql(&self, condition: &str) -> String {
        let mut parts = condition.split(['{', '}']);
        let mut text = parts.next().unwrap().to_owned();
        while let (Some(name), Some(rest)) = (parts.next(), parts.next()) {
            text += &match name.strip_prefix("text ") {
                Some(name) => format!("'{}'", self.id(name)),
                None => sql(&self.id(name)),
            };
            text += rest;
        }
        text
    }

    pub(super) fn organization(&self, name: &str) -> OrganizationId {
        OrganizationId::from_uuid(self.id(name))
    }

    pub(super) fn credential(&self, name: &str) -> CredentialId {
        CredentialId::from_uuid(self.id(name))
    }

    pub(super) fn receiver(&self, name: &str) -> ReceiverId {
        ReceiverId::from_uuid(self.id(name))
    }

    /// Runs a command of an operator.
    pub(super) async fn command(&self, open: &Open, name: &str, command: AccountCommand) -> Result<(), Error> {
        let account = AccountRef::Id(self.organization("Acme"), AccountId::from_uuid(self.id(name)));
        open.vault.accounts().change(&OPERATOR, account, command).await.map(drop)
    }

    pub(super) async fn freeze(&self, open: &Open, namespace: &str, is_frozen: bool) -> Result<Freezing, Error> {
        let (integrations, acme) = (open.vault.integrations(), self.organization("Acme"));
        match is_frozen {
            true => integrations.freeze(&OPERATOR, acme, named(namespace)).await,
            false => integrations.thaw(&OPERATOR, acme, named(namespace)).await,
        }
    }

    /// Creates the vault below `directory`, with its earlier state in `old.db`.
    pub(super) async fn create(directory: &Path) -> Self {
        let open = Open::with(vault_embed::create, directory).await.unwrap();
        let mut filled = Self::default();
        filled.fill_accounts(&open).await;
        filled.fill_rest(&open).await;
        open.end(directory).await;
        std::fs::copy(directory.join("vault.db"), directory.join("old.db")).unwrap();
        // The order of entries within this time is uncertain.
        tokio::time::sleep(Duration::from_millis(4_100)).await;
        let open = Open::at(directory).await.unwrap();
        filled.change_accounts(&open).await;
        filled.change_rest(&open).await;
        open.end(directory).await;
        let rows = Rows::of(directory);
        for name in ["held", "exports"] {
            let query = format!("SELECT id FROM lookups WHERE name = 'namespace' AND value = '{name}'");
            filled.put(format!("namespace {name}"), rows.id(&query));
        }
        for name in ["demoted", "reworded"] {
            let about = format!("subject = 'account:{}' AND changed_rows IS NOT NULL", filled.id(name));
            let query = format!("SELECT id FROM audit WHERE {about} ORDER BY id DESC LIMIT 1");
            filled.put(format!("entry {name}"), rows.id(&query));
        }
        filled.put("signing_keys", rows.id("SELECT id FROM entities WHERE kind = 'signing_keys'"));
        filled
    }

    fn put(&mut self, name: impl Into<String>, id: Uuid) {
        self.ids.insert(name.into(), id);
    }

    fn proof(&mut self, name: &str) -> OwnerProof {
        let proof = self.people[name].proof();
        self.people.get_mut(name).unwrap().codes.pop();
        proof
    }

    async fn begin_session(&mut self, open: &Open, name: &'static str, person: &str) {
        let proof = self.proof(person);
        let session = open.log_in_with(&self.people[person], proof).await.unwrap();
        self.put(format!("session {name}"), *session.session.as_uuid());
        self.sessions.insert(name, session);
    }

    async fn replace_passcode(&mut self, open: &Open, person: &str, name: &'static str) {
        let proof = self.proof(person);
        let pending = open.vault.accounts().replace_passcode(&self.sessions[person], proof).await.unwrap();
        self.totp.insert(name, pending);
    }

    async fn set_aside(&self, open: &Open, person: &str, concern: &str) {
        let until = open.vault.ports().environment.now().plus_seconds(86_400);
        open.vault.accounts().change_set_aside(&self.sessions[person], concern.to_owned(), Some(until)).await.unwrap();
    }

    async fn fill_accounts(&mut self, open: &Open) {
        let accounts = open.vault.accounts();
        for name in ["Acme", "Rotated", "Disabled", "Deleted"] {
            let created = open.vault.operator().ensure_organization(name).await.unwrap();
            self.put(name, *created.id.as_uuid());
        }
        for name in "owner kept demoted removed locked reworded recoded shut-out".split(' ') {
            let organization = self.organization(if name == "shut-out" { "Disabled" } else { "Acme" });
            let role = if name == "demoted" { Role::Admin } else { Role::Viewer };
            let email = format!("{name}@example.com");
            let password = Some(PASSWORD.into());
            let created = accounts.create(CreateAccountRequest { organization, email: email.clone(), role, password });
            let created = created.await.unwrap();
            let codes = created.recovery_codes.into_iter().map(|code| code.0).collect();
            self.put(name, *created.grant.account.as_uuid());
            self.people.insert(name, Person { email, codes });
        }
        for name in "owner kept demoted reworded recoded".split(' ') {
            self.begin_session(open, name, name).await;
        }
        self.begin_session(open, "ended", "owner").await;
        self.begin_session(open, "recoded-too", "recoded").await;
        for (person, secret) in [("owner", "earlier-pending"), ("kept", "other-pending")] {
            self.replace_passcode(open, person, secret).await;
            self.set_aside(open, person, "expiring").await;
        }
        for name in "invited invited-too uninvited drafted drafted-too".split(' ') {
            let role = if name == "invited" { Role::Admin } else { Role::Viewer };
            let email = format!("{name}@example.com");
            let invited = accounts.invite(&OPERATOR, self.organization("Acme"), &email, role).await.unwrap();
            self.put(name, *invited.grant.account.as_uuid());
            self.secrets.insert(name, invited.code.text().clone());
        }
        for (name, draft) in [("drafted", "earlier-draft"), ("drafted-too", "other-draft")] {
            self.totp.insert(draft, open.enrol(&self.secrets[name]).await.unwrap());
        }
    }

    async fn fill_rest(&mut self, open: &Open) {
        let (acme, environment) = (self.organization("Acme"), &open.vault.ports().environment);
        for name in "imports exports dropped versions held lifted secret repeated elsewhere".split(' ') {
            let organization = self.id(if name == "elsewhere" { "Rotated" } else { "Acme" });
            let request = match name {
                "repeated" => repeated(),
                "elsewhere" => new("imports"),
                namespace => new(namespace),
            };
            let saved = open.vault.vault().save(&editor(organization), request).await.unwrap();
            self.put(name, *saved.as_uuid());
        }
        for (namespace, is_frozen) in [("held", true), ("held", false), ("lifted", true), ("exports", true)] {
            assert!(self.freeze(open, namespace, is_frozen).await.unwrap().changed);
        }
        for line in [
            "narrowed imports secret",
            "other others",
            "gone imports",
            "keeper held lifted importr",
            "workload imports",
        ] {
            let (name, namespaces) = line.split_once(' ').unwrap();
            let (namespaces, trusts) = (namespaces.split(' ').map(str::to_owned).collect(), Vec::new());
            let (name_of, expires_at, managed_by) = (name.to_owned(), None, None);
            let request =
                CreateIntegrationRequest { name: name_of, namespaces, expires_at, token: true, trusts, managed_by };
            let created = open.vault.integrations().create(&OPERATOR, acme, request).await.unwrap();
            self.put(name, *created.integration.id.as_uuid());
            self.secrets.insert(name, created.token.unwrap().text().clone());
        }
        for (id, name) in [("issuer", "own"), ("other-issuer", "other"), ("gone-issuer", "gone")] {
            let issuer = Issuer {
                id: IssuerId::from_uuid(environment.ids.random()),
                name: IssuerName::parse(name, "").unwrap(),
                url: format!("https://{name}.example"),
                source: KeySource::Pasted,
                ca: String::new(),
                required: Vec::new(),
                organizations: Vec::new(),
                created_at: environment.now(),
            };
            let keys = if id == "other-issuer" { "eyother" } else { "eyfirst" };
            let add = AddIssuer { issuer, set: IssuerKeySet::fetched(keys.to_owned(), environment.now()) };
            let added = open.vault.ports().operations.run(environment, &OPERATOR, add).await.unwrap();
            self.put(id, *added.issuer.id.as_uuid());
        }
        let (trust, workload) = (json!({"issuer": "own", "claims": {"/sub": "job"}}), "workload".to_owned());
        open.vault.integrations().trust(&OPERATOR, acme, &IntegrationRef::Name(workload), &trust).await.unwrap();
        let receivers = open.vault.receivers();
        for name in "receiver other-receiver gone-receiver waiting waiting-too".split(' ') {
            let (channel, address, events) = (Channel::Webhook, format!("https://{name}.example"), Vec::new());
            let added = receivers.add(&OPERATOR, AddReceiverRequest { channel, address, events }).await.unwrap();
            self.put(name, *added.receiver.key.id.as_uuid());
            self.secrets.insert(name, added.secret.unwrap());
        }
        for name in ["waiting", "waiting-too"] {
            receivers.test(&OPERATOR, self.receiver(name)).await.unwrap();
        }
        let added = open.vault.federation().add_key(&federation(), &SERVICE_ACCOUNT_KEY.into()).await;
        self.kid = added.unwrap().unwrap();
        open.check_publication(false).await;
        for (activation, name) in
            [("activation", "narrowed"), ("other-activation", "workload"), ("ended-activation", "narrowed")]
        {
            let activated = open.activate(&self.secrets[name], "imports").await.unwrap();
            self.put(activation, *activated.id.as_uuid());
        }
    }

    async fn change_accounts(&mut self, open: &Open) {
        let accounts = open.vault.accounts();
        for (name, command) in [
            ("demoted", AccountCommand::SetRole(Role::Viewer)),
            ("removed", AccountCommand::Delete),
            ("invited", AccountCommand::SetRole(Role::Viewer)),
            ("uninvited", AccountCommand::Delete),
        ] {
            self.command(open, name, command).await.unwrap();
        }
        let proof = self.proof("reworded");
        accounts.change_password(&self.sessions["reworded"], proof, LATER_PASSWORD.into()).await.unwrap();
        let proof = self.proof("recoded");
        let codes = accounts.replace_recovery_codes(&self.sessions["recoded"], proof).await.unwrap();
        self.secrets.insert("old-code", self.people["recoded"].codes[0].clone());
        self.people.get_mut("recoded").unwrap().codes = codes.into_iter().map(|code| code.0).collect();
        accounts.end_session(&self.sessions["owner"], self.sessions["ended"].session).await.unwrap();
        self.replace_passcode(open, "owner", "pending").await;
        self.set_aside(open, "owner", "unused").await;
        self.secrets.insert("used-code", self.people["kept"].proof().passcode);
        self.begin_session(open, "kept-too", "kept").await;
        for _ in 0..5 {
            let wrong = OwnerProof { password: "wrong".into(), ..self.people["locked"].proof() };
            open.log_in_with(&self.people["locked"], wrong).await.unwrap_err();
        }
        let draft = open.enrol(&self.secrets["drafted"]).await.unwrap();
        self.totp.insert("draft", draft);
    }

    async fn change_rest(&mut self, open: &Open) {
        let (acme, editor, ports) = (self.organization("Acme"), editor(self.id("Acme")), open.vault.ports());
        let rotation = open.vault.keys().rotate_organization(self.organization("Rotated")).await.unwrap();
        while rotation.step().await.unwrap().is_some() {}
        rotation.finish().await.unwrap().unwrap();
        for (name, command) in [("Disabled", OrganizationCommand::Disable), ("Deleted", OrganizationCommand::Delete)] {
            open.vault.operator().change_organization(name, command).await.unwrap();
        }
        let (integrations, job) = (open.vault.integrations(), |name: &str| IntegrationRef::Name(name.to_owned()));
        let edit = IntegrationEdit { namespaces: Some(vec!["imports".to_owned()]), ..Default::default() };
        integrations.change(&OPERATOR, acme, &job("narrowed"), edit).await.unwrap();
        integrations.delete(&OPERATOR, acme, &job("gone")).await.unwrap();
        // The token before the last one is no longer looked up.
        for _ in 0..2 {
            integrations.rotate(&OPERATOR, acme, &job("other"), Overlap::parse(Some(0), "").unwrap()).await.unwrap();
        }
        for (namespace, is_frozen) in [("held", true), ("lifted", false)] {
            assert!(self.freeze(open, namespace, is_frozen).await.unwrap().changed);
        }
        let vault = open.vault.vault();
        for name in ["imports", "versions"] {
            let (credential, expires_at, idempotency) = (self.credential(name).into(), None, None);
            let (data, stage, verify) = (link(2), false, false);
            let request = CredentialReplacement { credential, data, expires_at, stage, idempotency, verify };
            assert_eq!(vault.replace(&editor, request).await.unwrap().version, 2);
        }
        vault.destroy_version(&editor, self.credential("versions").into(), 1).await.unwrap();
        vault.delete(&editor, self.credential("dropped")).await.unwrap();
        let receivers = open.vault.receivers();
        let (_, secret) = receivers.replace_secret(&OPERATOR, self.receiver("receiver")).await.unwrap();
        self.secrets.insert("receiver", secret);
        receivers.remove(&OPERATOR, self.receiver("gone-receiver")).await.unwrap();
        open.vault.operator().remove_issuer(&IssuerName::parse("gone", "").unwrap()).await.unwrap();
        let set = IssuerKeySet::fetched("eysecond".to_owned(), ports.environment.now());
        let record = RecordKeys { issuer: IssuerId::from_uuid(self.id("issuer")), version: 1, set };
        assert!(ports.operations.run(&ports.environment, &OPERATOR, record).await.unwrap());
        open.vault.federation().promote_key(&federation(), true).await.unwrap();
        open.check_publication(true).await;
        let activations = open.vault.activations(open.opener.clone());
        let principal = activations.authenticate(&self.secrets["narrowed"], None).await.unwrap();
        activations.end(&principal, ActivationId::from_uuid(self.id("ended-activation"))).await.unwrap();
    }
}
