//! Creating, changing, listing and authenticating integrations; freezing and listing namespaces.

use super::setting::{OPERATOR, PLAIN_S3, Setting, creation, named, namespace, text};
use secrecy::ExposeSecret;
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::cursor::PageRequest;
use vault_core::field::FieldCode;
use vault_core::id::OrganizationId;
use vault_core::integration::{
    Integration, IntegrationRefusal, IntegrationState, Overlap, StoredIntegration, TokenSlot,
};
use vault_core::namespace::Freezing;
use vault_core::port::{EntityRow, Event};
use vault_core::principal::{Denial, Principal, Scope};
use vault_core::role::Role;
use vault_core::sealed::Blob;
use vault_core::time::Timestamp;
use vault_core::usecase::OrganizationCommand;
use vault_core::usecase::integrations::{CreateIntegrationRequest, IntegrationEdit, IntegrationRef};
use vault_core::{Error, Refusal};

const ALL: PageRequest = PageRequest { limit: 1_000, cursor: None };

#[tokio::test]
async fn token_is_recognised_while_it_works() {
    let setting = Setting::new().await;
    let made = setting.integration("Nightly", &["imports/*"]).await;
    let principal = setting.principal(&made.token).await;
    assert_eq!((principal.organization, principal.integration), (setting.acme, made.integration.id));
    assert_eq!(principal.slot, TokenSlot::Current);
    let created = &setting.audited(AuditAction::IntegrationCreated)[0];
    assert_eq!((created.actor, created.subject), (Actor::Operator, Subject::Integration(made.integration.id)));

    for wrong in ["", "ovi_", "ovi_00000000000000000000000000000000000000000000000000", "Bearer x"] {
        assert_eq!(setting.refusal(&text(wrong)).await, Some(IntegrationRefusal::Unknown));
    }
    setting.set_state("NIGHTLY", IntegrationState::Disabled).await;
    assert!(!setting.works(&made.token).await);
    let (refusal, integration) = (IntegrationRefusal::Disabled, Some(made.integration.id));
    assert_eq!(setting.events.count(&Event::IntegrationRefused { refusal, integration, network: None }), 1);
    setting.set_state("NIGHTLY", IntegrationState::Active).await;
    assert!(setting.works(&made.token).await);
    setting.delete("NIGHTLY").await;
    assert!(!setting.works(&made.token).await);
    let missing = setting.integrations().delete(&OPERATOR, setting.acme, &named("NIGHTLY")).await;
    assert!(matches!(missing, Err(Error::Refused(Refusal::NotFound))));
    for action in [AuditAction::IntegrationDisabled, AuditAction::IntegrationEnabled, AuditAction::IntegrationDeleted] {
        assert_eq!(setting.audited(action).len(), 1);
    }
}

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

#[tokio::test]
async fn both_tokens_of_a_rotation_work_for_the_overlap() {
    let setting = Setting::new().await;
    let made = setting.integration("nightly", &["imports"]).await;
    let second = setting.rotate("nightly", 600).await;
    assert_ne!(made.token.text().expose_secret(), second.text().expose_secret());
    setting.clock.advance_seconds(599);
    assert_eq!(setting.principal(&made.token).await.slot, TokenSlot::Previous);
    assert_eq!(setting.principal(&second).await.slot, TokenSlot::Current);
    setting.clock.advance_seconds(1);
    assert!(!setting.works(&made.token).await && setting.works(&second).await);
    let by_id = IntegrationRef::Id(made.integration.id);
    let immediately = Overlap::parse(Some(0), "").unwrap();
    let third = setting.integrations().rotate(&OPERATOR, setting.acme, &by_id, immediately).await.unwrap();
    assert_eq!(third.0.integration.previous, None, "nothing that works");
    assert!(!setting.works(&second).await && setting.works(&third.1).await);
    assert_eq!(setting.audited(AuditAction::IntegrationRotated).len(), 2);
}

#[tokio::test]
async fn integration_is_refused_after_expiry() {
    let setting = Setting::new().await;
    let expires_at = Some(setting.now().plus_seconds(10));
    let request = CreateIntegrationRequest { expires_at, ..creation("short", &["imports"]) };
    let made = setting.integrations().create(&OPERATOR, setting.acme, request).await.unwrap();
    let token = made.token.unwrap();
    setting.clock.advance_seconds(9);
    assert!(setting.works(&token).await);
    setting.clock.advance_seconds(1);
    assert_eq!(setting.refusal(token.text()).await, Some(IntegrationRefusal::Expired));
    setting.edit("short", IntegrationEdit { expires_at: Some(None), ..IntegrationEdit::default() }).await;
    assert!(setting.works(&token).await);
}

#[tokio::test]
async fn namespaces_and_expiry_are_changed() {
    let setting = Setting::new().await;
    let made = setting.integration("nightly", &["imports"]).await;
    let change = async |edit| setting.integrations().change(&OPERATOR, setting.acme, &named("nightly"), edit).await;
    let end = setting.now().plus_seconds(60);
    let edit = IntegrationEdit {
        namespaces: Some(vec!["exports".into(), "in/*".into()]),
        expires_at: Some(Some(end)),
        ..IntegrationEdit::default()
    };
    let changed = change(edit).await.unwrap();
    let StoredIntegration { version, integration: Integration { expires_at, state, .. }, .. } = changed;
    assert_eq!((expires_at, version, state), (Some(end), 2, IntegrationState::Active));
    let principal = setting.principal(&made.token).await;
    for (name, allowed) in [("imports", false), ("exports", true), ("in/a", true)] {
        assert_eq!(principal.patterns.allow(&namespace(name)), allowed, "{name}");
    }
    assert_eq!(setting.audited(AuditAction::IntegrationChanged).len(), 1);

    let violations = async |edit| {
        let Err(Error::Invalid(errors)) = change(edit).await else { panic!("was not refused") };
        errors.into_iter().map(|error| (error.pointer, error.code)).collect::<Vec<_>>()
    };
    assert_eq!(violations(IntegrationEdit::default()).await, [(String::new(), FieldCode::Required)]);
    let edit = IntegrationEdit {
        namespaces: Some(vec!["*".into()]),
        expires_at: Some(Some(setting.now())),
        managed_by: Some(Some("a set".into())),
        ..IntegrationEdit::default()
    };
    let expected = [
        ("/namespaces/0", FieldCode::Malformed),
        ("/managed_by", FieldCode::Malformed),
        ("/expires_at", FieldCode::OutOfRange),
    ]
    .map(|(pointer, code)| (pointer.to_owned(), code));
    assert_eq!(violations(edit).await, expected);
}

#[tokio::test]
async fn invalid_integration_is_refused_at_its_fields() {
    let setting = Setting::new().await;
    let create = async |organization, request| setting.integrations().create(&OPERATOR, organization, request).await;
    let expires_at = Some(setting.now());
    let request = CreateIntegrationRequest { expires_at, ..creation(" ", &["imports", "*", "a b/*"]) };
    let Err(Error::Invalid(errors)) = create(setting.acme, request).await else { panic!("was not refused") };
    let violations: Vec<_> = errors.iter().map(|error| (error.pointer.as_str(), error.code)).collect();
    let expected = [
        ("/name", FieldCode::Blank),
        ("/namespaces/1", FieldCode::Malformed),
        ("/namespaces/2", FieldCode::Malformed),
        ("/expires_at", FieldCode::OutOfRange),
    ];
    assert_eq!(violations, expected);

    setting.integration("nightly", &["imports"]).await;
    let again = creation("Nightly", &["other"]);
    let taken = create(setting.acme, again.clone()).await;
    assert!(matches!(taken, Err(Error::Refused(Refusal::NameTaken))));
    create(setting.other, again.clone()).await.unwrap();
    let nowhere = create(OrganizationId::from_bytes([9; 16]), again.clone()).await;
    assert!(matches!(nowhere, Err(Error::Refused(Refusal::NoOrganization))));
    let full = setting.integrations().limit(1).create(&OPERATOR, setting.acme, creation("more", &["a"])).await;
    assert!(matches!(full, Err(Error::Refused(Refusal::LimitReached { what: "integrations", limit: 1 }))));
}

#[tokio::test]
async fn only_admins_with_active_session_administer() {
    let setting = Setting::new().await;
    let made = setting.integration("nightly", &["imports"]).await;
    let integrations = setting.integrations();
    let meant = IntegrationRef::Id(made.integration.id);
    let outcomes = async |principal: &Principal, acme: OrganizationId| {
        [
            integrations.create(principal, acme, creation("x", &["y"])).await.map(drop),
            integrations.delete(principal, acme, &meant).await.map(drop),
            integrations.rotate(principal, acme, &meant, Overlap::DEFAULT).await.map(drop),
            integrations.freeze(principal, acme, namespace("imports")).await.map(drop),
            integrations.list(principal, Scope::One(acme), ALL).await.map(drop),
        ]
    };
    // For an admin's token with an unknown session, the session is checked last.
    for (role, expected) in [
        (Role::Editor, Denial::InsufficientRole),
        (Role::Viewer, Denial::InsufficientRole),
        (Role::Admin, Denial::AccountChanged),
    ] {
        let session = Principal::Session(setting.session(role));
        for (number, outcome) in outcomes(&session, setting.acme).await.into_iter().enumerate() {
            assert!(matches!(outcome, Err(Error::Denied(denial)) if denial == expected), "{role:?} {number}");
        }
    }
    // Every role may list namespaces.
    for role in [Role::Editor, Role::Viewer, Role::Admin] {
        let session = Principal::Session(setting.session(role));
        let listed = integrations.list_namespaces(&session, setting.acme, None, ALL).await;
        assert!(matches!(listed, Err(Error::Denied(Denial::AccountChanged))), "{role:?}");
    }
    let admin = Principal::Session(setting.session(Role::Admin));
    let listed = integrations.list_namespaces(&admin, setting.other, None, ALL).await;
    assert!(matches!(listed, Err(Error::Refused(Refusal::NoOrganization) | Error::Denied(Denial::InsufficientRole))));
    for outcome in outcomes(&admin, setting.other).await {
        assert!(matches!(
            outcome,
            Err(Error::Refused(Refusal::NoOrganization) | Error::Denied(Denial::InsufficientRole))
        ));
    }
    let everywhere = integrations.list(&admin, Scope::All, ALL).await;
    assert!(matches!(everywhere, Err(Error::Denied(Denial::InsufficientRole))));
    assert!(setting.works(&made.token).await);
}

#[tokio::test]
async fn lists_are_paginated_and_show_token_use() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    for name in ["b", "C", "a"] {
        setting.integration(name, &["imports"]).await;
    }
    let integrations = setting.integrations();
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = PageRequest { limit: 2, cursor };
        let page = integrations.list(&OPERATOR, Scope::One(setting.acme), page).await.unwrap();
        names.extend(page.items.iter().map(|row| row.integration.name.to_string()));
        cursor = page.next;
        match &cursor {
            None => break,
            // A cursor belongs to its list.
            Some(text) => {
                let stray = || PageRequest { limit: 2, cursor: Some(text.clone()) };
                let refused = |error| matches!(error, Error::Refused(Refusal::Cursor));
                let other = integrations.list(&OPERATOR, Scope::One(setting.other), stray()).await.unwrap_err();
                let all = integrations.list(&OPERATOR, Scope::All, stray()).await.unwrap_err();
                let namespaces =
                    integrations.list_namespaces(&OPERATOR, setting.acme, None, stray()).await.unwrap_err();
                assert!(refused(other) && refused(all) && refused(namespaces));
            }
        }
    }
    assert_eq!(names, ["a", "b", "C"]);

    let shown = async || {
        let page = setting.integrations().list(&OPERATOR, Scope::One(setting.acme), ALL).await.unwrap();
        let row = page.items.into_iter().next().unwrap();
        (row.last_used_at, row.integration.previous.map(|previous| previous.until))
    };
    assert_eq!(shown().await, (None, None));
    let token = setting.rotate("a", 60).await;
    let until = setting.now().plus_seconds(60);
    assert_eq!(shown().await, (None, Some(until)));
    let principal = setting.principal(&token).await;
    setting.activated(&principal, "imports", vault_core::activation::VendMode::Raw).await.unwrap();
    assert_eq!(shown().await, (Some(setting.now().floor_to_minute()), Some(until)));
    setting.clock.set(until);
    assert_eq!(shown().await.1, None);
}

#[tokio::test]
async fn planted_row_grants_nothing_and_is_not_resigned() {
    let setting = Setting::new().await;
    type Alteration = fn(&mut EntityRow);
    let alterations: [(&str, Alteration); 3] = [
        ("document", |row| {
            let text = String::from_utf8_lossy(row.sealed.as_bytes()).replace("imports", "exports");
            row.sealed = Blob::from_bytes(text.into_bytes());
        }),
        ("expiry", |row| row.due_at = Some(Timestamp::from_millis(i64::MAX))),
        ("version", |row| row.version += 1),
    ];
    let integrations = setting.integrations();
    for (name, alter) in alterations {
        let made = setting.integration(name, &["imports"]).await;
        assert!(setting.works(&made.token).await);
        assert!(setting.store.tamper_with_integration(made.integration.id, alter));
        assert!(!setting.works(&made.token).await, "{name}");
        assert!(setting.saw_damage("entities"));
        let enable = IntegrationEdit { state: Some(IntegrationState::Active), ..IntegrationEdit::default() };
        let signed = [
            integrations.change(&OPERATOR, setting.acme, &named(name), enable).await.err(),
            integrations.rotate(&OPERATOR, setting.acme, &named(name), Overlap::DEFAULT).await.err(),
        ];
        for error in signed {
            assert!(matches!(error, Some(Error::Refused(Refusal::Damaged { table: "entities", .. }))));
        }
        setting.delete(name).await;
    }
}

#[tokio::test]
async fn freeze_reports_affected_objects_and_is_recorded() {
    let setting = Setting::new().await;
    setting.saved(setting.acme, "imports", PLAIN_S3).await;
    setting.integration("exact", &["imports"]).await;
    setting.integration("below", &["imports/*"]).await;
    setting.integration("disabled", &["imports"]).await;
    setting.set_state("disabled", IntegrationState::Disabled).await;
    let freezing = |changed, credentials, integrations| Freezing { changed, credentials, integrations };
    assert_eq!(setting.freeze("imports").await, freezing(true, 1, 1));
    assert_eq!(setting.freeze("imports").await, freezing(false, 1, 1));
    assert_eq!(setting.freeze("imports/nigthly").await, freezing(true, 0, 1), "a typing error shows");
    let integrations = setting.integrations();
    let listed = integrations.list_namespaces(&OPERATOR, setting.acme, None, ALL).await.unwrap();
    let shown: Vec<_> =
        listed.items.iter().map(|row| (row.namespace.as_str(), row.credentials, row.frozen_at.is_some())).collect();
    assert_eq!((shown, listed.next), (vec![("imports", 1, true), ("imports/nigthly", 0, true)], None));
    let thawed = integrations.thaw(&OPERATOR, setting.acme, namespace("imports")).await.unwrap();
    assert_eq!(thawed, freezing(true, 1, 1));
    assert!(!integrations.thaw(&OPERATOR, setting.acme, namespace("imports")).await.unwrap().changed);
    for (action, count) in [(AuditAction::NamespaceFrozen, 2), (AuditAction::NamespaceThawed, 1)] {
        let records = setting.audited(action);
        assert_eq!(records.len(), count);
        assert_eq!(records[0].note.as_ref().unwrap().namespace.as_str(), "imports");
    }
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
