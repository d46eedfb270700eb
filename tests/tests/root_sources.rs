//! Root keys that are not in a file of the data directory: systemd credentials, and keys in tokens or AWS KMS.

use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use vault_testkit::stores::{Moto, SoftHsm};
use vault_tests::binary::Run;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::{Database, Vault, on_both_databases};

on_both_databases! {
    vault_works_with_root_key_in_token,
    server_waits_for_unavailable_token,
    root_key_in_aws_kms_is_used_with_an_identity_token,
}

const ID: &str = "00112233445566778899aabbccddeeff";
/// Policy with the rights that the vault needs.
const KMS_RIGHTS: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["kms:Encrypt","kms:Decrypt"],"Resource":"*"}]}"#;
const OTHER: &str = "ffeeddccbbaa99887766554433221100";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn private(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn key(first: u8) -> [u8; 32] {
    std::array::from_fn(|n| first ^ (n as u8).wrapping_mul(97).rotate_left(3))
}

/// Runs a command with an environment variable, and with the necessary rights on PostgreSQL.
fn run(vault: &Vault, variable: (&str, &Path), arguments: &[&str]) -> Run {
    let mut command = vault_tests::binary::command();
    command.arg("--data-dir").arg(vault.data_dir());
    if vault.database() == Database::Postgres {
        command.args(["--database-url", vault.url()]);
    }
    Run::of(command.args(arguments).env(variable.0, variable.1))
}

/// Like `LoadCredential=`: a directory that only the service can enter, named in the environment.
#[test]
fn credential_of_systemd_is_the_root_key() {
    let vault = Vault::absent(Database::Sqlite);
    let credentials = vault.scratch("credentials");
    fs::create_dir(&credentials).unwrap();
    private(&credentials.join("root.key"), &key(1));
    let flag = "--root-key-source=credential:root.key";
    let variable = ("CREDENTIALS_DIRECTORY", &*credentials);
    let created = run(&vault, variable, &["init", flag, "--json"]).done().json();
    assert_eq!(created["root_key_file"], json!(text(&credentials.join("root.key"))));
    assert!(!vault.data_dir().join("root.key").exists());
    run(&vault, variable, &["org", "create", "Acme", flag]).done();
    let doctor = run(&vault, variable, &["doctor", flag]).stdout;
    assert!(doctor.contains("can be decrypted with root key"), "{doctor}");

    // Outside the service.
    let refused = vault.run(&["org", "list", flag]).misused().stderr;
    for expected in ["CREDENTIALS_DIRECTORY", "LoadCredential=root.key:", "--root-key-file"] {
        assert!(refused.contains(expected), "{refused}");
    }
    vault.run(&["org", "list", "--root-key-file", text(&credentials.join("root.key"))]).done();
    let refused = run(&vault, variable, &["org", "list", "--root-key-source=credential:other.key"]).refused().stderr;
    assert!(refused.contains("credentials/other.key not found"), "{refused}");
    // A missing credential is not created.
    let other = Vault::absent(Database::Sqlite);
    let refused = run(&other, variable, &["init", "--root-key-source=credential:other.key"]).refused().stderr;
    assert!(refused.contains("not found") && !credentials.join("other.key").exists(), "{refused}");
    run(&vault, variable, &["org", "list", flag, "--root-key-file=x"]).misused();
    run(&vault, variable, &["org", "list", "--root-key-source=credential:../root.key"]).misused();
    fs::set_permissions(credentials.join("root.key"), Permissions::from_mode(0o644)).unwrap();
    let refused = run(&vault, variable, &["org", "list", flag]).refused().stderr;
    assert!(refused.contains("other users can read"), "{refused}");
}

struct Token {
    hsm: SoftHsm,
    pin: PathBuf,
}

impl Token {
    fn of(vault: &Vault) -> Self {
        let hsm = SoftHsm::at(vault.scratch("softhsm"));
        hsm.create_token("vault");
        hsm.import_key("vault", "root", ID, &key(2));
        hsm.import_key("vault", "next", OTHER, &key(3));
        let pin = vault.scratch("pin");
        private(&pin, format!("{}\n", SoftHsm::PIN).as_bytes());
        Self { hsm, pin }
    }

    fn uri(&self, id: &str) -> String {
        SoftHsm::uri("vault", id, &self.pin)
    }

    fn flag(&self, id: &str) -> String {
        format!("--root-key-source={}", self.uri(id))
    }

    fn run(&self, vault: &Vault, arguments: &[&str]) -> Run {
        let (name, value) = self.hsm.variable();
        let run = run(vault, (name, &value), arguments);
        assert!(![&run.stdout, &run.stderr].iter().any(|output| output.contains(SoftHsm::PIN)), "{run:?}");
        run
    }

    fn with(&self, command: &mut Command) {
        let (name, value) = self.hsm.variable();
        command.env(name, value);
    }
}

fn vault_works_with_root_key_in_token(database: Database) {
    let vault = Vault::absent(database);
    let token = Token::of(&vault);
    let flag = token.flag(ID);
    let created = token.run(&vault, &["init", &flag, "--json"]).done().json();
    assert_eq!(created["root_key_source"], json!(token.uri(ID)));
    assert_eq!(created["root_key_file"], json!(null));
    token.run(&vault, &["org", "create", "Acme", &flag]).done();
    let account = ["account", "create", "--org", "Acme", "--email", "a@example.com", "--role", "admin", "--json"];
    let account = token.run(&vault, &[&account[..], &[&flag]].concat()).done().json();
    let account = vault_tests::Account::new(&account, None);

    for round in 0..2 {
        let mut command = vault_tests::binary::command();
        command.arg("--data-dir").arg(vault.data_dir()).args(["serve", &flag]);
        if database == Database::Postgres {
            command.args(["--database-url", vault.url()]);
        }
        token.with(&mut command);
        let server = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
        let session = account.log_in(&server.client());
        let id = session.save(&small("imports/nightly", round));
        session.show(&id).expect(200);
        // The token may be unavailable while the server runs.
        fs::rename(token.hsm.tokens(), vault.scratch("away")).unwrap();
        session.save(&small("imports/other", round));
        fs::rename(vault.scratch("away"), token.hsm.tokens()).unwrap();
        assert_eq!(server.stop(), Some(0), "{}", vault.log());
    }
    assert!(!vault.log().contains(SoftHsm::PIN));

    if database == Database::Sqlite {
        let backup = vault.scratch("one.backup");
        token.run(&vault, &["backup", text(&backup), &flag]).done();
        let there = vault.scratch("there");
        token.run(&vault, &["org", "list", &flag]).done();
        let mut restore = vault_tests::binary::command();
        restore.args(["restore", text(&backup), "--data-dir", text(&there), &flag]);
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, Permissions::from_mode(0o700)).unwrap();
        token.with(&mut restore);
        Run::of(&mut restore).done();
    }

    for (wrong, expected) in [
        (token.flag(OTHER), "needs root key"),
        (token.flag("0000000000000000"), "needs root key"),
        (flag.replace("token=vault", "token=other"), "no token matches pkcs11:token=other"),
        (flag.replace("libsofthsm2.so", "nothing.so"), "cannot be read"),
        (flag.replace("/pin", "/no-pin"), "no-pin not found"),
    ] {
        let refused = token.run(&vault, &["org", "list", &wrong]).refused().stderr;
        assert!(refused.contains(expected), "{refused}");
    }
    private(&token.pin, b"0000");
    let refused = token.run(&vault, &["org", "list", &flag]).refused().stderr;
    assert!(refused.contains("rejects the PIN (it is wrong)"), "{refused}");
    fs::set_permissions(&token.pin, Permissions::from_mode(0o644)).unwrap();
    let refused = token.run(&vault, &["org", "list", &flag]).refused().stderr;
    assert!(refused.contains("other users can read"), "{refused}");
}

#[test]
fn root_key_is_moved_into_token_and_back() {
    let vault = Vault::init(Database::Sqlite);
    let token = Token::of(&vault);
    vault.run(&["org", "create", "Acme"]).done();
    let old = vault.json(&["key", "status"])["root_key"].clone();
    let new_flag = format!("--new-root-key-source={}", token.uri(ID));
    let printed = token.run(&vault, &["key", "rotate", "--root", &new_flag]).done().stdout;
    assert!(printed.contains(&token.flag(ID)), "{printed}");
    vault.run(&["org", "list"]).refused();
    token.run(&vault, &["org", "list", &token.flag(ID)]).done();
    // From one key of the token to another, and back to the first file.
    let next = format!("--new-root-key-source={}", token.uri(OTHER));
    token.run(&vault, &["key", "rotate", "--root", &token.flag(ID), &next]).done();
    let file = vault.data_dir().join("root.key");
    token.run(&vault, &["key", "rotate", "--root", &token.flag(OTHER), "--new-root-key-file", text(&file)]).done();
    assert_eq!(vault.json(&["key", "status"])["root_key"], old);
    assert!(vault.run(&["org", "list"]).done().stdout.contains("Acme"));
}

/// Polls until `/readyz` responds with this status.
#[track_caller]
fn wait_for(server: &mut Server, client: &vault_tests::Client, status: u16) -> String {
    let began = Instant::now();
    loop {
        assert!(server.is_alive() && began.elapsed() < Duration::from_secs(60), "no {status}");
        if let Ok(answer) = client.get("/readyz").try_send()
            && answer.status == status
        {
            return answer.text();
        }
        std::thread::sleep(Duration::from_millis(20)); // polling interval
    }
}

fn server_waits_for_unavailable_token(database: Database) {
    let vault = Vault::absent(database);
    let token = Token::of(&vault);
    let flag = token.flag(ID);
    token.run(&vault, &["init", &flag]).done();
    token.run(&vault, &["org", "create", "Acme", &flag]).done();
    let account = ["account", "create", "--org", "Acme", "--email", "a@example.com", "--role", "admin", "--json"];
    let account = token.run(&vault, &[&account[..], &[&flag]].concat()).done().json();
    let account = vault_tests::Account::new(&account, None);
    let away = vault.scratch("away");
    let take_away = || {
        fs::rename(token.hsm.tokens(), &away).unwrap();
        fs::create_dir(token.hsm.tokens()).unwrap();
    };
    let bring_back = || {
        fs::remove_dir(token.hsm.tokens()).unwrap();
        fs::rename(&away, token.hsm.tokens()).unwrap();
    };
    let serve = |socket: &str| {
        let mut command = vault_tests::binary::command();
        command.arg("--data-dir").arg(vault.data_dir()).args(["serve", &flag]);
        command.arg(format!("--activation-listen=unix:{}", vault.scratch(socket).display()));
        if database == Database::Postgres {
            command.args(["--database-url", vault.url()]);
        }
        token.with(&mut command);
        Server::spawn(command, &vault.scratch("output"), &vault.scratch("log"))
    };

    take_away();
    let mut server = serve("first");
    let (client, admin) = (server.client(), server.admin_client());
    let why = wait_for(&mut server, &admin, 503);
    assert!(why.contains("no token matches"), "{why}");
    let output = wait_for(&mut server, &client, 503);
    assert!(!output.contains("token"), "the cause is not disclosed to the public: {output}");
    client.get("/livez").send().expect(200);
    admin.get("/livez").send().expect(200);
    let refused = client.get("/v1/organization-vault").send().expect(503);
    assert!(refused.header("retry-after").is_some(), "{}", refused.text());
    assert!(vault.scratch("first").exists(), "the activation listener answers too");
    bring_back();
    wait_for(&mut server, &client, 200);
    wait_for(&mut server, &admin, 200);
    let session = account.log_in(&client);
    session.save(&small("imports/nightly", 1));
    assert!(client.get("/v1/organization-vault").send().status == 401);
    assert_eq!(server.stop(), Some(0), "{}", vault.log());

    // The server can be stopped while it waits, and the key that becomes available must be the right one.
    take_away();
    let mut server = serve("second");
    let client = server.client();
    wait_for(&mut server, &client, 503);
    assert_eq!(server.stop(), Some(0), "{}", vault.log());
    let mut server = serve("third");
    let client = server.client();
    wait_for(&mut server, &client, 503);
    token.hsm.create_token("vault");
    token.hsm.import_key("vault", "root", ID, &key(9));
    let began = Instant::now();
    while server.is_alive() {
        assert!(began.elapsed() < Duration::from_secs(90), "{}", vault.log());
        std::thread::sleep(Duration::from_millis(20)); // polling interval
    }
    assert!(vault.log().contains("cannot") && !vault.log().contains(SoftHsm::PIN), "{}", vault.log());
}

#[test]
fn vault_works_with_root_key_in_aws_kms() {
    let vault = Vault::init(Database::Sqlite);
    vault.run(&["org", "create", "Acme"]).done();
    let moto = Moto::start();
    let arn = moto.create_kms_key();
    let user = moto.create_user("vault", KMS_RIGHTS);
    moto.evaluate();
    let credentials = vault.scratch("aws");
    let content = format!("[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n", user.id, user.secret);
    private(&credentials, content.as_bytes());
    let uri = format!("aws-kms:{arn}?credentials-file={}&endpoint={}", text(&credentials), moto.endpoint());
    let none = ("ORGVAULT_LOG_LEVEL", Path::new("info"));
    let new = format!("--new-root-key-source={uri}");
    run(&vault, none, &["key", "rotate", "--root", &new]).done();
    vault.run(&["org", "list"]).refused();
    let flag = format!("--root-key-source={uri}");
    assert!(vault.run(&["org", "list", &flag]).done().stdout.contains("Acme"));
    let mut command = vault.serve_command();
    command.arg(&flag);
    let server = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
    assert_eq!(server.stop(), Some(0), "{}", vault.log());

    private(&credentials, content.replace(&user.secret, "wrong").as_bytes());
    let refused = vault.run(&["org", "list", &flag]).refused().stderr;
    assert!(refused.contains("AWS KMS at") && refused.contains("rejects") && !refused.contains("wrong"), "{refused}");
    fs::set_permissions(&credentials, Permissions::from_mode(0o644)).unwrap();
    let refused = vault.run(&["org", "list", &flag]).refused().stderr;
    assert!(refused.contains("other users can read"), "{refused}");
    private(&credentials, content.as_bytes());
    drop(moto);
    let refused = vault.run(&["org", "list", &flag]).refused().stderr;
    assert!(refused.contains("the root key is unavailable: AWS KMS at"), "{refused}");
}

/// The platform replaces the token through a symbolic link, as Kubernetes does. moto does not verify the token.
fn root_key_in_aws_kms_is_used_with_an_identity_token(database: Database) {
    let vault = Vault::init(database);
    vault.run(&["org", "create", "Acme"]).done();
    let moto = Moto::start();
    let arn = moto.create_kms_key();
    let role = moto.create_role("vault", KMS_RIGHTS);
    let [token, first, second] = ["token", "first", "second"].map(|name| vault.scratch(name));
    fs::write(&first, "first.of.platform\n").unwrap();
    std::os::unix::fs::symlink(&first, &token).unwrap();
    let (file, endpoint) = (text(&token), moto.endpoint());
    let uri = format!(
        "aws-kms:{arn}?web-identity-token-file={file}&role-arn={role}&sts-endpoint={endpoint}&endpoint={endpoint}"
    );
    let none = ("ORGVAULT_LOG_LEVEL", Path::new("info"));
    let new = format!("--new-root-key-source={uri}");
    run(&vault, none, &["key", "rotate", "--root", &new]).done();
    let flag = format!("--root-key-source={uri}");
    let list = || vault.run(&["org", "list", &flag]);
    assert!(list().done().stdout.contains("Acme"));
    fs::remove_file(&token).unwrap();
    assert!(list().refused().stderr.contains(&format!("{file}: No such file")));
    fs::write(&second, "second.of.platform").unwrap();
    std::os::unix::fs::symlink(&second, &token).unwrap();
    let mut command = vault.serve_command();
    command.arg(&flag);
    let server = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
    assert_eq!(server.stop(), Some(0), "{}", vault.log());

    fs::write(&second, "").unwrap();
    assert!(list().refused().stderr.contains("contains no identity token"));
    fs::write(&second, "second.of.platform").unwrap();
    drop(moto);
    let refused = list().refused().stderr;
    assert!(refused.contains("the root key is unavailable: AWS STS at"), "{refused}");
}
