//! Connections through an outgoing proxy: a proxy of the test, and proxy.py.

use crate::support::tls::Authority;
use crate::support::{ALL, Names, check, data};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::IssuerId;
use vault_core::identity::{Issuer, IssuerName, KeySource};
use vault_core::port::{IssuerKeys as _, WebhookMessage};
use vault_core::receiver::{DeliveryFailure, check_url};
use vault_core::time::Timestamp;
use vault_storage::{
    Deadlines, Egress, EgressPolicy, ExportClient, IssuerClient, Proxy, Storage, StorageSettings, WebhookClient,
};
use vault_testkit::clock::SequentialIds;
use vault_testkit::stores::{Moto, ProxyMode, ProxyPy, Scripted, TestProxy, TlsFiles};

const CREDENTIALS: &str = "vault:pr0xy-s3cret";
/// Names of the destinations. The second one needs no entry.
const NAMES: [&str; 2] = ["store.test", "s3.us-east-1.amazonaws.com"];
const KEYS: &str = r#"{"keys": []}"#;

fn authorization() -> String {
    format!("Basic {}", STANDARD.encode(CREDENTIALS))
}

/// Egress through the proxy at `url`, where users may name `allowed`.
fn egress(url: &str, authority: &Authority, allowed: &[&str]) -> Egress {
    let proxy = Proxy::new(url.parse().unwrap(), Some(&authority.certificate())).unwrap();
    let proxy = proxy.with_credentials(CREDENTIALS).unwrap();
    let allowed = allowed.iter().map(|name| name.parse().unwrap()).collect();
    Egress::through(proxy, Vec::new(), allowed).trusting(Some(&authority.certificate())).unwrap()
}

/// A storage client. `names` contains the names that it resolves.
fn storage(egress: Egress, names: &Arc<Names>, exchange: Duration) -> Storage {
    let deadlines = Deadlines { exchange, ..Deadlines::default() };
    let settings = StorageSettings { egress, deadlines, ..StorageSettings::default() };
    Storage::with_resolver(settings, Arc::new(SequentialIds::default()), Arc::clone(names) as _).unwrap()
}

fn link(url: &str) -> CredentialData {
    data(CredentialType::DirectLink, &json!({"url": url}))
}

fn message(url: &str) -> WebhookMessage {
    WebhookMessage {
        url: SecretString::from(url),
        id: "evt_1".to_owned(),
        at: Timestamp::from_millis(0),
        secrets: Vec::new(),
        body: "{}".to_owned(),
    }
}

fn issuer(url: &str, authority: &Authority) -> Issuer {
    Issuer {
        id: IssuerId::from_bytes([1; 16]),
        name: IssuerName::parse("own", "name").unwrap(),
        url: url.to_owned(),
        source: KeySource::Discovery(String::new()),
        ca: std::fs::read_to_string(authority.certificate()).unwrap(),
        required: Vec::new(),
        organizations: Vec::new(),
        created_at: Timestamp::from_millis(0),
    }
}

/// An HTTPS server with the responses of all kinds of destinations.
fn destination(authority: &Authority) -> SocketAddr {
    authority.serve(|head| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let body = match head.split(' ').nth(1).unwrap_or_default() {
            "/.well-known/openid-configuration" => {
                json!({"issuer": format!("https://{host}"), "jwks_uri": format!("https://{host}/keys")}).to_string()
            }
            "/keys" => KEYS.to_owned(),
            _ => "a".to_owned(),
        };
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    })
}

/// Connects to each kind of destination through the proxy at `url`.
async fn reaches_every_destination(url: &str, authority: &Authority) {
    let egress = egress(url, authority, &["store.test"]);
    let names = Names::new(&[]);
    let (server, plain) = (destination(authority), Scripted::start(|_| (200, Vec::new(), "a".to_owned())));
    let secure = format!("https://store.test:{}", server.port());
    let insecure = format!("http://store.test:{}", plain.endpoint().rsplit(':').next().unwrap());

    let client = storage(egress.clone(), &names, Duration::from_secs(10));
    for address in [&secure, &insecure] {
        assert_eq!(check(&client, &link(&format!("{address}/a")), &[]).await, ["authenticate passed"], "{address}");
    }
    let moto = Moto::start();
    let user = moto.create_user(
        "owner",
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#,
    );
    moto.create_bucket("exports");
    moto.put("exports", "a", b"a");
    let endpoint = format!("http://s3.us-east-1.amazonaws.com:{}", moto.endpoint().rsplit(':').next().unwrap());
    let s3 = data(
        CredentialType::S3,
        &json!({"access_key_id": user.id, "secret_access_key": user.secret, "bucket": "exports", "region": "us-east-1",
            "endpoint": endpoint, "path_style_access": true}),
    );
    let report = check(&client, &s3, &ALL).await;
    assert_eq!(report[..4], ["authenticate passed", "list passed", "read passed", "write passed"]);

    let webhooks = WebhookClient::resolving(egress.clone(), Arc::clone(&names) as _).unwrap();
    assert_eq!(webhooks.post(&message(&format!("{secure}/hook"))).await, Ok(()));
    let issuer = issuer(&secure, authority);
    let fetched = IssuerClient::new(&egress).fetch(&issuer).await.unwrap();
    assert_eq!(fetched.keys, KEYS);
    let headers = [("authorization".to_owned(), SecretString::from("Bearer token"))];
    let export = ExportClient::new(&egress, &format!("{insecure}/ingest"), &headers).unwrap();
    export.post("application/x-ndjson", "{}\n".into()).await.unwrap();
    let asked = plain.asked();
    let last = asked.last().unwrap();
    assert_eq!(
        (last.path.as_str(), last.fields["authorization"].as_str(), last.body.as_str()),
        ("/ingest", "Bearer token", "{}\n")
    );
    assert!(asked.iter().all(|request| !request.fields.contains_key("proxy-authorization")), "{asked:?}");
    assert_eq!(names.asked(), Vec::<String>::new(), "the proxy resolves names");
}

#[tokio::test]
async fn each_kind_of_destination_is_reached_through_an_http_proxy() {
    let (authority, proxy) = (Authority::new(), TestProxy::start());
    for name in NAMES {
        proxy.map(name, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    }
    proxy.require(&authorization());
    reaches_every_destination(&proxy.url(), &authority).await;
    let tunnels = proxy.tunnels();
    assert!(tunnels.len() >= 7, "{tunnels:?}");
    for tunnel in tunnels {
        let (method, rest) = tunnel.line.split_once(' ').unwrap();
        assert_eq!((method, rest), ("CONNECT", format!("{} HTTP/1.1", tunnel.target()).as_str()));
        assert!(NAMES.iter().any(|name| tunnel.target().starts_with(&format!("{name}:"))), "{}", tunnel.line);
        assert_eq!(tunnel.fields["host"], tunnel.target());
        let sent = String::from_utf8_lossy(&tunnel.sent).to_ascii_lowercase();
        assert!(!sent.contains("proxy-authorization") && !sent.contains("pr0xy"), "{sent}");
    }
}

#[tokio::test]
async fn each_kind_of_destination_is_reached_through_an_https_proxy() {
    let (authority, proxy) = (Authority::new(), TestProxy::start());
    for name in NAMES {
        proxy.map(name, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    }
    proxy.require(&authorization());
    let front = authority.front(proxy.address());
    reaches_every_destination(&format!("https://{front}"), &authority).await;
}

#[tokio::test]
async fn each_kind_of_destination_is_reached_through_proxy_py() {
    let authority = Authority::new();
    let (certificate, key) = (authority.certificate(), authority.key());
    for tls in [None, Some(TlsFiles { certificate: &certificate, key: &key })] {
        let proxy = ProxyPy::start(CREDENTIALS, tls);
        reaches_every_destination(&proxy.url(), &authority).await;
    }
}

#[tokio::test]
async fn each_failure_of_a_proxy_has_a_reason() {
    let (authority, proxy) = (Authority::new(), TestProxy::start());
    let names = Names::new(&[]);
    let of = |egress: &Egress| storage(egress.clone(), &names, Duration::from_secs(2));
    let egress = |url: &str| egress(url, &authority, &["store.test"]);
    let url = proxy.url();
    let text = |text: &str| ProxyMode::Text(text.to_owned());
    let status = |status: u16| ProxyMode::Text(format!("HTTP/1.1 {status} Scripted\r\nContent-Length: 0\r\n\r\n"));
    for (mode, reason) in [
        (status(407), "proxy-credentials"),
        (status(301), "proxy-refused"),
        (status(400), "proxy-refused"),
        (status(403), "proxy-refused"),
        (status(500), "proxy-refused"),
        (status(501), "proxy-refused"),
        (status(505), "proxy-refused"),
        (status(502), "unreachable"),
        (status(503), "unreachable"),
        (status(504), "unreachable"),
        (text("SSH-2.0-OpenSSH_9.2\r\n\r\n"), "proxy-refused"),
        (ProxyMode::Text(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200 * 1024))), "proxy-refused"),
        (text("HTTP/1.1 200 OK\r\nVia: 1.1 te"), "proxy-unreachable"),
        (text(""), "proxy-unreachable"),
        (ProxyMode::Stall, "proxy-unreachable"),
        // The tunnel closes before the response.
        (text("HTTP/1.1 200 OK\r\n\r\n"), "unreachable"),
    ] {
        proxy.set_mode(mode.clone());
        let report = check(&of(&egress(&url)), &link("http://store.test/"), &[]).await;
        let shown = format!("{mode:?}").chars().take(80).collect::<String>();
        assert_eq!(report, [format!("authenticate failed {reason}")], "{shown}");
    }
    // A redirect of the proxy is not followed.
    let other = Scripted::start(|_| (200, Vec::new(), String::new()));
    proxy.set_mode(text(&format!("HTTP/1.1 302 Found\r\nLocation: {}/\r\n\r\n", other.endpoint())));
    check(&of(&egress(&url)), &link("http://store.test/"), &[]).await;
    assert!(other.asked().is_empty());

    // No server at the address, an untrusted certificate, and a name that does not resolve.
    proxy.set_mode(ProxyMode::Open);
    let untrusted = Authority::new().front(proxy.address());
    for url in ["http://127.0.0.1:1", &format!("https://{untrusted}"), "http://proxy.test:3128"] {
        let report = check(&of(&egress(url)), &link("http://store.test/"), &[]).await;
        assert_eq!(report, ["authenticate failed proxy-unreachable"], "{url}");
    }
    assert_eq!(names.asked(), ["proxy.test"]);

    // The other clients report the proxy.
    let egress = egress("http://127.0.0.1:1");
    let webhooks = WebhookClient::new(egress.clone()).unwrap();
    assert_eq!(webhooks.post(&message("https://store.test/hook")).await, Err(DeliveryFailure::Proxy));
    let failure = IssuerClient::new(&egress).fetch(&issuer("https://store.test", &authority)).await.unwrap_err();
    assert!(failure.0.contains("http://127.0.0.1:1"), "{failure}");
    let export = ExportClient::new(&egress, "https://store.test/ingest", &[]).unwrap();
    let failure = export.post("text/plain", "a".into()).await.unwrap_err().to_string();
    assert!(failure.contains("http://127.0.0.1:1") && failure.contains("proxy-unreachable"), "{failure}");
}

#[tokio::test]
async fn proxy_that_refuses_is_reported_without_its_credentials() {
    let (authority, proxy) = (Authority::new(), TestProxy::start());
    proxy.require("Basic other");
    let egress = egress(&proxy.url(), &authority, &[]);
    let failure = IssuerClient::new(&egress).fetch(&issuer("https://store.test", &authority)).await.unwrap_err();
    let shown = format!("{failure} {failure:?} {egress:?}");
    assert!(shown.contains("refuses its credentials") && shown.contains(&proxy.url()), "{shown}");
    assert!(!shown.contains("pr0xy") && !shown.contains(&STANDARD.encode(CREDENTIALS)), "{shown}");
}

/// Blocked destinations are not sent to the proxy, and direct ones are connected to without it.
#[tokio::test]
async fn proxy_gets_no_blocked_or_direct_destination() {
    let (authority, proxy) = (Authority::new(), TestProxy::start());
    let names = Names::new(&["direct.test"]);
    let server = Scripted::start(|_| (200, Vec::new(), String::new()));
    let port = server.endpoint().rsplit(':').next().unwrap().to_owned();
    let proxied = || {
        let connection = Proxy::new(proxy.url().parse().unwrap(), None).unwrap();
        let direct = vec!["direct.test".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        Egress::through(connection, direct, vec!["*".parse().unwrap(), "known.internal".parse().unwrap()])
    };
    let closed = storage(proxied(), &names, Duration::from_secs(2));
    for host in "127.0.0.1 [::1] localhost 10.0.0.1 169.254.169.254 [fd00:ec2::254] [::ffff:10.0.0.1] \
        metadata.google.internal metadata a.localhost direct.test printer.local"
        .split(' ')
    {
        let report = check(&closed, &link(&format!("http://{host}:{port}/")), &[]).await;
        let expected = if host == "localhost" { "dns" } else { "blocked-egress" };
        assert_eq!(report, [format!("authenticate failed {expected}")], "{host}");
    }
    assert!(proxy.tunnels().is_empty());
    let policy = EgressPolicy::allowing(vec!["127.0.0.0/8".parse().unwrap()]);
    let open = storage(proxied().with_policy(policy), &names, Duration::from_secs(2));
    for host in ["127.0.0.1", "direct.test"] {
        assert_eq!(
            check(&open, &link(&format!("http://{host}:{port}/")), &[]).await,
            ["authenticate passed"],
            "{host}"
        );
    }
    assert!(proxy.tunnels().is_empty());
    for host in ["known.internal", "example.com", "EXAMPLE.com."] {
        check(&open, &link(&format!("http://{host}:{port}/")), &[]).await;
    }
    let targets: Vec<_> = proxy.tunnels().iter().map(|tunnel| tunnel.target().to_owned()).collect();
    assert_eq!(targets, ["known.internal", "example.com", "example.com."].map(|host| format!("{host}:{port}")));

    let webhooks = WebhookClient::new(egress(&proxy.url(), &authority, &["*.example"])).unwrap();
    for (url, permitted) in [
        ("https://hooks.example/a", true),
        ("https://hooks.example./a", true),
        ("https://hooks.other/a", false),
        ("https://1.1.1.1/", true),
        ("https://10.0.0.1/", false),
        ("https://metadata.google.internal/", false),
    ] {
        assert_eq!(webhooks.permits(&check_url(url, "/url").unwrap()), permitted, "{url}");
    }
}
