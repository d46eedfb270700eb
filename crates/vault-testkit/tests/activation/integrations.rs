//! Creating, changing, listing and authenticating integrations; freezing and listing namespaces.

use super::setting::{OPERATOR, Setting, text};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::integration::{Integration, IntegrationRefusal, IntegrationState};
use vault_core::port::Event;
use vault_core::time::Timestamp;
use vault_core::usecase::OrganizationCommand;
use vault_core::usecase::integrations::{IntegrationEdit, IntegrationRef};

/// The metrics count each reason separately, so that guessing is visible.
#[tokio::test]
async fn refusals_are_counted_by_reason() {
    let setting = Setting::new().await;
    let first = setting.integration("nightly", &["imports"]).await.token;
    let second = setting.rotate("nightly", 0).await;
    assert_eq!(setting.refusal(first.text()).await, Some(IntegrationRefusal::Replaced));
    // A server with a slow clock rejects it, too.
    setting.clock.set(Timestamp::from_millis(setting.now().as_millis() - 3_000));
    assert_eq!(setting.refusal(first.text()).await, Some(IntegrationRefusal::Replaced));
    setting.operator().change_organization("Acme", OrganizationCommand::Disable).await.unwrap();
    assert_eq!(setting.refusal(second.text()).await, Some(IntegrationRefusal::OrganizationDisabled));
    // Unlike a session, an integration's token is valid again afterwards.
    setting.operator().change_organization("Acme", OrganizationCommand::Enable).await.unwrap();
    assert!(setting.works(&second).await);
    let unknown =
        |event: &Event| matches!(event, Event::IntegrationRefused { refusal: IntegrationRefusal::Unknown, .. });
    assert!(!setting.events.events().iter().any(unknown));
}

#[tokio::test]
async fn use_of_a_revoked_token_is_recorded() {
    let setting = Setting::new().await;
    let first = setting.integration("nightly", &["imports"]).await;
    let second = setting.rotate("nightly", 600).await;
    setting.clock.advance_seconds(600);
    for _ in 0..3 {
        assert!(!setting.works(&first.token).await);
    }
    assert!(setting.refusal(&text("ovi_")).await.is_some() && setting.works(&second).await);
    setting.set_state("nightly", IntegrationState::Disabled).await;
    assert!(!setting.works(&second).await);
    setting.tally.flush(true).await.unwrap();
    let records = setting.audited(AuditAction::ActivationRefusedToken);
    let found: Vec<_> = records.iter().map(|record| (record.actor, record.subject, record.count)).collect();
    let id = first.integration.id;
    assert_eq!(found, [(Actor::Integration(id), Subject::Integration(id), 4)], "within one minute");
    assert_eq!(records[0].organization, Some(setting.acme));
}

/// One entry contains all changes of one request, under the most severe action. It is found by each of them.
#[tokio::test]
async fn changes_of_integration_rights_are_recorded() {
    let setting = Setting::new().await;
    let made = setting.integration("nightly", &["imports/*"]).await;
    let end = setting.now().plus_seconds(3_600);
    let edit = IntegrationEdit {
        state: Some(IntegrationState::Disabled),
        namespaces: Some(vec!["exports".to_owned(), "imports/*".to_owned()]),
        expires_at: Some(Some(end)),
        managed_by: Some(Some("etl".to_owned())),
    };
    let reference = IntegrationRef::Id(made.integration.id);
    setting.integrations().change(&OPERATOR, setting.acme, &reference, edit).await.unwrap();
    let records = setting.audited(AuditAction::IntegrationDisabled);
    let reported: Vec<_> = records[0].changes.iter().map(|change| (&*change.field, change.from.as_deref())).collect();
    let expected =
        [("state", Some("active")), ("namespaces", Some("imports/*")), ("expires_at", None), ("managed_by", None)];
    assert_eq!((records.len(), reported), (1, expected.to_vec()));
    assert_eq!(records[0].changes[1].to.as_deref(), Some("exports imports/*"));
    assert_eq!(setting.audited(AuditAction::IntegrationChanged), []);
    let integration = made.integration.integration;
    assert_eq!((integration.state_at(setting.now()), integration.state_at(end)), ("active", "active"));
    let ends = Integration { expires_at: Some(end), ..integration };
    assert_eq!((ends.state_at(setting.now()), ends.state_at(end)), ("active", "expired"));
}
