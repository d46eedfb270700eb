//! Three replicas with activation listeners on one database: a change that one has acknowledged is in effect on all.

use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use vault_tests::issuer::{SigningKey, audience, now};
use vault_tests::process::{Server, free_address};
use vault_tests::samples::small;
use vault_tests::{ActivationListener, Client, Database, Integration, Session, Vault};

const REPLICAS: usize = 3;
/// Number of concurrent clients of each replica.
const PROGRAMS: usize = 3;
/// Number of activations that each client attempts after the command was acknowledged.
const TRIES: usize = 3;

/// A vault with three replicas that have activation listeners.
struct Replicas {
    vault: Vault,
    session: Session,
    activation_listeners: Vec<ActivationListener>,
    _servers: Vec<Server>,
}

impl Replicas {
    fn start(flags: &[&str]) -> Self {
        let mut vault = Vault::init(Database::Postgres);
        vault.serve_with(&[&["--activation-rate=0"], flags].concat());
        let activation_listeners: Vec<ActivationListener> =
            (0..REPLICAS).map(|_| ActivationListener { address: free_address() }).collect();
        let servers = activation_listeners.iter().enumerate().map(|(number, listener)| {
            let mut command = vault.serve_command();
            command.arg(format!("--activation-listen={}", listener.address));
            Server::start(command, &vault.scratch(&format!("out-{number}")), &vault.scratch("log"))
        });
        let servers = servers.collect();
        let session = vault.admin_session();
        session.save(&small("imports", 1));
        Self { vault, session, activation_listeners, _servers: servers }
    }

    /// Creates an integration without a token that trusts a workload. Its identity token replaces the token. Also
    /// returns the trust's ID.
    fn workload(&self, name: &str) -> (Integration, String) {
        let (vault, key, file) = (&self.vault, SigningKey::new("1"), self.vault.scratch(name));
        std::fs::write(&file, json!({"keys": [key.public()]}).to_string()).unwrap();
        let issuer = format!("https://{name}.example");
        vault.run(&["issuer", "add", name, "--issuer", &issuer, "--jwks-file", file.to_str().unwrap()]).done();
        let trust = json!({"issuer": name, "claims": {"/sub": "job:etl/nightly"}}).to_string();
        let create = ["integration", "create", "--org", "Acme", "--name", name, "--namespace", "imports"];
        let mut created = vault.json(&[&create[..], &["--no-token", "--trust", &trust]].concat());
        let (aud, now) = (audience(created["id"].as_str().unwrap()), now());
        let claims = json!({"iss": issuer, "aud": aud, "sub": "job:etl/nightly", "iat": now, "exp": now + 3_000});
        created["token"] = key.sign(&claims).into();
        let id = created["trusts"][0]["id"].as_str().unwrap().to_owned();
        (Integration::of(vault, name, &created), id)
    }

    fn client(&self, number: usize) -> Client {
        self.activation_listeners[number % REPLICAS].client()
    }

    /// Activates continuously at every replica while `command` runs, and for a short time afterwards. Returns the codes of
    /// responses to requests that started after the command was acknowledged.
    fn race(&self, integration: &Integration, command: impl FnOnce()) -> Vec<String> {
        let (acknowledged, working) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            let programs: Vec<_> = (0..REPLICAS * PROGRAMS)
                .map(|number| {
                    let (client, acknowledged, working) = (self.client(number), &acknowledged, &working);
                    scope.spawn(move || {
                        let (mut after, mut worked) = (Vec::new(), false);
                        while after.len() < TRIES {
                            let late = acknowledged.load(Ordering::SeqCst);
                            let answer = integration.activate(&client, "imports");
                            if answer.status == 201 && !worked {
                                worked = true;
                                working.fetch_add(1, Ordering::SeqCst);
                            }
                            if late {
                                let code = answer.json()["code"].as_str().unwrap_or("activated").to_owned();
                                // Earlier requests may have overloaded the database, so retry.
                                if code != "unavailable" {
                                    after.push(code);
                                }
                            }
                        }
                        after
                    })
                })
                .collect();
            while working.load(Ordering::SeqCst) < REPLICAS * PROGRAMS {
                assert!(programs.iter().all(|program| !program.is_finished()), "a program failed");
                thread::yield_now();
            }
            command();
            acknowledged.store(true, Ordering::SeqCst);
            programs.into_iter().flat_map(|program| program.join().unwrap()).collect()
        })
    }

    #[track_caller]
    fn none_succeeds(&self, name: &str, code: &str, command: impl FnOnce(&Integration)) {
        self.none_succeeds_by(Integration::make(&self.vault, name, &["imports"]), name, code, command);
    }

    #[track_caller]
    fn none_succeeds_by(&self, integration: Integration, name: &str, code: &str, command: impl FnOnce(&Integration)) {
        let after = self.race(&integration, || command(&integration));
        assert!(after.iter().all(|found| found == code), "{name}: {after:?}");
    }
}

#[test]
fn no_activation_succeeds_after_acknowledged_revocation() {
    let replicas = Replicas::start(&["--max-activations=1000000"]);
    let vault = &replicas.vault;
    replicas.none_succeeds("disabled", "invalid-token", |integration| {
        integration.administer(vault, "set", &["--state", "disabled"]).done();
    });
    replicas.none_succeeds("rotated", "invalid-token", |integration| {
        integration.administer(vault, "rotate", &["--overlap", "0"]).done();
    });
    replicas.none_succeeds("deleted", "invalid-token", |integration| {
        let path = format!("/v1/integrations/{}", integration.id);
        replicas.session.call("DELETE", &path).send().expect(204);
    });
    let (workload, trust) = replicas.workload("distrusted");
    replicas.none_succeeds_by(workload, "distrusted", "unknown-workload", |integration| {
        integration.administer(vault, "distrust", &["--trust", &trust]).done();
    });
    let (workload, _) = replicas.workload("orphaned");
    replicas.none_succeeds_by(workload, "orphaned", "unknown-workload", |_| {
        vault.run(&["issuer", "remove", "orphaned", "--force"]).done();
    });
    replicas.none_succeeds("frozen", "frozen", |_| {
        vault.run(&["namespace", "freeze", "imports", "--org", "Acme"]).done();
    });
    vault.run(&["namespace", "thaw", "imports", "--org", "Acme"]).done();
    replicas.none_succeeds("of a closed organization", "invalid-token", |_| {
        vault.run(&["org", "set", "--state", "disabled", "Acme"]).done();
    });
}
