//! The life of a credential: its metadata, the forms in which it is issued, its checks, and its uses.

use super::setting::{PLAIN_S3, ROLE_S3, Setting, namespace, s3};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use vault_core::activation::{VendMode, VendRule, VendedForm};
use vault_core::audit::{AuditAction, AuditChange, ChangedField};
use vault_core::check::{Check, CheckKind, CheckReason, CheckReport};
use vault_core::credential::{CredentialData, CredentialPatch, CredentialType, Description, HealthState, LabelPatch};
use vault_core::id::CredentialId;
use vault_core::json::{self, Limits, Node};
use vault_core::port::{ProbeRequest, SealError, StorageProbe};
use vault_core::principal::{Denial, EmbedderPrincipal, Principal};
use vault_core::role::Role;
use vault_core::time::Timestamp;
use vault_core::usecase::*;
use vault_core::{Error, Refusal};

fn node(text: &str) -> Node {
    json::parse(text.as_bytes(), Limits::default()).unwrap().root
}

fn with_role(principal: &Principal, role: Role) -> Principal {
    let Principal::Embedder(embedder) = principal else { panic!("a user of an embedding service") };
    Principal::Embedder(EmbedderPrincipal { role, ..embedder.clone() })
}

fn vend(vend: VendRule) -> CredentialPatch {
    CredentialPatch { vend: Some(vend), ..CredentialPatch::default() }
}

fn replacing(id: CredentialId, json: &str, stage: bool) -> CredentialReplacement {
    let credential = CredentialRef::from(id);
    CredentialReplacement { credential, data: s3(json), expires_at: None, stage, idempotency: None, verify: false }
}

async fn health(setting: &Setting, id: CredentialId) -> HealthState {
    setting.vault().show(&setting.member(), id).await.unwrap().health.state
}

#[tokio::test]
async fn expiry_applies_to_its_version() {
    let setting = Setting::new().await;
    let (vault, saver) = (setting.vault(), setting.member());
    let id = setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let (soon, later) = (setting.now().plus_seconds(100), setting.now().plus_seconds(9_000));
    let expires_at = async || vault.show(&saver, id).await.unwrap().expires_at;
    let declare = |at| CredentialPatch { expires_at: Some(Some(at)), ..CredentialPatch::default() };
    vault.describe(&saver, id.into(), declare(soon)).await.unwrap();
    let staged = CredentialReplacement { expires_at: Some(later), ..replacing(id, ROLE_S3, true) };
    assert_eq!(vault.replace(&saver, staged).await.unwrap().version, 2);
    assert_eq!(expires_at().await, Some(soon));
    vault.promote(&saver, id.into(), 2).await.unwrap();
    assert_eq!(expires_at().await, Some(later));
    vault.promote(&saver, id.into(), 1).await.unwrap();
    assert_eq!(expires_at().await, Some(soon));
    vault.replace(&saver, replacing(id, PLAIN_S3, false)).await.unwrap();
    assert_eq!(expires_at().await, None);

    // The earlier one of the given expiry and the expiry in the data.
    let signed = setting.now().plus_seconds(500).as_seconds();
    let json = format!(r#"{{"url":"https://files.example/a?Expires={signed}&Signature=x"}}"#);
    let data = || CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap();
    for (declared, effective) in [(None, 500), (Some(100), 100), (Some(900), 500)] {
        let expires_at = declared.map(|seconds| setting.now().plus_seconds(seconds));
        let request = NewCredential { expires_at, ..NewCredential::new(namespace("links"), data()) };
        let id = vault.save(&saver, request).await.unwrap();
        let shown = vault.show(&saver, id).await.unwrap().expires_at;
        assert_eq!(shown.map(Timestamp::as_seconds), Some(setting.now().plus_seconds(effective).as_seconds()));
    }
}

#[tokio::test]
async fn short_lived_only_credentials_are_never_issued_unchanged() {
    let setting = Setting::new().await;
    let (vault, editor) = (setting.vault(), setting.member());
    let short = |json| NewCredential { vend: VendRule::Short, ..NewCredential::new(namespace("imports"), s3(json)) };
    let refused = vault.save(&editor, short(PLAIN_S3)).await;
    assert!(matches!(refused, Err(Error::Invalid(violations)) if violations[0].pointer == "/vend"));
    let id = vault.save(&editor, short(ROLE_S3)).await.unwrap();

    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    for mode in [VendMode::Raw, VendMode::PreferShort, VendMode::Short] {
        let activated = setting.activated(&principal, "imports", mode).await.unwrap();
        assert_eq!(activated.credentials[0].vended.form(), VendedForm::Short);
    }
    setting.storage.refuse(id, CheckReason::UnknownKey);
    for mode in [VendMode::Raw, VendMode::PreferShort] {
        let refused = setting.activated(&principal, "imports", mode).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::NotVended { .. }))), "{mode:?}");
    }

    // The rule cannot be bypassed by other data, an earlier version, or a change of the rule itself.
    let refused = vault.replace(&editor, replacing(id, PLAIN_S3, false)).await;
    assert!(matches!(refused, Err(Error::Invalid(violations)) if violations[0].pointer == "/vend"));
    let refused = vault.describe(&editor, id.into(), vend(VendRule::Any)).await;
    assert!(matches!(refused, Err(Error::Denied(Denial::InsufficientRole))));
    let admin = with_role(&editor, Role::Admin);
    vault.describe(&admin, id.into(), vend(VendRule::Any)).await.unwrap();
    vault.replace(&editor, replacing(id, PLAIN_S3, false)).await.unwrap();
    let refused = vault.describe(&editor, id.into(), vend(VendRule::Short)).await;
    assert!(matches!(refused, Err(Error::Invalid(violations)) if violations[0].pointer == "/vend"));
    vault.promote(&editor, id.into(), 1).await.unwrap();
    vault.describe(&editor, id.into(), vend(VendRule::Short)).await.unwrap();
    let refused = vault.promote(&editor, id.into(), 2).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NoShortForm(CheckReason::NoRole)))));
}

#[tokio::test]
async fn database_writer_cannot_remove_vend_rule() {
    let setting = Setting::new().await;
    let request = NewCredential { vend: VendRule::Short, ..NewCredential::new(namespace("imports"), s3(ROLE_S3)) };
    let id = setting.vault().save(&setting.member(), request).await.unwrap();
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    setting.store.tamper_with_row(id, |row| row.vend = VendRule::Any);
    assert!(matches!(setting.activated(&principal, "imports", VendMode::Raw).await, Err(Error::Seal(_))));
    let refused = setting.vault().describe(&setting.member(), id.into(), vend(VendRule::Short)).await;
    assert!(matches!(refused, Err(Error::Seal(SealError::Integrity { .. }))));
}

#[tokio::test]
async fn requested_check_runs_in_activation_process() {
    let setting = Setting::new().await;
    let saver = setting.member();
    let id = setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let vault = setting.vault();
    let refused = vault.request_check(&saver, id, None).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NoChecker))));

    let checker = setting.activations();
    assert_eq!(checker.check_due(None).await.unwrap(), 0);
    setting.storage.fail(Some(CheckReason::UnknownKey));
    vault.request_check(&saver, id, None).await.unwrap();
    assert_eq!(health(&setting, id).await, HealthState::Unchecked);
    assert_eq!(checker.check_due(None).await.unwrap(), 1);
    let shown = vault.show(&saver, id).await.unwrap().health;
    assert_eq!((shown.state, shown.reason), (HealthState::Failing, Some(CheckReason::UnknownKey)));

    // A staged version can be checked before it is promoted.
    vault.replace(&saver, replacing(id, ROLE_S3, true)).await.unwrap();
    setting.storage.fail(None);
    vault.request_check(&saver, id, None).await.unwrap();
    assert_eq!(checker.check_due(None).await.unwrap(), 1);
    assert_eq!(health(&setting, id).await, HealthState::Failing, "the current version was not checked");
    vault.promote(&saver, id.into(), 2).await.unwrap();
    assert_eq!(health(&setting, id).await, HealthState::Healthy);
    // Health does not prevent activations, and a change of it is recorded once.
    vault.request_check(&saver, id, Some(2)).await.unwrap();
    assert_eq!(checker.check_due(None).await.unwrap(), 1);
    assert_eq!(setting.audited(AuditAction::CredentialFailing).len(), 1);
    assert_eq!(setting.audited(AuditAction::CredentialHealthy).len(), 1);
}

/// A storage that accepts connections and does not respond until the test allows it, next to others that respond.
struct Silent {
    asked: AtomicUsize,
    reported: Semaphore,
}

impl Silent {
    const ENDPOINT: &str = "https://silent.example.com";

    fn s3() -> String {
        PLAIN_S3.replace("\"secret", &format!("\"endpoint\":\"{}\",\"secret", Self::ENDPOINT))
    }
}

#[async_trait]
impl StorageProbe for Silent {
    async fn check(&self, data: &CredentialData, _: ProbeRequest) -> CheckReport {
        let check = if data.storage() == Self::ENDPOINT {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let _ = self.reported.acquire().await;
            Check::failed(CheckKind::Authenticate, CheckReason::Unreachable)
        } else {
            Check::passed(CheckKind::Authenticate)
        };
        CheckReport { checks: vec![check] }
    }
}

/// At most two checks of it run concurrently, and checks of other storages do not wait for it.
#[tokio::test]
async fn silent_storage_delays_no_other_check() {
    let setting = Setting::new().await;
    let mut silent = Vec::new();
    let mut others = Vec::new();
    for _ in 0..4 {
        silent.push(setting.saved(setting.acme, "imports", &Silent::s3()).await);
        others.push(setting.saved(setting.acme, "imports", PLAIN_S3).await);
    }
    let storage = Arc::new(Silent { asked: AtomicUsize::new(0), reported: Semaphore::new(0) });
    let checker = setting.activations().probe(Some(storage.clone()));
    let observer = async {
        for _ in 0..10_000 {
            let mut states = Vec::new();
            for id in &others {
                states.push(health(&setting, *id).await);
            }
            if states == [HealthState::Healthy; 4] {
                assert_eq!(storage.asked.load(Ordering::SeqCst), 2);
                storage.reported.close();
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("the others wait for the silent one");
    };
    let (checked, ()) = tokio::join!(checker.check_due(Some((8, 60))), observer);
    assert_eq!(checked.unwrap(), 8);
    assert_eq!(storage.asked.load(Ordering::SeqCst), 4);
    for id in silent {
        assert_eq!(health(&setting, id).await, HealthState::Failing);
    }
}

#[tokio::test]
async fn undecryptable_credential_is_failing() {
    let setting = Setting::new().await;
    let id = setting.saved(setting.acme, "imports", PLAIN_S3).await;
    setting.store.tamper_with_data(id, |sealed| {
        sealed.data_key = vault_core::sealed::Blob::from_bytes(Vec::new());
    });
    assert_eq!(setting.activations().check_due(Some((2, 60))).await.unwrap(), 1);
    assert_eq!(health(&setting, id).await, HealthState::Failing);
}

/// The audit log contains the changed fields with old and new values, and the namespace. For sealed values it contains
/// only that they changed.
#[tokio::test]
async fn changes_are_recorded_with_changed_fields() {
    let setting = Setting::new().await;
    let (vault, editor, admin) = (setting.vault(), setting.member(), with_role(&setting.member(), Role::Admin));
    let id = setting.saved(setting.acme, "imports", ROLE_S3).await;
    let reported = |action| {
        let records = setting.audited(action);
        assert!(records.iter().all(|record| record.note.as_ref().unwrap().namespace.as_str() == "imports"));
        records.into_iter().flat_map(|record| record.changes).collect::<Vec<_>>()
    };
    let change = |field, from: Option<&str>, to: Option<&str>| {
        AuditChange::new(field, from.map(str::to_owned), to.map(str::to_owned))
    };
    let version = |from, to| change(ChangedField::Version, from, to);
    assert_eq!(reported(AuditAction::CredentialSaved), []);
    vault.describe(&editor, id.into(), vend(VendRule::Short)).await.unwrap();
    assert_eq!(
        reported(AuditAction::CredentialVendRestricted),
        [change(ChangedField::Vend, Some("any"), Some("short"))]
    );
    let both = CredentialPatch {
        labels: Some(LabelPatch::parse(node(r#"{"team":"secret-team"}"#), "/labels").unwrap()),
        description: Some(Some(Description::parse("not to be disclosed", "").unwrap())),
        ..vend(VendRule::Any)
    };
    vault.describe(&admin, id.into(), both).await.unwrap();
    let expected = [
        change(ChangedField::Vend, Some("short"), Some("any")),
        AuditChange::withheld(ChangedField::Labels),
        AuditChange::withheld(ChangedField::Description),
    ];
    assert_eq!(reported(AuditAction::CredentialVendRelaxed), expected);
    assert_eq!(reported(AuditAction::CredentialDescribed), []);

    let replaced = vault.replace(&editor, replacing(id, PLAIN_S3, false)).await.unwrap();
    assert_eq!(replaced.revision, Some(vault.show(&editor, id).await.unwrap().revision), "its ETag");
    assert_eq!(reported(AuditAction::CredentialReplaced), [version(Some("1"), Some("2"))]);
    vault.replace(&editor, replacing(id, ROLE_S3, true)).await.unwrap();
    assert_eq!(reported(AuditAction::CredentialStaged), [version(None, Some("3"))]);
    vault.promote(&editor, id.into(), 3).await.unwrap();
    assert_eq!(reported(AuditAction::CredentialPromoted), [version(Some("2"), Some("3"))]);
    vault.destroy_version(&editor, id.into(), 1).await.unwrap();
    assert_eq!(reported(AuditAction::CredentialVersionDestroyed), [version(Some("1"), None)]);
    vault.delete(&editor, id).await.unwrap();
    assert_eq!(reported(AuditAction::CredentialDeleted), []);
}
