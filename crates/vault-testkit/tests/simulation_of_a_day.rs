//! A simulated day with concurrent requests and failures: credentials are replaced, staged, promoted and deleted, users
//! log in, and integrations activate. Each request is sent several times.

use crate::simulation::{Storm, Task, alone};
use secrecy::{ExposeSecret, SecretString};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use vault_core::activation::{ActivationTtl, VendMode};
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::cursor::PageRequest;
use vault_core::id::{AccountId, CredentialId};
use vault_core::network::Network;
use vault_core::passcode::TimeStep;
use vault_core::port::Clock as _;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::activations::ActivationRequest;
use vault_core::usecase::integrations::CreateIntegrationRequest;
use vault_core::usecase::*;
use vault_testkit::crypto::FakePasscodes;
use vault_testkit::fake::FakeVault;

const PASSWORD: &str = "correct horse battery staple";
const REPLACEMENTS: usize = 3;

/// The responses that callers received.
#[derive(Default)]
struct Reported {
    /// The version that each replacement created, by idempotency key.
    versions: RefCell<Vec<(String, i64)>>,
    deletions: Cell<usize>,
    /// The sessions of logins, by passcode.
    sessions: RefCell<Vec<(String, String)>>,
    activations: Cell<usize>,
    ended: Cell<usize>,
}

struct Day {
    fake: FakeVault,
    who: Principal,
    reported: Rc<Reported>,
    changed: CredentialId,
    deleted: CredentialId,
    /// A current passcode, and a recovery code.
    passcodes: [String; 2],
    token: SecretString,
}

fn link(name: &str) -> CredentialData {
    let json = format!(r#"{{"url":"https://files.example/{name}"}}"#);
    CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap()
}

impl Day {
    fn begin(fake: FakeVault) -> Self {
        let acme = alone(fake.operator().ensure_organization("acme")).unwrap();
        let who = Principal::embedder(acme.id, AccountId::from_bytes([7; 16]), Role::Editor);
        let save = |name| alone(fake.vault().save(&who, NewCredential::new("imports".parse().unwrap(), link(name))));
        let (changed, deleted) = (save("first").unwrap(), save("other").unwrap());
        let request = CreateAccountRequest {
            organization: acme.id,
            email: "ada@example.com".to_owned(),
            role: Role::Editor,
            password: Some(PASSWORD.into()),
        };
        let created = alone(fake.accounts().create(request)).unwrap();
        let step = TimeStep::at(fake.clock.now());
        let secret = created.passcode.secret.expose_secret();
        let passcode = FakePasscodes::shown_by_authenticator(secret, step).unwrap();
        let recovery_code = created.recovery_codes[0].0.expose_secret().to_owned();
        let request = CreateIntegrationRequest {
            name: "nightly".to_owned(),
            namespaces: vec!["imports".to_owned()],
            expires_at: None,
            token: true,
            trusts: Vec::new(),
            managed_by: None,
        };
        let integration = alone(fake.integrations().create(&Principal::Operator, acme.id, request)).unwrap();
        let token = integration.token.unwrap().text().clone();
        Self { fake, who, reported: Rc::default(), changed, deleted, passcodes: [passcode, recovery_code], token }
    }

    fn replace(&self, key: usize, stage: bool) -> (String, Task) {
        let key = format!("{}-{key}", if stage { "stage" } else { "replace" });
        let (vault, who, reported, name, id) =
            (self.fake.vault(), self.who.clone(), Rc::clone(&self.reported), key.clone(), self.changed);
        let task = async move {
            let request = CredentialReplacement {
                credential: id.into(),
                data: link(&name),
                expires_at: None,
                stage,
                idempotency: Some(IdempotencyKey::parse(&name).unwrap()),
                verify: false,
            };
            let outcome = vault.replace(&who, request).await.map(|changed| changed.version);
            reported.versions.borrow_mut().extend(outcome.as_ref().ok().map(|version| (name, *version)));
            format!("{outcome:?}")
        };
        (key, Box::pin(task))
    }

    fn promote(&self) -> (String, Task) {
        let (vault, who, id) = (self.fake.vault(), self.who.clone(), self.changed);
        ("promote".to_owned(), Box::pin(async move { format!("{:?}", vault.promote(&who, id.into(), 1).await) }))
    }

    fn delete(&self) -> (String, Task) {
        let (vault, who, reported, id) = (self.fake.vault(), self.who.clone(), Rc::clone(&self.reported), self.deleted);
        let task = async move {
            let outcome = vault.delete(&who, id).await;
            reported.deletions.set(reported.deletions.get() + usize::from(outcome.is_ok()));
            format!("{outcome:?}")
        };
        ("delete".to_owned(), Box::pin(task))
    }

    fn show(&self) -> (String, Task) {
        let (vault, who, id) = (self.fake.vault(), self.who.clone(), self.changed);
        let task = async move {
            let shown = vault.show(&who, id).await;
            format!("{:?}", shown.map(|shown| (shown.revision, shown.version)))
        };
        ("show".to_owned(), Box::pin(task))
    }

    fn log_in(&self, passcode: &str) -> (String, Task) {
        let (accounts, reported, passcode) = (self.fake.accounts(), Rc::clone(&self.reported), passcode.to_owned());
        let name = format!("log in by {passcode}");
        let task = async move {
            let request = LogInRequest {
                email: "ada@example.com".to_owned(),
                password: PASSWORD.into(),
                passcode: passcode.as_str().into(),
                ttl: None,
                network: Network::V4([192, 0, 2]),
                client: None,
            };
            let outcome = accounts.log_in(request).await.map(|created| created.token.0.expose_secret().to_owned());
            reported.sessions.borrow_mut().extend(outcome.as_ref().ok().map(|token| (passcode, token.clone())));
            format!("{outcome:?}")
        };
        (name, Box::pin(task))
    }

    fn activate(&self) -> (String, Task) {
        let (activations, reported, deleted) = (self.fake.activations(), Rc::clone(&self.reported), self.deleted);
        let token = self.token.clone();
        let task = async move {
            let gone = reported.deletions.get() > 0;
            let outcome = async {
                let principal = activations.authenticate(&token, None).await?;
                let request = ActivationRequest {
                    namespace: "imports".parse()?,
                    purpose: None,
                    ttl: ActivationTtl::parse(Some(600))?,
                    vend: VendMode::Raw,
                };
                let activated = activations.activate(&principal, request).await?;
                reported.activations.set(reported.activations.get() + 1);
                let handed: Vec<_> = activated.credentials.iter().map(|it| (it.id, it.version)).collect();
                assert!(
                    !(gone && handed.iter().any(|(id, _)| *id == deleted)),
                    "an earlier deleted credential is issued"
                );
                activations.end(&principal, activated.id).await?;
                reported.ended.set(reported.ended.get() + 1);
                Ok::<_, vault_core::Error>(handed)
            };
            format!("{:?}", outcome.await)
        };
        ("activate".to_owned(), Box::pin(task))
    }

    fn tasks(&self) -> Vec<(String, Task)> {
        let mut tasks = Vec::new();
        for _ in 0..3 {
            tasks.extend((0..REPLACEMENTS).map(|key| self.replace(key, false)));
            tasks.extend([self.replace(0, true), self.promote(), self.delete(), self.show(), self.activate()]);
            tasks.extend(self.passcodes.iter().map(|passcode| self.log_in(passcode)));
            tasks.push(self.log_in("000000"));
        }
        tasks
    }

    fn recorded(&self, action: AuditAction) -> usize {
        self.fake.store.audit().iter().filter(|entry| entry.action == action).count()
    }

    /// Checks the invariants, despite lost, repeated and dropped requests.
    fn evaluate(&self) {
        let count = |action| self.recorded(action);
        // A request with an idempotency key has one effect, and each change of the credential has one entry.
        let mut versions = BTreeMap::new();
        for (key, version) in self.reported.versions.borrow().iter() {
            assert_eq!(versions.entry(key.clone()).or_insert(*version), version, "{key}");
        }
        assert_eq!(versions.values().collect::<BTreeSet<_>>().len(), versions.len(), "each has a version of its own");
        let (replaced, staged) = (count(AuditAction::CredentialReplaced), count(AuditAction::CredentialStaged));
        assert!(replaced <= REPLACEMENTS && staged <= 1, "a replacement was made twice");
        assert!(replaced + staged >= versions.len(), "acknowledged changes are recorded");
        let shown = alone(self.fake.vault().show(&self.who, self.changed)).unwrap();
        let changes = replaced + staged + count(AuditAction::CredentialPromoted);
        assert_eq!(shown.revision, 1 + i64::try_from(changes).unwrap());
        assert!(shown.information.is_some(), "what lists show opens");

        assert!(self.reported.deletions.get() <= 1 && count(AuditAction::CredentialDeleted) <= 1, "deleted twice");
        let listed = alone(self.fake.vault().list(&self.who, Default::default(), Default::default())).unwrap().items;
        assert_eq!(listed.len(), 2 - count(AuditAction::CredentialDeleted));

        let sessions = self.reported.sessions.borrow();
        for passcode in &self.passcodes {
            assert!(sessions.iter().filter(|(of, _)| of == passcode).count() <= 1, "a passcode was taken twice");
        }
        let logins = count(AuditAction::LoginSucceeded);
        assert!((sessions.len()..=2).contains(&logins), "{logins} logins, {} acknowledged", sessions.len());
        for (_, token) in sessions.iter() {
            let session = self.fake.accounts().authenticate(token).unwrap();
            assert!(alone(self.fake.accounts().own(&session)).is_ok(), "an acknowledged session works");
        }

        let (started, ended) = (count(AuditAction::ActivationStarted), count(AuditAction::ActivationEnded));
        assert!(started >= self.reported.activations.get() && ended >= self.reported.ended.get());
        let principal = alone(self.fake.activations().authenticate(&self.token, None)).unwrap();
        let page = PageRequest { limit: 100, cursor: None };
        let live = alone(self.fake.activations().list(&principal, page)).unwrap().items.len();
        assert!(live <= started - ended, "{live} live, {started} started, {ended} ended");
    }
}

fn play(seed: u64) -> Vec<String> {
    let storm = Storm::of(seed);
    let day = Day::begin(storm.vault(None));
    let trace = storm.play(day.tasks());
    let evaluated = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| day.evaluate()));
    assert!(evaluated.is_ok(), "seed {seed}: {trace:#?}");
    trace
}

#[test]
fn simulated_days_end_in_expected_state() {
    let traces: Vec<_> = (0..300).map(play).collect();
    let seen = |what: &str| traces.iter().flatten().any(|line| line.starts_with(what) && line.contains(": Ok("));
    for what in ["replace-0", "stage-0", "promote", "delete", "show", "activate", "log in"] {
        assert!(seen(what), "{what} never succeeded");
    }
    assert!(traces.iter().flatten().any(|line| line.ends_with("crashed")));
}

#[test]
fn same_seed_repeats_the_day() {
    for seed in [0, 7, 4_711] {
        assert_eq!(play(seed), play(seed));
    }
    assert_ne!(play(1), play(2));
}
