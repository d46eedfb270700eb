//! Traces are complete and contain no secrets. An unavailable collector delays nothing.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use vault_tests::browser::eventually;
use vault_tests::canary::Canaries;
use vault_tests::integration::write_private;
use vault_tests::process::Server;
use vault_tests::samples::small;
use vault_tests::{Database, Vault};

/// Maximum time to wait for the collector's next request.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector of traces.
struct Collector {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    /// Head and body of each request.
    requests: Mutex<mpsc::Receiver<(String, Vec<u8>)>>,
}

impl Collector {
    fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, status) = (listener.local_addr().unwrap(), Arc::new(AtomicU16::new(status)));
        let ((tell, requests), answers) = (mpsc::channel(), Arc::clone(&status));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let request = read(&mut stream);
                let status = answers.load(Ordering::Acquire);
                let answer = format!("HTTP/1.1 {status} Said\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = stream.get_mut().write_all(answer.as_bytes()); // the sender may have disconnected
                let _ = tell.send(request); // the test may have ended
            }
        });
        Self { address, status, requests: Mutex::new(requests) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn next(&self) -> (String, Vec<u8>) {
        self.requests.lock().unwrap().recv_timeout(PATIENCE).expect("the collector gets a request")
    }

    /// Returns the requests so far.
    fn all(&self) -> Vec<(String, Vec<u8>)> {
        self.requests.lock().unwrap().try_iter().collect()
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> (String, Vec<u8>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the request ends early: {head}");
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

fn spans(body: &[u8]) -> Vec<Span> {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let scopes = request.resource_spans.into_iter().flat_map(|of_resource| of_resource.scope_spans);
    scopes.flat_map(|of_scope| of_scope.spans).collect()
}

/// Returns an attribute as text.
fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(text.clone()),
        Any::IntValue(number) => Some(number.to_string()),
        other => panic!("{key}: {other:?}"),
    }
}

/// Returns the span of the request with this ID, and the other spans of its trace.
#[track_caller]
fn trace_of(spans: &[Span], request_id: &str) -> (Span, Vec<Span>) {
    let is_root = |span: &&Span| attribute(span, "request_id").as_deref() == Some(request_id);
    let [root] = spans.iter().filter(is_root).collect::<Vec<_>>()[..] else { panic!("{request_id}: {spans:#?}") };
    let others = spans.iter().filter(|span| span.trace_id == root.trace_id && span.span_id != root.span_id);
    (root.clone(), others.cloned().collect())
}

#[test]
fn save_and_a_login_are_traced_without_their_secrets() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const TOKEN: &str = "s3cret-of-the-collector";
    let collector = Collector::start(200);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    write_private(&file, &format!("otlp-headers = \"X-Tenant: us\\nAuthorization: Bearer {TOKEN}\"\n"));
    let flags = ["--otlp-endpoint", &collector.url(), "--config", file.to_str().unwrap()];
    let mut vault = Vault::start_with(Database::Sqlite, &flags);
    let account = vault.admin();
    let logged_in = vault.client().log_in(&account.sound_login()).expect(200);
    let token = logged_in.json()["access_token"].as_str().unwrap().to_owned();
    let mut body = small("traced/namespace", 1);
    body["data"]["secret_access_key"] = "TracedSecretAccessKey0123456789abcdefghij".into();
    let client = vault.client();
    let save = client.request("PATCH", "/v1/organization-vault").bearer(&token);
    let saved = save.header("traceparent", PARENT).json(&body).send().expect(201);
    vault.stop();

    let requests = collector.all();
    let mut canaries = Canaries::new();
    for (name, secret) in [
        ("the password", account.password.as_str()),
        ("the e-mail address", &account.email),
        ("the secret access key", "TracedSecretAccessKey0123456789abcdefghij"),
        ("the access token", &token),
        ("the namespace", "traced/namespace"),
        ("the account's id", &account.id),
        ("the credential's id", saved.json()["id"].as_str().unwrap()),
    ] {
        canaries.add(name, secret);
    }
    let mut of_collector = Canaries::new();
    of_collector.add("the collector's token", TOKEN);
    let mut all = Vec::new();
    for (head, body) in &requests {
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
        assert!(head.contains(&format!("authorization: bearer {TOKEN}\r\n")) && head.contains("x-tenant: us\r\n"));
        canaries.assert_absent("the traces", body);
        of_collector.assert_absent("the traces", body);
        all.extend(spans(body));
    }
    of_collector.assert_absent("the log", vault.log().as_bytes());

    let (save, parts) = trace_of(&all, saved.header("x-request-id").unwrap());
    assert_eq!((save.name.as_str(), save.parent_span_id.as_slice()), ("save", &[][..]));
    assert_eq!(attribute(&save, "http.response.status_code").as_deref(), Some("201"));
    assert_eq!(attribute(&save, "traceparent"), None, "it is a link instead");
    let [link] = &save.links[..] else { panic!("{save:#?}") };
    assert_eq!(
        (hex::encode(&link.trace_id), hex::encode(&link.span_id)),
        (PARENT[3..35].into(), PARENT[36..52].into())
    );
    assert_ne!(save.trace_id, link.trace_id, "a client does not choose the trace");
    let part = |name: &str| parts.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
    let [use_case] = &part("use-case")[..] else { panic!("{parts:#?}") };
    assert_eq!(use_case.parent_span_id, save.span_id);
    let writes = part("store.write");
    let write = writes.iter().find(|span| attribute(span, "command").as_deref() == Some("SaveCredential"));
    assert_eq!(write.unwrap_or_else(|| panic!("{parts:#?}")).parent_span_id, use_case.span_id);

    let (login, parts) = trace_of(&all, logged_in.header("x-request-id").unwrap());
    assert_eq!((login.name.as_str(), login.links.len()), ("log-in", 0));
    let hashes: Vec<_> = parts.iter().filter(|span| span.name == "password.hash").collect();
    assert_eq!(hashes.len(), 1, "{parts:#?}");
    assert!(parts.iter().filter(|span| span.name == "store.write").count() >= 2, "reserved and concluded");
    let inside = |span: &Span| span.start_time_unix_nano >= login.start_time_unix_nano;
    assert!(parts.iter().all(inside), "{parts:#?}");
}

/// While the collector rejects traces, requests succeed. The log reports the failure once, and its end once.
#[test]
fn refusing_collector_is_reported_once() {
    let collector = Collector::start(400);
    let mut vault = Vault::start_with(Database::Sqlite, &["--otlp-endpoint", &collector.url()]);
    let session = vault.admin_session();
    session.save(&small("imports", 1));
    collector.next();
    session.save(&small("imports", 2));
    collector.next();
    collector.status.store(200, Ordering::Release);
    session.save(&small("imports", 3));
    eventually("the collector is back", || vault.log().contains("traces are accepted again"));
    vault.stop();
    let log = vault.log();
    assert_eq!(log.matches("traces are not accepted").count(), 1, "{log}");
    assert_eq!(log.matches("traces are accepted again").count(), 1, "{log}");
    assert_eq!(session_count(&log), 3);
}

fn session_count(log: &str) -> usize {
    log.matches("\"credential.saved\"").count()
}

/// A server starts, serves and stops in time although its collector does not respond.
#[test]
fn unavailable_collector_delays_nothing() {
    let unknown = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut vault = Vault::start_with(Database::Sqlite, &["--otlp-endpoint", &format!("http://{unknown}")]);
    vault.admin_session().save(&small("imports", 1));
    vault.stop();
    assert_eq!(vault.log().matches("traces are not accepted").count(), 1, "{}", vault.log());
}

#[test]
fn trace_settings_are_validated() {
    let vault = Vault::init(Database::Sqlite);
    let file = vault.scratch("config.toml");
    write_private(&file, "otlp-headers = \"no header\"\n");
    let file = file.to_str().unwrap();
    for (flags, expected) in [
        (&["--otlp-endpoint", "localhost:4318"][..], "must be an http or https URL"),
        (&["--otlp-endpoint", "http://user:password@127.0.0.1:4318"], "must be an http or https URL"),
        (&["--config", file], "otlp-headers needs --otlp-endpoint"),
        (&["--otlp-endpoint", "http://127.0.0.1:4318", "--config", file], "line 1: expected NAME: VALUE"),
    ] {
        let mut command = vault.serve_command();
        command.args(flags);
        let run = Server::fail(command);
        assert_ne!(run.status, Some(0));
        assert!(run.stderr.contains(expected), "{flags:?}: {}", run.stderr);
    }
}
