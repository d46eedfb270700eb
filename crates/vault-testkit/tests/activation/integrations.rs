//! Making, changing and recognising integrations; freezing namespaces.

use super::setting::{Setting, named, namespace, operator, text};
use secrecy::ExposeSecret;
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::field::FieldCode;
use vault_core::integration::{IntegrationRefusal, IntegrationState, NamespacePatterns, Overlap, TokenSlot};
use vault_core::port::{Event, IntegrationScope};
use vault_core::principal::Denial;
use vault_core::role::Role;
use vault_core::usecase::*;

#[tokio::test]
async fn a_token_is_recognised_while_it_works() {
    let setting = Setting::new().await;
    let made = setting.integration("Nightly", &["imports/*"]).await;
    let principal = setting.principal(&made.token).await;
    assert_eq!((principal.organization, principal.integration), (setting.acme, made.integration.id));
    assert_eq!(principal.slot, TokenSlot::Current);
    let created = &setting.audited(AuditAction::IntegrationCreated)[0];
    assert_eq!((created.actor, created.subject), (Actor::Operator, Subject::Integration(made.integration.id)));

    for wrong in ["", "ovi_", "ovi_00000000000000000000000000000000000000000000000000", "Bearer x"] {
        let refused = setting.authenticate().run(&text(wrong)).await;
        assert!(matches!(refused, Err(AuthenticateIntegrationError::Invalid(IntegrationRefusal::Unknown))));
    }
    let (change, made_name) = (setting.change(), named("NIGHTLY"));
    change.run(operator(), made_name.clone(), IntegrationCommand::Disable).await.unwrap();
    assert!(!setting.works(&made.token).await);
    assert_eq!(setting.events.count(&Event::IntegrationRefused(IntegrationRefusal::Disabled)), 1);
    change.run(operator(), made_name.clone(), IntegrationCommand::Enable).await.unwrap();
    assert!(setting.works(&made.token).await);
    setting.operator().change_organization("Acme", OrganizationCommand::Disable).await.unwrap();
    assert!(!setting.works(&made.token).await);
    setting.operator().change_organization("Acme", OrganizationCommand::Enable).await.unwrap();
    change.run(operator(), made_name.clone(), IntegrationCommand::Delete).await.unwrap();
    assert!(!setting.works(&made.token).await);
    let missing = change.run(operator(), made_name, IntegrationCommand::Enable).await;
    assert!(matches!(missing, Err(ChangeIntegrationError::NotFound)));
    for action in [AuditAction::IntegrationDisabled, AuditAction::IntegrationEnabled, AuditAction::IntegrationDeleted] {
        assert_eq!(setting.audited(action).len(), 1);
    }
}

#[tokio::test]
async fn who_comes_with_a_token_that_worked_once_is_on_record() {
    let setting = Setting::new().await;
    let first = setting.integration("nightly", &["imports"]).await;
    let rotate = IntegrationCommand::Rotate(Overlap::parse(Some(600), "").unwrap());
    let second = setting.change().run(operator(), named("nightly"), rotate).await.unwrap().token.unwrap();
    setting.clock.advance_seconds(600);
    for _ in 0..3 {
        assert!(!setting.works(&first.token).await);
    }
    assert!(setting.authenticate().run(&text("ovi_")).await.is_err() && setting.works(&second).await);
    setting.change().run(operator(), named("nightly"), IntegrationCommand::Disable).await.unwrap();
    assert!(!setting.works(&second).await);
    setting.tally.flush(true).await.unwrap();
    let records = setting.audited(AuditAction::ActivationRefusedToken);
    let found: Vec<_> = records.iter().map(|record| (record.actor, record.subject, record.count)).collect();
    let id = first.integration.id;
    assert_eq!(found, [(Actor::Integration(id), Subject::Integration(id), 4)], "within one minute");
    assert_eq!(records[0].organization, Some(setting.acme));
}

#[tokio::test]
async fn both_tokens_of_a_rotation_work_for_the_overlap() {
    let setting = Setting::new().await;
    let made = setting.integration("nightly", &["imports"]).await;
    let rotate = async |seconds| {
        let overlap = Overlap::parse(Some(seconds), "").unwrap();
        let by_id = IntegrationRef::Id(made.integration.id);
        let changed = setting.change().run(operator(), by_id, IntegrationCommand::Rotate(overlap)).await.unwrap();
        changed.token.unwrap()
    };
    let second = rotate(600).await;
    assert_ne!(made.token.text().expose_secret(), second.text().expose_secret());
    setting.clock.advance_seconds(599);
    assert_eq!(setting.principal(&made.token).await.slot, TokenSlot::Earlier);
    assert_eq!(setting.principal(&second).await.slot, TokenSlot::Current);
    setting.clock.advance_seconds(1);
    assert!(!setting.works(&made.token).await && setting.works(&second).await);
    let third = rotate(0).await;
    assert!(!setting.works(&second).await && setting.works(&third).await);
    assert_eq!(setting.audited(AuditAction::IntegrationRotated).len(), 2);
}

#[tokio::test]
async fn an_integration_ends_when_it_expires() {
    let setting = Setting::new().await;
    let request = CreateIntegrationRequest {
        name: "short".into(),
        namespaces: vec!["imports".into()],
        expires_at: Some(setting.now().plus_seconds(10)),
    };
    let made = setting.create().run(operator(), request).await.unwrap();
    setting.clock.advance_seconds(9);
    assert!(setting.works(&made.token).await);
    setting.clock.advance_seconds(1);
    assert!(!setting.works(&made.token).await);
}

#[tokio::test]
async fn a_flawed_integration_is_refused_at_its_fields() {
    let setting = Setting::new().await;
    let request = CreateIntegrationRequest {
        name: " ".into(),
        namespaces: vec!["imports".into(), "*".into(), "a b/*".into()],
        expires_at: Some(setting.now()),
    };
    let Err(CreateIntegrationError::Fields(errors)) = setting.create().run(operator(), request).await else {
        panic!("was not refused")
    };
    let flaws: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
    let expected = [
        ("/name", FieldCode::Blank),
        ("/namespaces/1", FieldCode::Malformed),
        ("/namespaces/2", FieldCode::Malformed),
        ("/expires_at", FieldCode::OutOfRange),
    ];
    assert_eq!(flaws, expected);

    setting.integration("nightly", &["imports"]).await;
    let again = CreateIntegrationRequest { name: "Nightly".into(), namespaces: vec!["other".into()], expires_at: None };
    let taken = setting.create().run(operator(), again.clone()).await;
    assert!(matches!(taken, Err(CreateIntegrationError::NameTaken)));
    setting.create().run(Administrator::Operator("Other".into()), again.clone()).await.unwrap();
    let nowhere = setting.create().run(Administrator::Operator("nobody".into()), again).await;
    assert!(matches!(nowhere, Err(CreateIntegrationError::Administrator(AdministratorError::NoOrganization))));
}

#[tokio::test]
async fn nobody_but_admins_with_a_live_session_administers() {
    let setting = Setting::new().await;
    let made = setting.integration("nightly", &["imports"]).await;
    let again = CreateIntegrationRequest { name: "x".into(), namespaces: vec!["y".into()], expires_at: None };
    for role in [Role::Editor, Role::Viewer] {
        let session = Administrator::Session(setting.session(role));
        let insufficient = |error: &AdministratorError| matches!(error, AdministratorError::InsufficientRole);
        let created = setting.create().run(session.clone(), again.clone()).await;
        assert!(matches!(created, Err(CreateIntegrationError::Administrator(error)) if insufficient(&error)));
        let changed = setting.change().run(session.clone(), named("nightly"), IntegrationCommand::Delete).await;
        assert!(matches!(changed, Err(ChangeIntegrationError::Administrator(error)) if insufficient(&error)));
        let frozen = setting.freeze().freeze(session, namespace("imports")).await;
        assert!(matches!(frozen, Err(FreezeNamespaceError::Administrator(error)) if insufficient(&error)));
        let listed = setting.list().run(IntegrationScope::Session(setting.session(role))).await;
        assert!(matches!(listed, Err(ListIntegrationsError::InsufficientRole)));
        let listed = setting.freeze().list(IntegrationScope::Session(setting.session(role))).await;
        assert!(matches!(listed, Err(FreezeNamespaceError::Administrator(error)) if insufficient(&error)));
    }
    // An admin's token whose session nobody knows.
    let session = setting.session(Role::Admin);
    let admin = Administrator::Session(session.clone());
    let dead = |refusal: Denial| refusal == Denial::AccountChanged;
    let created = setting.create().run(admin.clone(), again).await;
    assert!(matches!(created, Err(CreateIntegrationError::Principal(refusal)) if dead(refusal)));
    let by_id = IntegrationRef::Id(made.integration.id);
    let changed = setting.change().run(admin.clone(), by_id, IntegrationCommand::Delete).await;
    assert!(matches!(changed, Err(ChangeIntegrationError::Principal(refusal)) if dead(refusal)));
    let frozen = setting.freeze().freeze(admin, namespace("imports")).await;
    assert!(matches!(frozen, Err(FreezeNamespaceError::Principal(refusal)) if dead(refusal)));
    let listed = setting.list().run(IntegrationScope::Session(session)).await;
    assert!(matches!(listed, Err(ListIntegrationsError::Principal(refusal)) if dead(refusal)));
    assert!(setting.works(&made.token).await);
}

#[tokio::test]
async fn a_list_tells_of_an_earlier_token_while_it_works() {
    let setting = Setting::new().await;
    setting.integration("nightly", &["imports"]).await;
    let rotation = IntegrationCommand::Rotate(Overlap::parse(Some(60), "").unwrap());
    setting.change().run(operator(), named("nightly"), rotation).await.unwrap();
    let until = setting.now().plus_seconds(60);
    let earlier = async || {
        let listed = setting.list().run(IntegrationScope::Everywhere).await.unwrap();
        listed[0].integration.earlier.map(|earlier| earlier.until)
    };
    assert_eq!(earlier().await, Some(until));
    setting.clock.set(until);
    assert_eq!(earlier().await, None);
}

#[tokio::test]
async fn a_row_planted_or_altered_by_sql_grants_nothing_and_is_not_signed_anew() {
    let setting = Setting::new().await;
    type Alteration = fn(&mut vault_core::integration::Integration);
    let alterations: [(&str, Alteration); 3] = [
        ("patterns", |row| row.patterns = NamespacePatterns::parse(&["everything/*"], "").unwrap()),
        ("expiry", |row| row.expires_at = Some(vault_core::time::Timestamp::from_millis(i64::MAX))),
        ("name", |row| row.organization = vault_core::id::OrganizationId::from_bytes([9; 16])),
    ];
    for (name, alter) in alterations {
        let made = setting.integration(name, &["imports"]).await;
        assert!(setting.works(&made.token).await);
        assert!(setting.store.tamper_with_integration(made.integration.id, alter));
        assert!(!setting.works(&made.token).await, "{name}");
        if name != "name" {
            assert!(setting.saw_damage("integrations"));
            for command in [IntegrationCommand::Enable, IntegrationCommand::Rotate(Overlap::DEFAULT)] {
                let signed = setting.change().run(operator(), named(name), command).await;
                assert!(matches!(signed, Err(ChangeIntegrationError::Damaged)));
            }
            setting.change().run(operator(), named(name), IntegrationCommand::Delete).await.unwrap();
        }
    }
    // A disabled one that is enabled behind our back.
    let made = setting.integration("disabled", &["imports"]).await;
    setting.change().run(operator(), named("disabled"), IntegrationCommand::Disable).await.unwrap();
    setting.store.tamper_with_integration(made.integration.id, |row| row.state = IntegrationState::Active);
    assert!(!setting.works(&made.token).await);
}

#[tokio::test]
async fn namespaces_are_frozen_and_thawed_on_record() {
    let setting = Setting::new().await;
    let freeze = setting.freeze();
    assert!(freeze.freeze(operator(), namespace("imports")).await.unwrap());
    assert!(!freeze.freeze(operator(), namespace("imports")).await.unwrap());
    let listed = freeze.list(IntegrationScope::Organization(setting.acme)).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.namespace.as_str()).collect::<Vec<_>>(), ["imports"]);
    assert!(freeze.thaw(operator(), namespace("imports")).await.unwrap());
    assert!(!freeze.thaw(operator(), namespace("imports")).await.unwrap());
    for action in [AuditAction::NamespaceFrozen, AuditAction::NamespaceThawed] {
        let records = setting.audited(action);
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].note.as_ref().unwrap().namespace.as_str(), "imports");
    }
}
