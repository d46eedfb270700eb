//! Google Cloud Storage: objects against an emulator, tokens and refusals against documented answers.

use crate::support;

use self::support::tls::Authority;
use self::support::{ALL, Names, check, data, order, storage};
use ring::rsa::KeyPair;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use vault_core::activation::ShortData;
use vault_core::check::{CheckReason, StorageOperation};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::port::CredentialVendor;
use vault_storage::Places;
use vault_testkit::stores::{Asked, GoogleEmulator, SERVICE_ACCOUNT_KEY, Scripted};

const BUCKET: &str = "nightly-exports";
const ACCOUNT: &str = "batch@our-project.iam.gserviceaccount.com";

fn gcs(json: &Value) -> CredentialData {
    data(CredentialType::Gcs, json)
}

fn saved(token_uri: &str, account: &str) -> Value {
    json!({
        "service_account_key": {
            "type": "service_account", "project_id": "our-project", "private_key_id": "key1", "private_key": SERVICE_ACCOUNT_KEY,
            "client_email": account, "token_uri": token_uri,
        },
        "bucket": BUCKET,
    })
}

fn with(mut json: Value, name: &str, value: &str) -> Value {
    json[name] = value.into();
    json
}

fn decode(part: &str) -> Value {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The assertion in a request for a token: its head and its claims.
fn assertion(asked: &Asked) -> Option<(Value, Value)> {
    let assertion = asked.body.split('&').find_map(|pair| pair.strip_prefix("assertion="))?;
    let mut parts = assertion.split('.');
    Some((decode(parts.next()?), decode(parts.next()?)))
}

/// Whether the account's key signed it.
fn is_signed(assertion: &str) -> bool {
    use base64::Engine;
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(signature).unwrap();
    let key = PrivatePkcs8KeyDer::from_pem_slice(SERVICE_ACCOUNT_KEY.as_bytes()).unwrap();
    let key = KeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public());
    public.verify(signed.as_bytes(), &signature).is_ok()
}

/// Google's tokens.
///
/// <https://developers.google.com/identity/protocols/oauth2/service-account#jwt-error-codes> and
/// <https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token>
fn tokens() -> Scripted {
    Scripted::start(|asked| {
        let refused = |description: &str| {
            (400, vec![], json!({"error": "invalid_grant", "error_description": description}).to_string())
        };
        let granted = |token: &str, seconds: Option<i64>| {
            let mut body = json!({"access_token": token, "token_type": "Bearer"});
            if let Some(seconds) = seconds {
                body["expires_in"] = seconds.into();
            }
            (200, vec![], body.to_string())
        };
        if asked.path == "/v1/token" {
            return if asked.body.contains("subject_token=wide") { granted("narrow", None) } else { refused("no") };
        }
        let Some((_, claims)) = assertion(asked) else { return refused("no assertion") };
        match claims["iss"].as_str().unwrap_or_default().split('@').next().unwrap_or_default() {
            "gone" => refused("Invalid grant: account not found"),
            "rotated" => refused("Invalid JWT Signature."),
            "late" => refused(
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your \
                 iat and exp values in the JWT claim.",
            ),
            "stopped" => (401, vec![], json!({"error": "unauthorized_client"}).to_string()),
            "busy" => (500, vec![], String::new()),
            "web" => (200, vec![], "<html>".into()),
            _ => granted("wide", Some(3_599)),
        }
    })
}

#[tokio::test]
async fn emulator_reads_and_writes_objects() {
    let google = GoogleEmulator::start();
    google.create_bucket(BUCKET);
    google.put(BUCKET, "in/a b+c.csv", b"1,2,3\n");
    let tokens = tokens();
    let places = Places { google_storage: google.endpoint(), ..Places::default() };
    let storage = storage(places, None);
    let saved = saved(&format!("{}/token", tokens.endpoint()), ACCOUNT);

    let well = ["authenticate passed", "list passed", "read passed", "write passed"];
    let report = check(&storage, &gcs(&saved), &ALL).await;
    assert_eq!(report[..4], well);
    // The emulator gives everybody every right.
    assert_eq!(report[4..], ["least-privilege warning excess-rights"]);
    assert_eq!(check(&storage, &gcs(&with(saved.clone(), "key_prefix", "in/")), &ALL).await[..4], well);
    assert_eq!(check(&storage, &gcs(&with(saved.clone(), "key_prefix", "out/")), &ALL).await[..4], well);
    let missing = with(saved, "bucket", "nobody-made-this");
    let report = check(&storage, &gcs(&missing), &[StorageOperation::Read]).await;
    assert_eq!(report, ["authenticate failed bucket-missing", "read skipped earlier-failed"]);
    assert!(!google.list(BUCKET).contains("orgvault-check"), "something was left behind");
}

#[tokio::test]
async fn token_refusals_are_distinguished() {
    let tokens = tokens();
    let storage = storage(Places::default(), None);
    for (account, reason) in [
        ("gone", "unknown-key"),
        ("rotated", "signature-mismatch"),
        ("late", "clock-skew"),
        ("stopped", "denied"),
        ("busy", "store-error"),
        ("web", "unexpected-answer"),
    ] {
        let saved = saved(&tokens.endpoint(), &format!("{account}@our-project.iam.gserviceaccount.com"));
        assert_eq!(check(&storage, &gcs(&saved), &[]).await, [format!("authenticate failed {reason}")]);
    }
    let mut unusable = saved(&tokens.endpoint(), ACCOUNT);
    unusable["service_account_key"]["private_key"] =
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".into();
    assert_eq!(check(&storage, &gcs(&unusable), &[]).await, ["authenticate failed signature-mismatch"]);
    let inside = saved("http://169.254.169.254/computeMetadata/v1/token", ACCOUNT);
    assert_eq!(check(&storage, &gcs(&inside), &[]).await, ["authenticate failed blocked-egress"]);
}

/// <https://cloud.google.com/storage/docs/json_api/v1/status-codes>
#[tokio::test]
async fn store_refusals_are_distinguished() {
    let store = Scripted::start(|asked| {
        let refused = |status: u16, reason: &str| {
            let body = json!({"error": {"code": status, "message": "m", "errors": [{"reason": reason}]}});
            (status, vec![], body.to_string())
        };
        match asked.path.split(['/', '?']).find(|part| part.starts_with("is-")).unwrap_or_default() {
            "is-foreign" => refused(401, "authError"),
            "is-denied" => refused(403, "forbidden"),
            "is-limited" => refused(429, "rateLimitExceeded"),
            "is-narrow" if asked.path.contains("testPermissions") => (200, vec![], "{}".into()),
            "is-narrow" if asked.path.contains("alt=media") => refused(403, "forbidden"),
            "is-narrow" => (200, vec![], json!({"items": [{"name": "a", "size": "0"}]}).to_string()),
            _ => (200, vec![], "<html>".into()),
        }
    });
    let tokens = tokens();
    let storage = storage(Places { google_storage: store.endpoint(), ..Places::default() }, None);
    let saved = saved(&tokens.endpoint(), ACCOUNT);
    for (bucket, expected) in [
        ("is-foreign", vec!["authenticate failed unknown-key", "read skipped earlier-failed"]),
        ("is-denied", vec!["authenticate passed", "read skipped nothing-to-try"]),
        ("is-limited", vec!["authenticate failed store-error", "read skipped earlier-failed"]),
        ("is-narrow", vec!["authenticate passed", "read failed denied", "least-privilege passed"]),
        ("is-a-website", vec!["authenticate failed unexpected-answer", "read skipped earlier-failed"]),
    ] {
        let saved = gcs(&with(saved.clone(), "bucket", bucket));
        assert_eq!(check(&storage, &saved, &[StorageOperation::Read]).await, expected, "{bucket}");
    }
    assert!(store.asked().iter().all(|asked| asked.fields["authorization"] == "Bearer wide"));
}

#[tokio::test]
async fn token_is_requested_as_documented_and_narrowed() {
    let tokens = tokens();
    let storage = storage(Places { google_exchange: tokens.endpoint(), ..Places::default() }, None);
    let token_uri = format!("{}/token", tokens.endpoint());
    let order = order(43_200);
    let saved = with(saved(&token_uri, ACCOUNT), "key_prefix", "in'/");
    let vended = storage.vend(&gcs(&saved), order.clone()).await.unwrap();
    assert_eq!(vended.expires_at, order.now.floor_to_second().plus_seconds(3_599));
    let ShortData::Gcs(short) = vended.data else { panic!("of another type") };
    assert_eq!((short.access_token.expose(), short.bucket.single()), ("narrow", Some(BUCKET)));
    assert_eq!(short.key_prefix.as_deref(), Some("in'/"));

    let asked = tokens.asked();
    let (head, claims) = assertion(&asked[0]).unwrap();
    assert_eq!(head, json!({"alg": "RS256", "typ": "JWT", "kid": "key1"}));
    let now = order.now.as_seconds();
    let scope = "https://www.googleapis.com/auth/cloud-platform";
    assert_eq!(claims, json!({"iss": ACCOUNT, "aud": token_uri, "scope": scope, "iat": now, "exp": now + 3_600}));
    let signed = asked[0].body.split("assertion=").nth(1).unwrap();
    assert!(is_signed(signed), "{signed}");
    assert!(!is_signed(&signed.replacen('e', "f", 1)));
    let exchange = &asked[1].body;
    for part in ["token-exchange", "subject_token=wide", "roles%2Fstorage.objectUser", "objectListPrefix"] {
        assert!(exchange.contains(part), "{part} in {exchange}");
    }
    assert!(exchange.contains("nightly-exports%2Fobjects%2Fin%5C%5C%27%2F"), "{exchange}");

    let mut gone = saved.clone();
    gone["service_account_key"]["client_email"] = "gone@our-project.iam.gserviceaccount.com".into();
    assert_eq!(storage.vend(&gcs(&gone), order.clone()).await.unwrap_err(), CheckReason::UnknownKey);
    let mut busy = saved;
    busy["service_account_key"]["client_email"] = "busy@our-project.iam.gserviceaccount.com".into();
    assert_eq!(storage.vend(&gcs(&busy), order.clone()).await.unwrap_err(), CheckReason::StoreError);
}

#[tokio::test]
async fn token_of_a_universe_is_sent_within_it_only() {
    let authority = Authority::new();
    let tokens = authority.serve(|_| {
        let body = json!({"access_token": "of-the-universe", "expires_in": 3_599}).to_string();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    });
    let names = Names::new(&["store.test"]);
    let storage = names.storage(Some(authority.certificate()));
    let mut key = saved(&format!("https://store.test:{}/token", tokens.port()), ACCOUNT);
    key["service_account_key"]["universe_domain"] = "store.test".into();
    assert_eq!(check(&storage, &gcs(&key), &[]).await, ["authenticate failed dns"]);
    assert_eq!(names.asked(), ["store.test", "storage.store.test"]);
    assert_eq!(storage.vend(&gcs(&key), order(3_600)).await.unwrap_err(), CheckReason::Dns);
    assert_eq!(names.asked(), ["store.test", "sts.store.test"]);

    key["service_account_key"].as_object_mut().unwrap().remove("token_uri");
    assert_eq!(check(&storage, &gcs(&key), &[]).await, ["authenticate failed dns"]);
    assert_eq!(names.asked(), ["oauth2.store.test"]);
    for token_uri in ["https://oauth2.googleapis.com/token", "https://notstore.test/token", "http://store.test/token"] {
        key["service_account_key"]["token_uri"] = token_uri.into();
        assert_eq!(check(&storage, &gcs(&key), &[]).await, ["authenticate failed foreign-token-uri"], "{token_uri}");
        assert_eq!(storage.vend(&gcs(&key), order(3_600)).await.unwrap_err(), CheckReason::ForeignTokenUri);
    }
    // Saved before the field was validated.
    key["service_account_key"]["universe_domain"] = "store.test/".into();
    assert_eq!(check(&storage, &gcs(&key), &[]).await, ["authenticate failed foreign-token-uri"]);
    assert!(names.asked().is_empty());
}
