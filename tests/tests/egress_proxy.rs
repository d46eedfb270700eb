//! Outgoing connections of a server behind an HTTP proxy.

use serde_json::json;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use vault_testkit::stores::TestProxy;
use vault_tests::binary::Run;
use vault_tests::browser::eventually;
use vault_tests::integration::write_private;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::tls::{Identity, certificate_file};
use vault_tests::{Database, Session, Vault};

const PASSWORD: &str = "pr0xy-s3cret";
/// `vault:pr0xy-s3cret` in Base64.
const AUTHORIZATION: &str = "Basic dmF1bHQ6cHIweHktczNjcmV0";

/// Runs `command` under strace, which writes the connections and datagrams of all its threads to `trace`.
fn traced(command: &Command, trace: &str) -> Command {
    let mut traced = Command::new("strace");
    // With -D, the started process is the server itself, so that signals reach it.
    traced.args(["-D", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", trace, "--"]);
    traced.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        traced.current_dir(directory);
    }
    traced
}

/// Checks, exports of audit entries and traces use only the proxy, and the server resolves no name.
#[test]
fn server_connects_only_to_its_proxy() {
    let vault = Vault::init(Database::Sqlite);
    let proxy = TestProxy::start();
    proxy.require(AUTHORIZATION);
    let hosts = ["store.test", "logs.test", "traces.test"];
    for host in hosts {
        proxy.map(host, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    }
    let identity = Identity::new();
    identity.install(&vault);
    let port = identity.serve_text(|_| Some("a")).port();
    let [store, logs, traces] = hosts.map(|host| format!("https://{host}:{port}"));
    let credentials = vault.scratch("proxy-credentials");
    write_private(&credentials, &format!("vault:{PASSWORD}\n"));
    let mut serve = vault.serve_command();
    serve.args(["--egress-proxy", &proxy.url()]).env("ORGVAULT_EGRESS_PROXY_CREDENTIALS_FILE", &credentials);
    serve.args(["--allow-egress", "store.test", "--ca-file"]).arg(certificate_file(&vault));
    serve.args(["--audit-sink", &logs, "--otlp-endpoint", &traces]);
    // The environment selects no proxy.
    serve.envs([("HTTP_PROXY", "http://127.0.0.1:1"), ("https_proxy", "http://127.0.0.1:1"), ("NO_PROXY", "*")]);
    let trace = vault.scratch("trace").to_str().unwrap().to_owned();
    let running = Server::start(traced(&serve, &trace), &vault.scratch("output"), &vault.scratch("log"));

    let account = vault.admin();
    let session = Session::new(&running.client(), &running.client().log_in(&account.sound_login()).expect(200));
    let link = |url: &str| json!({"type": "direct-link", "namespace": "imports/link", "data": {"url": url}});
    let verify = |url: &str| {
        let saving = session.call("PATCH", "/v1/organization-vault?verify=true");
        saving.json(&link(url)).send()
    };
    verify(&format!("{store}/a.csv")).expect(201);
    for blocked in ["https://other.test/", "https://metadata.google.internal/", "https://169.254.169.254/"] {
        let refused = verify(blocked).problem("not-usable").text();
        assert!(refused.contains("blocked-egress"), "{blocked}: {refused}");
    }
    session.save(&small("imports/nightly", 1));
    let mut targets = Vec::new();
    eventually("audit entries and traces are sent", || {
        targets.extend(proxy.tunnels().into_iter().map(|tunnel| tunnel.target().to_owned()));
        hosts.iter().all(|host| targets.contains(&format!("{host}:{port}")))
    });
    let metrics = running.admin_client().get("/metrics").send().expect(200).text();
    assert!(metrics.contains("orgvault_egress_proxy_failures_total{reason=\"proxy-refused\"} 0"), "{metrics}");
    assert_eq!(running.stop(), Some(0));
    targets.extend(proxy.tunnels().into_iter().map(|tunnel| tunnel.target().to_owned()));
    assert!(targets.iter().all(|target| hosts.iter().any(|host| *target == format!("{host}:{port}"))), "{targets:?}");

    let trace = fs::read_to_string(trace).unwrap();
    let calls: Vec<_> = trace.lines().filter(|line| line.contains("AF_INET")).collect();
    let to_proxy = format!("sin_port=htons({})", proxy.address().port());
    assert!(calls.iter().any(|line| line.contains(&to_proxy)), "{trace}");
    let others: Vec<_> = calls.iter().filter(|line| !line.contains(&to_proxy)).collect();
    assert!(others.is_empty(), "{others:#?}");
    let log = vault.log();
    assert!(!log.contains(PASSWORD) && !log.contains(AUTHORIZATION), "{log}");
}

/// A proxy that fails is reported with its URL and without its password, by each command that uses it.
#[test]
fn proxy_that_fails_is_reported() {
    let vault = Vault::init(Database::Sqlite);
    let credentials = vault.scratch("proxy-credentials");
    write_private(&credentials, &format!("vault:{PASSWORD}\n"));
    let run = |url: &str, arguments: &[&str]| {
        let mut command = vault.command(arguments);
        command.env("ORGVAULT_EGRESS_PROXY", url).env("ORGVAULT_EGRESS_PROXY_CREDENTIALS_FILE", &credentials);
        let run = Run::of(&mut command);
        assert!(!format!("{run:?}").contains(PASSWORD), "{run:?}");
        run
    };
    let add = ["issuer", "add", "ci", "--issuer", "https://issuer.test"];
    let absent = run("http://127.0.0.1:1", &add);
    assert!(absent.stderr.contains("outgoing proxy http://127.0.0.1:1 does not respond"), "{absent:?}");
    let proxy = TestProxy::start();
    proxy.require("Basic other");
    let refused = run(&proxy.url(), &add);
    assert!(refused.stderr.contains("refuses its credentials"), "{refused:?}");
    assert_eq!(proxy.tunnels().pop().unwrap().target(), "issuer.test:443");

    let found = run("http://127.0.0.1:1", &["doctor", "--json"]);
    assert!(found.stdout.contains(r#""check":"egress-proxy","result":"failed""#), "{found:?}");
    let found = run(&proxy.url(), &["doctor", "--json"]);
    assert!(found.stdout.contains(r#""check":"egress-proxy","result":"passed""#), "{found:?}");
    write_private(&vault.scratch("empty"), "no colon\n");
    let mut serve = vault.serve_command();
    serve.args(["--egress-proxy", &proxy.url()]).env("ORGVAULT_EGRESS_PROXY_CREDENTIALS_FILE", vault.scratch("empty"));
    let refused = Server::fail(serve);
    assert!(refused.stderr.contains("must be one line USER:PASSWORD"), "{refused:?}");
}
