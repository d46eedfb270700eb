//! The activation client over a Unix socket, against a fake server.

use secrecy::{ExposeSecret, SecretString};
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use vault_client::{ActivateRequest, ActivationClient, ActivationSettings, CheckRequest, ClientError, RenewRequest};

const TOKEN: &str = "ovi_token";

/// Returns a listening socket and a client for it.
fn activation_listener(deadline: Duration) -> (TempDir, UnixListener, ActivationClient) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("activation.sock");
    let listener = UnixListener::bind(&path).unwrap();
    (directory, listener, client(&path.display().to_string(), deadline))
}

fn client(path: &str, deadline: Duration) -> ActivationClient {
    client_of(path, deadline, None)
}

fn client_of(path: &str, deadline: Duration, server_user: Option<u32>) -> ActivationClient {
    let address = format!("unix:{path}").parse().unwrap();
    let settings = ActivationSettings { base_path: "/v9".into(), deadline, server_user, ..Default::default() };
    ActivationClient::new(&address, SecretString::from(TOKEN), &settings).unwrap()
}

/// Sends the responses in order, each on a separate connection. The thread returns the requests.
fn serve(listener: UnixListener, answers: Vec<String>) -> JoinHandle<Vec<String>> {
    crate::serve(move || listener.accept().unwrap().0, answers)
}

fn answer(status: &str, body: &str) -> String {
    // The server keeps the connection open, but the client does not reuse it.
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn of(namespace: &str) -> ActivateRequest {
    ActivateRequest { namespace: namespace.into(), purpose: None, ttl: None, vend: None }
}

#[test]
fn namespace_is_activated_listed_checked_and_ended_over_a_socket() {
    let (_directory, listener, client) = activation_listener(Duration::from_secs(60));
    let data = format!(r#"{{"bucket":"{}"}}"#, "b".repeat(300_000));
    let credential = format!(
        r#"{{"id":"c","type":"s3","version":2,"form":"short","data":{data},"expires_at":"2026-11-20T12:00:00Z"}}"#
    );
    let activation = format!(r#"{{"id":"a","namespace":"n","expires_at":"t","credentials":[{credential}],"new":1}}"#);
    let item = r#"[{"id":"a","namespace":"n","vend":"raw","credential_count":1,"started_at":"b","expires_at":"t"}]"#;
    let report = r#"{"namespace":"n","usable":false,"credentials":[{"id":"c","type":"s3","usable":false,"checks":[
        {"check":"settings","result":"passed"},{"check":"read","result":"failed","reason":"denied","remedy":"Ask."}]}]}"#;
    let server = serve(
        listener,
        vec![
            answer("201 Created", &activation),
            answer("200 OK", item),
            answer("200 OK", &activation),
            answer("200 OK", report),
            answer("204 No Content", ""),
        ],
    );
    let request =
        ActivateRequest { purpose: Some("nightly".into()), ttl: Some(60), vend: Some("short".into()), ..of("n") };
    let mut activated = client.activate(&request).unwrap().activation;
    assert!(!format!("{activated:?}").contains("bucket"), "{activated:?}");
    let credential = activated.credentials.remove(0);
    assert_eq!(credential.data.into_secret().expose_secret(), data);
    assert_eq!((&*credential.form, credential.expires_at.as_deref()), ("short", Some("2026-11-20T12:00:00Z")));
    assert_eq!(client.list().unwrap()[0].credential_count, 1);
    assert_eq!(client.renew("a/b", &RenewRequest { ttl: Some(60) }).unwrap().activation.credentials[0].version, 2);
    let check =
        CheckRequest { namespace: "n".into(), operations: vec!["read".into()], until: Some("u".into()), vend: None };
    let checked = client.check(&check).unwrap();
    assert_eq!(checked.credentials[0].checks[1].remedy.as_deref(), Some("Ask."));
    client.end("../a").unwrap();
    let requests = server.join().unwrap();
    for (requests, (line, body)) in requests.iter().zip([
        ("POST /v9/activations ", r#"{"namespace":"n","purpose":"nightly","ttl":60,"vend":"short"}"#),
        ("GET /v9/activations ", ""),
        ("POST /v9/activations/a%2Fb/renew ", r#"{"ttl":60}"#),
        ("POST /v9/activations/check ", r#"{"namespace":"n","operations":["read"],"until":"u"}"#),
        ("DELETE /v9/activations/%2E%2E%2Fa ", ""),
    ]) {
        assert!(requests.starts_with(line) && requests.ends_with(&format!("\r\n\r\n{body}")), "{requests}");
        assert!(requests.to_lowercase().contains("authorization: bearer ovi_token\r\n"), "{requests}");
    }
}

#[test]
fn redirects_are_not_followed_and_problems_are_reported() {
    let (_directory, listener, client) = activation_listener(Duration::from_secs(60));
    let problem = r#"{"type":"urn:orgvault:problem:frozen","title":"t","status":403,"detail":"It is frozen.","code":"frozen","request_id":"r"}"#;
    let redirect =
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n";
    let server = serve(listener, vec![answer("403 Forbidden", problem), redirect.to_owned()]);
    let error = client.activate(&of("n")).unwrap_err();
    assert!(matches!(&error, ClientError::Problem { problem, .. } if problem.code == "frozen"), "{error:?}");
    assert!(matches!(client.activate(&of("n")).unwrap_err(), ClientError::Unexpected { status: 307, .. }));
    assert_eq!(server.join().unwrap().len(), 2);
}

#[test]
fn missing_response_fails_at_deadline() {
    let (directory, _listener, client) = activation_listener(Duration::from_millis(50));
    let path = |name: &str| directory.path().join(name).display().to_string();
    // The connection is queued and never gets a response.
    let silent = (path("activation.sock"), client.list());
    let absent = (path("absent.sock"), self::client(&path("absent.sock"), Duration::from_secs(60)).list());
    let long = format!("/{}", "a".repeat(300));
    let too_long = (long.clone(), self::client(&long, Duration::from_secs(60)).list());
    for ((path, listed), kind) in
        [(silent, ErrorKind::TimedOut), (absent, ErrorKind::NotFound), (too_long, ErrorKind::InvalidFilename)]
    {
        let error = listed.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot reach unix:{path}"));
        let ClientError::Transport { source, .. } = error else { panic!("{error:?}") };
        assert_eq!(source.downcast_ref::<std::io::Error>().map(std::io::Error::kind), Some(kind), "{source}");
    }
}

#[test]
fn truncated_response_is_an_error() {
    let (_directory, listener, client) = activation_listener(Duration::from_secs(60));
    let server = serve(listener, vec!["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[".to_owned()]);
    assert!(matches!(client.list().unwrap_err(), ClientError::Transport { .. }));
    server.join().unwrap();
}

/// Attack: another user replaces the socket to get the token.
#[test]
fn socket_of_another_user_gets_no_token() {
    let (directory, listener, _) = activation_listener(Duration::from_secs(5));
    let path = directory.path().join("activation.sock").display().to_string();
    let user = rustix::process::geteuid().as_raw();
    let refused = client_of(&path, Duration::from_secs(5), Some(user + 1)).activate(&of("a")).unwrap_err();
    assert!(matches!(refused, ClientError::Transport { .. }), "{refused}");
    let mut sent = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut sent).unwrap();
    assert!(sent.is_empty());
    let server = serve(listener, vec![answer("503 Service Unavailable", "{}")]);
    client_of(&path, Duration::from_secs(5), Some(user)).activate(&of("a")).unwrap_err();
    assert!(server.join().unwrap()[0].contains(TOKEN));
}
