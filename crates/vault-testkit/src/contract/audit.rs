//! Cases of [`AuditLog`](vault_core::port::AuditLog). That each command leaves its entry exactly when it changed
//! something stands with the commands' own cases.

use super::ContractStore;
use super::tools::namespace;
use super::world::World;
use vault_core::activation::Purpose;
use vault_core::audit::{Actor, AuditAction, AuditNote, Subject};
use vault_core::id::{AccountId, ActivationId, AuditId, CredentialId, IntegrationId, SessionId};
use vault_core::port::IdGenerator;

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
