//! Links, against an HTTPS server of the test; and what may be connected to.

use crate::support;

use self::support::tls::Authority;
use self::support::{ALL, check, data, local, storage};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_core::credential::{CredentialData, CredentialType};
use vault_storage::{Deadlines, EgressPolicy, Places, Resolve, Storage, StorageSettings};
use vault_testkit::clock::SequentialIds;
use vault_testkit::stores::Scripted;

fn link(url: &str) -> CredentialData {
    with_headers(url, json!({"x-any": "1"}))
}

fn with_headers(url: &str, headers: Value) -> CredentialData {
    data(CredentialType::DirectLink, &json!({"url": url, "headers": headers}))
}

fn answer(status: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{fields}\r\n{body}")
}

#[tokio::test]
async fn link_check_requests_first_byte() {
    let authority = Authority::new();
    let server = authority.serve(|head| {
        let (line, fields) = head.split_once("\r\n").unwrap();
        let fields = fields.to_ascii_lowercase();
        let error = |status: &str, code: &str, message: &str| {
            answer(status, "", &format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
        };
        match line.split(' ').nth(1).unwrap_or_default() {
            // The range, the header fields and the user of the link are sent.
            "/good?sig=a%2Fb" if fields.contains("range: bytes=0-0") && fields.contains("x-any: 1") => {
                answer("206 Partial Content", "", "a")
            }
            "/user" if fields.contains("authorization: basic djpwoje=") => answer("200 OK", "", "all of it"),
            "/empty" => answer("416 Range Not Satisfiable", "", ""),
            // Amazon, Azure, Google; each store's error document.
            "/s3-expired" => error("403 Forbidden", "AccessDenied", "Request has expired"),
            "/google-expired" => error("400 Bad Request", "ExpiredToken", "Invalid argument."),
            "/azure-expired" => {
                error("403 Forbidden", "AuthenticationFailed", "Signature not valid in the specified time frame")
            }
            "/gone" => answer("410 Gone", "", ""),
            "/forged" => error("403 Forbidden", "SignatureDoesNotMatch", "m"),
            "/azure-forged" => error("403 Forbidden", "AuthenticationFailed", "Signature did not match"),
            "/stranger" => error("403 Forbidden", "InvalidAccessKeyId", "m"),
            "/missing" => error("404 Not Found", "NoSuchKey", "m"),
            "/bucket" => error("404 Not Found", "NoSuchBucket", "m"),
            "/denied" => answer("403 Forbidden", "", ""),
            "/moved" => answer("302 Found", "Location: http://169.254.169.254/latest/meta-data/\r\n", ""),
            "/busy" => answer("503 Service Unavailable", "", ""),
            "/large" => answer("200 OK", "", &"x".repeat(4 << 20)),
            "/not-http" => "SSH-2.0-OpenSSH_9.2\r\n".into(),
            _ => answer("400 Bad Request", "", ""),
        }
    });
    let storage = storage(Places::default(), Some(authority.certificate()));
    for (path, expected) in [
        ("good?sig=a%2Fb", "passed"),
        ("empty", "passed"),
        ("large", "passed"),
        ("s3-expired", "failed link-expired"),
        ("google-expired", "failed link-expired"),
        ("azure-expired", "failed link-expired"),
        ("gone", "failed link-expired"),
        ("forged", "failed signature-mismatch"),
        ("azure-forged", "failed signature-mismatch"),
        ("stranger", "failed unknown-key"),
        ("missing", "failed object-missing"),
        ("bucket", "failed bucket-missing"),
        ("denied", "failed denied"),
        ("moved", "failed redirected"),
        ("busy", "failed store-error"),
        ("not-http", "failed unexpected-answer"),
        ("else", "failed unexpected-answer"),
    ] {
        let report = check(&storage, &link(&format!("https://{server}/{path}")), &[]).await;
        assert_eq!(report, [format!("authenticate {expected}")], "{path}");
    }
    let report = check(&storage, &link(&format!("https://{server}/good?sig=a%2Fb")), &ALL).await;
    let passed = ["authenticate passed", "list skipped not-for-type", "read passed", "write skipped not-for-type"];
    assert_eq!(report, passed);
    let user = format!("https://v:p%3A1@{server}/user");
    assert_eq!(check(&storage, &link(&user), &[]).await, ["authenticate passed"]);
    // The certificate is for the address, and for no name that leads to it.
    let settings = StorageSettings { egress: local(Some(authority.certificate())), ..StorageSettings::default() };
    let ids = Arc::new(SequentialIds::default());
    let resolver = Rebinding::new(&[&["127.0.0.1"], &["127.0.0.1"]]);
    let storage = Storage::with_resolver(settings, ids, resolver).unwrap();
    for (host, expected) in [("store.test", "passed"), ("other.test", "failed tls")] {
        let url = format!("https://{host}:{}/empty", server.port());
        assert_eq!(check(&storage, &link(&url), &[]).await, [format!("authenticate {expected}")], "{host}");
    }
}

fn guarded(allowed: &[&str], resolver: Arc<dyn Resolve>) -> Storage {
    let settings = StorageSettings {
        egress: EgressPolicy::allowing(allowed.iter().map(|network| network.parse().unwrap()).collect()).into(),
        deadlines: Deadlines::default(),
        places: Places::default(),
        ..StorageSettings::default()
    };
    Storage::with_resolver(settings, Arc::new(SequentialIds::default()), resolver).unwrap()
}

/// Says other addresses each time, as a name server can that wants to get past a check.
struct Rebinding {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Rebinding {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let answers =
            answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect()).collect();
        Arc::new(Self { answers, asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Resolve for Rebinding {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        self.answers.get(turn).cloned().ok_or(io::ErrorKind::NotFound.into())
    }
}

#[tokio::test]
async fn connections_use_the_checked_address() {
    let server = Scripted::start(|_| (200, vec![], "secret of the inside".into()));
    let port = server.endpoint().rsplit(':').next().unwrap().to_owned();
    let url = format!("http://store.test:{port}/");

    // The address is checked once. A second lookup, which would return a private address, is not made.
    let resolver = Rebinding::new(&[&["127.0.0.1"], &["127.0.0.1"]]);
    let closed = guarded(&[], resolver.clone());
    assert_eq!(check(&closed, &link(&url), &[]).await, ["authenticate failed blocked-egress"]);
    assert_eq!(resolver.asked.load(Ordering::SeqCst), 1);
    // Of several addresses only those that pass are tried.
    let resolver = Rebinding::new(&[&["10.0.0.1", "169.254.169.254", "127.0.0.1", "::1"]]);
    let open = guarded(&["127.0.0.0/8"], resolver);
    assert_eq!(check(&open, &link(&url), &[]).await, ["authenticate passed"]);
    assert_eq!(server.asked().len(), 1);
    assert_eq!(server.asked()[0].fields["host"], format!("store.test:{port}"));
    // No address, no name.
    for answers in [&[&[][..]][..], &[][..]] {
        let report = check(&guarded(&[], Rebinding::new(answers)), &link(&url), &[]).await;
        assert_eq!(report, ["authenticate failed dns"]);
    }
}

/// A resolver all of whose lookups are taken.
struct Busy;

#[async_trait]
impl Resolve for Busy {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::ErrorKind::ResourceBusy.into())
    }
}

#[tokio::test]
async fn failed_lookup_is_not_reported_as_unknown_name() {
    let report = check(&guarded(&[], Arc::new(Busy)), &link("https://store.test/"), &[]).await;
    assert_eq!(report, ["authenticate failed unreachable"]);
}

#[tokio::test]
async fn ip_addresses_are_checked_like_names() {
    let server = Scripted::start(|_| (200, vec![], String::new()));
    let port = server.endpoint().rsplit(':').next().unwrap().to_owned();
    let closed = guarded(&[], Rebinding::new(&[]));
    for host in "127.0.0.1 2130706433 0x7f.1 0177.0.0.1 127.1 0.0.0.0 0 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] \
        [64:ff9b::7f00:1] 169.254.169.254 [fd00:ec2::254] [fe80::1] 10.0.0.1 168.63.129.16 %31%32%37.0.0.1"
        .split(' ')
    {
        let report = check(&closed, &link(&format!("http://{host}:{port}/")), &[]).await;
        assert_eq!(report, ["authenticate failed blocked-egress"], "{host}");
    }
    assert!(server.asked().is_empty());
    let open = guarded(&["127.0.0.1/32"], Rebinding::new(&[]));
    assert_eq!(check(&open, &link(&format!("http://127.0.0.1:{port}/")), &[]).await, ["authenticate passed"]);
}

#[tokio::test]
async fn silent_server_times_out() {
    let silent = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let open = guarded(&["127.0.0.0/8"], Rebinding::new(&[]));
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://{}/", silent.local_addr().unwrap());
        assert_eq!(check(&open, &link(&url), &[]).await, ["authenticate failed unreachable"], "{scheme}");
    }
}
