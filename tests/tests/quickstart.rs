//! `quickstart`, and the command lines that it prints for pasting.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use vault_tests::binary::{self, Run};
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::snapshot::mode;
use vault_tests::{Account, Database, Desk, Vault, on_both_databases};

on_both_databases! {
    quickstart_signs_in_and_serves_jobs,
    repeated_quickstart_changes_nothing,
}

/// A user with a home directory who runs `quickstart` and other commands.
struct Stage {
    vault: Vault,
    desk: Desk,
}

impl Stage {
    fn new(database: Database) -> Self {
        let vault = Vault::absent(database);
        Self { desk: Desk::of(&vault, "home"), vault }
    }

    fn quickstart(&self, arguments: &[&str]) -> (Server, String) {
        let command = self.vault.command(&[&["quickstart"], arguments].concat());
        self.vault.quickstart_by(self.desk.at_home(command, &[]))
    }

    /// Runs a command without flags that select the vault.
    fn run(&self, arguments: &[&str]) -> Run {
        self.desk.run(arguments)
    }

    fn profile(&self) -> PathBuf {
        self.desk.kept("default")
    }

    /// Saves a credential for a bucket in the namespace.
    fn save(&self, namespace: &str, endpoint: &str) -> Run {
        let data = json!({"access_key_id": "AKIA2TESTONLY7SAMPLE", "secret_access_key": "made-up/Secret", "bucket": "b", "endpoint": endpoint});
        self.save_data(namespace, &data)
    }

    fn save_data(&self, namespace: &str, data: &Value) -> Run {
        let data = self.desk.file("data.json", &data.to_string());
        self.run(&["credential", "save", "--namespace", namespace, "--type", "s3", "--data-file", &data])
    }
}

fn quickstart_signs_in_and_serves_jobs(database: Database) {
    let desk = Stage::new(database);
    let (server, printed) = desk.quickstart(&[]);
    let directory = desk.vault.data_dir();
    for part in [
        "admin@example.com",
        "password",
        "otpauth://totp/",
        "Recovery codes",
        "copy of the root key",
        "orgvault import",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    assert!(printed.contains(&server.address.to_string()) && printed.lines().count() <= 40, "{printed}");
    assert!(!printed.contains('\u{2588}'), "the QR code is printed with --qr only");
    for private in [directory.join("quickstart.token"), directory.join("orgvault.toml"), desk.profile()] {
        assert_eq!(mode(&private), 0o600, "{}", private.display());
    }
    // Without flags, URL, token or ID.
    desk.save("imports/daily", "https://s3.example.com").done();
    assert_eq!(desk.run(&["credential", "list", "--json"]).done().json().as_array().unwrap().len(), 1);
    let job = ["exec", "--namespace", "imports/daily", "--", "sh", "-c", "echo $ORGVAULT_BUCKET"];
    assert_eq!(desk.run(&job).done().stdout, "b\n");
    let token = fs::read_to_string(directory.join("quickstart.token")).unwrap();
    assert!(!printed.contains(token.trim()) && !desk.vault.log().contains(token.trim()));
    assert_eq!(server.stop(), Some(0), "{}", desk.vault.log());

    // A restart without flags serves the same vault. So does `serve`, and a job waits for it.
    let (server, printed) = desk.quickstart(&[]);
    assert!(printed.contains("Serving the existing vault"), "{printed}");
    assert_eq!(desk.run(&job).done().stdout, "b\n");
    assert_eq!(fs::read_to_string(directory.join("quickstart.token")).unwrap(), token);
    assert_eq!(server.stop(), Some(0));
    let command = desk.desk.at_home(desk.vault.command(&["serve"]), &[]);
    let server = Server::start(command, &desk.vault.scratch("output"), &desk.vault.scratch("log"));
    assert_eq!(desk.run(&job).done().stdout, "b\n");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn jobs_wait_for_restarting_vault() {
    let desk = Stage::new(Database::Sqlite);
    let (server, _) = desk.quickstart(&[]);
    desk.save("imports/daily", "https://s3.example.com").done();
    assert_eq!(server.stop(), Some(0));
    let immediate = desk.run(&["exec", "--wait", "0", "--namespace", "imports/daily", "--", "true"]).not_run();
    assert!(!immediate.stderr.contains("Retrying"), "{immediate:?}");
    let mut job = desk.desk.command(&["exec", "--namespace", "imports/daily", "--", "true"]);
    let mut job = job.stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(job.stderr.take().unwrap()).lines();
    assert!(output.next().unwrap().unwrap().contains("cannot reach unix:"));
    assert_eq!(output.next().unwrap().unwrap(), "  Retrying for 30s");
    let (_server, _) = desk.quickstart(&[]);
    assert!(job.wait().unwrap().success());
    assert!(output.next().is_none(), "it is printed once");
}

#[test]
fn quickstart_keeps_an_existing_profile() {
    let desk = Stage::new(Database::Sqlite);
    fs::create_dir_all(desk.profile().parent().unwrap()).unwrap();
    let other = r#"{"url":"https://vault.example/v1","email":"ada@example.com","session":{"access_token":"t","expires_at":"2020-01-01T00:00:00Z"}}"#;
    fs::write(desk.profile(), other).unwrap();
    fs::set_permissions(desk.profile(), fs::Permissions::from_mode(0o600)).unwrap();
    let (_server, printed) = desk.quickstart(&[]);
    assert!(printed.contains("Not signed in: profile default belongs to ada@example.com"), "{printed}");
    assert_eq!(fs::read_to_string(desk.profile()).unwrap(), other);
    // The token is not sent to another listener, and nothing is read from the current directory.
    desk.run(&["exec", "--namespace", "imports/daily", "--", "true"]).misused().says("--activation-url is missing");
}

/// A login changes only the session, `quickstart` stores the addresses of its vault again, and a logout needs no server.
#[test]
fn profile_follows_its_vault() {
    let desk = Stage::new(Database::Sqlite);
    let (server, printed) = desk.quickstart(&["--json"]);
    let account = Account::new(&serde_json::from_str::<Value>(&printed).unwrap()["account"], None);
    desk.save("imports/daily", "https://s3.example.com").done();
    let job = ["exec", "--namespace", "imports/daily", "--", "true"];
    let url = format!("http://localhost:{}/v1/", server.address.port()); // another spelling
    let (password, passcode) =
        (desk.desk.file("password", &account.password), desk.desk.file("passcode", &account.recovery_code()));
    let login = ["login", "--url", &url, "--password-file", &password, "--passcode-file", &passcode];
    desk.run(&login).done();
    desk.run(&job).done();
    assert_eq!(server.stop(), Some(0));

    // On another port.
    let (server, printed) = desk.quickstart(&[]);
    let url = format!("http://{}/v1", server.address);
    assert!(printed.contains(&format!("login --url {url} --email admin@example.com")), "{printed}");
    assert_eq!(desk.run(&["profiles", "--json"]).done().json()[0]["url"], *url);
    desk.run(&["credential", "list"]).done();
    assert_eq!(server.stop(), Some(0));

    // Another vault in the same directory.
    fs::remove_dir_all(desk.vault.data_dir()).unwrap();
    let (server, printed) = desk.quickstart(&[]);
    assert!(printed.contains("You are signed in on this host"), "{printed}");
    desk.save("imports/daily", "https://s3.example.com").done();
    desk.run(&job).done();
    assert_eq!(server.stop(), Some(0));
    let logout = desk.run(&["logout"]).done();
    assert!(logout.stderr.contains("the session was not ended and is valid until"), "{logout:?}");
    assert!(!fs::read_to_string(desk.profile()).unwrap().contains("access_token"));
    desk.run(&["credential", "list"]).refused();
    let (_server, _) = desk.quickstart(&[]);
    desk.run(&job).done();
}

/// Another user can listen on the port of a stopped server. Only its socket gets tokens and passwords, if the user of
/// the server listens on it.
#[test]
fn a28_port_of_stopped_vault_gets_no_request() {
    let desk = Stage::new(Database::Sqlite);
    let (server, _) = desk.quickstart(&[]);
    let socket = desk.vault.data_dir().join("orgvault.sock");
    assert_eq!(mode(&socket), 0o600);
    let address = server.address;
    assert_eq!(server.stop(), Some(0));
    let foreign = TcpListener::bind(address).unwrap();
    foreign.set_nonblocking(true).unwrap();
    let (password, url) = (desk.desk.file("password", "any"), format!("http://localhost:{}/v1", address.port()));
    let login = ["login", "--url", &url, "--password-file", &password, "--passcode-file", &password];
    let commands: [&[&str]; 4] =
        [&["credential", "list"], &["account", "list", "--profile", "default"], &login, &["logout"]];
    for command in commands {
        let refused = desk.run(command).stderr;
        assert!(refused.contains(&format!("unix:{}", socket.display())), "{command:?}: {refused}");
    }
    assert!(foreign.accept().is_err(), "the port got a request");
    drop(foreign);

    // A socket of another user.
    fs::remove_file(desk.profile()).unwrap();
    fs::remove_dir_all(desk.vault.data_dir()).unwrap();
    let (_server, _) = desk.quickstart(&[]);
    let mut profile: Value = serde_json::from_str(&fs::read_to_string(desk.profile()).unwrap()).unwrap();
    desk.run(&["credential", "list"]).done();
    profile["socket"]["server_user"] = 54_321.into();
    fs::write(desk.profile(), profile.to_string()).unwrap();
    desk.run(&["credential", "list"]).refused().says("expected user 54321");
}

/// A process of another user that bypasses the file permissions of the socket still needs a token. A profile that other
/// users can read or write is rejected.
#[test]
fn a28_foreign_socket_and_profile_grant_nothing() {
    let desk = Stage::new(Database::Sqlite);
    let (_server, _) = desk.quickstart(&[]);
    let directory = desk.vault.data_dir();
    assert_eq!((mode(&directory), mode(&directory.join("activation.sock"))), (0o700, 0o660));
    for token in ["", "Authorization: Bearer ovi_guessed\r\n"] {
        let mut socket = UnixStream::connect(directory.join("activation.sock")).unwrap();
        let head = format!("GET /v1/activations HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    for open in [0o640, 0o604, 0o660] {
        fs::set_permissions(desk.profile(), fs::Permissions::from_mode(open)).unwrap();
        let output = desk.run(&["exec", "--namespace", "imports/daily", "--", "true"]).not_run().stderr;
        assert!(output.contains("other users can read or write it"), "{output}");
    }
}

#[test]
fn loopback_storage_and_example_keys_are_for_users_of_this_host() {
    let emulator = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", emulator.local_addr().unwrap());
    let reason = |desk: &Stage, namespace: &str| {
        let check = desk.run(&["activate", "--check", "--namespace", namespace, "--json"]);
        let checked: Value = serde_json::from_str(&check.stdout).unwrap_or_else(|_| panic!("{check:?}"));
        let checks = checked["credentials"][0]["checks"].as_array().unwrap().clone();
        let failed = checks.iter().find(|check| check["result"] == "failed").unwrap_or_else(|| panic!("{checked}"));
        failed["reason"].as_str().unwrap().to_owned()
    };
    let answer = std::thread::spawn(move || {
        // A single connection suffices for the test. It is closed without a response.
        drop(emulator.accept().unwrap());
        emulator
    });
    let desk = Stage::new(Database::Sqlite);
    let (server, _) = desk.quickstart(&[]);
    desk.save("imports/emulator", &endpoint).done();
    assert_ne!(reason(&desk, "imports/emulator"), "blocked-egress");
    let _emulator = answer.join().unwrap();
    // So are example keys, because users try the vault with them.
    let example = |desk: &Stage| {
        let data = json!({"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "bucket": "b"});
        desk.save_data("imports/example", &data)
    };
    example(&desk).done();
    assert!(desk.vault.log().contains("example key of the AWS documentation"), "{}", desk.vault.log());
    // The server's own listener is excluded.
    desk.save("imports/itself", &format!("http://{}", server.address)).done();
    assert_eq!(reason(&desk, "imports/itself"), "blocked-egress");
    assert_eq!(server.stop(), Some(0));
    for remote in [&["--public-url", "https://vault.example.com"][..], &["--trusted-proxy", "127.0.0.1/32"]] {
        let (server, _) = desk.quickstart(remote);
        assert_eq!(reason(&desk, "imports/emulator"), "blocked-egress", "{remote:?}");
        example(&desk).refused().says("secret_access_key").says("example key");
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn interrupted_first_run_continues_under_another_name() {
    let vault = Vault::init(Database::Sqlite);
    vault.organization("Example");
    let (server, printed) = vault.quickstart(&["--json", "--org", "Acme", "--email", "admin@acme.example"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["account"]["organization"], "Acme");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn printed_lines_contain_public_url() {
    let vault = Vault::absent(Database::Sqlite);
    let (server, printed) = vault.quickstart(&["--public-url", "https://vault.example.com", "--base-path", "/a/v1"]);
    for part in ["https://vault.example.com/", "login --url https://vault.example.com/a/v1 --email admin@example.com"] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    assert_eq!(server.stop(), Some(0));
}

fn repeated_quickstart_changes_nothing(database: Database) {
    let vault = Vault::absent(database);
    let (server, printed) = vault.quickstart(&["--json", "--org", "Acme", "--email", "first@example.com"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let account = Account::new(&printed["account"], None);
    assert_eq!((&*account.email, &*account.organization), ("first@example.com", "Acme"));
    let session = account.log_in(&server.client());
    session.save(&small("a", 1));
    let accounts = vault.json(&["account", "list"]);
    assert_eq!(server.stop(), Some(0));
    let key = fs::read(vault.data_dir().join("root.key")).unwrap();

    let (server, printed) = vault.quickstart(&["--json", "--org", "Other", "--email", "second@example.com"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed.get("account"), None, "one-time secrets are not shown again");
    assert_eq!(vault.json(&["account", "list"]), accounts);
    assert_eq!(vault.json(&["org", "list"]).as_array().unwrap().len(), 1);
    assert_eq!(fs::read(vault.data_dir().join("root.key")).unwrap(), key);
    let session = session.on(&server.client());
    assert_eq!(session.list().len(), 1, "it serves the existing vault");
    account.log_in(&server.client());
    assert_eq!(server.stop(), Some(0));
    assert_eq!(vault.log().matches("ignored --org and --email").count(), 1, "{}", vault.log());
    let (server, printed) = vault.quickstart(&[]);
    let directory = vault.data_dir().display().to_string();
    assert!(printed.contains(&format!("Serving the existing vault in {directory}")), "{printed}");
    let next = printed.lines().find(|line| line.contains("account re-enrol")).unwrap();
    assert!(next.contains("first@example.com") && next.contains(&directory), "{next}");
    for secret in [&account.password, &account.secret, &account.uri] {
        assert!(!printed.contains(secret.as_str()), "{printed}");
    }
    drop(server);
}

/// Standard output and standard error in one pipe. The secrets are shown once, and a log would push them off the screen.
#[test]
fn log_is_printed_after_text() {
    for flags in [&["--log-format", "json"][..], &[]] {
        let vault = Vault::absent(Database::Sqlite);
        let mut command = binary::isolated(Command::new("sh"));
        command.args(["-c", r#"exec "$0" "$@" 2>&1"#]).arg(binary::path()).env("ORGVAULT_NO_SUCH_SETTING", "1");
        let command = vault.on_this(command, &[&["quickstart", "--log-level", "debug"], flags].concat());
        let output = vault.scratch("output");
        let server = Server::start(command, &output, &vault.scratch("log"));
        let shown = fs::read_to_string(output).unwrap();
        assert_eq!(server.stop(), Some(0));
        let is_log = |line: &str| {
            line.starts_with('{') || [" INFO ", " WARN ", "DEBUG "].iter().any(|level| line.contains(level))
        };
        let text = shown.lines().take_while(|line| !is_log(line)).collect::<Vec<_>>().join("\n");
        assert!(text.contains("admin@example.com") && text.contains("password"), "{shown}");
        let log = shown.lines().skip_while(|line| !is_log(line)).collect::<Vec<_>>();
        assert!(log.iter().all(|line| is_log(line)), "{shown}");
        assert!(log.iter().any(|line| line.contains("ORGVAULT_NO_SUCH_SETTING")), "{shown}");
    }
    // If it fails, the log precedes the reason.
    let vault = Vault::absent(Database::Sqlite);
    let mut command = vault.command(&["quickstart", "--email", "not an address", "--log-level", "debug"]);
    let refused = Run::of(command.env("ORGVAULT_NO_SUCH_SETTING", "1")).misused().stderr;
    let (log, reason) = (refused.find("ORGVAULT_NO_SUCH_SETTING").unwrap(), refused.find("--email").unwrap());
    assert!(log < reason, "{refused}");
}
