//! Cases of [`KeyRotation`](vault_core::port::KeyRotation).

use super::ContractStore;
use super::tools::{Settled as _, paged, race, with};
use super::world::{World, unchanged_keys};
use crate::commands::CredentialCommands as _;
use std::pin::Pin;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::credential::ChangeCredential;
use vault_core::id::{CredentialId, KeyId};
use vault_core::port::{
    DestroyOrganizationKey, FindSealed, IdGenerator as _, KeyDestruction, MoveSealed, SealedCredential, StoredVersions,
};
use vault_core::principal::Principal;
use vault_core::sealed::{Blob, SealedData};
use vault_core::{Command, Refusal};

/// Returns the bytes as a blob that names its key at the end, so that a part cannot be combined with another key.
fn under(key: KeyId, sealed: &Blob) -> Blob {
    Blob::from_bytes([sealed.as_bytes(), key.as_bytes()].concat())
}

/// Returns the blob as sealed under another key.
fn moved(sealed: &Blob, to: KeyId) -> Blob {
    let bytes = sealed.as_bytes();
    under(to, &Blob::from_bytes(bytes[..bytes.len() - 16].to_vec()))
}

fn keys_of(credential: &SealedCredential) -> Vec<KeyId> {
    let blobs = credential.data.iter().map(|(_, data)| &data.data_key).chain([&credential.card]);
    blobs.map(|blob| KeyId::from_bytes(*blob.as_bytes().last_chunk().unwrap())).collect()
}

/// Returns the credential as sealed under `to`.
fn rewrapped(before: &SealedCredential, to: KeyId) -> SealedCredential {
    let data = before
        .data
        .iter()
        .map(|(number, data)| (*number, SealedData { data_key: moved(&data.data_key, to), data: data.data.clone() }));
    SealedCredential { card: moved(&before.card, to), data: data.collect(), ..before.clone() }
}

impl World<'_> {
    /// Saves a credential under `key`.
    async fn saved_under(&self, principal: &Principal, key: KeyId) -> CredentialId {
        let command = with(self.save(principal), |save| {
            (save.key, save.card) = (key, under(key, &save.card));
            save.version.data.data_key = under(key, &save.version.data.data_key);
        });
        let id = command.payload.id;
        self.store.save_credential(command).await.unwrap();
        id
    }

    async fn change_under(&self, command: Command<ChangeCredential>, key: KeyId) -> StoredVersions {
        self.changed(sealed_under(command, key)).await
    }

    fn find_under(&self, key: KeyId) -> FindSealed {
        FindSealed { organization: self.organization, key, after: None, skip: 0, limit: 1_000 }
    }

    async fn under(&self, key: KeyId) -> Vec<SealedCredential> {
        self.store.find_sealed(self.find_under(key)).await.unwrap()
    }

    async fn counted(&self, key: KeyId) -> i64 {
        self.store.count_sealed(self.organization, key).await.unwrap()
    }

    /// Replaces the active key and returns its successor.
    async fn next_key(&self, current: KeyId) -> KeyId {
        let command = self.replace_key(current);
        let next = command.next.id;
        assert!(self.store.replace_organization_key(command).await.unwrap());
        next
    }

    fn moving(&self, (from, to): (KeyId, KeyId), rows: &[SealedCredential]) -> MoveSealed {
        let credentials = rows.iter().map(|row| rewrapped(row, to)).collect();
        MoveSealed { organization: self.organization, from, to, credentials }
    }

    async fn move_all(&self, from: KeyId, to: KeyId) -> Option<usize> {
        let rows = self.under(from).await;
        self.store.move_sealed(self.moving((from, to), &rows)).await.unwrap()
    }

    fn destruction(&self, key: KeyId) -> DestroyOrganizationKey {
        let audit = self.audit(AuditAction::OrganizationKeyDestroyed);
        DestroyOrganizationKey { organization: self.organization, key, fingerprint: unchanged_keys(), audit }
    }

    async fn destroy(&self, key: KeyId) -> KeyDestruction {
        self.store.destroy_organization_key(self.destruction(key)).await.unwrap()
    }
}

fn sealed_under(command: Command<ChangeCredential>, key: KeyId) -> Command<ChangeCredential> {
    with(command, |change| {
        (change.key, change.card) = (key, under(key, &change.card));
        if let Some(version) = &mut change.version {
            version.data.data_key = under(key, &version.data.data_key);
        }
    })
}

fn ids(rows: &[SealedCredential]) -> Vec<CredentialId> {
    rows.iter().map(|row| row.id).collect()
}

/// The credentials under a key are read in the order of their IDs, from any of them on, with all versions, and counted, without those
/// of another key or organization.
pub async fn credentials_under_a_key_are_found_in_slices(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let mut saved = Vec::new();
    for _ in 0..5 {
        saved.push(world.saved_under(&principal, world.key).await);
    }
    for id in [saved[1], saved[3]] {
        let read = world.versions(&principal, id).await;
        world.change_under(world.replacement(&principal, &read), world.key).await;
    }
    let rows = world.under(world.key).await;
    assert_eq!(ids(&rows), saved);
    assert_eq!(rows.iter().map(|row| row.data.len()).collect::<Vec<_>>(), [1, 2, 1, 2, 1]);
    assert_eq!(rows[1].data[0].1.data, world.sealed_version(saved[1], 1).data);
    // All are unchanged.
    assert!(rows.iter().flat_map(keys_of).all(|key| key == world.key));
    let page = async |last: Option<&CredentialId>| {
        let query = FindSealed { after: last.copied(), limit: 2, ..world.find_under(world.key) };
        ids(&world.store.find_sealed(query).await.unwrap())
    };
    assert_eq!(paged(2, page).await, saved);
    let query = FindSealed { skip: 1, limit: 1, after: Some(saved[0]), ..world.find_under(world.key) };
    assert_eq!(ids(&world.store.find_sealed(query).await.unwrap()), [saved[2]]);
    let query = FindSealed { skip: saved.len(), ..world.find_under(world.key) };
    assert_eq!(world.store.find_sealed(query).await.unwrap(), []);
    for stranger in [other.key, KeyId::from_uuid(world.ids.random())] {
        assert_eq!(world.under(stranger).await, []);
    }
    assert_eq!(other.under(world.key).await, []);
    let counts = [world.counted(world.key).await, world.counted(other.key).await, other.counted(world.key).await];
    assert_eq!(counts, [5, 0, 0]);
}

/// Moved credentials are under their new key; revision, times and data are unchanged.
pub async fn credentials_are_resealed_and_other_columns_unchanged(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved_under(&principal, world.key).await;
    let read = world.versions(&principal, id).await;
    let before = world.change_under(world.replacement(&principal, &read), world.key).await;
    world.clock.advance_seconds(60);
    let next = world.next_key(world.key).await;
    let rows = world.under(world.key).await;
    assert_eq!(world.move_all(world.key, next).await, Some(1));
    assert_eq!(world.move_all(world.key, next).await, Some(0));
    let mut expected = before.clone();
    expected.current.card = moved(&expected.current.card, next);
    assert_eq!(world.versions(&principal, id).await, expected);
    assert_eq!(world.under(next).await, [rewrapped(&rows[0], next)]);
    assert_eq!(world.counted(world.key).await, 0);
    // A second rotator that had read the same rows.
    let command = world.moving((world.key, next), &rows);
    assert_eq!(world.store.move_sealed(command).await.unwrap(), Some(0));
    assert_eq!(world.versions(&principal, id).await, expected);
}

/// A credential that was changed or deleted since it was read is not moved. It stays under the old key, although its new parts are
/// under the new one, so that the data of its earlier versions is moved later.
pub async fn concurrently_changed_credentials_are_not_resealed(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut saved = Vec::new();
    for _ in 0..3 {
        saved.push(world.saved_under(&principal, world.key).await);
    }
    let next = world.next_key(world.key).await;
    let rows = world.under(world.key).await;
    let read = world.versions(&principal, saved[0]).await;
    let changed = world.change_under(world.replacement(&principal, &read), next).await;
    world.delete(&principal, saved[1]).await.unwrap();
    let command = world.moving((world.key, next), &rows);
    assert_eq!(world.store.move_sealed(command).await.unwrap(), Some(1), "the third");
    assert_eq!(world.versions(&principal, saved[0]).await, changed);
    assert_eq!(world.show(&principal, saved[1]).await.decided(), Err(Refusal::NotFound));
    let [left] = &world.under(world.key).await[..] else { panic!("the first is left") };
    assert_eq!((left.id, keys_of(left)), (saved[0], vec![world.key, next, next]));
    assert_eq!(world.destroy(world.key).await, KeyDestruction::InUse);
    assert_eq!(world.move_all(world.key, next).await, Some(1));
    assert_eq!(world.destroy(world.key).await, KeyDestruction::Destroyed);
}

/// Credentials are moved only to the organization's active key.
pub async fn credentials_are_resealed_only_under_active_key(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    world.saved_under(&principal, world.key).await;
    let second = world.next_key(world.key).await;
    let third = world.next_key(second).await;
    let unknown = KeyId::from_uuid(world.ids.random());
    for to in [world.key, second, other.key, unknown] {
        assert_eq!(world.move_all(world.key, to).await, None);
    }
    assert_eq!(world.counted(world.key).await, 1);
    assert_eq!(world.move_all(world.key, third).await, Some(1));
}

/// A key is destroyed once, with an audit record, when it is retiring and no credential names it.
pub async fn unreferenced_key_is_destroyed(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    world.saved_under(&principal, world.key).await;
    assert_eq!(world.destroy(world.key).await, KeyDestruction::NotRetiring, "it is active");
    let next = world.next_key(world.key).await;
    assert_eq!(world.destroy(world.key).await, KeyDestruction::InUse);
    assert_eq!(world.move_all(world.key, next).await, Some(1));
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

/// Concurrently with changes of every kind, two rotators move everything, and no part ever names a destroyed key.
pub async fn rotation_with_concurrent_changes_loses_nothing(suite: &dyn ContractStore) {
    const ROUNDS: usize = 12;
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut saved = Vec::new();
    for _ in 0..6 {
        saved.push(world.saved_under(&principal, world.key).await);
    }
    let mut key = world.key;
    for _ in 0..ROUNDS {
        let next = world.next_key(key).await;
        let mut acts: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
        for _ in 0..2 {
            let rows = world.under(key).await;
            let (store, command) = (Arc::clone(&world.store), world.moving((key, next), &rows));
            acts.push(Box::pin(async move { assert!(store.move_sealed(command).await.unwrap().is_some()) }));
        }
        for (number, id) in saved.iter().enumerate() {
            let read = world.versions(&principal, *id).await;
            let command = match (number % 3, read.staged(), read.others.last()) {
                (0, ..) | (2.., None, None) => world.replacement(&principal, &read),
                (_, Some(staged), _) => world.promotion(&principal, &read, staged),
                (1, None, _) => world.stage(&principal, &read),
                // Returns to the newest previous version, under any key.
                (_, None, Some(previous)) => world.promotion(&principal, &read, previous.number),
            };
            let (store, command) = (Arc::clone(&world.store), sealed_under(command, next));
            acts.push(Box::pin(async move { _ = store.change_credential(command).await.decided() }));
        }
        for _ in 0..2 {
            let (store, command) = (Arc::clone(&world.store), world.destruction(key));
            acts.push(Box::pin(async move { _ = store.destroy_organization_key(command).await.unwrap() }));
        }
        race(acts).await;
        // Every part still names an existing key.
        let keys = world.store.organization_keys(world.organization).await.unwrap().unwrap();
        let mut found = Vec::new();
        for known in &keys.keys {
            found.extend(world.under(known.id).await);
        }
        assert_eq!(found.len(), saved.len());
        for credential in &found {
            assert!(keys_of(credential).iter().all(|key| keys.keys.iter().any(|known| known.id == *key)));
            let read = world.versions(&principal, credential.id).await;
            assert_eq!(credential.data.len(), 1 + read.others.len());
        }
        while world.destroy(key).await == KeyDestruction::InUse {
            world.move_all(key, next).await;
        }
        key = next;
    }
    let keys = world.store.organization_keys(world.organization).await.unwrap().unwrap();
    assert_eq!(keys.keys.len(), 1);
    assert_eq!(world.audited(AuditAction::OrganizationKeyDestroyed).await, ROUNDS);
}
