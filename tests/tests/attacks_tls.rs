//! Attacks on the TLS listener.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};
use vault_client::{ClientError, ClientSettings, ListFilter, LoginRequest, SaveRequest};
use vault_tests::binary::Run;
use vault_tests::process::{Server, free_address, own_address};
use vault_tests::samples::s3;
use vault_tests::tls::{Identity, certificate_file, key_file, put, serve};
use vault_tests::{Database, Vault};

/// Waits until `condition` is true.
#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn whole_job_runs_over_tls() {
    let (vault, identity) = (Vault::init(Database::Sqlite), Identity::new());
    let account = vault.admin();
    let server = serve(&vault, &identity, &[]);
    let base = format!("https://{}/v1", server.address);
    let settings = ClientSettings { ca_file: Some(certificate_file(&vault)), ..ClientSettings::default() };
    let client = vault_client::Client::with(&base, &settings).unwrap();
    let request: LoginRequest = serde_json::from_value(account.sound_login()).unwrap();
    let strangers = vault_client::Client::new(&base).unwrap();
    assert!(matches!(strangers.log_in(&request), Err(ClientError::Transport { .. })), "no trusted CA signed it");
    let session = client.log_in(&request).unwrap();
    let sample: SaveRequest = serde_json::from_value(s3().request).unwrap();
    let saved = session.save(&sample, None).unwrap();
    let listed: Vec<_> = session.list(ListFilter::default()).map(Result::unwrap).collect();
    assert_eq!(listed.iter().map(|item| &item.id).collect::<Vec<_>>(), [&saved.id]);
    session.delete(&saved.id).unwrap();
    session.log_out().unwrap();
}

#[test]
fn changed_certificates_are_loaded_without_restart() {
    let (vault, first) = (Vault::init(Database::Sqlite), Identity::new());
    let server = serve(&vault, &first, &[]);
    let open = first.client(&server);
    open.get("/livez").send().expect(200);
    let process = server.id();

    let second = Identity::new();
    put(&certificate_file(&vault), &second.certificate); // without its key
    wait_until("the broken pair is logged", || server.log_text().contains("cannot be used"));
    assert!(first.is_shown_by(&server) && !second.is_shown_by(&server), "the former stay in use");
    put(&key_file(&vault), &second.key);
    wait_until("the new pair is in use", || second.is_shown_by(&server));
    assert!(!first.is_shown_by(&server));
    open.get("/livez").send().expect(200); // on its existing connection

    fs::remove_file(key_file(&vault)).unwrap();
    wait_until("the missing key is logged", || server.log_text().contains("not found"));
    assert!(second.is_shown_by(&server));
    let third = Identity::new();
    third.install(&vault);
    fs::set_permissions(key_file(&vault), fs::Permissions::from_mode(0o644)).unwrap();
    wait_until("the open key is logged", || server.log_text().contains("so other users can read or write it"));
    assert!(second.is_shown_by(&server));
    fs::set_permissions(key_file(&vault), fs::Permissions::from_mode(0o600)).unwrap();
    wait_until("the mended pair is in use", || third.is_shown_by(&server));
    assert_eq!(server.id(), process);
    for identity in [first, second, third] {
        let inside = identity.key.lines().nth(1).unwrap();
        assert!(!server.log_text().contains(inside), "a key is in the log");
    }
}

#[test]
fn invalid_certificate_files_are_refused_at_start() {
    let (vault, identity, other) = (Vault::init(Database::Sqlite), Identity::new(), Identity::new());
    let (certificate, key) = (certificate_file(&vault), key_file(&vault));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let serve = |flags: &[&str]| {
        let mut command = vault.serve_command();
        command.args(flags);
        Server::fail(command)
    };
    for (flag, file, needed) in
        [("--tls-cert-file", certificate, "--tls-key-file"), ("--tls-key-file", key, "--tls-cert-file")]
    {
        serve(&[flag, file]).misused().says(needed);
    }
    let both = ["--tls-cert-file", certificate, "--tls-key-file", key];
    let refused = |why: &str| {
        let output = serve(&both).refused().stderr;
        assert!(output.contains(why) && output.contains("--tls-"), "{why}: {output}");
    };
    refused("--tls-cert-file");
    identity.install(&vault);
    for mode in [0o644, 0o640, 0o604, 0o660] {
        fs::set_permissions(key, fs::Permissions::from_mode(mode)).unwrap();
        refused(&format!("has mode 0{mode:o}, so other users can read or write it"));
    }
    put(key.as_ref(), &other.key);
    refused("the key does not belong to the first certificate");
    put(key.as_ref(), "nonsense");
    refused("has no valid PEM private key");
    put(certificate.as_ref(), &identity.key);
    put(key.as_ref(), &identity.key);
    refused("has no valid PEM certificate");
    fs::remove_file(key).unwrap();
    fs::create_dir(key).unwrap();
    put(certificate.as_ref(), &identity.certificate);
    refused("is not a regular file");
    let mut quickstart = vault.command(&["quickstart", "--org", "Acme", "--email", "a@example.com"]);
    quickstart.args(both).args(["--admin-listen", "", "--listen", &free_address().to_string()]);
    let output = Run::of(&mut quickstart).refused().stderr;
    assert!(output.contains("is not a regular file"), "before anything is shown: {output}");
}

/// curl and the client both accept the certificate that the page creates.
#[test]
fn certificate_of_the_page_is_accepted() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operate/tls.md")).unwrap();
    let (_, recipe) = page.split_once("For a test, create a self-signed certificate:\n\n```sh\n").unwrap();
    let (recipe, _) = recipe.split_once("\ninstall ").unwrap();
    let vault = Vault::init(Database::Sqlite);
    let address = own_address();
    let recipe = recipe.replace("DNS:vault.example.com", &format!("IP:{address}"));
    let created = Command::new("sh").arg("-ec").arg(&recipe).current_dir(vault.scratch("")).output().unwrap();
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let read = |name: &str| fs::read_to_string(vault.scratch(name)).unwrap();
    let identity = Identity { certificate: read("self-signed.pem"), key: read("self-signed.key") };
    let server = serve(&vault, &identity, &[]);
    let ca_file = vault.scratch("self-signed.pem");
    let url = format!("https://{}", server.address);
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", "--noproxy", "*", "--cacert"]).arg(&ca_file).arg(format!("{url}/livez"));
    Run::of(&mut curl).done();
    let settings = ClientSettings { ca_file: Some(ca_file), ..ClientSettings::default() };
    let client = vault_client::Client::with(&format!("{url}/v1"), &settings).unwrap();
    let wrong = json!({"email": "unknown@example.com", "password": "wrong wrong", "passcode": "000000"});
    let request: LoginRequest = serde_json::from_value(wrong).unwrap();
    let refused = client.log_in(&request).err().unwrap();
    assert!(matches!(&refused, ClientError::Problem { .. }), "it reached the server: {refused}");
}
