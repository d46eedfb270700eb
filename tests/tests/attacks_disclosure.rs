//! Attacks that make the service disclose something: its version, its environment, or the hosts it connects to.

use serde_json::json;
use std::io::ErrorKind;
use std::net::TcpListener;
use vault_tests::samples::{direct_link, s3};
use vault_tests::{Database, Vault};

#[test]
fn a58_responses_disclose_no_software() {
    let vault = Vault::start(Database::Postgres);
    let client = vault.client();
    let session = vault.admin_session();
    session.save(&s3().request);
    client
        .log_in(&json!({"email": "someone@example.com", "password": "p", "passcode": "000000"}))
        .problem("invalid-login");
    let metrics = vault.server().admin_client().get("/metrics").send().expect(200).text();
    let mut texts = vec![metrics];
    for answer in [
        client.get("/livez").send(),
        client.get("/readyz").send(),
        vault.server().admin_client().get("/livez").send(),
        vault.server().admin_client().get("/readyz").send(),
        vault.server().admin_client().get("/").send(),
        client.get("/nonsense").send(),
        client.request("PATCH", "/v1/login").send(),
        client.request("POST", "/v1/login").json_text("{").send(),
        session.get("/organization-vault?cursor=AAAA"),
    ] {
        texts.push(format!("{:?}{}", answer.headers, answer.text()));
    }
    let database = vault.url().rsplit('/').next().unwrap();
    let secrets = [
        env!("CARGO_PKG_VERSION"),
        database,
        "postgres",
        "sqlite",
        "actix",
        "diesel",
        "rust",
        "example.com",
        "Acme",
        "acme",
        &session.token,
        vault.data_dir().to_str().unwrap(),
    ]
    .map(str::to_owned);
    for text in texts.iter().map(|text| text.to_lowercase().replace("trust", "")) {
        for secret in &secrets {
            assert!(!text.contains(&secret.to_lowercase()), "{secret} in {text}");
        }
    }
    // Only operators have access to the metrics.
    client.get("/metrics").send().problem("not-found");
}

#[test]
fn a59_urls_in_credentials_are_not_requested() {
    let vault = Vault::start(Database::Sqlite);
    let session = vault.admin_session();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let here = listener.local_addr().unwrap();
    let mut s3 = s3().request;
    s3["data"]["endpoint"] = json!(format!("http://{here}"));
    let mut link = direct_link().request;
    link["data"]["url"] = json!(format!("https://{here}/file?sig=abcdefgh"));
    for body in [s3, link] {
        let id = session.save(&body);
        session.show(&id).expect(200);
        session.list();
        session.delete(&id).expect(204);
    }
    assert_eq!(
        listener.accept().map(drop).map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock),
        "a client connected"
    );
}
