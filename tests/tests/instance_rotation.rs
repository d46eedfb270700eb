//! Rotation of the instance key during use: everything issued before works during and after the rotation, also if it is
//! killed at any point and repeated.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use vault_tests::binary::Run;
use vault_tests::passcode::{Authenticator, current_step, within_one_step};
use vault_tests::process::{Server, free_address};
use vault_tests::samples::small;
use vault_tests::{Account, ActivationListener, Client, Database, Integration, Session, Vault, on_both_databases};

on_both_databases! {
    issued_tokens_and_codes_work_under_next_key,
    killed_rotation_is_continued,
    concurrent_rotators_refuse_no_login_or_change,
}

const PASSWORD: &str = "a long enough password";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// Objects of users and programs that depend on the instance key.
struct Held {
    /// Has logged in with a recovery code. Its authenticator is unused.
    account: Account,
    session: Session,
    /// An unused invitation.
    invited: Value,
    /// An invitation with an unconfirmed draft.
    drafted: (Value, Authenticator),
    /// A new passcode that this session must confirm.
    pending: (Session, Authenticator),
    /// The code of a re-enrolment.
    again: String,
    integration: Integration,
    /// A frozen namespace.
    frozen: String,
    cursor: String,
}

impl Held {
    fn issue_credentials(vault: &Vault, admin: &Session, number: usize) -> Self {
        let client = vault.client();
        let account = vault.account("Acme", "editor");
        let session = account.log_in(&client);
        let invited = admin.invite(&format!("invited-{number}@example.com"), "viewer").expect(201).json();
        let draft = admin.invite(&format!("drafted-{number}@example.com"), "editor").expect(201).json();
        let printed = client.enrol(text(&draft["enrolment_code"]), PASSWORD).expect(200).json();
        let drafted = (draft, Authenticator::new(text(&printed["totp"]["secret"])));
        let changing = vault.account("Acme", "viewer");
        let own = changing.log_in(&client);
        let new = own.post_account("passcode", &changing.proof()).expect(200).json();
        let pending = (own, Authenticator::new(text(&new["totp"]["secret"])));
        let lost = vault.account("Acme", "viewer");
        let again = text(&admin.re_enrol(&lost.id).expect(201).json()["enrolment_code"]).to_owned();
        let integration = Integration::make(vault, &format!("nightly-{number}"), &["imports/*"]);
        let frozen = format!("frozen/{number}");
        vault.run(&["namespace", "freeze", &frozen, "--org", "Acme"]).done();
        let page = admin.get("/accounts?limit=2").expect(200);
        let link = page.header("link").unwrap();
        let cursor = link.split_once('<').unwrap().1.split_once('>').unwrap().0.to_owned();
        Self { account, session, invited, drafted, pending, again, integration, frozen, cursor }
    }

    /// Uses all objects with servers that were started before.
    fn assert_works(self, client: &Client, listener: &Client, admin: &Session) {
        let path = self.cursor.find("/v1/").map(|place| self.cursor[place..].to_owned()).unwrap();
        assert!(!admin.on(client).call("GET", &path).send().expect(200).json().as_array().unwrap().is_empty());
        assert!(self.session.on(client).is_live());
        let Account { authenticator, .. } = &self.account;
        client.log_in(&self.account.login(&authenticator.code(current_step()))).expect(200);
        self.account.log_in(client);
        self.integration.activate(listener, "imports/0").expect(201);
        let admin = admin.on(client);
        let thawed = admin.post("/namespaces/thaw", &json!({"namespace": self.frozen}));
        assert_eq!(thawed.expect(200).json()["changed"], true);
        let answer = self
            .pending
            .0
            .on(client)
            .post_account("passcode/confirm", &json!({"passcode": self.pending.1.code(current_step())}));
        answer.expect(204);
        let (draft, authenticator) = &self.drafted;
        let code = text(&draft["enrolment_code"]);
        client.confirm_enrolment(code, &authenticator.code(current_step())).expect(204);
        for code in [text(&self.invited["enrolment_code"]), &self.again] {
            let printed = client.enrol(code, PASSWORD).expect(200).json();
            let authenticator = Authenticator::new(text(&printed["totp"]["secret"]));
            client.confirm_enrolment(code, &authenticator.code(current_step())).expect(204);
            let login = json!({
                "email": printed["email"], "password": PASSWORD, "passcode": text(&printed["recovery_codes"][0]),
            });
            client.log_in(&login).expect(200);
        }
    }
}

/// Returns the instance keys: the active one, and the replaced ones.
fn status(vault: &Vault) -> (String, Vec<Value>) {
    let status = vault.json(&["key", "status"]);
    (text(&status["instance_key"]).to_owned(), status["retiring_instance_keys"].as_array().unwrap().clone())
}

fn rotate(vault: &Vault) -> Run {
    Run::of(&mut vault.owner_command(&["key", "rotate", "--instance"]))
}

fn rotated(vault: &Vault) -> Value {
    Run::of(&mut vault.owner_command(&["key", "rotate", "--instance", "--json"])).done().json()
}

fn issued_tokens_and_codes_work_under_next_key(database: Database) {
    let (mut vault, listener) = ActivationListener::open(database);
    let admin = vault.admin_session();
    admin.save(&small("imports/0", 0));
    let held: Vec<_> = (0..3).map(|number| Held::issue_credentials(&vault, &admin, number)).collect();
    let waiting = vault.account("Acme", "editor");
    let (before, none) = status(&vault);
    assert_eq!(none, Vec::<Value>::new());

    let rotated = rotated(&vault);
    assert_eq!((&rotated["new_key"], &rotated["kept"]), (&json!(true), &json!([])), "{rotated}");
    assert_eq!(rotated["destroyed"], json!([before]));
    let (after, none) = status(&vault);
    assert_eq!((json!(after), none), (rotated["active_key"].clone(), Vec::new()));
    assert_ne!(after, before);
    // The purpose keys are replaced too, and kept while they are needed.
    let kept = |vault: &Vault| -> Vec<String> {
        let shown = vault.json(&["key", "status"]);
        let keys = shown["purpose_keys"].as_array().unwrap().iter();
        let retiring = keys.filter(|key| key["state"] == "retiring");
        retiring.map(|key| text(&key["purpose"]).to_owned()).collect()
    };
    let mut replaced = kept(&vault);
    replaced.sort();
    assert_eq!(replaced, ["audit", "lookup", "token"]);

    let mut held = held.into_iter();
    // The server was started with the old key.
    held.next().unwrap().assert_works(&vault.client(), &listener.client(), &admin);
    // The server now writes with the new key, and another rotation moves these rows too.
    let late = Held::issue_credentials(&vault, &admin, 10);
    rotate(&vault).done().prints("Rotated the instance key: new key");
    held.next().unwrap().assert_works(&vault.client(), &listener.client(), &admin);
    late.assert_works(&vault.client(), &listener.client(), &admin);
    // With a server that has cached none of the old keys. Its anchor is accepted.
    vault.restart();
    let admin = admin.on(&vault.client());
    let last = held.next().unwrap();
    let same = Held { cursor: Held::issue_credentials(&vault, &admin, 11).cursor, ..last };
    same.assert_works(&vault.client(), &listener.client(), &admin);
    waiting.log_in(&vault.client());
    vault.organization("Beta");
    vault.account("Beta", "admin").log_in(&vault.client()).save(&small("imports/1", 1));
    let audited = vault.json(&["audit", "verify"]);
    assert_eq!(audited["findings"].as_array().map_or(0, Vec::len), 0, "{audited}");
}

/// Starts a rotation.
fn begin(vault: &Vault) -> Child {
    let mut command = vault.owner_command(&["key", "rotate", "--instance", "--log-format", "json"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the rotation reports moved rows. Returns `false` if it has ended.
fn moves_rows(rotation: &mut Child) -> bool {
    let lines = BufReader::new(rotation.stderr.take().unwrap()).lines();
    lines.map_while(Result::ok).any(|line| line.contains("moved "))
}

fn killed_rotation_is_continued(database: Database) {
    const KILLS: usize = 3;
    let (mut vault, listener) = ActivationListener::open(database);
    let admin = vault.admin_session();
    admin.save(&small("imports/0", 0));
    for number in 0..40 {
        let body = json!({"name": format!("many-{number}"), "namespaces": ["imports/*"]});
        admin.post("/integrations", &body).expect(201);
    }
    for number in 0..KILLS {
        let held = Held::issue_credentials(&vault, &admin, number);
        let mut rotation = begin(&vault);
        moves_rows(&mut rotation);
        // SIGKILL, at any point. Tests of vault-crypto interrupt a rotation after each of its steps.
        rotation.kill().unwrap();
        rotation.wait().unwrap();
        let (_, retiring) = status(&vault);
        assert!(retiring.len() <= 1, "a rotation that is continued makes no further key: {retiring:?}");
        held.assert_works(&vault.client(), &listener.client(), &admin);
    }
    let held = Held::issue_credentials(&vault, &admin, 100);
    let rotated = rotated(&vault);
    assert_eq!(rotated["kept"], json!([]), "{rotated}");
    assert_eq!(status(&vault).1, Vec::<Value>::new());
    vault.restart();
    let cursor = Held::issue_credentials(&vault, &admin.on(&vault.client()), 101).cursor;
    Held { cursor, ..held }.assert_works(&vault.client(), &listener.client(), &admin.on(&vault.client()));
}

fn concurrent_rotators_refuse_no_login_or_change(database: Database) {
    // On PostgreSQL, another server provides the activation listener.
    let (vault, listener, replica) = match database {
        Database::Sqlite => {
            let (vault, listener) = ActivationListener::open_with(database, &["--activation-rate=0"]);
            (vault, listener, None)
        }
        Database::Postgres => {
            let (vault, address) = (Vault::start(database), free_address());
            let mut command = vault.serve_command();
            command.arg(format!("--activation-listen={address}")).arg("--activation-rate=0");
            let replica = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
            (vault, ActivationListener { address }, Some(replica))
        }
    };
    let other = replica.as_ref().map_or_else(|| vault.client(), Server::client);
    let admin = vault.admin_session();
    admin.save(&small("imports/0", 0));
    let people: Vec<_> = (0..3).map(|_| vault.account("Acme", "editor")).collect();
    let integration = Integration::make(&vault, "nightly", &["imports/*"]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (over, vault, admin, other, integration) = (&over, &vault, &admin, &other, &integration);
        let people: Vec<_> = people
            .iter()
            .map(|person| {
                scope.spawn(move || {
                    let session = person.log_in(other);
                    assert!(session.is_live());
                    let codes = session.post_account("recovery-codes", &person.proof()).expect(200).json();
                    assert_eq!(codes["recovery_codes"].as_array().unwrap().len(), 10);
                })
            })
            .collect();
        let changes = scope.spawn(move || {
            let mut round = 0;
            while !over.load(Ordering::Acquire) || round < 3 {
                for client in [&vault.client(), other] {
                    round += 1;
                    let admin = admin.on(client);
                    let body = json!({"name": format!("made-{round}"), "namespaces": ["imports/*"]});
                    let created = admin.post("/integrations", &body).expect(201).json();
                    let path = format!("/v1/integrations/{}", text(&created["id"]));
                    admin.call("POST", &format!("{path}/rotate")).send().expect(200);
                    admin.call("DELETE", &path).send().expect(204);
                    let invited = admin.invite(&format!("round-{round}@example.com"), "viewer").expect(201).json();
                    client.enrol(text(&invited["enrolment_code"]), PASSWORD).expect(200);
                }
            }
        });
        let jobs = scope.spawn(move || {
            let client = listener.client();
            while !over.load(Ordering::Acquire) {
                let answer = integration.activate(&client, "imports/0").expect(201).json();
                let path = format!("/v1/activations/{}", text(&answer["id"]));
                client.request("DELETE", &path).bearer(&integration.token).send();
            }
        });
        for _ in 0..3 {
            let rotators: Vec<_> = (0..2).map(|_| scope.spawn(|| rotate(vault).done())).collect();
            rotators.into_iter().for_each(|rotator| _ = rotator.join().unwrap());
        }
        over.store(true, Ordering::Release);
        people.into_iter().for_each(|person| person.join().unwrap());
        changes.join().unwrap();
        jobs.join().unwrap();
    });
    rotate(&vault).done();
    assert_eq!(status(&vault).1, Vec::<Value>::new());
    let held = Held::issue_credentials(&vault, &admin, 0);
    held.assert_works(&other, &listener.client(), &admin);
    let account = vault.account("Acme", "viewer");
    within_one_step(|step| {
        let login = vault.account("Acme", "viewer");
        other.log_in(&login.login(&login.authenticator.code(step))).status
    });
    account.log_in(&other);
}
