//! Keyless access: requests to the providers, and what their refusals mean for a trust.
//!
//! The token is not signed here. Its claims are readable, so that the servers can decide by them.

use crate::support;

use self::support::tls::Authority;
use self::support::{data, lines, local, now, order};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use url::form_urlencoded;
use uuid::Uuid;
use vault_core::activation::ShortData;
use vault_core::check::CheckReason;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::federation::{FederationClaims, FederationIssuer, FederationSubject};
use vault_core::id::OrganizationId;
use vault_core::port::{CredentialVendor, FederationTokenSigner, ProbeRequest, ProviderTrust, StorageProbe};
use vault_storage::{Places, Storage, StorageSettings};
use vault_testkit::clock::SequentialIds;
use vault_testkit::stores::{Asked, Scripted};

const ROLE: &str = "arn:aws:iam::111122223333:role/nightly";
const PROVIDER: &str =
    "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/vault/providers/orgvault";
const ACCOUNT: &str = "nightly@acme-data.iam.gserviceaccount.com";

/// Writes the claims instead of signing them.
struct Unsigned(FederationIssuer);

#[async_trait]
impl FederationTokenSigner for Unsigned {
    fn issuer(&self) -> &FederationIssuer {
        &self.0
    }

    async fn sign(&self, claims: &FederationClaims) -> Result<SecretString, CheckReason> {
        let payload = URL_SAFE_NO_PAD.encode(claims.to_json());
        Ok(format!("{}.{payload}.c2lnbmF0dXJl", URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256"}"#)).into())
    }
}

fn claims_of(token: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

fn form(asked: &Asked) -> Vec<(String, String)> {
    form_urlencoded::parse(asked.body.as_bytes()).into_owned().collect()
}

fn field(asked: &Asked, name: &str) -> String {
    let mut values = form(asked).into_iter().filter(|(found, _)| found == name);
    let (_, value) = values.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(values.next(), None, "{name} is repeated");
    value
}

fn names(asked: &Asked) -> Vec<String> {
    let mut names: Vec<_> = form(asked).into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

/// Reaches the servers of this test.
fn storage(places: Places, ca_file: Option<PathBuf>) -> Storage {
    let settings = StorageSettings { egress: local(ca_file), places, session_tags: true, ..StorageSettings::default() };
    let issuer = FederationIssuer::parse("https://vault.example.com").unwrap();
    Storage::new(settings, Arc::new(SequentialIds::default())).unwrap().signer(Some(Arc::new(Unsigned(issuer))))
}

fn foreign_subject() -> FederationSubject {
    FederationSubject::new(OrganizationId::from_uuid(Uuid::from_u128(9)), order(60).credential)
}

fn own_subject() -> String {
    order(60).subject().to_string()
}

/// Tokens that the trust of a provider accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trusted {
    /// Only the subject of the test's credential.
    Own,
    Everyone,
}

impl Trusted {
    fn accepts(self, token: &str) -> bool {
        self == Self::Everyone || claims_of(token)["sub"] == own_subject()
    }
}

/// A security token service. The role decides about the error that a refused subject gets.
fn sts(trusted: Trusted) -> Scripted {
    Scripted::start(move |asked| {
        let refused = |code: &str, message: &str| {
            let body = format!(
                "<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
            );
            (400, vec![], body)
        };
        let role = field(asked, "RoleArn");
        if let Some((_, code)) = role.split_once("fails-") {
            let message = if code.ends_with("-keys") {
                "Couldn't retrieve verification key from your identity provider"
            } else {
                ""
            };
            return refused(code.trim_end_matches("-keys"), message);
        }
        if !trusted.accepts(&field(asked, "WebIdentityToken")) {
            return refused("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity");
        }
        let body = "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
            <AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAEXAMPLE</AccessKeyId>\
            <SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken>\
            <Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>\
            </AssumeRoleWithWebIdentityResponse>";
        (200, vec![], body.to_owned())
    })
}

/// A service with TLS, and a client that trusts it.
struct Aws {
    server: Scripted,
    endpoint: String,
    certificate: PathBuf,
    _authority: Authority,
}

impl Aws {
    fn start(trusted: Trusted) -> Self {
        let (server, authority) = (sts(trusted), Authority::new());
        let behind = server.endpoint().trim_start_matches("http://").parse().unwrap();
        let endpoint = format!("https://{}", authority.front(behind));
        Self { server, endpoint, certificate: authority.certificate(), _authority: authority }
    }

    fn storage(&self) -> Storage {
        storage(Places::default(), Some(self.certificate.clone()))
    }

    fn credential(&self, role: &str) -> CredentialData {
        let json = json!({"role_arn": role, "bucket": "nightly", "key_prefix": "in/", "endpoint": self.endpoint,
            "path_style_access": true});
        data(CredentialType::S3Federated, &json)
    }
}

/// Azure's directory and blob service. The application decides about the code of a refusal.
fn azure(trusted: Trusted) -> Scripted {
    Scripted::start(move |asked| {
        if asked.path.contains("comp=userdelegationkey") {
            let key = "<UserDelegationKey><SignedOid>o</SignedOid><SignedTid>t</SignedTid><SignedStart>2026-01-01T00:00:00Z\
                </SignedStart><SignedExpiry>2030-01-01T00:00:00Z</SignedExpiry><SignedService>b</SignedService>\
                <SignedVersion>2022-11-02</SignedVersion><Value>a2V5</Value></UserDelegationKey>";
            return (200, vec![], key.to_owned());
        }
        let refused = |code: u32| {
            let body = json!({"error": "invalid_client", "error_codes": [code]});
            (401, vec![], body.to_string())
        };
        match field(asked, "client_id").strip_prefix("fails-") {
            Some(code) => refused(code.parse().unwrap()),
            None if trusted.accepts(&field(asked, "client_assertion")) => {
                (200, vec![], json!({"access_token": "of-the-application", "expires_in": 3_599}).to_string())
            }
            None => refused(700_213),
        }
    })
}

fn azure_places(server: &Scripted) -> Places {
    Places { azure_directory: Some(server.endpoint()), azure_blobs: Some(server.endpoint()), ..Places::default() }
}

fn azure_credential(client: &str) -> CredentialData {
    let json = json!({"tenant_id": "contoso.onmicrosoft.com", "client_id": client, "account_name": "acmeimports",
        "container": "nightly"});
    data(CredentialType::AzureFederated, &json)
}

/// Google's token exchange and impersonation. The pool accepts every subject of the issuer, and the binding decides.
fn google(trusted: Trusted) -> Scripted {
    Scripted::start(move |asked| {
        if asked.path.starts_with("/v1/projects/") {
            let token = asked.fields["authorization"].strip_prefix("Bearer of-subject.").unwrap_or_default();
            return match trusted.accepts(token) {
                true => {
                    let end = now().plus_seconds(900).to_rfc3339().unwrap();
                    (200, vec![], json!({"accessToken": "wide", "expireTime": end}).to_string())
                }
                false => (403, vec![], json!({"error": {"code": 403, "status": "PERMISSION_DENIED"}}).to_string()),
            };
        }
        let granted = |token: &str, seconds: i64| {
            (200, vec![], json!({"access_token": token, "expires_in": seconds, "token_type": "Bearer"}).to_string())
        };
        if field(asked, "subject_token_type").ends_with("access_token") {
            return granted("narrow", 800);
        }
        let refused =
            |error: &str, text: &str| (400, vec![], json!({"error": error, "error_description": text}).to_string());
        let audience = field(asked, "audience");
        match audience.rsplit('/').next() {
            Some("excluded") => {
                refused("unauthorized_client", "The given credential is rejected by the attribute condition.")
            }
            Some("unreachable") => refused("invalid_grant", "Error connecting to the given credential's issuer."),
            Some("untrusted") => refused("invalid_grant", "The issuer in ID Token does not match the expected one."),
            Some("target") => refused("invalid_target", "The target service indicated by the \"audience\" is invalid."),
            _ => granted(&format!("of-subject.{}", field(asked, "subject_token")), 3_600),
        }
    })
}

fn google_places(server: &Scripted) -> Places {
    Places {
        google_exchange: server.endpoint(),
        google_impersonation: server.endpoint(),
        google_storage: server.endpoint(),
        ..Places::default()
    }
}

fn google_credential(provider: &str) -> CredentialData {
    let json = json!({"provider": provider, "service_account": ACCOUNT, "bucket": "nightly", "key_prefix": "in/"});
    data(CredentialType::GcsFederated, &json)
}

async fn trust(storage: &Storage, data: &CredentialData) -> Result<(), CheckReason> {
    storage.check_trust(data, &foreign_subject(), now()).await
}

/// The subject and the audience are the only claims that a trust can be bound to.
fn assert_claims(token: &str, subject: FederationSubject, audience: &str) {
    let claims = claims_of(token);
    let names: Vec<_> = claims.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["aud", "exp", "iat", "iss", "jti", "nbf", "sub"]);
    assert_eq!((&claims["aud"], &claims["sub"]), (&json!(audience), &json!(subject.to_string())));
}

#[tokio::test]
async fn role_of_s3_is_assumed_with_a_token_and_without_a_signature() {
    let aws = Aws::start(Trusted::Own);
    let (storage, credential, order) = (aws.storage(), aws.credential(ROLE), order(3_600));
    let short = storage.vend(&credential, order.clone()).await.unwrap();
    let ShortData::S3(issued) = &short.data else { panic!("of another type") };
    assert_eq!((issued.access_key_id.expose(), issued.key_prefix.as_deref()), ("ASIAEXAMPLE", Some("in/")));
    assert_eq!(short.expires_at.to_rfc3339().as_deref(), Some("2030-01-01T00:00:00Z"));
    let asked = &aws.server.asked()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/"));
    assert!(!asked.fields.contains_key("authorization") && !asked.fields.contains_key("x-amz-security-token"));
    let expected = ["Action", "DurationSeconds", "Policy", "RoleArn", "RoleSessionName", "Version", "WebIdentityToken"];
    assert_eq!(names(asked), expected);
    assert_eq!(field(asked, "Action"), "AssumeRoleWithWebIdentity");
    assert_eq!((field(asked, "RoleArn"), field(asked, "DurationSeconds")), (ROLE.to_owned(), "3600".to_owned()));
    assert_eq!(field(asked, "RoleSessionName"), format!("orgvault-{}", order.activation.unwrap()));
    assert!(field(asked, "Policy").contains("nightly/in/*"));
    // The audience is the origin of the store.
    assert_claims(&field(asked, "WebIdentityToken"), order.subject(), &aws.endpoint);

    assert_eq!(trust(&storage, &credential).await, Ok(()));
    let asked = aws.server.asked().pop().unwrap();
    assert_eq!(
        (field(&asked, "RoleSessionName"), field(&asked, "DurationSeconds")),
        ("orgvault-trust-check".into(), "900".into())
    );
    assert_claims(&field(&asked, "WebIdentityToken"), foreign_subject(), &aws.endpoint);
}

#[tokio::test]
async fn token_is_not_sent_without_tls() {
    let server = sts(Trusted::Everyone);
    let json = json!({"role_arn": ROLE, "bucket": "nightly", "endpoint": server.endpoint()});
    // Such data cannot be saved. It is refused again before each exchange.
    let credential = data(CredentialType::S3Federated, &json);
    let storage = storage(Places::default(), None);
    assert_eq!(storage.vend(&credential, order(60)).await.unwrap_err(), CheckReason::Unexpected);
    assert_eq!(trust(&storage, &credential).await, Err(CheckReason::Unexpected));
    assert_eq!(server.asked(), []);
}

#[tokio::test]
async fn sts_refusals_are_distinguished() {
    let aws = Aws::start(Trusted::Own);
    let storage = aws.storage();
    for (code, reason, is_closed) in [
        ("AccessDenied", CheckReason::TrustMissing, true),
        ("InvalidIdentityToken-keys", CheckReason::IssuerUnreachable, false),
        ("IDPCommunicationError", CheckReason::IssuerUnreachable, false),
        ("InvalidIdentityToken", CheckReason::IssuerNotTrusted, false),
        ("ExpiredTokenException", CheckReason::ClockSkew, false),
        ("RegionDisabledException", CheckReason::WrongRegion, false),
        ("PackedPolicyTooLarge", CheckReason::PolicyTooLarge, false),
        ("IDPRejectedClaim", CheckReason::Unexpected, false),
        ("InternalFailure", CheckReason::StoreError, false),
    ] {
        let credential = aws.credential(&format!("arn:aws:iam::1:role/fails-{code}"));
        assert_eq!(storage.vend(&credential, order(60)).await.unwrap_err(), reason, "{code}");
        let expected = if is_closed { Ok(()) } else { Err(reason) };
        assert_eq!(trust(&storage, &credential).await, expected, "{code}");
    }
}

#[tokio::test]
async fn application_of_azure_presents_a_token_instead_of_a_secret() {
    let server = azure(Trusted::Own);
    let storage = storage(azure_places(&server), None);
    let (credential, order) = (azure_credential("our-app"), order(3_600));
    let short = storage.vend(&credential, order.clone()).await.unwrap();
    let ShortData::AzureIdentity(issued) = &short.data else { panic!("of another type") };
    assert_eq!(issued.endpoint, format!("{}/acmeimports", server.endpoint()));
    assert!(issued.sas_token.expose().contains("sig="));
    assert_eq!(short.expires_at, order.expires_at.floor_to_second());
    let asked = server.asked();
    assert_eq!(asked[0].path, "/contoso.onmicrosoft.com/oauth2/v2.0/token");
    assert_eq!(names(&asked[0]), ["client_assertion", "client_assertion_type", "client_id", "grant_type", "scope"]);
    assert_eq!(field(&asked[0], "grant_type"), "client_credentials");
    assert_eq!(field(&asked[0], "scope"), "https://storage.azure.com/.default");
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    assert_eq!(field(&asked[0], "client_assertion_type"), kind);
    let claims = claims_of(&field(&asked[0], "client_assertion"));
    assert_eq!((&claims["aud"], &claims["sub"]), (&json!("api://AzureADTokenExchange"), &json!(own_subject())));
    assert_eq!(asked[1].fields["authorization"], "Bearer of-the-application");

    let before = asked.len();
    assert_eq!(trust(&storage, &credential).await, Ok(()));
    let asked = server.asked();
    assert_eq!(asked.len(), before + 1);
    assert_claims(&field(&asked[before], "client_assertion"), foreign_subject(), "api://AzureADTokenExchange");
}

#[tokio::test]
async fn entra_refusals_are_distinguished() {
    let server = azure(Trusted::Own);
    let storage = storage(azure_places(&server), None);
    for (code, reason, is_closed) in [
        (70_021, CheckReason::TrustMissing, true),
        (700_213, CheckReason::TrustMissing, true),
        (7_002_137, CheckReason::TrustMissing, true),
        (7_002_138, CheckReason::TrustMissing, true),
        (7_000_272, CheckReason::IssuerUnreachable, false),
        (90_061, CheckReason::IssuerUnreachable, false),
        (501_661, CheckReason::IssuerUnreachable, false),
        (700_211, CheckReason::IssuerNotTrusted, false),
        (700_212, CheckReason::IssuerNotTrusted, false),
        (700_024, CheckReason::ClockSkew, false),
        (700_016, CheckReason::UnknownKey, false),
        (90_002, CheckReason::TenantUnknown, false),
        (1, CheckReason::SignatureMismatch, false),
    ] {
        let credential = azure_credential(&format!("fails-{code}"));
        assert_eq!(storage.vend(&credential, order(60)).await.unwrap_err(), reason, "{code}");
        let expected = if is_closed { Ok(()) } else { Err(reason) };
        assert_eq!(trust(&storage, &credential).await, expected, "{code}");
    }
}

#[tokio::test]
async fn service_account_of_google_is_impersonated_and_its_token_narrowed() {
    let server = google(Trusted::Own);
    let storage = storage(google_places(&server), None);
    let (credential, order) = (google_credential(PROVIDER), order(7_200));
    let short = storage.vend(&credential, order.clone()).await.unwrap();
    let ShortData::Gcs(issued) = &short.data else { panic!("of another type") };
    assert_eq!((issued.access_token.expose(), issued.universe_domain.as_deref()), ("narrow", None));
    assert_eq!(short.expires_at, order.now.floor_to_second().plus_seconds(800));
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    let expected = ["audience", "grant_type", "requested_token_type", "scope", "subject_token", "subject_token_type"];
    assert_eq!((asked[0].path.as_str(), names(&asked[0])), ("/v1/token", expected.map(str::to_owned).to_vec()));
    assert!(!asked[0].fields.contains_key("authorization"));
    assert_eq!(field(&asked[0], "audience"), PROVIDER);
    assert_eq!(field(&asked[0], "scope"), "https://www.googleapis.com/auth/iam");
    assert_eq!(field(&asked[0], "subject_token_type"), "urn:ietf:params:oauth:token-type:jwt");
    let claims = claims_of(&field(&asked[0], "subject_token"));
    assert_eq!((&claims["aud"], &claims["sub"]), (&json!(format!("https:{PROVIDER}")), &json!(own_subject())));
    assert_eq!(asked[1].path, format!("/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"));
    let body: Value = serde_json::from_str(&asked[1].body).unwrap();
    assert_eq!(body, json!({"scope": ["https://www.googleapis.com/auth/cloud-platform"], "lifetime": "3600s"}));
    assert_eq!(field(&asked[2], "subject_token"), "wide");
    assert!(field(&asked[2], "options").contains("objects/in/"));

    assert_eq!(trust(&storage, &credential).await, Ok(()));
    let asked = server.asked();
    assert_eq!(asked.len(), 5, "a trust check stops before the token is narrowed");
    assert_claims(&field(&asked[3], "subject_token"), foreign_subject(), &format!("https:{PROVIDER}"));
}

#[tokio::test]
async fn google_refusals_are_distinguished() {
    let server = google(Trusted::Own);
    let storage = storage(google_places(&server), None);
    for (provider, reason, is_closed) in [
        ("excluded", CheckReason::TrustMissing, true),
        ("unreachable", CheckReason::IssuerUnreachable, false),
        ("untrusted", CheckReason::IssuerNotTrusted, false),
        ("target", CheckReason::IssuerNotTrusted, false),
    ] {
        let credential = google_credential(&PROVIDER.replace("orgvault", provider));
        assert_eq!(storage.vend(&credential, order(60)).await.unwrap_err(), reason, "{provider}");
        let expected = if is_closed { Ok(()) } else { Err(reason) };
        assert_eq!(trust(&storage, &credential).await, expected, "{provider}");
    }
}

/// A provider that accepts every subject is found open, and one that accepts one subject refuses other organizations.
#[tokio::test]
async fn open_trusts_are_found_and_other_organizations_are_refused() {
    let (closed, open) = (Aws::start(Trusted::Own), Aws::start(Trusted::Everyone));
    let (azure_closed, azure_open) = (azure(Trusted::Own), azure(Trusted::Everyone));
    let (google_closed, google_open) = (google(Trusted::Own), google(Trusted::Everyone));
    let cases = [
        (closed.storage(), closed.credential(ROLE), open.storage(), open.credential(ROLE)),
        (
            storage(azure_places(&azure_closed), None),
            azure_credential("our-app"),
            storage(azure_places(&azure_open), None),
            azure_credential("our-app"),
        ),
        (
            storage(google_places(&google_closed), None),
            google_credential(PROVIDER),
            storage(google_places(&google_open), None),
            google_credential(PROVIDER),
        ),
    ];
    for (closed, of_closed, open, of_open) in cases {
        assert_eq!(trust(&closed, &of_closed).await, Ok(()));
        assert_eq!(trust(&open, &of_open).await, Err(CheckReason::TrustOpen));
        let mut foreign = order(60);
        foreign.organization = OrganizationId::from_uuid(Uuid::from_u128(99));
        assert_eq!(closed.vend(&of_closed, foreign).await.unwrap_err(), CheckReason::TrustMissing);
    }
}

#[tokio::test]
async fn storage_without_a_signer_exchanges_nothing() {
    let server = azure(Trusted::Everyone);
    let storage = support::storage(azure_places(&server), None);
    let credential = azure_credential("our-app");
    assert_eq!(storage.vend(&credential, order(60)).await.unwrap_err(), CheckReason::FederationOff);
    assert_eq!(trust(&storage, &credential).await, Err(CheckReason::FederationOff));
    let request = ProbeRequest { short: None, operations: vec![], until: None, now: now() };
    let report = storage.check(&credential, request).await;
    assert_eq!(lines(&report), ["authenticate failed unexpected-answer"]);
    assert_eq!(server.asked(), []);
}
