//! The client, against a fake server.

use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::thread::JoinHandle;
use vault_client::{
    ChangeAccountRequest, ChangePasswordRequest, Client, ClientError, ConfirmEnrolmentRequest, DescribeRequest,
    EnrolRequest, InvitationRequest, InviteRequest, ListFilter, LoginRequest, ProblemCode, ProofRequest,
    ReplaceRequest, RequestOptions, SaveRequest, Session, WireSecret,
};

const ITEM: &str = r#"{"id":"i","type":"s3","namespace":"n","information":{"fingerprint":"f"},"version":1,"created_at":"c","updated_at":"u","labels":{"team":"data"},"vend":"any","health":{"state":"unchecked"}}"#;

/// Starts a server that sends the responses in order. The thread returns the requests.
fn server(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::new(&format!("http://{}/v1/", listener.local_addr().unwrap())).unwrap();
    (client, crate::serve(move || listener.accept().unwrap().0, answers))
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn session(client: &Client) -> Session {
    client.resume(SecretString::from("v4.local.token"))
}

#[test]
fn login_returns_session_that_hides_token() {
    let body = r#"{"access_token":"v4.local.secret","token_type":"Bearer","expires_in":60,"expires_at":"2026-11-20T12:00:00Z"}"#;
    let (client, server) = server(vec![answer("200 OK", "", body), answer("204 No Content", "", "")]);
    let request = LoginRequest {
        email: "a@x.io".into(),
        password: SecretString::from("hun\"ter2").into(),
        passcode: SecretString::from("123456").into(),
        ttl: Some(60),
    };
    assert!(!format!("{request:?}").contains("ter2"), "{request:?}");
    let session = client.log_in(&request).unwrap();
    assert_eq!(
        (session.token().expose_secret(), session.expires_at()),
        ("v4.local.secret", Some("2026-11-20T12:00:00Z"))
    );
    assert!(!format!("{session:?}").contains("v4.local"), "{session:?}");
    session.log_out().unwrap();
    let requests = server.join().unwrap();
    assert!(requests[0].starts_with("POST /v1/login HTTP/1.1\r\n"));
    assert!(requests[0].to_lowercase().contains("content-type: application/json\r\n"));
    assert!(requests[0].ends_with(r#"{"email":"a@x.io","password":"hun\"ter2","passcode":"123456","ttl":60}"#));
    assert!(requests[1].starts_with("POST /v1/logout HTTP/1.1\r\n"));
    assert!(requests[1].to_lowercase().contains("authorization: bearer v4.local.secret\r\n"));
}

#[test]
fn data_is_saved_unchanged() {
    let (client, server) = server(vec![answer("201 Created", "", r#"{"id":"i"}"#)]);
    let request = |data: &str| SaveRequest::new("s3", "a/b", SecretString::from(data).into());
    let saved = session(&client).save(&request(r#"{"bucket": "b"}"#), Some("key-1")).unwrap();
    assert_eq!(saved.id, "i");
    let error = session(&client).save(&request("secret, not JSON"), None).unwrap_err();
    assert!(matches!(error, ClientError::Request(_)) && !error.to_string().contains("secret"), "{error}");
    let requests = server.join().unwrap().remove(0);
    assert!(requests.starts_with("PATCH /v1/organization-vault HTTP/1.1\r\n"));
    assert!(requests.to_lowercase().contains("idempotency-key: key-1\r\n"));
    assert!(requests.ends_with(r#"{"type":"s3","namespace":"a/b","data":{"bucket": "b"}}"#));
}

#[test]
fn pages_are_followed_by_cursor_only() {
    let link = "Link: <http://elsewhere.example/v9?cursor=abc>; rel=\"next\"\r\n";
    let (client, server) =
        server(vec![answer("200 OK", link, &format!("[{ITEM},{ITEM}]")), answer("200 OK", "", &format!("[{ITEM}]"))]);
    let filter = ListFilter { namespace: Some("a/b".into()), page_size: Some(2), ..ListFilter::default() };
    let found: Result<Vec<_>, _> = session(&client).list(filter).collect();
    let found = found.unwrap();
    let fingerprint = found[0].information.as_ref().map(|shown| &shown["fingerprint"]);
    assert_eq!((found.len(), &*found[0].kind, fingerprint), (3, "s3", Some(&"f".into())));
    let requests = server.join().unwrap();
    assert!(requests[0].starts_with("GET /v1/organization-vault?limit=2&namespace=a%2Fb HTTP/1.1\r\n"));
    assert!(requests[1].starts_with("GET /v1/organization-vault?limit=2&namespace=a%2Fb&cursor=abc HTTP/1.1\r\n"));
}

#[test]
fn versions_are_added_promoted_and_destroyed() {
    let version = r#"{"version":2,"state":"staged","information":{"fingerprint":"f"},"created_at":"c"}"#;
    let item = ITEM.replace("\"version\":1", "\"version\":2,\"staged_version\":3,\"expires_at\":\"e\"");
    let (client, server) = server(vec![
        answer("201 Created", "", r#"{"id":"i","version":2}"#),
        answer("200 OK", "", &format!("[{version}]")),
        answer("200 OK", "ETag: \"7\"\r\n", ITEM),
        answer("200 OK", "ETag: \"8\"\r\n", &item),
        answer("204 No Content", "", ""),
    ]);
    let session = session(&client);
    let data = SecretString::from(r#"{"bucket": "b"}"#).into();
    let request = ReplaceRequest { data, expires_at: Some("t".into()), stage: Some(true) };
    let options = RequestOptions { idempotency_key: Some("k".into()), if_match: Some("\"6\"".into()), verify: true };
    assert_eq!(session.replace("../i", &request, &options).unwrap().version, 2);
    let versions = session.versions("i").unwrap();
    assert_eq!((versions[0].version, &*versions[0].state, versions[0].damaged), (2, "staged", false));
    let (item, tag) = session.show_tagged("i").unwrap();
    assert_eq!((item.staged_version, item.expires_at, tag.as_deref()), (None, None, Some("\"7\"")));
    let promoted = session.promote("i", 2, tag.as_deref()).unwrap();
    assert_eq!((promoted.staged_version, promoted.expires_at.as_deref()), (Some(3), Some("e")));
    session.destroy_version("i", 1, None).unwrap();
    let requests = server.join().unwrap();
    for (requests, (line, body, headers)) in requests.iter().zip([
        (
            "POST /v1/organization-vault/%2E%2E%2Fi/versions?verify=true ",
            r#"{"data":{"bucket": "b"},"expires_at":"t","stage":true}"#,
            &["idempotency-key: k", "if-match: \"6\""][..],
        ),
        ("GET /v1/organization-vault/i/versions ", "", &[]),
        ("GET /v1/organization-vault/i ", "", &[]),
        ("POST /v1/organization-vault/i/promote ", r#"{"version":2}"#, &["if-match: \"7\""]),
        ("DELETE /v1/organization-vault/i/versions/1 ", "", &[]),
    ]) {
        assert!(requests.starts_with(line) && requests.ends_with(&format!("\r\n\r\n{body}")), "{requests}");
        let head = requests.to_lowercase();
        assert!(headers.iter().all(|header| head.contains(&format!("\r\n{header}\r\n"))), "{requests}");
        assert_eq!(head.matches("if-match").count(), headers.iter().filter(|name| name.contains("match")).count());
    }
}

#[test]
fn credential_metadata_is_changed_and_filtered() {
    let used = r#"[{"integration":"nightly","at":"t","expires_at":"u","version":2,"form":"raw","purpose":"p"}]"#;
    let (client, server) = server(vec![
        answer("200 OK", "", ITEM),
        answer("200 OK", "", r#"{"same":true}"#),
        answer("202 Accepted", "", ""),
        answer("202 Accepted", "", ""),
        answer("200 OK", "Link: </v1/x?limit=1000&cursor=abc>; rel=\"next\"\r\n", used),
        answer("200 OK", "", "[]"),
        answer("200 OK", "", "[]"),
    ]);
    let session = session(&client);
    let labels = BTreeMap::from([("team".to_owned(), Some("data".to_owned())), ("env".to_owned(), None)]);
    let request = DescribeRequest {
        labels: Some(labels),
        description: Some(None),
        vend: Some("short".into()),
        ..DescribeRequest::default()
    };
    let item = session.describe("i", &request, Some("\"7\"")).unwrap();
    assert_eq!((&*item.vend, &*item.health.state), ("any", "unchecked"));
    assert_eq!(item.labels.unwrap()["team"], "data");
    assert!(session.matches("i", SecretString::from(r#"{"bucket": "b"}"#).into()).unwrap());
    session.request_check("i", None).unwrap();
    session.request_check("i", Some(2)).unwrap();
    let (uses, next) = session.uses("i", None).unwrap();
    assert_eq!(
        (&*uses[0].integration, uses[0].purpose.as_deref(), next.as_deref()),
        ("nightly", Some("p"), Some("abc"))
    );
    assert_eq!(session.uses("i", next.as_deref()).unwrap(), (Vec::new(), None));
    let filter = ListFilter {
        labels: vec!["team:data".into(), "env:".into()],
        health: Some("expiring".into()),
        expires_before: Some("2027-01-31T12:00:00+02:00".into()),
        ..ListFilter::default()
    };
    assert_eq!(session.list(filter).count(), 0);
    let requests = server.join().unwrap();
    for (requests, (line, body)) in requests.iter().zip([
        ("PATCH /v1/organization-vault/i ", r#"{"labels":{"env":null,"team":"data"},"description":null,"vend":"short"}"#),
        ("POST /v1/organization-vault/i/match ", r#"{"data":{"bucket": "b"}}"#),
        ("POST /v1/organization-vault/i/check ", "{}"),
        ("POST /v1/organization-vault/i/check ", r#"{"version":2}"#),
        ("GET /v1/organization-vault/i/activations ", ""),
        ("GET /v1/organization-vault/i/activations?cursor=abc ", ""),
        (
            "GET /v1/organization-vault?expires_before=2027-01-31T12%3A00%3A00%2B02%3A00&health=expiring&label=team%3Adata&label=env%3A ",
            "",
        ),
    ]) {
        assert!(requests.starts_with(line) && requests.ends_with(&format!("\r\n\r\n{body}")), "{requests}");
    }
}

#[test]
fn problems_are_distinguished_from_foreign_responses() {
    let problem = r#"{"type":"urn:orgvault:problem:not-found","title":"Not found","status":404,"detail":"d","code":"not-found","request_id":"r","errors":[{"pointer":"/a","code":"blank","detail":"must not be empty"}]}"#;
    let (client, server) = server(vec![
        answer("404 Not Found", "", problem),
        answer("502 Bad Gateway", "", "<html>"),
        answer("302 Found", "Location: http://elsewhere.example/\r\n", ""),
        answer("200 OK", "", "<html>"),
        answer("204 No Content", "", ""),
    ]);
    let session = session(&client);
    let error = session.show("../login").unwrap_err();
    assert_eq!(error.code(), Some(ProblemCode::NotFound));
    assert_eq!(error.to_string(), "Not found\n  /a: must not be empty\n  request r");
    for status in [502, 302, 200] {
        let error = session.show("i").unwrap_err();
        assert!(matches!(error, ClientError::Unexpected { status: found, .. } if found == status), "{error:?}");
    }
    session.delete("i").unwrap();
    let requests = server.join().unwrap();
    assert!(requests[0].starts_with("GET /v1/organization-vault/%2E%2E%2Flogin HTTP/1.1\r\n"));
    assert!(requests[4].starts_with("DELETE /v1/organization-vault/i HTTP/1.1\r\n"));
}

#[test]
fn missing_response_is_transport_error() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::new(&format!("http://{address}/v1")).unwrap();
    assert!(matches!(session(&client).delete("i"), Err(ClientError::Transport { .. })));
    assert!(matches!(Client::new("vault"), Err(ClientError::BaseUrl)));
}

fn secret(text: &str) -> WireSecret {
    SecretString::from(text).into()
}

fn proof() -> ProofRequest {
    ProofRequest { password: secret("p"), passcode: secret("1") }
}

#[test]
fn accounts_are_administered_and_enrolled() {
    let account = r#"{"id":"i","email":"e","role":"viewer","state":"invited","created_at":"c"}"#;
    let totp = r#"{"email":"e","totp":{"secret":"s","uri":"u"},"recovery_codes":["r"]}"#;
    let (client, server) = server(vec![
        answer("200 OK", "", &format!("[{account}]")),
        answer("201 Created", "", r#"{"id":"i","enrolment_code":"c","expires_at":"t"}"#),
        answer("200 OK", "", account),
        answer("204 No Content", "", ""),
        answer("201 Created", "", r#"{"enrolment_code":"n","expires_at":"t"}"#),
        answer("204 No Content", "", ""),
        answer("200 OK", "", r#"{"email":"e","organization":"o","expires_at":"t"}"#),
        answer("200 OK", "", totp),
        answer("204 No Content", "", ""),
    ]);
    let session = session(&client);
    let listed = session.accounts().unwrap();
    assert_eq!((&*listed[0].state, &listed[0].last_login_at), ("invited", &None));
    let invited = session.invite(&InviteRequest { email: "e".into(), role: "viewer".into() }).unwrap();
    assert!(!format!("{invited:?}").contains("\"c\""), "{invited:?}");
    assert_eq!(
        session
            .change_account("../i", &ChangeAccountRequest { state: Some("disabled".into()), ..Default::default() })
            .unwrap(),
        listed[0]
    );
    session.unlock_account("i").unwrap();
    let code = session.re_enrol_account("i/").unwrap().enrolment_code;
    assert_eq!(code.into_secret().expose_secret(), "n");
    session.delete_account("i").unwrap();
    let shown = client.invitation(&InvitationRequest { enrolment_code: secret("c") }).unwrap();
    assert_eq!((&*shown.organization, shown.invited_by), ("o", None));
    let enrol = EnrolRequest { enrolment_code: invited.enrolment_code, password: secret("p") };
    let drafted = client.enrol(&enrol).unwrap();
    assert_eq!(drafted.totp.secret.into_secret().expose_secret(), "s");
    client.confirm_enrolment(&ConfirmEnrolmentRequest { enrolment_code: secret("c"), passcode: secret("1") }).unwrap();
    let requests = server.join().unwrap();
    for (requests, (line, body)) in requests.iter().zip([
        ("GET /v1/accounts ", ""),
        ("POST /v1/accounts ", r#"{"email":"e","role":"viewer"}"#),
        ("PATCH /v1/accounts/%2E%2E%2Fi ", r#"{"state":"disabled"}"#),
        ("POST /v1/accounts/i/unlock ", ""),
        ("POST /v1/accounts/i%2F/re-enrol ", ""),
        ("DELETE /v1/accounts/i ", ""),
        ("POST /v1/enrol/invitation ", r#"{"enrolment_code":"c"}"#),
        ("POST /v1/enrol ", r#"{"enrolment_code":"c","password":"p"}"#),
        ("POST /v1/enrol/confirm ", r#"{"enrolment_code":"c","passcode":"1"}"#),
    ]) {
        assert!(requests.starts_with(line) && requests.ends_with(&format!("\r\n\r\n{body}")), "{requests}");
        assert_eq!(requests.to_lowercase().contains("authorization: bearer"), !line.contains("/enrol"), "{requests}");
    }
}

#[test]
fn own_account_is_managed() {
    let account = r#"{"id":"i","email":"e","role":"viewer","organization":"o","organization_id":"oi","passcode_enrolled_at":"t",
        "recovery_codes_left":2,"notices":[{"code":"recovery-codes-low","detail":"d"},{"code":"new","at":"t","detail":"d"}]}"#;
    let item =
        r#"{"id":"i","created_at":"c","expires_at":"e","last_used_at":"l","network":"127.0.0.0/24","current":true}"#;
    let (client, server) = server(vec![
        answer("200 OK", "", account),
        answer("200 OK", "", &format!("[{item}]")),
        answer("204 No Content", "", ""),
        answer("204 No Content", "", ""),
        answer("200 OK", "", r#"{"totp":{"secret":"s","uri":"u"}}"#),
        answer("204 No Content", "", ""),
        answer("200 OK", "", r#"{"recovery_codes":["r"]}"#),
    ]);
    let session = session(&client);
    let account = session.account().unwrap();
    assert_eq!((account.recovery_codes_left, account.notices.len(), &account.notices[0].at), (2, 2, &None));
    assert!(session.sessions().unwrap()[0].current);
    session.end_session("i").unwrap();
    let change = ChangePasswordRequest { password: secret("p"), passcode: secret("1"), new_password: secret("n") };
    session.change_password(&change).unwrap();
    let totp = session.replace_passcode(&proof()).unwrap();
    assert_eq!(totp.uri.into_secret().expose_secret(), "u");
    session.confirm_passcode(SecretString::from("2")).unwrap();
    assert_eq!(session.replace_recovery_codes(&proof()).unwrap().len(), 1);
    let requests = server.join().unwrap();
    for (requests, (line, body)) in requests.iter().zip([
        ("GET /v1/account ", ""),
        ("GET /v1/account/sessions ", ""),
        ("DELETE /v1/account/sessions/i ", ""),
        ("POST /v1/account/password ", r#"{"password":"p","passcode":"1","new_password":"n"}"#),
        ("POST /v1/account/passcode ", r#"{"password":"p","passcode":"1"}"#),
        ("POST /v1/account/passcode/confirm ", r#"{"passcode":"2"}"#),
        ("POST /v1/account/recovery-codes ", r#"{"password":"p","passcode":"1"}"#),
    ]) {
        assert!(requests.starts_with(line) && requests.ends_with(&format!("\r\n\r\n{body}")), "{requests}");
        assert!(requests.to_lowercase().contains("authorization: bearer"), "{requests}");
    }
}
