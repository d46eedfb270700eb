//! Default and highest rates, and rejected peers.

use serde_json::json;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use vault_tests::process::Server;
use vault_tests::skip;
use vault_tests::wire::{Wire, request};
use vault_tests::{Client, Database, Vault};

#[test]
fn shared_address_is_not_limited_in_normal_use() {
    let vault = Vault::start(Database::Sqlite);
    let client = vault.client();
    for _ in 0..100 {
        client.log_in(&json!({})).expect(400);
    }
    let vault = Vault::start_with(Database::Sqlite, &["--login-rate", "0"]);
    let client = vault.client();
    for _ in 0..100 {
        client.log_in(&json!({})).expect(400);
    }
}

#[test]
fn rates_have_bounds() {
    let vault = Vault::init(Database::Sqlite);
    for flags in [["--login-rate", "1000001"], ["--activation-rate", "1000001"], ["--trusted-proxy", "not a network"]] {
        let mut command = vault.serve_command();
        command.args(flags);
        Server::fail(command).misused().says(flags[0]);
    }
}

/// Returns a non-loopback address of this host, if it has one.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?; // sends nothing
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback() && !address.is_unspecified())
}

/// Starts a server of `vault` on all addresses.
fn everywhere(vault: &Vault, flags: &[&str]) -> (Server, u16) {
    // An ephemeral port, because the tests' own addresses use lower ports.
    let port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap().local_addr().unwrap().port();
    let mut command = vault.serve_command();
    command.args(flags);
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let mut server = Server::spawn_at(address, command, &vault.scratch("output"), &vault.scratch("log"));
    server.wait_until_ready_by(&Client::new((Ipv4Addr::LOCALHOST, port).into()));
    (server, port)
}

#[test]
fn beyond_loopback_without_tls_only_proxies_are_served() {
    let Some(outer) = outer_address() else { skip!("this machine has no address beyond loopback") };
    let vault = Vault::init(Database::Sqlite);
    let ask = |port| Wire::once((outer, port).into(), request("GET /livez", &[], ""));

    let (server, port) = everywhere(&vault, &["--trusted-proxy", "203.0.113.0/24"]);
    assert!(ask(port).is_none(), "closed unanswered");
    let metrics = server.admin_client().get("/metrics").send().expect(200).text();
    assert!(metrics.contains("orgvault_http_connections_refused_total{reason=\"not-a-proxy\"} 1\n"), "{metrics}");
    assert!(server.log_text().contains("travel unencrypted"));
    assert_eq!(server.stop(), Some(0));

    let (_server, port) = everywhere(&vault, &["--trusted-proxy", &format!("{outer}/32")]);
    assert_eq!(ask(port).map(|answer| answer.status), Some(200));
}

#[test]
fn listener_beyond_loopback_names_required_settings() {
    let vault = Vault::init(Database::Sqlite);
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let output = vault.run(&["serve", "--listen", listen, "--admin-listen", ""]).misused().stderr;
        for flag in ["--tls-cert-file", "--tls-key-file", "--trusted-proxy"] {
            assert!(output.contains(flag), "{output}");
        }
    }
}

#[test]
fn vault_without_account_is_reported() {
    let mut vault = Vault::start(Database::Sqlite);
    assert!(vault.log().contains("no account, so no one can log in"), "{}", vault.log());
    vault.stop();
    vault.admin();
    let before = vault.log().len();
    vault.serve();
    assert!(!vault.log()[before..].contains("no account"), "{}", vault.log());
}

#[test]
fn open_data_directory_is_reported() {
    let mut vault = Vault::start(Database::Sqlite);
    assert!(!vault.log().contains("data directory"));
    vault.stop();
    fs::set_permissions(vault.data_dir(), fs::Permissions::from_mode(0o755)).unwrap();
    vault.serve();
    let log = vault.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("data directory")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("0755") && lines[0].contains("chmod 700") && lines[0].contains("WARN"), "{log}");
}
