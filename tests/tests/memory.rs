//! No secret remains in the server's memory after its request (A72).

use rustix::process::geteuid;
use serde_json::json;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use vault_tests::canary::Canaries;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::skip;
use vault_tests::{Account, ActivationListener, Database, Integration, Session, Vault};

/// Number of rounds of other requests, which reuse the memory of the secrets: stacks, buffers and argon2's memory.
const ROUNDS: usize = 24;

/// Searches all writable memory of the process. Returns the number of bytes and the found secrets.
fn search(server: &Server, canaries: &Canaries) -> (usize, Vec<String>) {
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.id())).unwrap();
    let memory = File::open(format!("/proc/{}/mem", server.id())).unwrap();
    let (mut searched, mut found) = (0, Vec::new());
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next().unwrap(), fields.next().unwrap());
        if !rights.starts_with("rw") {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let (start, end) = (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap());
        let mut region = vec![0; usize::try_from(end - start).unwrap()];
        // A region may have been unmapped.
        let Ok(read) = memory.read_at(&mut region, start) else { continue };
        searched += read;
        let place = line.split_whitespace().nth(5).unwrap_or("anonymous");
        found.extend(canaries.find(&region[..read]).into_iter().map(|name| format!("{name} in {place} {range}")));
    }
    (searched, found)
}

#[test]
fn a72_no_secret_stays_in_memory() {
    if !geteuid().is_root() {
        skip!("only root can read the memory of a process that is closed to debuggers");
    }
    let (vault, listener) = ActivationListener::open(Database::Sqlite);
    let mark = format!("{:x}", std::process::id());
    let of = |name: &str| format!("Cn{mark}/{name}+Zq7~&=<Vx0123456789");
    let mut canaries = Canaries::new();
    let secrets = [
        "password",
        "wrong password",
        "secret access key",
        "session token",
        "next secret",
        "compared secret",
        "pasted secret",
    ];
    for name in secrets {
        canaries.add(name, of(name));
    }

    let account: Account = vault.account_of("canary@example.com", &of("password"));
    let code = account.recovery_code();
    canaries.add("a recovery code", &code);
    {
        let client = vault.client();
        let wrong = json!({"email": account.email, "password": of("wrong password"), "passcode": "000000"});
        client.log_in(&wrong).problem("invalid-login");
        let session = Session::new(&client, &client.log_in(&account.login(&code)).expect(200));
        canaries.add("the access token", &session.token);
        let mut body = small("canary", 1);
        body["data"]["secret_access_key"] = of("secret access key").into();
        body["data"]["session_token"] = of("session token").into();
        let id = session.save(&body);
        body["data"]["secret_access_key"] = of("next secret").into();
        session.replace(&id, &body, false).expect(201);
        let opened = {
            let integration = Integration::make(&vault, "canary", &["canary"]);
            canaries.add("the integration's token", &integration.token);
            integration.activate(&listener.client(), "canary").expect(201).text()
        };
        assert!(opened.contains("session_token"), "{opened}");
        body["data"]["secret_access_key"] = of("compared secret").into();
        session.matches(&id, &body).expect(200);
        let pasted = ["AWS_SECRET_ACCESS_KEY", "password"].map(|name| format!("{name}='{}'\n", of("pasted secret")));
        for text in [pasted.concat(), json!({"a": body["data"], "b": {"secret_key": of("pasted secret")}}).to_string()]
        {
            session.post("/organization-vault/read", &json!({"text": text})).expect(200);
        }
        session.log_out().expect(204);
    }

    // Other users connect with new connections.
    let others: Vec<Account> = (0..3).map(|_| vault.account("Acme", "editor")).collect();
    for round in 0..ROUNDS {
        let client = vault.client();
        let session = others[round % others.len()].log_in(&client);
        let id = session.save(&small("others", round));
        session.replace(&id, &small("others", round + ROUNDS), false).expect(201);
        session.try_list().expect(200);
        listener.client().get("/v1/activations").bearer("ovi_none").send();
    }
    let (searched, found) = search(vault.server(), &canaries);
    assert!(searched > 10_000_000, "only {searched} bytes were searched");
    assert!(found.is_empty(), "after quiet, {searched} bytes hold: {found:#?}");
}

/// The search itself: a text that is in memory is found.
#[test]
fn search_covers_memory() {
    if !geteuid().is_root() {
        skip!("only root can read the memory of a process that is closed to debuggers");
    }
    let vault = Vault::start(Database::Sqlite);
    let mut canaries = Canaries::new();
    // The process keeps this path while the vault is open.
    canaries.add("the database's path", vault.data_dir().join("orgvault.db").to_str().unwrap());
    let (_, found) = search(vault.server(), &canaries);
    assert!(!found.is_empty());
}
