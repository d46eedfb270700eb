//! Cases of saves and deletions of credentials, and of their lists.

use super::ContractStore;
use super::idempotency::keyed;
use super::tools::{Settled, evaluated, namespace, race, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use futures_util::future::join_all;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialQuery, CredentialType, DeleteCredential, ListFilter, ListPosition};
use vault_core::id::CredentialId;
use vault_core::organization::OrganizationState;
use vault_core::port::{IdGenerator, StoredCredential};
use vault_core::principal::{Denial, Principal};
use vault_core::sealed::Blob;
use vault_core::{Error, Refusal};

/// A credential is shown and listed as it was saved, for each type.
pub async fn credential_is_shown_as_saved(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut newest_first = Vec::new();
    for kind in CredentialType::ALL {
        world.clock.advance_millis(1);
        let command = with(world.save(&principal), |save| {
            (save.new.kind, save.namespace) = (kind, namespace("A/b-c_d.e"));
        });
        let (id, vend) = (command.payload.id, command.payload.vend);
        let expected = |card: Blob| StoredCredential {
            id,
            kind,
            namespace: namespace("A/b-c_d.e"),
            version: 1,
            vend,
            expires_at: None,
            created_at: world.now(),
            updated_at: world.now(),
            revision: 1,
            card,
            check: None,
            last_activated_at: None,
        };
        world.store.save_credential(command).await.unwrap();
        let stored = world.show(&principal, id).await.unwrap();
        assert_eq!(stored, expected(stored.card.clone()));
        newest_first.insert(0, stored);
    }
    let listed = world.try_page(&principal, world.list(&principal)).await.unwrap().credentials;
    assert!(listed.iter().all(|one| one.card.is_ok()));
    assert_eq!(listed.into_iter().map(|one| one.row).collect::<Vec<_>>(), newest_first);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, newest_first.len());
    let nothing = CredentialId::from_uuid(world.ids.random());
    assert_eq!(world.show(&principal, nothing).await.decided(), Err(Refusal::NotFound));
}

/// A list starts with the newest credential, also for equal times.
pub async fn list_starts_with_newest(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut saved = Vec::new();
    for pause in [0, 0, 1, 1_000, 0, 86_400_000] {
        world.clock.advance_millis(pause);
        saved.insert(0, world.saved(&principal).await);
    }
    assert_eq!(world.listed(&principal).await, saved);
}

/// A list is filtered by namespace, by type and by both; a namespace is compared exactly.
pub async fn list_is_filtered(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut saved = Vec::new();
    for text in ["a_b", "axb", "A_b", "a_b/c", "a"] {
        for kind in [CredentialType::S3, CredentialType::Gcs] {
            let command =
                with(world.save(&principal), |save| (save.new.kind, save.namespace) = (kind, namespace(text)));
            saved.insert(0, (command.payload.id, text, kind));
            world.store.save_credential(command).await.unwrap();
        }
    }
    let kinds = [None, Some(CredentialType::S3), Some(CredentialType::DirectLink)];
    for text in [None, Some("a_b"), Some("a"), Some("none")] {
        for kind in kinds {
            let wanted = saved.iter().filter(|(_, of, as_kind)| {
                text.is_none_or(|text| text == *of) && kind.is_none_or(|kind| kind == *as_kind)
            });
            let wanted: Vec<_> = wanted.map(|(id, ..)| *id).collect();
            let filter = ListFilter { namespace: text.map(namespace), kind, ..ListFilter::default() };
            let query = world.list_by(&principal, filter);
            assert_eq!(world.page(&principal, query.clone()).await, wanted);
            assert_eq!(pages(&world, &principal, query, 2).await, wanted);
        }
    }
}

/// Pages neither repeat nor omit what existed when the first page was read, whatever is saved or deleted in between,
/// including the last credential of a page.
pub async fn pages_are_stable_while_others_change_the_list(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut remaining = Vec::new();
    for _ in 0..10 {
        remaining.insert(0, world.saved(&principal).await);
    }
    let mut after = None;
    while !remaining.is_empty() {
        let page = world.page(&principal, CredentialQuery { after, limit: 3, ..world.list(&principal) }).await;
        let expected: Vec<_> = remaining.drain(..remaining.len().min(3)).collect();
        assert_eq!(page, expected);
        after = page.last().copied().map(position);
        world.saved(&principal).await;
        for id in page {
            world.delete(&principal, id).await.unwrap();
        }
    }
    assert_eq!(world.page(&principal, CredentialQuery { after, ..world.list(&principal) }).await, []);
    assert_eq!(world.listed(&principal).await.len(), 4);
}

/// An organization cannot list, show, page after or delete a credential of another.
pub async fn organizations_are_isolated(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (principal, stranger) = (world.embedder(), other.embedder());
    let mine = world.saved(&principal).await;
    let theirs = other.saved(&stranger).await;
    assert_eq!(world.listed(&principal).await, [mine]);
    assert_eq!(other.listed(&stranger).await, [theirs]);
    assert_eq!(world.show(&principal, theirs).await.decided(), Err(Refusal::NotFound));
    assert_eq!(world.delete(&principal, theirs).await.decided(), Err(Refusal::NotFound));
    for after in [mine, theirs] {
        let page =
            world.page(&principal, CredentialQuery { after: Some(position(after)), ..world.list(&principal) }).await;
        assert!(page.iter().all(|id| *id == mine));
    }
    assert_eq!(other.listed(&stranger).await, [theirs]);
    assert_eq!(world.audited(AuditAction::CredentialDeleted).await, 0);
}

/// Of concurrent deletes of a credential exactly one succeeds.
pub async fn credential_is_deleted_once_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let (credential, other) = (world.saved(&principal).await, world.saved(&principal).await);
    let deleted = join_all((0..16).map(|_| world.delete(&principal, credential))).await;
    let deleted: Vec<_> = deleted.into_iter().map(Settled::decided).collect();
    assert_eq!(deleted.iter().filter(|deleted| deleted.is_ok()).count(), 1);
    assert_eq!(deleted.iter().filter(|deleted| **deleted == Err(Refusal::NotFound)).count(), 15);
    assert_eq!(world.audited(AuditAction::CredentialDeleted).await, 1);
    assert_eq!(world.show(&principal, credential).await.decided(), Err(Refusal::NotFound));
    assert_eq!(world.listed(&principal).await, [other]);
    assert_eq!(world.delete(&principal, credential).await.decided(), Err(Refusal::NotFound));
    assert_eq!(world.audited(AuditAction::CredentialDeleted).await, 1);
}

/// The limit on credentials is enforced per organization. Deleted credentials do not count.
pub async fn limit_is_enforced(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for _ in 0..3 {
        other.saved(&other.embedder()).await;
    }
    let principal = world.embedder();
    let save = async || {
        let command = with(world.save(&principal), |save| save.limit = 2);
        world.store.save_credential(command).await.decided()
    };
    save().await.unwrap();
    save().await.unwrap();
    assert_eq!(save().await, Err(limit_reached(2)));
    let listed = world.listed(&principal).await;
    assert_eq!((listed.len(), world.audited(AuditAction::CredentialSaved).await), (2, 2));
    world.delete(&principal, listed[0]).await.unwrap();
    save().await.unwrap();
    assert_eq!(save().await, Err(limit_reached(2)));
}

/// The limit is exact under concurrent saves.
pub async fn limit_is_exact_in_parallel(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    world.saved(&principal).await;
    let outcomes = race((0..32).map(|_| {
        let command = with(world.save(&principal), |save| save.limit = 5);
        let store = Arc::clone(&world.store);
        async move { store.save_credential(command).await.decided() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 4);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(limit_reached(5))).count(), 28);
    assert_eq!(world.listed(&principal).await.len(), 5);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 5);
}

/// Concurrent saves are decided as if they ran one after the other: a rejected save neither undoes nor delays the
/// others, and records nothing.
pub async fn concurrent_saves_are_decided_independently(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principals = [world.embedder(), world.embedder(), closed(suite).await];
    let expected = |number: usize| match number % 8 {
        2 | 5 => Err(Error::Denied(Denial::OrganizationDisabled)),
        7 => Err(Error::Refused(limit_reached(0))),
        _ => Ok(()),
    };
    let label = |number: usize| ["label-0", "label-1", "label-2"][number % 3];
    let outcomes = race((0..96).map(|number| {
        let command = with(world.save(&principals[number % 8 % 3]), |save| {
            if number % 8 == 7 {
                save.limit = 0;
            }
            save.labels = vec![label(number), "every"];
        });
        let store = Arc::clone(&world.store);
        async move { (command.payload.id, evaluated(store.save_credential(command).await)) }
    }))
    .await;
    let mut saved: Vec<(usize, CredentialId)> = Vec::new();
    for (number, (id, outcome)) in outcomes.into_iter().enumerate() {
        match (expected(number), outcome) {
            (Ok(()), Ok(created)) => {
                assert_eq!(created, id);
                saved.push((number, id));
            }
            (Err(expected), Err(found)) => assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{number}"),
            (expected, found) => panic!("{number}: {expected:?}, {found:?}"),
        }
    }
    assert_eq!(saved.len(), 60);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 60);
    let sorted = |mut ids: Vec<CredentialId>| {
        ids.sort();
        ids
    };
    let all = sorted(saved.iter().map(|(_, id)| *id).collect());
    assert_eq!(sorted(world.listed(&principals[1]).await), all);
    for kind in 0..3 {
        let labelled = world.labelled(&principals[1], &[label(kind)]);
        let expected = saved.iter().filter(|(number, _)| number % 3 == kind).map(|(_, id)| *id).collect();
        assert_eq!(sorted(world.page(&principals[1], labelled).await), sorted(expected));
    }
    // The count is correct: there is room for exactly one more.
    for expected in [Ok(()), Err(limit_reached(61))] {
        let command = with(world.save(&principals[1]), |save| save.limit = 61);
        assert_eq!(world.store.save_credential(command).await.decided().map(drop), expected);
    }
}

/// Repeated requests among concurrent ones: each idempotency key has one effect, within the limit.
pub async fn concurrent_repeats_do_not_count_towards_limit(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let first = keyed(&world, &principal, "key 0", "body");
    let created = world.store.save_credential(first).await.unwrap();
    let outcomes =
        race(
            (0..64).map(|number| {
                let key = number % 4;
                let body = if number % 16 == 15 { "another body" } else { "body" };
                let command = match number % 8 {
                    0..4 => with(world.save(&principal), |save| save.limit = 12),
                    _ => with(keyed(&world, &principal, &format!("key {key}"), body), |save| save.limit = 12),
                };
                let store = Arc::clone(&world.store);
                async move {
                    (key, command.payload.new.idempotency.is_some(), store.save_credential(command).await.decided())
                }
            }),
        )
        .await;
    let mut of_key = std::collections::HashMap::from([(0, created)]);
    let mut effects = std::collections::HashSet::from([created]);
    for (key, repeatable, outcome) in outcomes {
        match outcome {
            Ok(id) if repeatable => {
                assert_eq!(*of_key.entry(key).or_insert(id), id, "key {key}");
                effects.insert(id);
            }
            Ok(id) => assert!(effects.insert(id), "two saves made one credential"),
            Err(refusal) => assert!(
                refusal == limit_reached(12) || refusal == Refusal::IdempotencyMismatch && key == 3,
                "key {key}: {refusal:?}"
            ),
        }
    }
    // There were more saves than room: exactly all room is used.
    assert_eq!((effects.len(), world.listed(&principal).await.len()), (12, 12));
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 12);
    let again = with(keyed(&world, &principal, "key 0", "body"), |save| save.limit = 0);
    assert_eq!(world.store.save_credential(again).await.decided(), Ok(created));
}

/// Concurrent deletes are decided as if they ran one after the other.
pub async fn concurrent_deletes_are_decided_independently(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (principal, ended) = (world.embedder(), closed(suite).await);
    let mut saved = Vec::new();
    for _ in 0..24 {
        let command = with(world.save(&principal), |save| save.labels = vec!["every"]);
        saved.push(world.store.save_credential(command).await.unwrap());
    }
    let nothing = CredentialId::from_uuid(world.ids.random());
    // Six credentials: two are deleted twice each, one at its revision, one at another revision, one by a principal
    // without permission, one not at all.
    let (world, saved) = (&world, &saved);
    let outcomes = join_all((0..72).map(|number| {
        let (group, part) = (number / 18, number % 18);
        let id = saved.get(group * 6 + part % 6).copied().unwrap_or(nothing);
        let (principal, id, revision) = match (part % 6, part / 6) {
            (0 | 1, 0 | 1) => (&principal, id, None),
            (2, 0) => (&principal, id, Some(1)),
            (3, 0) => (&principal, id, Some(2)),
            (4, 0) => (&ended, id, None),
            _ => (&principal, nothing, None),
        };
        let organization = principal.organization().unwrap();
        let deletion = DeleteCredential { organization, id, revision };
        async move { (id, part % 6, world.operate(principal, deletion).await) }
    }))
    .await;
    let mut deleted = std::collections::HashMap::<CredentialId, usize>::new();
    for (id, part, outcome) in outcomes {
        match (id == nothing, part, outcome) {
            (_, _, Err(Error::Refused(Refusal::NotFound))) => {}
            (false, 0..3, Ok(())) => *deleted.entry(id).or_default() += 1,
            (false, 3, Err(Error::Refused(Refusal::Changed)))
            | (false, 4, Err(Error::Denied(Denial::OrganizationDisabled))) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((deleted.len(), deleted.values().sum::<usize>()), (12, 12));
    assert_eq!(world.audited(AuditAction::CredentialDeleted).await, 12);
    let left: Vec<_> = saved.iter().rev().filter(|id| !deleted.contains_key(id)).copied().collect();
    assert_eq!(world.listed(&principal).await, left);
    assert_eq!(world.page(&principal, world.labelled(&principal, &["every"])).await, left);
    let command = with(world.save(&principal), |save| save.limit = 13);
    world.store.save_credential(command).await.unwrap();
}

/// Returns a principal without any permission: a user of a disabled organization.
async fn closed(suite: &dyn ContractStore) -> Principal {
    let world = World::new(suite).await;
    world.set_state(OrganizationState::Disabled).await;
    world.embedder()
}

/// Returns the position of a credential in a list that starts with the newest.
pub(super) const fn position(id: CredentialId) -> ListPosition {
    ListPosition { expires_at: None, id }
}

/// Returns all pages of `query`, with at most `limit` credentials per page.
async fn pages(world: &World<'_>, principal: &Principal, query: CredentialQuery, limit: usize) -> Vec<CredentialId> {
    let mut all = Vec::new();
    loop {
        let page = world
            .page(principal, CredentialQuery { after: all.last().copied().map(position), limit, ..query.clone() })
            .await;
        assert!(page.len() <= limit && all.len() < 100, "a list ends");
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

const fn limit_reached(limit: i64) -> Refusal {
    Refusal::LimitReached { what: "credentials", limit }
}
