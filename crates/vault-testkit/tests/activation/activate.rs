//! Activating, listing and ending.

use super::setting::{PLAIN_S3, ROLE_S3, Setting, denied, request, s3};
use async_trait::async_trait;
use std::sync::Arc;
use vault_core::activation::{ActivationTtl, VendMode, VendedForm};
use vault_core::audit::{AuditAction, Subject};
use vault_core::check::CheckReason;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::integration::{IntegrationRefusal, IntegrationState};
use vault_core::port::{CredentialVendor, ShortLived, VendOrder};
use vault_core::port::{Event, SealError, StoreError};
use vault_core::sealed::Blob;
use vault_core::usecase::activations::RenewalRequest;
use vault_core::{Error, Refusal};
use vault_testkit::storage::short;

#[tokio::test]
async fn requested_form_is_issued_or_nothing() {
    let mut setting = Setting::new().await;
    let plain = setting.saved(setting.acme, "plain", PLAIN_S3).await;
    let role = setting.saved(setting.acme, "role", ROLE_S3).await;
    for name in ["both", "both"] {
        setting.saved(setting.acme, name, ROLE_S3).await;
    }
    setting.saved(setting.acme, "both", PLAIN_S3).await;
    let created = setting.integration("nightly", &["plain", "role", "both"]).await;
    let principal = setting.principal(&created.token).await;

    let activated = setting.activated(&principal, "role", VendMode::Short).await.unwrap();
    let one = &activated.credentials[0];
    assert_eq!((one.vended.form(), one.vended.expires_at()), (VendedForm::Short, Some(activated.expires_at)));
    assert!(!String::from_utf8(one.data().expose().to_vec()).unwrap().contains("plain secret"));
    let order = setting.storage.vended()[0].clone();
    assert_eq!(
        (order.activation, order.credential, order.expires_at),
        (Some(activated.id), role, activated.expires_at)
    );

    let forms = async |setting: &Setting, name: &str| {
        let activated = setting.activated(&principal, name, VendMode::PreferShort).await.unwrap();
        activated.credentials.iter().map(|one| one.vended.form()).collect::<Vec<_>>()
    };
    assert_eq!(forms(&setting, "both").await, [VendedForm::Short, VendedForm::Short, VendedForm::Raw]);
    assert_eq!(setting.events.count(&Event::ShortFormMissed(CheckReason::NoRole)), 1);

    // All or nothing: credentials that were issued before the failure are recorded, because they cannot be revoked. No
    // activation is active.
    let before = setting.live(&principal).await.unwrap().len();
    let refused = setting.activated(&principal, "both", VendMode::Short).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotVended { reason: CheckReason::NoRole, .. }))));
    let refused = setting.activated(&principal, "plain", VendMode::Short).await;
    let Err(Error::Refused(Refusal::NotVended { credential, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!(credential, plain);
    assert_eq!(setting.live(&principal).await.unwrap().len(), before);
    let failed = setting.audited(AuditAction::ActivationFailed);
    assert_eq!((failed.len(), failed[1].subject), (2, Subject::Credential(plain)));
    let left: Vec<_> = failed.iter().map(|record| &record.note.as_ref().unwrap().credentials).collect();
    assert_eq!((left[0].len(), left[1].len()), (2, 0));
    assert!(left[0].iter().all(|one| one.form == VendedForm::Short && one.expires_at.is_some()));

    setting.storage.refuse(role, CheckReason::Denied);
    let refused = setting.activated(&principal, "role", VendMode::Short).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotVended { reason: CheckReason::Denied, .. }))));
    assert_eq!(forms(&setting, "role").await, [VendedForm::Raw]);
    setting.vends = false;
    let refused = setting.activated(&principal, "role", VendMode::Short).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotVended { reason: CheckReason::NotConfigured, .. }))));
    assert_eq!(forms(&setting, "role").await, [VendedForm::Raw]);
}

#[tokio::test]
async fn many_credentials_are_returned_in_order() {
    let setting = Setting::new().await;
    let mut saved = Vec::new();
    for turn in 0..100 {
        let json = if turn % 3 == 0 { PLAIN_S3 } else { ROLE_S3 };
        saved.push(setting.saved(setting.acme, "imports", json).await);
    }
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    let activated = setting.activated(&principal, "imports", VendMode::PreferShort).await.unwrap();
    assert_eq!(activated.credentials.iter().map(|one| one.id).collect::<Vec<_>>(), saved);
    let raw = activated.credentials.iter().filter(|one| one.vended.form() == VendedForm::Raw).count();
    assert_eq!(raw, 34);
}

#[tokio::test]
async fn undecryptable_credential_fails_whole_activation() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let damaged = setting.saved(setting.acme, "imports", ROLE_S3).await;
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    assert!(setting.store.tamper_with_data(damaged, |sealed| sealed.data = Blob::from_bytes(vec![1, 2, 3])));

    let failed = setting.activated(&principal, "imports", VendMode::Raw).await;
    let integrity = |error: &SealError| matches!(error, SealError::Integrity { .. });
    assert!(matches!(failed, Err(Error::Seal(error)) if integrity(&error)));
    assert!(setting.saw_damage("credential_secrets"));
    assert_eq!(setting.live(&principal).await.unwrap(), []);
    let record = &setting.audited(AuditAction::ActivationFailed)[0];
    assert_eq!(record.subject, Subject::Credential(damaged));
    assert_eq!(setting.audited(AuditAction::ActivationStarted).len(), 1, "both are recorded");
    assert_eq!(setting.audited(AuditAction::NamespaceActivated).len(), 0);
    assert_eq!(setting.events.recorded(AuditAction::NamespaceActivated), 0);
}

#[tokio::test]
async fn no_credential_is_issued_without_audit_entry() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    setting.store.fail_next(StoreError::Unavailable("away".into()));
    let failed = setting.activated(&principal, "imports", VendMode::Raw).await;
    assert!(matches!(failed, Err(Error::Store(StoreError::Unavailable(_)))));
    setting.store.fail_next(StoreError::Unavailable("away".into()));
    let refused = setting.activated(&principal, "elsewhere", VendMode::Raw).await;
    assert!(matches!(refused, Err(Error::Store(_))), "no record, no answer");
}

#[tokio::test]
async fn failed_renewal_keeps_activation() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", ROLE_S3).await;
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    let activated = setting.activated(&principal, "imports", VendMode::Short).await.unwrap();
    let live = setting.live(&principal).await.unwrap();
    let plain = setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let renewal = RenewalRequest { activation: activated.id, ttl: ActivationTtl::parse(None).unwrap() };
    let refused = setting.activations().renew(&principal, renewal).await;
    let no_role = Refusal::NotVended { credential: plain, reason: CheckReason::NoRole };
    assert!(matches!(refused, Err(Error::Refused(refusal)) if refusal == no_role));
    assert_eq!(setting.live(&principal).await.unwrap(), live);
    let failed = &setting.audited(AuditAction::ActivationRenewalFailed)[0];
    assert_eq!(failed.subject, Subject::Credential(plain));
    assert_eq!(failed.note.as_ref().unwrap().credentials.len(), 1, "what the storage had issued by then");

    setting.set_state("nightly", IntegrationState::Disabled).await;
    assert!(denied(setting.activations().renew(&principal, renewal).await, IntegrationRefusal::Disabled));
}

/// Issues this data for every request, with an expiry this number of milliseconds from now.
struct Vendor {
    data: CredentialData,
    lasts: i64,
}

#[async_trait]
impl CredentialVendor for Vendor {
    async fn vend(&self, _data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        let expires_at = vault_core::time::Timestamp::from_millis(order.now.as_millis() + self.lasts);
        Ok(ShortLived { data: short(&self.data).unwrap(), expires_at })
    }
}

fn gcs() -> CredentialData {
    let json = br#"{"bucket":"nightly","service_account_key":{"client_email":"a@b.iam.gserviceaccount.com","private_key":"-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n","private_key_id":"0123456789abcdef0123456789abcdef01234567","project_id":"b-project","token_uri":"https://oauth2.googleapis.com/token","type":"service_account"}}"#;
    CredentialData::from_canonical_json(CredentialType::Gcs, json).unwrap()
}

/// Credentials that have expired or belong to another type of storage are not issued.
#[tokio::test]
async fn invalid_storage_credentials_are_not_issued() {
    let setting = Setting::new().await;
    let credential = setting.saved(setting.acme, "imports", ROLE_S3).await;
    let created = setting.integration("nightly", &["imports"]).await;
    let principal = setting.principal(&created.token).await;
    let cases = [(s3(ROLE_S3), 1, true), (s3(ROLE_S3), 0, false), (s3(ROLE_S3), -1, false), (gcs(), 1, false)];
    for (data, lasts, sound) in cases {
        let activations = setting.activations().vendor(Some(Arc::new(Vendor { data, lasts })));
        let strict = activations.activate(&principal, request("imports", VendMode::Short)).await;
        let lenient = activations.activate(&principal, request("imports", VendMode::PreferShort)).await.unwrap();
        let expected = if sound { VendedForm::Short } else { VendedForm::Raw };
        assert_eq!(lenient.credentials[0].vended.form(), expected);
        match strict {
            Ok(activated) => assert!(sound && activated.credentials[0].vended.form() == VendedForm::Short),
            Err(Error::Refused(Refusal::NotVended { credential: found, reason })) => {
                assert_eq!((sound, found, reason), (false, credential, CheckReason::Unexpected));
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}
