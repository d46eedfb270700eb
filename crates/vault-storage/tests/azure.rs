//! Azure storage: against Azurite over TLS, with a directory of the test's own, which Azurite believes.

use crate::support;

use self::support::tls::Authority;
use self::support::{ALL, Names, check, data, order, storage};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use vault_core::activation::ShortData;
use vault_core::check::{CheckReason, StorageOperation};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::port::CredentialVendor;
use vault_storage::Places;
use vault_testkit::stores::{Azurite, Scripted, TlsFiles};

const TENANT: &str = "11111111-2222-3333-4444-555555555555";
const CONTAINER: &str = "nightly-exports";

fn azure(json: &Value) -> CredentialData {
    data(CredentialType::AzureIdentity, json)
}

/// A token that looks as if it came from a directory: Azurite judges its claims, not its signature.
fn token() -> String {
    let now = support::now().as_seconds();
    let claims = json!({
        "aud": "https://storage.azure.com", "iss": format!("https://sts.windows.net/{TENANT}/"), "oid": TENANT,
        "tid": TENANT, "iat": now - 60, "nbf": now - 60, "exp": now + 3_600,
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    [part(&json!({"alg": "RS256", "typ": "JWT"})), part(&claims), URL_SAFE_NO_PAD.encode("signature")].join(".")
}

/// A directory's answers, by tenant or application.
///
/// <https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow#error-response> and
/// <https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes>
fn directory() -> Scripted {
    Scripted::start(|asked| {
        let refused = |status, error: &str, code: u32| {
            let description = format!("AADSTS{code}: something. Trace ID: 0");
            let body = json!({"error": error, "error_description": description, "error_codes": [code]});
            (status, vec![], body.to_string())
        };
        let has = |part: &str| asked.body.contains(part);
        match () {
            () if asked.path.contains("nobody") => refused(400, "invalid_request", 90_002),
            () if has("client_id=unknown") => refused(400, "unauthorized_client", 700_016),
            () if has("client_secret=wrong") => refused(401, "invalid_client", 7_000_215),
            () if has("client_secret=old") => refused(401, "invalid_client", 7_000_222),
            () if has("client_secret=blocked") => refused(400, "invalid_grant", 53_003),
            () if has("client_secret=busy") => (503, vec![], "{}".into()),
            () if has("client_secret=moved") => (302, vec![("Location", "http://127.0.0.1/".into())], String::new()),
            () => {
                let body = json!({"token_type": "Bearer", "expires_in": 3_599, "access_token": token()});
                (200, vec![], body.to_string())
            }
        }
    })
}

fn saved(connection_string: &str) -> Value {
    json!({
        "tenant_id": TENANT, "client_id": "our-app", "client_secret": "right", "container": CONTAINER,
        "connection_string": connection_string,
    })
}

fn with(mut json: Value, name: &str, value: &str) -> Value {
    json[name] = value.into();
    json
}

#[tokio::test]
async fn azurite_validates_tokens_keys_signatures_and_containers() {
    let authority = Authority::new();
    let azurite = Azurite::start(Some(TlsFiles { certificate: &authority.certificate(), key: &authority.key() }));
    azurite.create_container(CONTAINER);
    azurite.put(CONTAINER, "in/a%20b.csv", "MSwyLDMK");
    let directory = directory();
    let places = Places { azure_directory: Some(directory.endpoint()), ..Places::default() };
    let trusting = storage(places.clone(), Some(authority.certificate()));
    let by_identity = format!("AccountName={};BlobEndpoint={}", azurite.account(), azurite.endpoint());
    let by_key = azurite.connection_string();

    // Azurite knows no rights: every token sees every container.
    let report = check(&trusting, &azure(&saved(&by_identity)), &ALL).await;
    let well = ["authenticate passed", "list passed", "read passed", "write passed"];
    assert_eq!(report[..4], well);
    assert_eq!(report[4..], ["least-privilege warning excess-rights"]);
    let prefixed = with(saved(&by_identity), "key_prefix", "in/");
    assert_eq!(check(&trusting, &azure(&prefixed), &ALL).await[..4], well);
    let report = check(&trusting, &azure(&saved(&by_key)), &[StorageOperation::Read]).await;
    assert_eq!(report, ["authenticate passed", "read passed", "least-privilege warning excess-rights"]);
    let mut whole_account = saved(&by_identity);
    whole_account.as_object_mut().unwrap().remove("container");
    let report = check(&trusting, &azure(&whole_account), &ALL).await;
    let nothing = ["read skipped nothing-to-try", "write skipped nothing-to-try"];
    assert_eq!((&report[..2], &report[2..]), (&well.map(str::to_owned)[..2], &nothing.map(str::to_owned)[..]));

    let wrong_key = by_key.replace("AccountKey=Eby8", "AccountKey=Abcd");
    let wrong_signature = format!("{by_identity};SharedAccessSignature=sv=2022-11-02&sr=c&sp=rl&sig=AAAA");
    for (broken, reason) in [
        (with(saved(&by_identity), "tenant_id", "nobody.example"), "tenant-unknown"),
        (with(saved(&by_identity), "client_id", "unknown"), "unknown-key"),
        (with(saved(&by_identity), "client_secret", "wrong"), "signature-mismatch"),
        (with(saved(&by_identity), "client_secret", "old"), "secret-expired"),
        (with(saved(&by_identity), "client_secret", "blocked"), "denied"),
        (with(saved(&by_identity), "client_secret", "busy"), "store-error"),
        (with(saved(&by_identity), "client_secret", "moved"), "redirected"),
        (with(saved(&by_identity), "container", "nobody-made-this"), "bucket-missing"),
        (saved(&wrong_key), "signature-mismatch"),
        (saved(&wrong_signature), "signature-mismatch"),
        (saved(&by_identity.replace("https:", "http:")), "unreachable"),
    ] {
        let report = check(&trusting, &azure(&broken), &[StorageOperation::List]).await;
        assert_eq!(report, [format!("authenticate failed {reason}"), "list skipped earlier-failed".into()]);
    }
    let distrusting = storage(places, None);
    let report = check(&distrusting, &azure(&saved(&by_identity)), &[]).await;
    assert_eq!(report, ["authenticate failed tls"]);
}

#[tokio::test]
async fn azurite_accepts_issued_signature() {
    let authority = Authority::new();
    let azurite = Azurite::start(Some(TlsFiles { certificate: &authority.certificate(), key: &authority.key() }));
    azurite.create_container(CONTAINER);
    azurite.create_container("another");
    azurite.put(CONTAINER, "in/a.csv", "MSwyLDMK");
    let directory = directory();
    let places = Places { azure_directory: Some(directory.endpoint()), ..Places::default() };
    let storage = storage(places, Some(authority.certificate()));
    let by_identity = format!("AccountName={};BlobEndpoint={}", azurite.account(), azurite.endpoint());

    let order = order(3_600);
    let vended = storage.vend(&azure(&saved(&by_identity)), order.clone()).await.unwrap();
    assert_eq!(vended.expires_at, order.expires_at.floor_to_second());
    let ShortData::AzureIdentity(short) = vended.data else { panic!("of another type") };
    assert_eq!((&*short.endpoint, &*short.account_name), (&*azurite.endpoint(), "devstoreaccount1"));
    // As a saved signature it is tried out beside the identity.
    let by_signature = format!("{by_identity};SharedAccessSignature={}", short.sas_token.expose());
    let report = check(&storage, &azure(&saved(&by_signature)), &ALL).await;
    assert_eq!(report[..4], ["authenticate passed", "list passed", "read passed", "write passed"]);
    let elsewhere = with(saved(&by_signature), "container", "another");
    assert_eq!(check(&storage, &azure(&elsewhere), &[]).await, ["authenticate failed signature-mismatch"]);

    let mut whole_account = saved(&by_identity);
    whole_account.as_object_mut().unwrap().remove("container");
    let asked = directory.asked().len();
    assert_eq!(storage.vend(&azure(&whole_account), order.clone()).await.unwrap_err(), CheckReason::NoContainer);
    // Of this account's name nothing can be told.
    let unnamed = saved(&format!("BlobEndpoint={}", azurite.endpoint()));
    assert_eq!(storage.vend(&azure(&unnamed), order.clone()).await.unwrap_err(), CheckReason::NoAccount);
    assert_eq!(directory.asked().len(), asked, "no token is asked for that would open more");

    for (secret, reason) in [
        ("wrong", CheckReason::SignatureMismatch),
        ("old", CheckReason::SecretExpired),
        ("busy", CheckReason::StoreError),
    ] {
        let broken = with(saved(&by_identity), "client_secret", secret);
        assert_eq!(storage.vend(&azure(&broken), order.clone()).await.unwrap_err(), reason);
    }
}

#[tokio::test]
async fn other_azure_errors_are_distinguished() {
    // <https://learn.microsoft.com/en-us/rest/api/storageservices/status-and-error-codes2>
    let script = Scripted::start(|asked| {
        let refused = |status, code: &str, detail: &str| {
            let body = format!(
                "<Error><Code>{code}</Code><AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail></Error>"
            );
            (status, vec![("x-ms-error-code", code.to_owned()), ("Date", "Sat, 21 Nov 2020 16:30:00 GMT".into())], body)
        };
        match asked.path.split(['/', '?']).nth(2).unwrap_or_default() {
            "skewed" => refused(403, "AuthenticationFailed", "Date header too old"),
            "foreign" => refused(401, "InvalidAuthenticationInfo", "Issuer validation failed"),
            "denied" => refused(403, "AuthorizationPermissionMismatch", ""),
            "firewall" => refused(403, "AuthorizationFailure", ""),
            "closing" => refused(409, "ContainerBeingDeleted", ""),
            "busy" => refused(503, "ServerBusy", ""),
            _ => (200, vec![], "<html>".into()),
        }
    });
    let directory = directory();
    let places = Places { azure_directory: Some(directory.endpoint()), ..Places::default() };
    let storage = storage(places, None);
    let saved = saved(&format!("AccountName=account1;BlobEndpoint={}/account1", script.endpoint()));
    for (container, expected) in [
        ("skewed", "authenticate failed clock-skew"),
        ("foreign", "authenticate failed unknown-key"),
        ("denied", "authenticate passed"),
        ("firewall", "authenticate passed"),
        ("closing", "authenticate failed bucket-missing"),
        ("busy", "authenticate failed store-error"),
        ("website", "authenticate failed unexpected-answer"),
    ] {
        let saved = with(saved.clone(), "container", container);
        assert_eq!(check(&storage, &azure(&saved), &[]).await, [expected], "{container}");
    }
    let denied = with(saved, "container", "denied");
    let report = check(&storage, &azure(&denied), &[StorageOperation::List]).await;
    assert_eq!(report[..2], ["authenticate passed", "list failed denied"]);
}

fn without_application(connection_string: &str) -> Value {
    json!({"container": CONTAINER, "connection_string": connection_string})
}

#[tokio::test]
async fn account_key_is_checked_without_an_application() {
    let authority = Authority::new();
    let azurite = Azurite::start(Some(TlsFiles { certificate: &authority.certificate(), key: &authority.key() }));
    azurite.create_container(CONTAINER);
    azurite.put(CONTAINER, "in/a.csv", "MSwyLDMK");
    let storage = storage(Places::default(), Some(authority.certificate()));
    let by_key = azurite.connection_string();

    let report = check(&storage, &azure(&without_application(&by_key)), &ALL).await;
    let well = ["authenticate passed", "list passed", "read passed", "write passed"];
    assert_eq!(
        (&report[..4], &report[4..]),
        (&well.map(str::to_owned)[..], &["least-privilege warning excess-rights".to_owned()][..])
    );
    let wrong = without_application(&by_key.replace("AccountKey=Eby8", "AccountKey=Abcd"));
    assert_eq!(check(&storage, &azure(&wrong), &[]).await, ["authenticate failed signature-mismatch"]);
    let named = format!("AccountName={};BlobEndpoint={}", azurite.account(), azurite.endpoint());
    let wrong = format!("{named};SharedAccessSignature=sv=2022-11-02&sr=c&sp=rl&sig=AAAA");
    assert_eq!(
        check(&storage, &azure(&without_application(&wrong)), &[]).await,
        ["authenticate failed signature-mismatch"]
    );
    // Nothing opens such an account; it cannot be saved.
    assert_eq!(
        check(&storage, &azure(&without_application(&named)), &[]).await,
        ["authenticate failed nothing-to-try"]
    );
    let refusal = storage.vend(&azure(&without_application(&by_key)), order(3_600)).await.unwrap_err();
    assert_eq!(refusal, CheckReason::NoApplication);
}

#[tokio::test]
async fn application_secret_is_sent_to_the_cloud_of_the_account() {
    let names = Names::new(&[]);
    let storage = names.storage(None);
    for (connection_string, directory) in [
        ("AccountName=madeupacct", "login.microsoftonline.com"),
        ("BlobEndpoint=https://madeupacct33.z07.blob.storage.azure.net/", "login.microsoftonline.com"),
        ("AccountName=madeupacct;EndpointSuffix=core.usgovcloudapi.net", "login.microsoftonline.us"),
        ("BlobEndpoint=https://madeupacct.blob.core.usgovcloudapi.net/", "login.microsoftonline.us"),
        ("DfsEndpoint=https://madeupacct.dfs.core.chinacloudapi.cn/", "login.chinacloudapi.cn"),
        ("AccountName=madeupacct;EndpointSuffix=core.cloudapi.de", "login.microsoftonline.de"),
    ] {
        let saved = azure(&saved(connection_string));
        assert_eq!(check(&storage, &saved, &[]).await, ["authenticate failed dns"], "{connection_string}");
        assert_eq!(storage.vend(&saved, order(3_600)).await.unwrap_err(), CheckReason::Dns);
        assert_eq!(names.asked(), [directory, directory], "{connection_string}");
    }
    for connection_string in [
        "AccountName=madeupacct;EndpointSuffix=local.azurestack.external",
        "AccountName=madeupacct;BlobEndpoint=https://blobs.store.example",
        "AccountName=madeupacct;BlobEndpoint=http://127.0.0.1:9/madeupacct",
    ] {
        let saved = azure(&saved(connection_string));
        assert_eq!(check(&storage, &saved, &[]).await, ["authenticate failed unknown-cloud"], "{connection_string}");
        assert_eq!(storage.vend(&saved, order(3_600)).await.unwrap_err(), CheckReason::UnknownCloud);
        assert!(names.asked().is_empty(), "{connection_string}");
    }
}
