//! The activation listener: Unix sockets, TLS with certificates on both sides, and invalid configurations.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use vault_tests::binary::Run;
use vault_tests::process::{Server, free_address};
use vault_tests::samples::small;
use vault_tests::tls::{Identity, certificate_file, key_file, put};
use vault_tests::{ActivationListener, Database, Integration, Vault, binary};

/// Returns a socket path. It is short, because the length of socket addresses is limited.
fn socket(vault: &Vault) -> PathBuf {
    vault.scratch("s")
}

fn listen(path: &Path) -> String {
    format!("--activation-listen=unix:{}", path.display())
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Runs `orgvault exec` with a command that prints its credential.
fn job(integration: &Integration, address: &str, variables: &[(&str, String)]) -> Run {
    let mut command: Command = binary::command();
    command.env("ORGVAULT_ACTIVATION_URL", address).env("ORGVAULT_INTEGRATION_TOKEN_FILE", &integration.file);
    command.args(["exec", "--wait", "0", "--namespace", "imports", "--static"]).envs(variables.iter().cloned());
    Run::of(command.args(["--", "sh", "-c", r#"printf %s "$AWS_ACCESS_KEY_ID""#]))
}

/// Creates a vault with a credential in `imports`, an integration for it, and no server.
fn set(database: Database) -> (Vault, Integration) {
    let mut vault = Vault::start(database);
    vault.admin_session().save(&small("imports", 1));
    let integration = Integration::make(&vault, "import", &["imports"]);
    vault.stop();
    (vault, integration)
}

const FOUND: &str = "AKIAQ3EGRIYLK0000001";

#[test]
fn socket_is_open_to_its_group_and_removed_at_exit() {
    let (mut vault, integration) = set(Database::Sqlite);
    let path = socket(&vault);
    let address = format!("unix:{}", path.display());
    assert_eq!(job(&integration, &address, &[]).status, Some(125), "there is no listener");

    vault.serve_with(&[&listen(&path)]);
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    assert_eq!(mode(&path), 0o660);
    assert_eq!(job(&integration, &address, &[]).done().stdout, FOUND);
    vault.stop();
    assert!(!path.exists(), "a server that stops takes its socket along");

    vault.serve();
    // A killed server leaves its socket, which the next one replaces.
    vault.take_server().kill();
    assert!(path.exists());
    assert_eq!(job(&integration, &address, &[]).status, Some(125));
    vault.serve();
    assert_eq!((mode(&path), job(&integration, &address, &[]).done().stdout.as_str()), (0o660, FOUND));
}

#[test]
fn served_socket_or_other_file_is_unchanged() {
    let (mut vault, integration) = set(Database::Postgres);
    let path = socket(&vault);
    vault.serve_with(&[&listen(&path)]);
    let refused = Server::fail(vault.serve_command()).refused();
    assert!(refused.stderr.contains("another process listens on it"), "{}", refused.stderr);
    let address = format!("unix:{}", path.display());
    assert_eq!(job(&integration, &address, &[]).done().stdout, FOUND, "the first one continues");

    let (file, link) = (vault.scratch("file"), vault.scratch("link"));
    fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for other in [&file, &link, &vault.scratch("no/such/directory"), &vault.scratch(&"x".repeat(120))] {
        let mut command = vault.command(&["serve"]);
        command.arg(listen(other));
        Server::fail(command).refused();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && path.exists());
}

#[test]
fn forbidden_listener_address_is_refused_by_name() {
    let vault = Vault::init(Database::Sqlite);
    for (flags, named) in [
        (&["--activation-listen=0.0.0.0:18443"][..], "--activation-listen"),
        (&["--activation-listen=[::]:18443"], "--activation-listen"),
        (&["--activation-listen=192.0.2.1:18443", "--trusted-proxy=192.0.2.0/24"], "--activation-listen"),
        (&["--activation-listen=unix:"], "--activation-listen"),
        (&["--activation-listen=127.0.0.1:1", "--activation-client-ca-file=x"], "--activation-client-ca-file"),
        (&["--role=activation"], "--activation-listen"),
        (&["--role=everything"], "--role"),
        (&["--allow-egress=store.example"], "--allow-egress"),
        (&["--max-activations=0"], "--max-activations"),
    ] {
        let mut command = vault.command(&["serve"]);
        let refused = Server::fail({
            command.args(flags);
            command
        })
        .misused();
        assert!(refused.stderr.contains(named), "{flags:?}: {}", refused.stderr);
    }
}

#[test]
fn settings_are_read_from_file_and_environment() {
    let (vault, integration) = set(Database::Sqlite);
    let path = socket(&vault);
    let file = format!(
        "role = \"activation\"\nactivation-listen = \"unix:{}\"\n\
         activation-rate = 1\nmax-activations = 7\nallow-egress = [\"127.0.0.0/8\"]\n",
        path.display()
    );
    fs::write(vault.data_dir().join("orgvault.toml"), file).unwrap();
    let public = free_address();
    let start = |command: Command| {
        let server = Server::spawn_at(public, command, &vault.scratch("output"), &vault.scratch("log"));
        let admin = server.admin_client();
        let mut server = server;
        server.wait_until_ready_by(&admin);
        server
    };
    let server = start(vault.command(&["serve"]));
    assert!(server.client().get("/livez").try_send().is_err(), "the role is in the file");
    assert_eq!(job(&integration, &format!("unix:{}", path.display()), &[]).done().stdout, FOUND);
    assert_eq!(server.stop(), Some(0));

    // The environment takes precedence over the file, and flags over both.
    let activation_listener = ActivationListener { address: free_address() };
    let mut command = vault.command(&["serve"]);
    command.env("ORGVAULT_ACTIVATION_LISTEN", "192.0.2.1:1").env("ORGVAULT_ROLE", "all");
    command.arg(format!("--activation-listen={}", activation_listener.address));
    let server = start(command);
    assert!(!path.exists());
    server.client().get("/livez").send().expect(200);
    assert_eq!(job(&integration, &activation_listener.url(), &[]).done().stdout, FOUND);
}

#[test]
fn api_process_has_no_activation_listener() {
    let (vault, integration) = set(Database::Sqlite);
    let path = socket(&vault);
    let mut command = vault.command(&["serve", "--role=api"]);
    command.arg(listen(&path));
    let server = Server::start(command, &vault.scratch("output"), &vault.scratch("log"));
    assert!(!path.exists(), "no socket");
    for (method, address) in [("POST", "/v1/activations"), ("POST", "/v1/activations/check")] {
        let call = server.client();
        let call = call.request(method, address).bearer(&integration.token);
        call.json(&serde_json::json!({"namespace": "imports"})).send().problem("not-found");
    }
    // There is no third listener among its sockets.
    let listening = Run::of(Command::new("sh").args(["-c", "cat /proc/net/tcp /proc/net/tcp6"])).done().stdout;
    let own: Vec<PathBuf> =
        fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().flatten().map(|fd| fd.path()).collect();
    let sockets: Vec<String> = own
        .iter()
        .filter_map(|fd| {
            fs::read_link(fd).ok()?.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned)
        })
        .collect();
    let open = listening.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let open =
        open.filter(|words| words.get(3) == Some(&"0A") && sockets.iter().any(|socket| words.contains(&&**socket)));
    assert_eq!(open.count(), 2, "the interface and the operators' listener");
}

#[test]
fn mutual_tls_is_supported() {
    let (vault, integration) = set(Database::Sqlite);
    let identity = Identity::new();
    identity.install(&vault);
    let authority = || {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, theirs) = (authority(), authority());
    put(&vault.scratch("ca.pem"), &ours.pem());
    for (name, issuer) in [("ours", &ours), ("theirs", &theirs)] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["batch".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        put(&vault.scratch(&format!("{name}.pem")), &params.signed_by(&key, issuer).unwrap().pem());
        put(&vault.scratch(&format!("{name}.key")), &key.serialize_pem());
    }
    let activation_listener = free_address();
    let text = |name: &str| vault.scratch(name).to_str().unwrap().to_owned();
    let mut command = vault.command(&["serve"]);
    command.arg("--tls-cert-file").arg(certificate_file(&vault)).arg("--tls-key-file").arg(key_file(&vault));
    command
        .arg(format!("--activation-listen={activation_listener}"))
        .args(["--activation-client-ca-file", &text("ca.pem")]);
    let mut server = Server::spawn(command, &vault.scratch("output"), &vault.scratch("log"));
    let public = identity.client(&server);
    server.wait_until_ready_by(&public);

    let address = format!("https://{activation_listener}/v1");
    let trust = [("ORGVAULT_ACTIVATION_CA_FILE", certificate_file(&vault).to_str().unwrap().to_owned())];
    let shown = |name: &str| {
        vec![
            ("ORGVAULT_ACTIVATION_CLIENT_CERT_FILE", text(&format!("{name}.pem"))),
            ("ORGVAULT_ACTIVATION_CLIENT_KEY_FILE", text(&format!("{name}.key"))),
        ]
    };
    let run = |variables: &[Vec<(&str, String)>]| job(&integration, &address, &variables.concat());
    assert_eq!(run(&[trust.to_vec(), shown("ours")]).done().stdout, FOUND);
    for refused in [run(&[trust.to_vec()]), run(&[trust.to_vec(), shown("theirs")]), run(&[shown("ours")])] {
        assert_eq!((refused.status, &*refused.stdout), (Some(125), ""), "{refused:?}");
        assert!(!refused.stderr.contains(&integration.token), "{}", refused.stderr);
    }
    // The same token without TLS.
    assert_eq!(job(&integration, &format!("http://{activation_listener}/v1"), &[]).status, Some(125));
    assert_eq!(job(&integration, "http://192.0.2.1/v1", &[]).status, Some(2), "in clear to another machine");
    assert_eq!(job(&integration, "https://127.0.0.1:1/v1", &[]).status, Some(125));
}
