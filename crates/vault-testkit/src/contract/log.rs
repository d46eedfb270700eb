//! Cases of the audit log: entries without a change, and changes without an entry.

use super::ContractStore;
use super::idempotency::keyed;
use super::tools::namespace;
use super::world::World;
use crate::commands::CredentialCommands as _;
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
        Subject::Audit,
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
    world.append(entries).await.unwrap();
    assert_eq!(world.audited(AuditAction::CredentialsListed).await, 6 * 10 + 2);
}

/// Entries outside every organization, and none at all, are no failure.
pub async fn entries_may_lack_organization(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let mut entry = world.audit(AuditAction::LoginThrottled);
    entry.record.organization = None;
    entry.record.subject = Subject::UnknownAddresses;
    world.append(vec![entry]).await.unwrap();
    world.append(Vec::new()).await.unwrap();
    assert_eq!(world.audited(AuditAction::LoginThrottled).await, 0);
}

/// Either all entries are appended or none: if the ID of one exists, the others are not appended either.
pub async fn entries_are_appended_all_or_none(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let first = world.audit(AuditAction::CredentialShown);
    world.append(vec![first.clone()]).await.unwrap();
    let mut others: Vec<_> = (0..4).map(|_| world.audit(AuditAction::CredentialsListed)).collect();
    others.insert(2, first);
    // A store may also treat the repetition as a retry, and append only the new entries.
    let expected = if world.append(others).await.is_ok() { 4 } else { 0 };
    assert_eq!(world.audited(AuditAction::CredentialsListed).await, expected);
    assert_eq!(world.audited(AuditAction::CredentialShown).await, 1);
}

/// Entries are listed only for their organization, whatever their age.
pub async fn entries_belong_to_one_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let entries = other.audit_length().await;
    let mut old = world.audit(AuditAction::CredentialShown);
    old.record.id = AuditId::from_uuid(world.ids.random());
    old.record.at = vault_core::time::Timestamp::from_millis(0);
    world.append(vec![old]).await.unwrap();
    assert_eq!(world.audited(AuditAction::CredentialShown).await, 1);
    assert_eq!(other.audit_length().await, entries);
}

/// A change of a credential or key fails without effect if its entry cannot be written because the entry's ID exists.
/// Its idempotency key can be used again.
pub async fn change_without_audit_entry_is_rolled_back(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let credential = world.saved(&principal).await;
    let read = world.versions(&principal, credential).await;
    let taken = world.audit(AuditAction::CredentialShown);
    world.append(vec![taken.clone()]).await.unwrap();
    let (entries, rows) = (world.audit_length().await, suite.rows(world.organization).await);

    macro_rules! fails {
        ($method:ident, $command:expr) => {{
            let mut command = $command;
            command.audit.record.id = taken.record.id;
            assert!(world.store.$method(command).await.is_err(), stringify!($method));
        }};
    }
    fails!(save_credential, world.save(&principal));
    fails!(save_credential, keyed(&world, &principal, "key", "body"));
    fails!(change_credential, world.replacement(&principal, &read));
    fails!(change_credential, world.stage(&principal, &read));

    assert_eq!(world.audit_length().await, entries);
    assert_eq!(suite.rows(world.organization).await, rows);
    assert_eq!(world.versions(&principal, credential).await, read);
    assert_eq!(world.listed(&principal).await, [credential]);
    let other = keyed(&world, &principal, "key", "another body");
    assert!(world.store.save_credential(other).await.is_ok(), "the key is free");
}
