//! Keyless credentials: nothing is issued without a closed provider trust.

use super::setting::{Setting, namespace};
use serde_json::json;
use uuid::Uuid;
use vault_core::activation::{VendMode, VendRule, Vended, VendedForm};
use vault_core::check::{Check, CheckKind, CheckReason, StorageOperation};
use vault_core::credential::CredentialPatch;
use vault_core::credential::{CredentialData, CredentialType, HealthState};
use vault_core::federation::{FederationIssuer, FederationSubject};
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::CredentialId;
use vault_core::usecase::activations::CheckNamespaceRequest;
use vault_core::usecase::{CredentialReplacement, NewCredential, Vault};
use vault_core::{Error, Refusal};

const KINDS: [CredentialType; 3] =
    [CredentialType::S3Federated, CredentialType::AzureFederated, CredentialType::GcsFederated];

fn keyless(kind: CredentialType) -> CredentialData {
    let json = match kind {
        CredentialType::S3Federated => {
            json!({"role_arn": "arn:aws:iam::111122223333:role/nightly", "bucket": "nightly", "region": "eu-central-1"})
        }
        CredentialType::AzureFederated => json!({
            "tenant_id": "contoso.onmicrosoft.com", "client_id": "8d6b8c1e-33a5-4a7e-9a0b-5d2b1c0f4f2a",
            "account_name": "acmeimports", "container": "nightly",
        }),
        _ => json!({
            "provider": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/vault/providers/orgvault",
            "service_account": "nightly@acme-data.iam.gserviceaccount.com", "bucket": "nightly",
        }),
    };
    CredentialData::from_json(kind, json.to_string().as_bytes()).unwrap()
}

/// Returns the use cases of users, with keyless credentials enabled.
fn vault(setting: &Setting) -> Vault {
    let issuer = FederationIssuer::parse("https://vault.example.com").unwrap();
    setting.vault().federation(Some(issuer))
}

async fn saved(setting: &Setting, kind: CredentialType, name: &str) -> CredentialId {
    let request = NewCredential::new(namespace(name), keyless(kind));
    vault(setting).save(&setting.member(), request).await.unwrap()
}

fn refused_fields<T>(outcome: Result<T, Error>) -> Vec<(String, FieldCode)> {
    let Err(Error::Invalid(violations)) = outcome else { panic!("was not refused") };
    violations.into_iter().map(|FieldError { pointer, code, .. }| (pointer, code)).collect()
}

fn reason<T>(outcome: Result<T, Error>) -> CheckReason {
    match outcome {
        Err(Error::Refused(Refusal::NotVended { reason, .. })) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("was issued"),
    }
}

#[tokio::test]
async fn closed_trust_permits_issuance_in_the_issued_type() {
    let setting = Setting::new().await;
    for kind in KINDS {
        saved(&setting, kind, kind.as_str()).await;
    }
    let created = setting.integration("nightly", &KINDS.map(CredentialType::as_str)).await;
    let principal = setting.principal(&created.token).await;
    for (kind, mode) in KINDS.into_iter().zip(VendMode::ALL) {
        let activated = setting.activated(&principal, kind.as_str(), mode).await.unwrap();
        let one = &activated.credentials[0];
        assert_eq!((one.kind, one.vended.kind()), (kind.issued_as(), kind.issued_as()));
        assert!(matches!(one.vended, Vended::Short { .. }), "{mode:?} of {kind}");
        let order = setting.storage.vended().pop().unwrap();
        assert_eq!((order.activation, order.integration), (Some(activated.id), Some(created.integration.id)));
        let (target, subject) = setting.storage.trust_checks().pop().unwrap();
        assert_eq!((target.kind, setting.storage.trust_checks().len()), (kind, setting.storage.vended().len()));
        let own = FederationSubject::new(setting.acme, one.id).to_string();
        let subject = subject.to_string();
        // A trust that is bound to the version or the first digits of IDs must be found open.
        let parts: Vec<&str> = subject.split(':').collect();
        let is_ordered = |id: &str| Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 7);
        assert!(is_ordered(parts[1]) && is_ordered(parts[3]), "{subject}");
        assert!(!own.contains(parts[1]) && !own.contains(parts[3]), "{subject}");
    }
}

#[tokio::test]
async fn open_or_unknown_trust_issues_nothing() {
    let setting = Setting::new().await;
    for kind in KINDS {
        saved(&setting, kind, kind.as_str()).await;
    }
    let created = setting.integration("nightly", &KINDS.map(CredentialType::as_str)).await;
    let principal = setting.principal(&created.token).await;
    for found in [CheckReason::TrustOpen, CheckReason::Unreachable, CheckReason::IssuerNotTrusted] {
        setting.storage.open_trusts(Some(found));
        for kind in KINDS {
            assert_eq!(reason(setting.activated(&principal, kind.as_str(), VendMode::PreferShort).await), found);
        }
    }
    assert_eq!(setting.storage.vended(), [], "no credential was requested");
    assert_eq!(setting.live(&principal).await.unwrap(), []);
    // Without the port, nothing is issued either.
    let outcome = setting
        .activations()
        .trust(None)
        .activate(&principal, super::setting::request(KINDS[0].as_str(), VendMode::Short))
        .await;
    assert_eq!(reason(outcome), CheckReason::NotConfigured);
}

#[tokio::test]
async fn closed_trust_is_checked_again_after_an_hour() {
    let setting = Setting::new().await;
    saved(&setting, CredentialType::S3Federated, "imports").await;
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    let activations = setting.activations();
    let activate = async || activations.activate(&principal, super::setting::request("imports", VendMode::Short)).await;
    activate().await.unwrap();
    setting.storage.open_trusts(Some(CheckReason::TrustOpen));
    setting.clock.advance_millis(3_599_000);
    activate().await.unwrap();
    assert_eq!(setting.storage.trust_checks().len(), 1);
    setting.clock.advance_millis(1_000);
    assert_eq!(reason(activate().await), CheckReason::TrustOpen);
    assert_eq!(setting.storage.trust_checks().len(), 2);
    // Another process has found nothing yet.
    assert_eq!(reason(setting.activated(&principal, "imports", VendMode::Short).await), CheckReason::TrustOpen);
}

#[tokio::test]
async fn check_that_finds_an_open_trust_stops_activations() {
    let setting = Setting::new().await;
    saved(&setting, CredentialType::GcsFederated, "imports").await;
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    let activations = setting.activations();
    let activate = async || activations.activate(&principal, super::setting::request("imports", VendMode::Short)).await;
    activate().await.unwrap();
    let operations = vec![StorageOperation::List];
    let check = async || {
        let request = CheckNamespaceRequest {
            namespace: namespace("imports"),
            operations: operations.clone(),
            until: None,
            vend: VendMode::Raw,
        };
        let checked = activations.check(&principal, request).await.unwrap();
        let one = &checked[0];
        assert_eq!((one.kind, one.form), (CredentialType::Gcs, Some(VendedForm::Short)));
        one.report.checks.clone()
    };
    let list = CheckKind::Operation(StorageOperation::List);
    let authenticated = Check::passed(CheckKind::Authenticate);
    let passed = [authenticated.clone(), Check::passed(CheckKind::Trust), Check::passed(list)];
    assert_eq!(check().await, passed);
    setting.storage.open_trusts(Some(CheckReason::TrustOpen));
    let open = Check::failed(CheckKind::Trust, CheckReason::TrustOpen);
    assert_eq!(check().await, [authenticated, open, Check::passed(list)]);
    assert_eq!(reason(activate().await), CheckReason::TrustOpen, "the earlier result is discarded");

    let order = setting.storage.vended().pop().unwrap();
    assert_eq!(order.activation, None, "a check has no activation");
    setting.storage.refuse(order.credential, CheckReason::TrustMissing);
    let trusts = setting.storage.trust_checks().len();
    let skipped = |kind| Check::skipped(kind, CheckReason::EarlierFailed);
    let missing = Check::failed(CheckKind::Authenticate, CheckReason::TrustMissing);
    assert_eq!(check().await, [missing, skipped(CheckKind::Trust), skipped(list)]);
    assert_eq!(setting.storage.trust_checks().len(), trusts);
}

#[tokio::test]
async fn requested_check_of_a_saved_credential_reports_an_open_trust() {
    let setting = Setting::new().await;
    let saver = setting.member();
    let id = saved(&setting, CredentialType::AzureFederated, "imports").await;
    let (vault, checker) = (vault(&setting), setting.activations());
    checker.check_due(None).await.unwrap();
    let check = async || {
        vault.request_check(&saver, id, None).await.unwrap();
        assert_eq!(checker.check_due(None).await.unwrap(), 1);
        let health = vault.show(&saver, id).await.unwrap().health;
        (health.state, health.reason)
    };
    assert_eq!(check().await, (HealthState::Healthy, None));
    let order = setting.storage.vended().pop().unwrap();
    assert_eq!((order.integration, order.activation, order.credential), (None, None, id));
    setting.storage.open_trusts(Some(CheckReason::TrustOpen));
    assert_eq!(check().await, (HealthState::Failing, Some(CheckReason::TrustOpen)));
    setting.storage.open_trusts(None);
    setting.storage.refuse(id, CheckReason::TrustMissing);
    assert_eq!(check().await, (HealthState::Failing, Some(CheckReason::TrustMissing)));
}

#[tokio::test]
async fn keyless_credential_is_saved_only_if_the_feature_is_on_and_only_as_short() {
    let setting = Setting::new().await;
    let saver = setting.member();
    let request = || NewCredential::new(namespace("imports"), keyless(CredentialType::S3Federated));
    let at = |pointer: &str| (pointer.to_owned(), FieldCode::NotAllowed);
    let off = setting.vault();
    assert_eq!(refused_fields(off.save(&saver, request()).await), [at("/type")]);
    let on = vault(&setting);
    let any = NewCredential { vend: VendRule::Any, ..request() };
    assert_eq!(refused_fields(on.save(&saver, any).await), [at("/vend")]);
    let verify = NewCredential { verify: true, ..request() };
    assert_eq!(refused_fields(on.save(&saver, verify).await), [at("/verify")]);
    assert!(
        setting.storage.probed().is_empty() && setting.storage.vended().is_empty(),
        "the listener must not connect"
    );

    let id = on.save(&saver, request()).await.unwrap();
    assert_eq!(on.show(&saver, id).await.unwrap().vend, VendRule::Short);
    let patch = CredentialPatch { vend: Some(VendRule::Any), ..CredentialPatch::default() };
    assert_eq!(refused_fields(on.describe(&saver, id.into(), patch).await), [at("/vend")]);
    let replacement = |verify| CredentialReplacement {
        credential: id.into(),
        data: keyless(CredentialType::S3Federated),
        expires_at: None,
        stage: false,
        idempotency: None,
        verify,
    };
    assert_eq!(refused_fields(on.replace(&saver, replacement(true)).await), [at("/verify")]);
    assert_eq!(refused_fields(off.replace(&saver, replacement(false)).await), [at("/type")]);
    assert_eq!(on.replace(&saver, replacement(false)).await.unwrap().version, 2);
}
