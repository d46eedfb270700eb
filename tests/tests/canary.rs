//! No secret is readable anywhere: not in files, logs, responses or metrics, in any encoding (A72, A95).

use crate::upgrade::database_key;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use vault_testkit::postgres::{Cluster, Options};
use vault_testkit::stores::TestProxy;
use vault_tests::binary::Run;
use vault_tests::canary::{Canaries, forms};
use vault_tests::integration::write_private;
use vault_tests::process::free_address;
use vault_tests::providers::{Keyless, KeylessType, published, signing_key};
use vault_tests::snapshot::files;
use vault_tests::sql::Sql;
use vault_tests::{
    Account, ActivationListener, Answer, Client, Database, Integration, Session, Vault, on_both_databases,
};

on_both_databases! {
    a72_no_secret_remains_anywhere,
    a72_no_token_or_key_of_keyless_access_is_left_anywhere,
}

/// Unique secrets, one for each location where a secret can be given.
struct Secrets {
    password: String,
    wrong_password: String,
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    external_id: String,
    client_secret: String,
    account_key: String,
    private_key: String,
    link: String,
    header: String,
    unknown_member: String,
    proxy_password: String,
}

impl Secrets {
    /// Made of letters that no escaping changes, and of characters that some escaping changes.
    fn new(mark: &str) -> Self {
        let of = |name: &str| format!("Cn{mark}/{name}+Zq7~&=<Vx");
        Self {
            password: format!("{} \u{e4}\"\\", of("password")),
            wrong_password: of("wrong-password"),
            access_key_id: of("access-key-id"),
            secret_access_key: of("secret-access-key"),
            session_token: of("session-token"),
            external_id: of("external-id"),
            client_secret: of("client-secret"),
            // Valid Base64 in whole groups of four.
            account_key: format!("Cn{:/<6}/accountkey+Zq7Vx0123456789abcdefghijklmnopqrs", &mark[..mark.len().min(6)]),
            private_key: format!("Cn{mark}/privatekey+Zq7Vx0123456789abcdefghijklmnopqrstuvwxyz"),
            link: format!("Cn{mark}-link-signature-Zq7Vx"),
            header: of("header"),
            unknown_member: of("unknown-member"),
            proxy_password: of("proxy-password"),
        }
    }

    fn bodies(&self) -> [Value; 4] {
        [
            json!({"type": "s3", "namespace": "canary/s3", "data": {
                "access_key_id": self.access_key_id, "secret_access_key": self.secret_access_key, "bucket": "canary",
                "session_token": self.session_token, "external_id": self.external_id,
            }}),
            json!({"type": "azure_identity", "namespace": "canary/azure", "data": {
                "tenant_id": "contoso.onmicrosoft.com", "client_id": "8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a", "client_secret": self.client_secret,
                "connection_string": format!("AccountName=canary;AccountKey={};EndpointSuffix=core.windows.net", self.account_key),
            }}),
            json!({"type": "gcs", "namespace": "canary/gcs", "data": {"bucket": "canary", "service_account_key": {
                "type": "service_account", "project_id": "canary", "private_key_id": "0123456789abcdef0123",
                "private_key": format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", self.private_key),
                "client_email": "reader@canary.iam.gserviceaccount.com",
            }}}),
            json!({"type": "direct-link", "namespace": "canary/link", "data": {
                "url": format!("https://store.example.com/file?sig={}", self.link), "headers": {"x-key": self.header},
            }}),
        ]
    }

    fn canaries(&self) -> Canaries {
        let mut canaries = Canaries::new();
        for (name, secret) in [
            ("the password", &self.password),
            ("the wrong password", &self.wrong_password),
            ("the access key's id", &self.access_key_id),
            ("the secret access key", &self.secret_access_key),
            ("the session token", &self.session_token),
            ("the external id", &self.external_id),
            ("the client secret", &self.client_secret),
            ("the account key", &self.account_key),
            ("the private key", &self.private_key),
            ("the link's signature", &self.link),
            ("the header", &self.header),
            ("the unknown member", &self.unknown_member),
            ("the password for the proxy", &self.proxy_password),
        ] {
            canaries.add(name, secret);
        }
        canaries
    }
}

/// Sends all kinds of successful and failing requests that contain secrets.
fn use_all(session: &Session, account: &Account, secrets: &Secrets) -> Vec<Answer> {
    let client = session.client();
    let mut answers = Vec::new();
    let read = |text: &str| session.post("/organization-vault/read", &json!({"text": text}));
    for body in secrets.bodies() {
        read(&body["data"].to_string()).expect(200); // returns the secrets to their sender
        answers.push(read(&format!("AWS_ACCESS_KEY_ID=k\nendpoint=/{}", body["data"])).expect(200));
        let saved = session.try_save(&body).expect(201);
        let id = saved.json()["id"].as_str().unwrap().to_owned();
        answers.extend([saved, session.show(&id)]);
        answers.extend([
            session.replace(&id, &body, true),
            session.promote(&id, 2),
            session.replace(&id, &body, false),
        ]);
        answers.push(session.get(&format!("/organization-vault/{id}/versions")));
        answers.push(session.replace(
            &id,
            &json!({"data": {"secret": body["data"], "secrets": body.to_string()}}),
            false,
        ));
        // Each member with a wrong type, unknown or repeated. The body with another type, truncated or repeated.
        for name in body["data"].as_object().unwrap().keys() {
            let mut flawed = body.clone();
            flawed["data"][name] = json!([body["data"][name]]);
            answers.push(session.try_save(&flawed));
            let mut flawed = body.clone();
            let value = flawed["data"].as_object_mut().unwrap().remove(name).unwrap();
            flawed["data"][format!("{name}_")] = value;
            answers.push(session.try_save(&flawed));
        }
        let mut other = body.clone();
        other["type"] = json!(if body["type"] == "s3" { "gcs" } else { "s3" });
        answers.push(session.try_save(&other));
        let text = body.to_string();
        for broken in [
            &text[..text.len() - 3],
            &format!("{text}{text}"),
            &format!("[{text}]"),
            &text.replace("\"data\":", "\"data\":0,\"data\":"),
        ] {
            answers.push(session.call("PATCH", "/v1/organization-vault").json_text(broken).send());
        }
        answers.push(client.request("PATCH", "/v1/organization-vault").json(&body).send());
        answers.push(
            session.call("PATCH", "/v1/organization-vault").json_text(format!("{text}{}", " ".repeat(65_536))).send(),
        );
        answers.push(session.call("PATCH", "/v1/organization-vault").body(text).send());
    }
    let escaped = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    for secret in [&secrets.unknown_member, &secrets.password] {
        let mut flawed = secrets.bodies()[0].clone();
        flawed["data"][secret] = json!(1);
        answers.push(session.try_save(&flawed));
        flawed[secret] = json!(1);
        answers.push(session.try_save(&flawed));
        for target in
            "organization-vault?namespace= organization-vault?cursor= organization-vault? organization-vault/ \
            nonsense/ login?password="
                .split(' ')
        {
            answers.push(session.get(&format!("/{target}{}", escaped(secret))));
        }
        answers.push(session.remove(&format!("/organization-vault/{}", escaped(secret))));
        answers.push(client.get("/v1/organization-vault").bearer(&escaped(secret)).send());
    }
    for body in [&secrets.bodies()[3], &secrets.bodies()[0]] {
        answers.push(session.call("PATCH", "/v1/organization-vault").header("idempotency-key", "a").json(body).send());
    }
    for (member, value) in [
        ("password", &secrets.wrong_password),
        ("passcode", &secrets.unknown_member),
        ("email", &secrets.unknown_member),
        ("extra", &secrets.unknown_member),
    ] {
        let mut login = account.login("");
        login[member] = json!(value);
        answers.push(client.log_in(&login));
        login[member] = json!([value]);
        answers.push(client.log_in(&login));
    }
    answers.push(session.try_list());
    answers
}

/// Activates every credential, then sends failing requests. Returns the responses that must not contain secrets.
fn use_activation_listener(integration: &Integration, listener: &Client, public: &Client) -> Vec<Answer> {
    let token = &integration.token;
    let mut answers = vec![
        integration.activate(listener, "elsewhere"),
        integration.activate(listener, "canary/empty"),
        integration.activate_with(listener, &json!({"namespace": "canary/s3", "vend": token})),
        integration.activate_with(listener, &json!({"namespace": token})),
        integration.activate_with(listener, &json!({"namespace": "canary/s3", "purpose": [token]})),
        integration.activate(public, "canary/s3"),
        public.get("/v1/organization-vault").bearer(token).send(),
        listener.get(&format!("/v1/activations?token={token}")).send(),
        listener.get("/v1/activations").bearer(&token.to_uppercase()).send(),
    ];
    for namespace in ["canary/s3", "canary/azure", "canary/gcs", "canary/link"] {
        let opened = integration.activate(listener, namespace).expect(201).json();
        assert!(!opened["credentials"].as_array().unwrap().is_empty());
    }
    // Neither connects to a provider: one has no role, the other is a blocked address. The proxy refuses the link.
    answers.push(integration.activate_with(listener, &json!({"namespace": "canary/s3", "vend": "short"})));
    for namespace in ["canary/inside", "canary/link"] {
        answers.push(integration.check(listener, namespace, &["list", "read", "write"]).expect(200));
    }
    answers.push(listener.get("/v1/activations").bearer(token).send().expect(200));
    answers
}

fn a72_no_secret_remains_anywhere(database: Database) {
    // A separate PostgreSQL server that logs every statement with its parameters.
    let options = Options { settings: vec!["log_statement=all".into()], ..Options::default() };
    let cluster = (database == Database::Postgres).then(|| Cluster::start(options));
    let listener = ActivationListener { address: free_address() };
    let listen = format!("--activation-listen={}", listener.address);
    let secrets = Secrets::new(&format!("{:x}", std::process::id()));
    let proxy = TestProxy::start();
    proxy.require("Basic other");
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.toml");
    write_private(&config, &format!("egress-proxy-credentials = \"vault:{}\"\n", secrets.proxy_password));
    let (proxy_url, config) = (proxy.url(), config.to_str().unwrap());
    let flags = [
        &["--log-level", "debug", &listen, "--allow-egress", "store.example.com"][..],
        &["--egress-proxy", &proxy_url, "--config", config],
    ]
    .concat();
    let mut vault = cluster
        .as_ref()
        .map_or_else(|| Vault::start_with(database, &flags), |cluster| Vault::start_on(cluster, &flags));
    let mut canaries = secrets.canaries();
    let account = vault.account_of("canary@example.com", &secrets.password);
    let seed = base32(&account.secret);
    canaries.add("the passcode's seed", &seed);
    canaries.add("the passcode's seed as Base32", &account.secret);
    let code = account.recovery_code();
    let session = Session::new(&vault.client(), &vault.client().log_in(&account.login(&code)).expect(200));
    let unused = account.recovery_code();
    for (name, code) in [("a used recovery code", &code), ("an unused recovery code", &unused)] {
        canaries.add(name, code);
        canaries.add(&format!("{name} without hyphens"), code.replace('-', ""));
    }
    canaries.add("the token", &session.token);
    let payload = session.token.split('.').nth(2).unwrap();
    canaries.add("the token's payload", payload);
    let root_key = fs::read(vault.data_dir().join("root.key")).unwrap();
    canaries.add("the root key", &root_key);
    if database == Database::Sqlite {
        canaries.add("the database key", hex::decode(database_key(&vault)).unwrap());
    }

    for answer in use_all(&session, &account, &secrets) {
        assert!(answer.status != 500, "{}", answer.text());
        check_answer(&canaries, &answer);
    }
    let mut inside = secrets.bodies()[0].clone();
    inside["namespace"] = json!("canary/inside");
    inside["data"]["endpoint"] = json!("http://127.0.0.1:1");
    session.try_save(&inside).expect(201);
    let integration = Integration::make(&vault, "canary", &["canary/*"]);
    canaries.add("the integration's token", &integration.token);
    for answer in use_activation_listener(&integration, &listener.client(), &vault.client()) {
        check_answer(&canaries, &answer);
    }
    assert!(proxy.tunnels().iter().any(|tunnel| tunnel.fields.contains_key("proxy-authorization")));
    let metrics = vault.server().admin_client().get("/metrics").send().expect(200);
    canaries.assert_absent("/metrics", &metrics.body);
    // While it runs, after a crash, and after a graceful stop.
    check_files(&canaries, &vault);
    vault.kill_and_restart();
    check_files(&canaries, &vault);
    session.on(&vault.client()).log_out().expect(204);
    vault.stop();
    check_files(&canaries, &vault);
    let log = vault.log();
    assert!(log.len() > 1000, "the log is there to be searched");
    canaries.assert_absent("the log", log.as_bytes());
}

/// Adds what a provider received or returned. `never` is returned to no client, `issued` only to the job.
fn add_secrets(request: &Value, never: &mut Canaries, issued: &mut Canaries) {
    for name in ["WebIdentityToken", "client_assertion", "subject_token"] {
        if let Some((_, signature)) = request["form"][name].as_str().and_then(|token| token.rsplit_once('.')) {
            never.add(name, signature);
        }
    }
    let text = request["response"].as_str().unwrap();
    let response: Value = serde_json::from_str(text).unwrap_or_default();
    for name in ["access_token", "accessToken"] {
        if let Some(token) = response[name].as_str() {
            let canaries = if token.starts_with("narrow.") { &mut *issued } else { &mut *never };
            canaries.add(name, token);
        }
    }
    let element = |name: &str| Some(text.split_once(&format!("<{name}>"))?.1.split_once("</")?.0);
    if let Some(key) = element("Value") {
        never.add("the delegation key", key);
    }
    for name in ["SecretAccessKey", "SessionToken"] {
        if let Some(secret) = element(name) {
            issued.add(name, secret);
        }
    }
}

fn a72_no_token_or_key_of_keyless_access_is_left_anywhere(database: Database) {
    let options = Options { settings: vec!["log_statement=all".into()], ..Options::default() };
    let cluster = (database == Database::Postgres).then(|| Cluster::start(options));
    let vault = cluster.as_ref().map_or_else(|| Vault::init(database), |cluster| Vault::absent_on(cluster).set_up());
    let mut keyless = Keyless::start(vault, &["--log-level", "debug"]);
    let (mut never, mut issued) = (Canaries::new(), Canaries::new());
    for name in ["accepted/2048", "accepted/3072"] {
        let lines: Vec<_> = signing_key(name).lines().filter(|line| !line.starts_with('-')).collect();
        let der = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, lines.concat()).unwrap();
        // Behind the modulus and the exponent of the public key.
        let private = &der[der.len() / 2..];
        for chunk in private.chunks_exact(48) {
            never.add(&format!("the private key {name}"), chunk);
        }
        for line in &lines[lines.len() / 2..lines.len() - 1] {
            never.add(&format!("a line of {name}"), line);
        }
    }

    let listener = keyless.listener.client();
    let session = keyless.vault.admin_session();
    let integration = Integration::make(&keyless.vault, "canary", &["canary/*"]);
    let (mut answers, mut activations) = (Vec::new(), Vec::new());
    for kind in KeylessType::ALL {
        let namespace = format!("canary/{}", kind.provider);
        let saved = session.save(&json!({"type": kind.name, "namespace": namespace, "data": kind.data("nightly")}));
        let trust = session.get(&format!("/organization-vault/{saved}/trust")).expect(200);
        answers.push(integration.activate(&listener, &namespace).expect(409));
        answers.push(integration.check(&listener, &namespace, &["list"]).expect(200));
        keyless.providers.trust(&kind.identity("nightly"), trust.json()["subject"].as_str().unwrap());
        for vend in ["raw", "short"] {
            let body = json!({"namespace": namespace, "vend": vend});
            let activated = integration.activate_with(&listener, &body).expect(201);
            if let Some(signature) = activated.json()["credentials"][0]["data"]["sas_token"].as_str() {
                issued.add("the signature", signature.rsplit_once("sig=").unwrap().1);
            }
            activations.push(activated);
        }
        answers.push(integration.check(&listener, &namespace, &["list"]).expect(200));
        answers.extend([trust, session.show(&saved)]);
    }
    keyless.add_key("accepted/3072");
    published(&keyless.vault.client(), 2);
    let outputs = [
        keyless.federation(&["status"]).done().stdout,
        keyless.federation(&["key", "promote", "--now"]).done().stdout,
        keyless.vault.run(&["audit", "list", "--json"]).done().stdout,
        keyless.vault.server().admin_client().get("/metrics").send().expect(200).text(),
    ];
    keyless.providers.expire_key_sets();
    activations.push(integration.activate(&listener, "canary/s3").expect(201));
    answers.push(listener.get("/v1/activations").bearer(&integration.token).send().expect(200));
    let requests = keyless.providers.requests();
    assert!(requests.len() > 20, "{}", requests.len());
    for request in &requests {
        add_secrets(request, &mut never, &mut issued);
    }
    for activated in &activations {
        check_answer(&never, activated);
    }
    // The dump is readable, and the backup encrypted.
    let dump = match database {
        Database::Sqlite => {
            let backup = keyless.vault.scratch("backup");
            keyless.vault.run(&["backup", backup.to_str().unwrap()]).done();
            fs::read(backup).unwrap()
        }
        Database::Postgres => {
            Run::of(Command::new("pg_dump").args(["--dbname", keyless.vault.url()])).done().stdout.into_bytes()
        }
    };
    for canaries in [&never, &issued] {
        for answer in &answers {
            check_answer(canaries, answer);
        }
        for output in &outputs {
            canaries.assert_absent("an output", output.as_bytes());
        }
        canaries.assert_absent("a dump", &dump);
        check_files(canaries, &keyless.vault);
    }
    keyless.vault.stop();
    let log = keyless.vault.log();
    for canaries in [&never, &issued] {
        check_files(canaries, &keyless.vault);
        canaries.assert_absent("the log", log.as_bytes());
    }
    assert!(log.len() > 1000, "the log is there to be searched");
}

#[track_caller]
fn check_answer(canaries: &Canaries, answer: &Answer) {
    canaries.assert_absent("an answer", &answer.body);
    canaries.assert_absent("an answer's head", format!("{:?}", answer.headers).as_bytes());
}

fn check_files(canaries: &Canaries, vault: &Vault) {
    let mut searched = 0;
    let mut search = |directory: &Path| {
        for file in files(directory).into_iter().filter(|file| !file.ends_with("root.key")) {
            let Ok(content) = fs::read(&file) else { continue }; // a socket, or removed in the meantime
            searched += content.len();
            canaries.assert_absent(&file.display().to_string(), &content);
        }
    };
    search(&vault.data_dir());
    if vault.database() == Database::Postgres {
        let sql = Sql::of(vault);
        sql.run("CHECKPOINT");
        // The parent directory also contains the server's log.
        search(Path::new(&sql.value("SHOW data_directory")).parent().unwrap());
    }
    assert!(searched > 100_000, "only {searched} bytes were searched");
}

fn base32(text: &str) -> Vec<u8> {
    let values = text.bytes().map(|byte| u64::from(if byte.is_ascii_digit() { byte - b'2' + 26 } else { byte - b'A' }));
    let values: Vec<u64> = values.collect();
    values
        .chunks_exact(8)
        .flat_map(|eight| eight.iter().fold(0, |bits, value| bits << 5 | value).to_be_bytes()[3..].to_vec())
        .collect()
}

/// The search itself: a planted canary is found in every encoding and at every position.
#[test]
fn search_finds_planted_secrets() {
    let secrets = Secrets::new("planted");
    let canaries = secrets.canaries();
    assert!(canaries.forms() > 12 * 12, "{}", canaries.forms());
    for secret in [&secrets.password, &secrets.account_key, &secrets.link] {
        for (form, bytes) in forms(secret.as_bytes()) {
            for before in 0..4 {
                let text = [&vec![b'.'; 1000 + before], &bytes[..], b"...."].concat();
                assert!(!canaries.find(&text).is_empty(), "{form} is not found");
            }
        }
    }
    // Base64 of a text that contains the secret at any alignment.
    for before in 0..7 {
        let text = format!("{}{}{}", "a".repeat(before), secrets.session_token, "b".repeat(7));
        assert!(
            !canaries
                .find(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text).as_bytes())
                .is_empty()
        );
    }
    assert_eq!(canaries.find(b"nothing of the kind"), [] as [&str; 0]);
    assert_eq!(base32("GEZDGNBVGY3TQOJQ"), b"1234567890");
}

/// The search includes the database's files: a secret in plain text would be found.
#[test]
fn search_covers_rows() {
    let cluster = Cluster::start(Options::default());
    let vault = Vault::start_on(&cluster, &[]);
    let mut canaries = Canaries::new();
    canaries.add("a planted secret", "Cn-planted-in-a-row-0123456789");
    Sql::of(&vault).run("CREATE TABLE planted AS SELECT 'Cn-planted-in-a-row-0123456789' AS secret");
    let search = std::panic::AssertUnwindSafe(|| check_files(&canaries, &vault));
    assert!(std::panic::catch_unwind(search).is_err(), "a secret in a row is not found");
}
