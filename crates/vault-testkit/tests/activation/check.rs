//! Dry runs of namespaces, and checks before saving.

use super::setting::{PLAIN_S3, ROLE_S3, Setting, namespace};
use vault_core::activation::{VendMode, VendedForm};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::check::{Check, CheckKind, CheckReason, StorageOperation};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::usecase::NewCredential;
use vault_core::usecase::activations::{CheckNamespaceRequest, CheckedCredential};

fn request(
    name: &str,
    operations: &[StorageOperation],
    until: Option<i64>,
    setting: &Setting,
) -> CheckNamespaceRequest {
    let until = until.map(|seconds| setting.now().plus_seconds(seconds));
    let vend = VendMode::Raw;
    CheckNamespaceRequest { namespace: namespace(name), operations: operations.to_vec(), until, vend }
}

#[tokio::test]
async fn dry_run_checks_credentials_without_activation() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    setting.saved(setting.acme, "imports", ROLE_S3).await;
    let created = setting.integration("nightly", &["imports", "empty"]).await;
    let principal = setting.principal(&created.token).await;
    let operations = [StorageOperation::List, StorageOperation::Read];
    let checked =
        setting.activations().check(&principal, request("imports", &operations, Some(60), &setting)).await.unwrap();
    assert!(is_usable(&checked));
    assert_eq!(checked.len(), 2);
    let expected = [
        Check::warning(CheckKind::Settings, CheckReason::RegionMissing),
        Check::passed(CheckKind::Lifetime),
        Check::passed(CheckKind::Authenticate),
        Check::passed(CheckKind::Operation(StorageOperation::List)),
        Check::passed(CheckKind::Operation(StorageOperation::Read)),
    ];
    assert_eq!(checked[0].report.checks, expected);
    assert_eq!(setting.live(&principal).await.unwrap(), []);
    let record = &setting.audited(AuditAction::NamespaceChecked)[0];
    assert_eq!((record.actor, record.subject), (Actor::Integration(created.integration.id), Subject::Vault));

    setting.storage.fail(Some(CheckReason::UnknownKey));
    let checked =
        setting.activations().check(&principal, request("imports", &operations, None, &setting)).await.unwrap();
    assert!(!is_usable(&checked));
    let blind = setting.blind().check(&principal, request("imports", &operations, None, &setting)).await.unwrap();
    assert!(is_usable(&blind));
    let last = blind[0].report.checks.last();
    assert_eq!(last, Some(&Check::skipped(CheckKind::Authenticate, CheckReason::NotConfigured)));
}

#[tokio::test]
async fn dead_link_is_not_followed() {
    let setting = Setting::new().await;
    let end = setting.now().as_seconds();
    let json = format!(r#"{{"url":"https://files.example/a?Expires={end}&Signature=x"}}"#);
    let data = CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap();
    let saving = NewCredential::new(namespace("imports"), data);
    setting.vault().save(&setting.saver(setting.acme), saving).await.unwrap();
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    let checked = setting.activations().check(&principal, request("imports", &[], None, &setting)).await.unwrap();
    let expected = [
        Check::failed(CheckKind::Lifetime, CheckReason::LinkExpired),
        Check::skipped(CheckKind::Authenticate, CheckReason::EarlierFailed),
    ];
    assert_eq!(checked[0].report.checks, expected);
    assert!(setting.storage.probed().is_empty());
}

/// A check tests the same form that the activation would issue.
#[tokio::test]
async fn check_tests_the_form_to_be_issued() {
    let mut setting = Setting::new().await;
    let role = setting.saved(setting.acme, "role", ROLE_S3).await;
    setting.saved(setting.acme, "plain", PLAIN_S3).await;
    let principal = setting.principal(&setting.integration("nightly", &["role", "plain"]).await.token).await;
    let check = async |setting: &Setting, name: &str, vend| {
        let request = CheckNamespaceRequest { vend, ..request(name, &[StorageOperation::Read], None, setting) };
        let checked = setting.activations().check(&principal, request).await.unwrap();
        let checks = checked[0].report.checks.clone();
        (setting.storage.probed().last().map(|probed| probed.form), checks)
    };
    assert_eq!(check(&setting, "role", VendMode::Raw).await.0, Some(VendedForm::Raw), "the role is not assumed");
    assert_eq!(setting.storage.vended(), []);
    assert_eq!(check(&setting, "role", VendMode::Short).await.0, Some(VendedForm::Short));
    assert_eq!(setting.storage.vended()[0].credential, role);
    assert_eq!(check(&setting, "role", VendMode::PreferShort).await.0, Some(VendedForm::Short));
    assert_eq!(check(&setting, "plain", VendMode::PreferShort).await.0, Some(VendedForm::Raw));

    // If an activation would be rejected, the check returns the same reason.
    let failed = |reason| Check::failed(CheckKind::Authenticate, reason);
    let probed = setting.storage.probed().len();
    assert!(check(&setting, "plain", VendMode::Short).await.1.contains(&failed(CheckReason::NoRole)));
    setting.storage.refuse(role, CheckReason::ClockSkew);
    assert!(check(&setting, "role", VendMode::Short).await.1.contains(&failed(CheckReason::ClockSkew)));
    setting.vends = false;
    assert!(check(&setting, "role", VendMode::Short).await.1.contains(&failed(CheckReason::NotConfigured)));
    assert_eq!(setting.storage.probed().len(), probed);
    assert_eq!(check(&setting, "role", VendMode::PreferShort).await.0, Some(VendedForm::Raw));
    assert_eq!(setting.live(&principal).await.unwrap(), []);
}

/// Returns `true` if every credential can be used.
fn is_usable(checked: &[CheckedCredential]) -> bool {
    checked.iter().all(|one| one.report.is_usable())
}
