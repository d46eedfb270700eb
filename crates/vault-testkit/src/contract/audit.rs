//! Cases of [`AuditLog`](vault_core::port::AuditLog). That each command leaves its entry exactly when it changed
//! something stands with the commands' own cases.

use super::ContractStore;
use super::organization::deletion;
use super::tools::namespace;
use super::world::World;
use vault_core::activation::Purpose;
use vault_core::audit::{Actor, AuditAction, AuditNote, Subject};
use vault_core::id::{AccountId, ActivationId, AuditId, CredentialId, IntegrationId, SessionId};
use vault_core::organization::OrganizationState;
use vault_core::port::{AccountChange, IdGenerator, SetOrganizationState};
use vault_core::principal::Principal;
use vault_core::role::Role;

/// Entries of every kind of actor and subject are appended, with a note and without.
pub async fn entries_are_appended(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let account = AccountId::from_uuid(world.ids.random());
    let session = SessionId::from_uuid(world.ids.random());
    let integration = IntegrationId::from_uuid(world.ids.random());
    let known = [Actor::Account(account, session), Actor::Embedder(account), Actor::Integration(integration)];
    let actors = known.into_iter().chain([Actor::Operator, Actor::System, Actor::Unknown]);
    let subjects = [
        Subject::Instance,
        Subject::Organization(world.organization),
        Subject::Account(account),
        Subject::Session(session),
        Subject::Credential(CredentialId::from_uuid(world.ids.random())),
        Subject::Vault,
        Subject::UnknownAddresses,
        Subject::Integration(integration),
        Subject::Activation(ActivationId::from_uuid(world.ids.random())),
    ];
    let mut entries = Vec::new();
    for actor in actors {
        for subject in subjects {
            let mut entry = world.audit(AuditAction::CredentialsListed);
            (entry.record.actor, entry.record.subject, entry.record.count) = (actor, subject, 17);
            entries.push(entry);
        }
    }
    for purpose in [None, Some("Größe “Ωmega” % _ \\ ' nightly")] {
        let mut entry = world.audit(AuditAction::CredentialsListed);
        let purpose = purpose.map(|purpose| Purpose::parse(purpose, "").unwrap());
        entry.record.note = Some(AuditNote { purpose, ..AuditNote::of(namespace("Team/nightly")) });
        entries.push(entry);
    }
    world.store.append(entries).await.unwrap();
    assert_eq!(world.audited(AuditAction::CredentialsListed).await, 6 * 9 + 2);
}

/// Entries outside every organization, and none at all, are no failure.
pub async fn entries_need_no_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let mut entry = world.audit(AuditAction::LoginTurnedAway);
    entry.record.organization = None;
    entry.record.subject = Subject::UnknownAddresses;
    world.store.append(vec![entry]).await.unwrap();
    world.store.append(Vec::new()).await.unwrap();
    assert_eq!(world.audited(AuditAction::LoginTurnedAway).await, 0);
}

/// All of them or none: where one cannot be appended, because its id is taken, the others are not either.
pub async fn entries_are_appended_all_or_none(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let first = world.audit(AuditAction::CredentialShown);
    world.store.append(vec![first.clone()]).await.unwrap();
    let mut others: Vec<_> = (0..4).map(|_| world.audit(AuditAction::CredentialsListed)).collect();
    others.insert(2, first);
    // A store may also take the repetition for a retry, and append what is new.
    let expected = if world.store.append(others).await.is_ok() { 4 } else { 0 };
    assert_eq!(world.audited(AuditAction::CredentialsListed).await, expected);
    assert_eq!(world.audited(AuditAction::CredentialShown).await, 1);
}

/// An organization's entries are its own, and outlast a long time.
pub async fn entries_belong_to_one_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let entries = other.audit_length().await;
    let mut old = world.audit(AuditAction::CredentialShown);
    old.record.id = AuditId::from_uuid(world.ids.random());
    old.record.at = vault_core::time::Timestamp::from_millis(0);
    world.store.append(vec![old]).await.unwrap();
    assert_eq!(world.audited(AuditAction::CredentialShown).await, 1);
    assert_eq!(other.audit_length().await, entries);
}

/// A command whose entry cannot be written, because the entry's id is taken, fails and changes nothing.
pub async fn what_cannot_be_recorded_does_not_happen(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let holder = world.holder(Role::Admin).await;
    let session = world.log_in(&holder).await;
    let principal = Principal::Session(session.clone());
    let credential = world.saved(&principal).await;
    let taken = world.audit(AuditAction::CredentialShown);
    world.store.append(vec![taken.clone()]).await.unwrap();
    let entries = world.audit_length().await;

    macro_rules! fails {
        ($method:ident, $command:expr) => {{
            let mut command = $command;
            command.audit.record.id = taken.record.id;
            assert!(world.store.$method(command).await.is_err(), stringify!($method));
        }};
    }
    fails!(save_credential, world.save(&principal));
    fails!(delete_credential, world.delete(&principal, credential));
    fails!(create_account, world.create_account(&world.new_holder(Role::Viewer)));
    fails!(change_account, world.change_account(&holder, holder.signed.version, AccountChange::Delete));
    fails!(end_session, world.end_session(&session));
    fails!(create_integration, world.create_integration(&principal, &world.new_integration("nightly")));
    fails!(freeze_namespace, world.freeze(&principal, "contract", true));
    fails!(replace_organization_key, world.replace_key(world.key));
    let (organization, audit) = (world.organization, world.audit(AuditAction::OrganizationDisabled));
    let disabling = SetOrganizationState { organization, state: OrganizationState::Disabled, audit };
    fails!(set_organization_state, disabling);
    fails!(delete_organization, deletion(&world));

    assert_eq!(world.audit_length().await, entries);
    assert_eq!(world.listed(&principal).await, [credential]);
    assert_eq!(world.accounts(Some(organization)).await.len(), 1);
    let keys = world.store.organization_keys(organization).await.unwrap().unwrap();
    assert_eq!(keys.keys.iter().map(|key| key.id).collect::<Vec<_>>(), [world.key]);
    for table in ["integrations", "frozen_namespaces", "frozen namespaces"] {
        assert!(!suite.rows(organization).await.iter().any(|left| left == table), "{table}");
    }
}
