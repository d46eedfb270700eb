//! Cases of [`KeyRotation`](vault_core::port::KeyRotation).

use super::ContractStore;
use super::tools::{Settled as _, blob, paged, race, request_digest, with};
use super::world::{World, unchanged_keys, undescribed};
use crate::commands::CredentialCommands as _;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::credential::{ChangeCredential, CredentialChange, NewVersion};
use vault_core::id::{CredentialId, KeyId, VersionId};
use vault_core::port::{
    DestroyOrganizationKey, FindSealed, IdGenerator, KeyDestruction, MoveSealed, SealedContent, SealedCount,
    SealedPart, SealedRow, StoredMetadata, StoredVersions,
};
use vault_core::principal::Principal;
use vault_core::sealed::{Blob, SealedCredential, SealedMetadata};
use vault_core::{Command, Refusal};

/// Returns a part sealed under `key`. It names the key, so that a part cannot be combined with another key.
fn sealed(what: &str, key: KeyId) -> Blob {
    blob(&format!("{what} under {key}"))
}

fn version_under(key: KeyId, id: CredentialId, number: i64) -> SealedCredential {
    SealedCredential {
        key,
        data_key: sealed(&format!("data key {id} {number}"), key),
        data: blob(&format!("data {id} {number}")),
        information: sealed(&format!("information {id} {number}"), key),
    }
}

fn metadata_under(key: KeyId, id: CredentialId, revision: i64) -> SealedMetadata {
    SealedMetadata { key, revision, blob: sealed(&format!("metadata {id} {revision}"), key) }
}

/// Returns the row as sealed under `to`.
fn rewrapped(row: &SealedRow, to: KeyId) -> SealedRow {
    let (credential, version) = row.place();
    let content = match &row.content {
        SealedContent::Version(before) => {
            assert_eq!(before, &version_under(before.key, credential, version));
            SealedContent::Version(version_under(to, credential, version))
        }
        SealedContent::Metadata(before) => {
            assert_eq!(before, &metadata_under(before.key, credential, version));
            SealedContent::Metadata(metadata_under(to, credential, version))
        }
    };
    SealedRow { credential, version, id: row.id, content }
}

impl World<'_> {
    /// Saves a credential under `key`, with metadata if `described`.
    async fn saved_under(&self, principal: &Principal, key: KeyId, described: bool) -> CredentialId {
        let command = with(self.save(principal), |save| {
            save.sealed = version_under(key, save.id, 1);
            save.description.metadata = described.then(|| metadata_under(key, save.id, 1));
        });
        let id = command.payload.id;
        self.store.save_credential(command).await.unwrap();
        id
    }

    fn change_under(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        change: CredentialChange,
        metadata: Option<SealedMetadata>,
    ) -> Command<ChangeCredential> {
        let description =
            metadata.map(|sealed_metadata| StoredMetadata { metadata: Some(sealed_metadata), ..undescribed() });
        let payload = ChangeCredential {
            organization: self.organization,
            id: read.current.id,
            revision: read.current.revision,
            listed: change.listed_after(read.current.version, &read.current.listed),
            change,
            description,
            code: request_digest("changed"),
            expires_at: None,
            action: AuditAction::CredentialReplaced,
            changes: Vec::new(),
        };
        self.command(principal, AuditAction::CredentialReplaced, payload)
    }

    fn next_version(&self, read: &StoredVersions, key: KeyId) -> NewVersion {
        let number = read.current.highest + 1;
        let sealed = version_under(key, read.current.id, number);
        let id = VersionId::from_uuid(self.ids.random());
        NewVersion { number, id, sealed, check: None, idempotency: None, destroyed: Vec::new() }
    }

    fn replace_under(&self, principal: &Principal, read: &StoredVersions, key: KeyId) -> Command<ChangeCredential> {
        let (version, destroy_at) = (self.next_version(read, key), self.destroy_at());
        self.change_under(principal, read, CredentialChange::Replace { version, destroy_at }, None)
    }

    fn sealed_under(&self, key: KeyId, part: SealedPart) -> FindSealed {
        FindSealed { organization: self.organization, key, part, after: None, skip: 0, limit: 1_000 }
    }

    async fn under(&self, key: KeyId, part: SealedPart) -> Vec<SealedRow> {
        let rows = self.store.find_sealed(self.sealed_under(key, part)).await.unwrap();
        for row in &rows {
            let listed = self.show(&self.embedder(), row.credential).await.unwrap().listed.id(row.version);
            let expected = if part == SealedPart::Metadata { None } else { listed };
            assert_eq!((row.id, row.id.is_some()), (expected, part != SealedPart::Metadata), "{row:?}");
        }
        rows
    }

    async fn counted(&self, key: KeyId) -> SealedCount {
        self.store.count_sealed(self.organization, key).await.unwrap()
    }

    /// Replaces the active key and returns its successor.
    async fn next_key(&self, current: KeyId) -> KeyId {
        let command = self.replace_key(current);
        let next = command.next.id;
        assert!(self.store.replace_organization_key(command).await.unwrap());
        next
    }

    fn moving(&self, (from, to): (KeyId, KeyId), part: SealedPart, rows: &[SealedRow]) -> MoveSealed {
        let rows = rows.iter().map(|row| rewrapped(row, to)).collect();
        MoveSealed { organization: self.organization, from, to, part, rows }
    }

    async fn move_all(&self, from: KeyId, to: KeyId, part: SealedPart) -> Option<usize> {
        let rows = self.under(from, part).await;
        self.store.move_sealed(self.moving((from, to), part, &rows)).await.unwrap()
    }

    fn destruction(&self, key: KeyId) -> DestroyOrganizationKey {
        let audit = self.audit(AuditAction::OrganizationKeyDestroyed);
        DestroyOrganizationKey { organization: self.organization, key, fingerprint: unchanged_keys(), audit }
    }

    async fn destroy(&self, key: KeyId) -> KeyDestruction {
        self.store.destroy_organization_key(self.destruction(key)).await.unwrap()
    }
}

fn places(rows: &[SealedRow]) -> Vec<(CredentialId, i64)> {
    rows.iter().map(SealedRow::place).collect()
}

/// The parts under a key are read in the order of their row keys, from any row key on, and counted, without parts of
/// another key or organization.
pub async fn rows_under_a_key_are_found_in_slices(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let mut ids = Vec::new();
    for described in [true, false, true, true, false] {
        ids.push(world.saved_under(&principal, world.key, described).await);
    }
    for _ in 0..2 {
        for id in [ids[1], ids[3]] {
            let read = world.versions(&principal, id).await;
            let command = world.replace_under(&principal, &read, world.key);
            world.store.change_credential(command).await.unwrap();
        }
    }
    let current = [(ids[0], 1), (ids[1], 3), (ids[2], 1), (ids[3], 3), (ids[4], 1)];
    let others = [(ids[1], 1), (ids[1], 2), (ids[3], 1), (ids[3], 2)];
    let described = [(ids[0], 1), (ids[2], 1), (ids[3], 1)];
    let all = [(SealedPart::Current, &current[..]), (SealedPart::Other, &others), (SealedPart::Metadata, &described)];
    for (part, expected) in all {
        let rows = world.under(world.key, part).await;
        assert_eq!(places(&rows), expected, "{part:?}");
        // Each row is as it was stored.
        rows.iter().for_each(|row| _ = rewrapped(row, world.key));
        let page = async |last: Option<&(CredentialId, i64)>| {
            let query = FindSealed { after: last.copied(), limit: 2, ..world.sealed_under(world.key, part) };
            places(&world.store.find_sealed(query).await.unwrap())
        };
        let walked = paged(2, page).await;
        assert_eq!(walked, expected, "{part:?}");
        let query = FindSealed { skip: 1, limit: 1, after: Some(expected[0]), ..world.sealed_under(world.key, part) };
        assert_eq!(places(&world.store.find_sealed(query).await.unwrap()), [expected[2]], "{part:?}");
        let query = FindSealed { skip: expected.len(), ..world.sealed_under(world.key, part) };
        assert_eq!(world.store.find_sealed(query).await.unwrap(), []);
        for stranger in [other.key, KeyId::from_uuid(world.ids.random())] {
            assert_eq!(world.under(stranger, part).await, []);
        }
        assert_eq!(other.under(world.key, part).await, []);
    }
    assert_eq!(world.counted(world.key).await, SealedCount { current: 5, other: 4, metadata: 3 });
    assert_eq!(world.counted(other.key).await, SealedCount::default());
    assert_eq!(other.counted(world.key).await, SealedCount::default());
}

/// Moved parts are under their new key; revision, times and data are unchanged.
pub async fn parts_are_resealed_and_other_columns_unchanged(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved_under(&principal, world.key, true).await;
    let read = world.versions(&principal, id).await;
    world.store.change_credential(world.replace_under(&principal, &read, world.key)).await.unwrap();
    let before = world.versions(&principal, id).await;
    world.clock.advance_seconds(60);
    let next = world.next_key(world.key).await;
    let rows = world.under(world.key, SealedPart::Current).await;
    for (part, moved) in [(SealedPart::Current, 1), (SealedPart::Other, 1), (SealedPart::Metadata, 1)] {
        assert_eq!(world.move_all(world.key, next, part).await, Some(moved), "{part:?}");
        assert_eq!(world.move_all(world.key, next, part).await, Some(0), "{part:?}");
    }
    let mut expected = before.clone();
    expected.current.key = next;
    expected.current.information = version_under(next, id, 2).information;
    expected.current.metadata = Some(metadata_under(next, id, 1));
    (expected.others[0].key, expected.others[0].information) = (next, version_under(next, id, 1).information);
    assert_eq!(world.versions(&principal, id).await, expected);
    assert_eq!(world.under(next, SealedPart::Current).await, [rewrapped(&rows[0], next)]);
    assert_eq!(world.counted(world.key).await.total(), 0);
    // A second rotator that had read the same rows.
    let command = world.moving((world.key, next), SealedPart::Current, &rows);
    assert_eq!(world.store.move_sealed(command).await.unwrap(), Some(0));
    assert_eq!(world.versions(&principal, id).await, expected);
}

/// A credential that was replaced, described or deleted since it was read is not moved.
pub async fn concurrently_changed_rows_are_not_resealed(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(world.saved_under(&principal, world.key, true).await);
    }
    let next = world.next_key(world.key).await;
    let current = world.under(world.key, SealedPart::Current).await;
    let metadata = world.under(world.key, SealedPart::Metadata).await;
    // The first is replaced, the second gets new metadata, the third is deleted.
    let read = world.versions(&principal, ids[0]).await;
    world.store.change_credential(world.replace_under(&principal, &read, next)).await.unwrap();
    let read = world.versions(&principal, ids[1]).await;
    let sealed_metadata = Some(metadata_under(next, ids[1], 2));
    let command = world.change_under(&principal, &read, CredentialChange::Describe, sealed_metadata);
    world.store.change_credential(command).await.unwrap();
    world.delete(&principal, ids[2]).await.unwrap();
    let mut before = Vec::new();
    for id in [ids[0], ids[1]] {
        before.push(world.versions(&principal, id).await);
    }

    let command = world.moving((world.key, next), SealedPart::Current, &current);
    assert_eq!(world.store.move_sealed(command).await.unwrap(), Some(2), "the second and the fourth");
    let command = world.moving((world.key, next), SealedPart::Metadata, &metadata);
    assert_eq!(world.store.move_sealed(command).await.unwrap(), Some(2), "the first and the fourth");
    let after = world.versions(&principal, ids[0]).await;
    assert_eq!(after.current.information, before[0].current.information);
    assert_eq!((after.others[0].key, &after.others), (world.key, &before[0].others));
    assert_eq!(world.versions(&principal, ids[1]).await.current.metadata, before[1].current.metadata);
    assert_eq!(world.show(&principal, ids[2]).await.decided(), Err(Refusal::NotFound));
    assert_eq!(world.counted(world.key).await, SealedCount { current: 0, other: 1, metadata: 0 });
}

/// Parts are moved only to the organization's active key.
pub async fn parts_are_resealed_only_under_active_key(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    world.saved_under(&principal, world.key, false).await;
    let second = world.next_key(world.key).await;
    let third = world.next_key(second).await;
    let unknown = KeyId::from_uuid(world.ids.random());
    for to in [world.key, second, other.key, unknown] {
        assert_eq!(world.move_all(world.key, to, SealedPart::Current).await, None);
    }
    assert_eq!(world.counted(world.key).await.current, 1);
    assert_eq!(world.move_all(world.key, third, SealedPart::Current).await, Some(1));
}

/// A key is destroyed once, with an audit record, when it is retiring and no part names it.
pub async fn unreferenced_key_is_destroyed(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let id = world.saved_under(&principal, world.key, true).await;
    let read = world.versions(&principal, id).await;
    world.store.change_credential(world.replace_under(&principal, &read, world.key)).await.unwrap();
    assert_eq!(world.destroy(world.key).await, KeyDestruction::NotRetiring, "it is active");
    let next = world.next_key(world.key).await;
    for part in SealedPart::ALL {
        assert_eq!(world.destroy(world.key).await, KeyDestruction::InUse, "{part:?}");
        assert_eq!(world.move_all(world.key, next, part).await, Some(1));
    }
    for stranger in [next, other.key, KeyId::from_uuid(world.ids.random())] {
        assert_eq!(world.destroy(stranger).await, KeyDestruction::NotRetiring);
    }
    assert_eq!(world.audited(AuditAction::OrganizationKeyDestroyed).await, 0);
    let commands: Vec<_> = (0..8).map(|_| world.destruction(world.key)).collect();
    let destroyed = race(commands.into_iter().map(|command| {
        let store = Arc::clone(&world.store);
        async move { store.destroy_organization_key(command).await.unwrap() }
    }))
    .await;
    assert_eq!(destroyed.iter().filter(|one| **one == KeyDestruction::Destroyed).count(), 1);
    assert!(destroyed.iter().all(|one| *one != KeyDestruction::InUse));
    assert_eq!(world.audited(AuditAction::OrganizationKeyDestroyed).await, 1);
    let keys = world.store.organization_keys(world.organization).await.unwrap().unwrap();
    assert_eq!(keys.keys.iter().map(|key| key.id).collect::<Vec<_>>(), [next]);
}

/// A change that stores metadata as it was read is rejected if the metadata was moved to another key in between,
/// because the key that it names may have been destroyed.
pub async fn resealed_metadata_is_not_reverted(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved_under(&principal, world.key, true).await;
    let read = world.versions(&principal, id).await;
    let next = world.next_key(world.key).await;
    for part in SealedPart::ALL {
        world.move_all(world.key, next, part).await;
    }
    assert_eq!(world.destroy(world.key).await, KeyDestruction::Destroyed);
    let change = |read: &StoredVersions| {
        world.change_under(&principal, read, CredentialChange::Describe, read.current.metadata.clone())
    };
    assert_eq!(world.store.change_credential(change(&read)).await.decided(), Err(Refusal::Contended));
    let again = world.versions(&principal, id).await;
    assert_eq!(world.store.change_credential(change(&again)).await.unwrap(), 1);
    assert_eq!(world.versions(&principal, id).await.current.metadata, Some(metadata_under(next, id, 1)));
}

/// Concurrently with saves, changes of every kind and deletions, two rotators move everything, and no row ever names a
/// destroyed key.
pub async fn rotation_with_concurrent_changes_loses_nothing(suite: &dyn ContractStore) {
    const ROUNDS: usize = 12;
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(world.saved_under(&principal, world.key, number % 2 == 0).await);
    }
    let mut key = world.key;
    for _ in 0..ROUNDS {
        let next = world.next_key(key).await;
        let mut acts: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
        for part in SealedPart::ALL {
            for _ in 0..2 {
                let rows = world.under(key, part).await;
                let (store, command) = (Arc::clone(&world.store), world.moving((key, next), part, &rows));
                acts.push(Box::pin(async move { assert!(store.move_sealed(command).await.unwrap().is_some()) }));
            }
        }
        for (number, id) in ids.iter().enumerate() {
            let read = world.versions(&principal, *id).await;
            let command = match (number % 3, read.current.staged) {
                (0, _) => world.replace_under(&principal, &read, next),
                (_, Some(number)) => {
                    let (destroy_at, destroyed) = (world.destroy_at(), Vec::new());
                    let change = CredentialChange::Promote { number, destroy_at, destroyed };
                    world.change_under(&principal, &read, change, read.current.metadata.clone())
                }
                (1, None) => {
                    let stage = CredentialChange::Stage(world.next_version(&read, next));
                    world.change_under(&principal, &read, stage, None)
                }
                _ => {
                    // Returns to the newest previous version, under any key.
                    let Some(number) = read.others.last().map(|version| version.number) else {
                        let command = world.replace_under(&principal, &read, next);
                        let store = Arc::clone(&world.store);
                        acts.push(Box::pin(async move { _ = store.change_credential(command).await.decided() }));
                        continue;
                    };
                    let (destroy_at, destroyed) = (world.destroy_at(), Vec::new());
                    let change = CredentialChange::Promote { number, destroy_at, destroyed };
                    world.change_under(&principal, &read, change, None)
                }
            };
            let store = Arc::clone(&world.store);
            acts.push(Box::pin(async move { _ = store.change_credential(command).await.decided() }));
        }
        for _ in 0..2 {
            let (store, command) = (Arc::clone(&world.store), world.destruction(key));
            acts.push(Box::pin(async move { _ = store.destroy_organization_key(command).await.unwrap() }));
        }
        race(acts).await;
        // Every part still names an existing key, and is what that key sealed.
        let keys = world.store.organization_keys(world.organization).await.unwrap().unwrap();
        let mut parts = 0;
        for known in &keys.keys {
            for part in SealedPart::ALL {
                let rows = world.under(known.id, part).await;
                rows.iter().for_each(|row| _ = rewrapped(row, next));
                parts += rows.len();
            }
        }
        let mut stored = 0;
        for id in &ids {
            let read = world.versions(&principal, *id).await;
            stored += 1 + read.others.len() + usize::from(read.current.metadata.is_some());
        }
        assert_eq!(parts, stored);
        while world.destroy(key).await == KeyDestruction::InUse {
            for part in SealedPart::ALL {
                world.move_all(key, next, part).await;
            }
        }
        key = next;
    }
    let keys = world.store.organization_keys(world.organization).await.unwrap().unwrap();
    assert_eq!(keys.keys.len(), 1);
    assert_eq!(world.audited(AuditAction::OrganizationKeyDestroyed).await, ROUNDS);
}
