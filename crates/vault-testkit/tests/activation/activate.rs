//! Activating, listing and ending.

use super::setting::{OPERATOR, PLAIN_S3, ROLE_S3, Setting, creation, denied, request};
use vault_core::activation::{ActivationTtl, IssuedCredential, VendMode, Vended, VendedForm};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::check::CheckReason;
use vault_core::cursor::PageRequest;
use vault_core::integration::{IntegrationRefusal, IntegrationState};
use vault_core::network::Network;
use vault_core::port::{Event, SealError, StoreError};
use vault_core::sealed::Blob;
use vault_core::usecase::activations::{ActivationRequest, RenewalRequest};
use vault_core::usecase::integrations::CreateIntegrationRequest;
use vault_core::{Error, Refusal};

#[tokio::test]
async fn integration_gets_credentials_of_its_namespace() {
    let setting = Setting::new().await;
    let first = setting.saved(setting.acme, "imports/nightly", PLAIN_S3).await;
    let second = setting.saved(setting.acme, "imports/nightly", ROLE_S3).await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    setting.saved(setting.other, "imports/nightly", PLAIN_S3).await;
    let created = setting.integration("nightly", &["imports/*"]).await;
    let network = Some(Network::V4([192, 0, 2]));
    let principal = setting.activations().authenticate(created.token.text(), network).await.unwrap();

    let activated = setting.activated(&principal, "imports/nightly", VendMode::Raw).await.unwrap();
    assert_eq!(activated.credentials.iter().map(|one| one.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(activated.expires_at, setting.now().plus_seconds(600));
    let Vended::Raw(data) = &activated.credentials[0].vended else { panic!("not raw") };
    // The fields of the sample are in canonical order.
    assert_eq!(data.to_canonical_json().expose(), PLAIN_S3.as_bytes());
    assert_eq!(activated.credentials[0].data().expose(), PLAIN_S3.as_bytes());
    assert!(setting.storage.vended().is_empty());

    let record = &setting.audited(AuditAction::NamespaceActivated)[0];
    assert_eq!(record.actor, Actor::Integration(created.integration.id));
    assert_eq!((record.organization, record.subject), (Some(setting.acme), Subject::Activation(activated.id)));
    let note = record.note.as_ref().unwrap();
    let raw = |credential| IssuedCredential { credential, version: 1, form: VendedForm::Raw, expires_at: None };
    assert_eq!(note.credentials, [raw(first), raw(second)]);
    assert_eq!(note.network, network);
    let started = &setting.audited(AuditAction::ActivationStarted)[0];
    assert_eq!((started.subject, started.note.as_ref().unwrap().credentials.len()), (record.subject, 0));
    assert_eq!(note.namespace.as_str(), "imports/nightly");
    assert_eq!(note.purpose.as_ref().unwrap().as_str(), "nightly import");
    assert_eq!(setting.events.recorded(AuditAction::NamespaceActivated), 1);
    let printed = format!("{activated:?}");
    assert!(!printed.contains("plain secret") && !printed.contains("AKIA"), "{printed}");

    let live = setting.live(&principal).await.unwrap();
    assert_eq!((live.len(), live[0].id, live[0].credentials), (1, activated.id, 2));
}

#[tokio::test]
async fn refusals_disclose_minimum_and_are_recorded() {
    let mut setting = Setting::new().await;
    setting.live_limit = 1;
    for name in ["imports", "secret", "frozen"] {
        setting.saved(setting.acme, name, PLAIN_S3).await;
    }
    let created = setting.integration("nightly", &["imports", "empty", "large", "frozen"]).await;
    for _ in 0..101 {
        setting.saved(setting.acme, "large", PLAIN_S3).await;
    }
    setting.freeze("frozen").await;
    setting.freeze("secret").await;
    let principal = setting.principal(&created.token).await;
    let refusal = async |name: &str| match setting.activated(&principal, name, VendMode::Raw).await {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{name}: {other:?}"),
    };
    // A namespace outside the patterns gets the same response, whether it exists, is frozen, or does not exist.
    for name in ["secret", "imports/x", "unheard-of"] {
        assert!(matches!(refusal(name).await, Refusal::NamespaceNotAllowed));
    }
    assert!(matches!(refusal("empty").await, Refusal::NamespaceEmpty));
    assert!(matches!(refusal("frozen").await, Refusal::Frozen));
    assert!(matches!(refusal("large").await, Refusal::NamespaceTooLarge));
    setting.activated(&principal, "imports", VendMode::Raw).await.unwrap();
    assert!(matches!(refusal("imports").await, Refusal::TooManyLive));

    let named = |action| {
        let records = setting.audited(action).into_iter();
        records.map(|record| record.note.unwrap().namespace.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(named(AuditAction::ActivationRefusedOutside), ["secret", "imports/x", "unheard-of"]);
    assert_eq!(named(AuditAction::ActivationRefusedFrozen), ["frozen"]);
    assert_eq!(named(AuditAction::ActivationRefused), ["empty", "large", "imports"]);
    assert_eq!(named(AuditAction::NamespaceActivated), ["imports"]);
}

#[tokio::test]
async fn activation_detects_concurrent_changes() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let created = setting.integration("nightly", &["imports"]).await;
    let principal = setting.principal(&created.token).await;
    // A token that is replaced after it was accepted remains valid during the overlap, and not afterwards.
    setting.rotate("nightly", 60).await;
    setting.activated(&principal, "imports", VendMode::Raw).await.unwrap();
    assert_eq!(setting.live(&principal).await.unwrap().len(), 1);
    setting.clock.advance_seconds(60);
    let refused = setting.activated(&principal, "imports", VendMode::Raw).await;
    assert!(denied(refused, IntegrationRefusal::Replaced));

    let token = setting.rotate("nightly", 86_400).await;
    let principal = setting.principal(&token).await;
    let activation = setting.activated(&principal, "imports", VendMode::Raw).await.unwrap().id;
    setting.set_state("nightly", IntegrationState::Disabled).await;
    let disabled = IntegrationRefusal::Disabled;
    assert!(denied(setting.activated(&principal, "imports", VendMode::Raw).await, disabled));
    assert!(denied(setting.live(&principal).await, disabled));
    assert!(denied(setting.activations().end(&principal, activation).await, disabled));
    setting.delete("nightly").await;
    let refused = setting.activated(&principal, "imports", VendMode::Raw).await;
    assert!(denied(refused, IntegrationRefusal::Unknown));
}

#[tokio::test]
async fn activation_ends_with_its_integration() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let end = setting.now().plus_seconds(100);
    let bounded = CreateIntegrationRequest { expires_at: Some(end), ..creation("x", &["imports"]) };
    let created = setting.integrations().create(&OPERATOR, setting.acme, bounded).await.unwrap();
    let principal = setting.principal(&created.token.unwrap()).await;
    let activated = setting.activated(&principal, "imports", VendMode::Raw).await.unwrap();
    assert_eq!(activated.expires_at, end);
    let shorter =
        ActivationRequest { ttl: ActivationTtl::parse(Some(60)).unwrap(), ..request("imports", VendMode::Raw) };
    let activated = setting.activations().activate(&principal, shorter).await.unwrap();
    assert_eq!(activated.expires_at, setting.now().plus_seconds(60));
    setting.clock.set(end);
    let refused = setting.activated(&principal, "imports", VendMode::Raw).await;
    assert!(denied(refused, IntegrationRefusal::Expired));
}

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
    assert!(setting.store.tamper_with_credential(damaged, |sealed| sealed.data = Blob::from_bytes(vec![1, 2, 3])));

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
async fn live_activations_are_listed_page_by_page() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    let neighbour = setting.principal(&setting.integration("hourly", &["imports"]).await.token).await;
    let mut started = Vec::new();
    for _ in 0..5 {
        started.insert(0, setting.activated(&principal, "imports", VendMode::Raw).await.unwrap().id);
    }
    let (mut listed, mut cursor) = (Vec::new(), None);
    for expected in [2, 2, 1] {
        let page = setting.activations().list(&principal, PageRequest { limit: 2, cursor }).await.unwrap();
        assert_eq!(page.items.len(), expected);
        listed.extend(page.items.into_iter().map(|one| one.id));
        cursor = page.next;
        if cursor.is_some() {
            let strange = PageRequest { limit: 2, cursor: cursor.clone() };
            let strange = setting.activations().list(&neighbour, strange).await;
            assert!(matches!(strange, Err(Error::Refused(Refusal::Cursor))));
        }
    }
    assert_eq!((listed, cursor), (started, None));
}

#[tokio::test]
async fn renewal_issues_current_version() {
    let mut setting = Setting::new().await;
    setting.live_limit = 1;
    let first = setting.saved(setting.acme, "imports", ROLE_S3).await;
    let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
    let neighbour = setting.principal(&setting.integration("hourly", &["imports"]).await.token).await;
    let activated = setting.activated(&principal, "imports", VendMode::Short).await.unwrap();
    let renewal = RenewalRequest { activation: activated.id, ttl: ActivationTtl::parse(Some(900)).unwrap() };
    let renew = async |principal| setting.activations().renew(principal, renewal).await;
    assert!(matches!(renew(&neighbour).await, Err(Error::Refused(Refusal::NotFound))));

    setting.clock.advance_seconds(599);
    let second = setting.saved(setting.acme, "imports", ROLE_S3).await;
    // The limit of active activations is reached, and a renewal starts none.
    let renewed = renew(&principal).await.unwrap();
    assert_eq!((renewed.id, renewed.namespace.as_str()), (activated.id, "imports"));
    assert_eq!(renewed.expires_at, setting.now().plus_seconds(900));
    let forms: Vec<_> = renewed.credentials.iter().map(|one| (one.id, one.vended.form())).collect();
    assert_eq!(forms, [(first, VendedForm::Short), (second, VendedForm::Short)], "in the form of the beginning");
    let live = setting.live(&principal).await.unwrap();
    assert_eq!((live.len(), live[0].credentials, live[0].expires_at), (1, 2, renewed.expires_at));
    let subject = Subject::Activation(activated.id);
    for action in [AuditAction::ActivationRenewalStarted, AuditAction::ActivationRenewed] {
        let records = setting.audited(action);
        assert_eq!((records.len(), records[0].subject), (1, subject));
        assert_eq!(records[0].note.as_ref().unwrap().namespace.as_str(), "imports");
    }
    assert_eq!(setting.audited(AuditAction::ActivationRenewed)[0].note.as_ref().unwrap().credentials.len(), 2);

    setting.freeze("imports").await;
    assert!(matches!(renew(&principal).await, Err(Error::Refused(Refusal::Frozen))));
    assert_eq!(setting.live(&principal).await.unwrap(), live, "it lives until it expires");
    assert_eq!(setting.audited(AuditAction::ActivationRefusedFrozen).len(), 1);
    setting.clock.advance_seconds(900);
    assert!(matches!(renew(&principal).await, Err(Error::Refused(Refusal::NotFound))));
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
