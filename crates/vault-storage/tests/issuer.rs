//! Issuers of identity tokens, against servers of the test: what may take one over, and what may not be read.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use vault_core::id::IssuerId;
use vault_core::identity::{Issuer, IssuerName, KeySource};
use vault_core::port::{FetchedKeys, IssuerFailure, IssuerKeys as _};
use vault_core::time::Timestamp;
use vault_storage::{Egress, IssuerClient};
use vault_testkit::stores::Scripted;

/// What a page answers: its status and its text. A redirection's text is where it leads.
type Page = Arc<Mutex<(u16, String)>>;

fn page(text: impl ToString) -> Page {
    Arc::new(Mutex::new((200, text.to_string())))
}

/// A server with a discovery document and a key set.
fn serve(discovery: &Page, keys: &Page) -> Scripted {
    let (discovery, keys) = (Arc::clone(discovery), Arc::clone(keys));
    Scripted::start(move |asked| {
        let page = if asked.path == "/.well-known/openid-configuration" { &discovery } else { &keys };
        let (status, text) = page.lock().unwrap().clone();
        (status, vec![("Content-Type", "application/json".to_owned()), ("Location", text.clone())], text)
    })
}

fn issuer(url: &str, source: KeySource) -> Issuer {
    Issuer {
        id: IssuerId::from_bytes([1; 16]),
        name: IssuerName::parse("own", "name").unwrap(),
        url: url.to_owned(),
        source,
        ca: String::new(),
        required: Vec::new(),
        organizations: Vec::new(),
        created_at: Timestamp::from_millis(0),
    }
}

fn keys(of: &str) -> Value {
    json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": of, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})
}

async fn fetch(issuer: &Issuer) -> Result<FetchedKeys, IssuerFailure> {
    IssuerClient::new(&Egress::default()).fetch(issuer).await
}

#[tokio::test]
async fn redirected_issuer_provides_no_keys() {
    let (discovery, own) = (page(""), page(keys("own")));
    let server = serve(&discovery, &own);
    let (no_document, foreign) = (page(""), page(keys("foreign")));
    let other = serve(&no_document, &foreign);
    let says = |issuer: &str, at: &str| {
        *discovery.lock().unwrap() = (200, json!({"issuer": issuer, "jwks_uri": format!("{at}/keys")}).to_string());
    };
    says(&server.endpoint(), &server.endpoint());
    let had = fetch(&issuer(&server.endpoint(), KeySource::Discovery(String::new()))).await.unwrap();
    assert!(had.keys.contains("own"));
    assert_eq!(had.source, KeySource::Discovery(server.endpoint()));

    // From now on its keys are fetched there alone, whatever the document says, and never anywhere else.
    let added = issuer(&server.endpoint(), had.source);
    let why = |result: Result<FetchedKeys, IssuerFailure>| result.unwrap_err().0;
    says(&server.endpoint(), &other.endpoint());
    assert!(why(fetch(&added).await).contains("another host"));
    says(&other.endpoint(), &server.endpoint());
    assert!(why(fetch(&added).await).contains("another issuer's"));
    says(&server.endpoint(), "http://keys.example");
    assert!(why(fetch(&added).await).contains("another host"));
    *discovery.lock().unwrap() = (302, format!("{}/.well-known/openid-configuration", other.endpoint()));
    assert!(why(fetch(&added).await).contains("redirects"));
    says(&server.endpoint(), &server.endpoint());
    *own.lock().unwrap() = (302, format!("{}/keys", other.endpoint()));
    assert!(why(fetch(&added).await).contains("redirects"));
    let by_url = issuer(&server.endpoint(), KeySource::Url(format!("{}/keys", server.endpoint())));
    assert!(why(fetch(&by_url).await).contains("redirects"));
    assert!(other.asked().is_empty(), "nobody was led there");
    *own.lock().unwrap() = (200, keys("second").to_string());
    assert!(fetch(&added).await.unwrap().keys.contains("second"));
}

#[tokio::test]
async fn issuer_response_is_bounded_and_requires_tls() {
    let (discovery, set) = (page(""), page(keys("own")));
    let server = serve(&discovery, &set);
    let by_url = issuer(&server.endpoint(), KeySource::Url(format!("{}/keys", server.endpoint())));
    *set.lock().unwrap() = (200, format!("{}{}", keys("own"), " ".repeat(1024 * 1024)));
    assert!(fetch(&by_url).await.is_err(), "longer than a key set is");
    *set.lock().unwrap() = (503, String::new());
    assert!(fetch(&by_url).await.is_err());
    let document = json!({"issuer": server.endpoint(), "jwks_uri": format!("{}/keys", server.endpoint())});
    *discovery.lock().unwrap() = (200, format!("{document}{}", " ".repeat(64 * 1024)));
    let discovered = issuer(&server.endpoint(), KeySource::Discovery(String::new()));
    assert!(fetch(&discovered).await.unwrap_err().0.contains("discovery document"));
    for unsafe_address in ["http://issuer.example/keys", "http://10.0.0.1/keys", "ftp://127.0.0.1/keys"] {
        let asked = issuer("https://issuer.example", KeySource::Url(unsafe_address.to_owned()));
        assert!(fetch(&asked).await.unwrap_err().0.contains("https"), "{unsafe_address}");
    }
}
