//! Cases of [`FederationKeyRepository`](vault_core::port::FederationKeyRepository).
//!
//! They read all signing keys and replace the keyring and the instance key, so each needs a separate database.

use super::ContractStore;
use super::instance_rotation::{again, is_contended, under};
use super::tools::race;
use super::world::World;
use crate::crypto::FakeDigester;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::digest::RowMac;
use vault_core::federation::{
    FederationIssuer, FederationKey, FederationKeyState, Jwk, PublicationFailure, StoredFederationKey,
};
use vault_core::id::KeyId;
use vault_core::port::{
    ChangeFederationKeys, IdGenerator as _, InstancePart, InstanceRow, MoveToInstanceKey, RecordPublication,
    ReplaceKeyring,
};

impl World<'_> {
    fn signing_key(&self, above: KeyId) -> StoredFederationKey {
        let id = KeyId::from_uuid(self.ids.random());
        let issuer = FederationIssuer::parse("https://vault.example.com").unwrap();
        let jwk = Jwk::new(format!("{:0>43}", id.to_string().replace('-', "")), "n".repeat(342)).unwrap();
        let key = FederationKey::new(id, issuer, jwk, self.now());
        let mac = RowMac { key: above, ..key.sign(&FakeDigester::default()) };
        StoredFederationKey { key, private_key: under(above, "private"), mac, checked_at: None, failure: None }
    }

    async fn add_signing_key(&self, above: KeyId) -> StoredFederationKey {
        let row = self.signing_key(above);
        assert!(self.change_signing_keys(adding(&row)).await.unwrap());
        row
    }

    async fn change_signing_keys(&self, command: ChangeFederationKeys) -> Result<bool, vault_core::port::StoreError> {
        self.store.change_federation_keys(command).await
    }

    async fn signing_keys(&self) -> Vec<StoredFederationKey> {
        self.store.federation_keys().await.unwrap().into_iter().map(Result::unwrap).collect()
    }
}

fn adding(row: &StoredFederationKey) -> ChangeFederationKeys {
    ChangeFederationKeys { added: vec![row.clone()], ..ChangeFederationKeys::default() }
}

/// Returns the next version of a row, in every state and time that a row can have.
fn promoted(row: &StoredFederationKey) -> StoredFederationKey {
    let at = |seconds| Some(row.key.created_at.plus_seconds(seconds));
    let key = FederationKey {
        state: FederationKeyState::Current,
        published_at: at(1),
        active_at: at(3),
        retired_at: at(4),
        version: row.key.version + 1,
        ..row.key.clone()
    };
    let mac = RowMac { key: row.mac.key, ..key.sign(&FakeDigester::default()) };
    StoredFederationKey { key, mac, ..row.clone() }
}

/// Signing keys are stored unchanged, and changed and removed only in the version that was read. The private key and the
/// findings of checks survive a change.
pub async fn signing_keys_change_only_in_version_read(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let active = world.with_instance().await;
    let (first, second) = (world.add_signing_key(active).await, world.add_signing_key(active).await);
    let mut expected = vec![first.clone(), second.clone()];
    expected.sort_by_key(|row| row.key.id);
    assert_eq!(world.signing_keys().await, expected);

    let stale = StoredFederationKey { private_key: under(active, "stale"), ..promoted(&first) };
    let change = |row: &StoredFederationKey| {
        let audit =
            vec![world.audit(AuditAction::FederationKeyPromoted), world.audit(AuditAction::FederationKeyRetired)];
        ChangeFederationKeys { changed: vec![row.clone()], audit, ..ChangeFederationKeys::default() }
    };
    let made = race((0..8).map(|_| {
        let (store, command) = (Arc::clone(&world.store), change(&stale));
        async move { store.change_federation_keys(command).await.unwrap() }
    }))
    .await;
    assert_eq!(made.iter().filter(|made| **made).count(), 1);
    assert_eq!(world.audited(AuditAction::FederationKeyPromoted).await, 1);
    assert_eq!(world.audited(AuditAction::FederationKeyRetired).await, 1);
    let first = promoted(&first);
    assert!(world.signing_keys().await.contains(&first), "the private key is kept");

    // A second row that is not as read leaves the first one unchanged.
    let both = ChangeFederationKeys {
        changed: vec![promoted(&second)],
        removed: vec![(first.key.id, first.key.version - 1)],
        ..ChangeFederationKeys::default()
    };
    assert!(!world.change_signing_keys(both.clone()).await.unwrap());
    assert!(world.signing_keys().await.contains(&second));
    let removed = vec![(first.key.id, first.key.version)];
    assert!(world.change_signing_keys(ChangeFederationKeys { removed, ..both }).await.unwrap());
    assert_eq!(world.signing_keys().await, [promoted(&second)]);
}

/// The keyring changes with the keys, if it is still as read.
pub async fn signing_keys_change_with_the_keyring(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let active = world.with_instance().await;
    let (record, keys) = (world.store.instance().await.unwrap().unwrap(), world.store.instance_keys().await.unwrap());
    let read = record.keyring.clone();
    let next = under(active, "next keyring");
    let rows: Vec<_> = (0..4).map(|_| world.signing_key(active)).collect();
    let added = race(rows.iter().map(|row| {
        let keyring = Some(ReplaceKeyring { current: read.clone(), next: next.clone() });
        let (store, command) = (Arc::clone(&world.store), ChangeFederationKeys { keyring, ..adding(row) });
        async move { store.change_federation_keys(command).await }
    }))
    .await;
    assert_eq!(added.iter().filter(|added| matches!(added, Ok(true))).count(), 1);
    assert_eq!(
        added.into_iter().filter(|added| added.is_err()).map(is_contended).filter(|refused| *refused).count(),
        3
    );
    assert_eq!(world.signing_keys().await.len(), 1);
    assert_eq!(world.store.instance().await.unwrap().unwrap().keyring, next);
    let rotation = world.next_instance_key(&record, &keys);
    assert!(!world.store.replace_instance_key(rotation).await.unwrap(), "its keyring would not name the key");
}

/// If several processes check the publication at the same time, one finding is recorded.
pub async fn findings_of_publication_checks_are_recorded_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let active = world.with_instance().await;
    let row = world.add_signing_key(active).await;
    let check = |seen, seconds, failure| RecordPublication {
        key: row.key.id,
        seen,
        checked_at: world.now().plus_seconds(seconds),
        failure,
    };
    let made = race((0..8).map(|nth| {
        let (store, check) = (Arc::clone(&world.store), check(None, nth, Some(PublicationFailure::KeyMissing)));
        async move { store.record_publication(vec![check]).await.unwrap() }
    }))
    .await;
    assert_eq!(made.iter().filter(|made| **made).count(), 1);
    let found = world.signing_keys().await.remove(0);
    assert_eq!((&found.key, found.failure), (&row.key, Some(PublicationFailure::KeyMissing)));
    assert!(!world.store.record_publication(vec![check(None, 60, None)]).await.unwrap());
    assert!(world.store.record_publication(vec![check(found.checked_at, 60, None)]).await.unwrap());
    let found = world.signing_keys().await.remove(0);
    assert_eq!((found.checked_at, found.failure), (Some(world.now().plus_seconds(60)), None));
}

/// Signing keys are found under their instance key and move to the next one. Nothing is stored under a replaced one.
pub async fn signing_keys_move_to_the_next_instance_key(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let old = world.with_instance().await;
    let mut rows = Vec::new();
    for _ in 0..3 {
        rows.push(world.add_signing_key(old).await);
    }
    rows.sort_by_key(|row| row.key.id);
    let new = world.replace_instance_key().await;
    let stale = world.signing_key(old);
    assert!(is_contended(world.change_signing_keys(adding(&stale)).await));
    let private_key = under(old, "private");
    let half_stale = StoredFederationKey { private_key, ..world.signing_key(new) };
    assert!(is_contended(world.change_signing_keys(adding(&half_stale)).await));
    let changed = ChangeFederationKeys { changed: vec![promoted(&rows[0])], ..ChangeFederationKeys::default() };
    assert!(is_contended(world.change_signing_keys(changed).await));

    let found = world.found(old, InstancePart::FederationKeys, 2).await;
    let expected: Vec<_> = rows.iter().map(|row| InstanceRow::FederationKey(Box::new(row.clone()))).collect();
    assert_eq!(found, expected);
    let moved: Vec<_> = found.into_iter().map(|row| (row.clone(), again(&row, old, new))).collect();
    let command = MoveToInstanceKey { to: new, rows: moved.clone() };
    assert_eq!(world.store.move_to_instance_key(command.clone()).await.unwrap(), Some(3));
    assert_eq!(world.store.move_to_instance_key(command).await.unwrap(), Some(0), "they were moved");
    assert_eq!(world.found(old, InstancePart::FederationKeys, 2).await, []);
    let after: Vec<_> = moved.into_iter().map(|(_, after)| after).collect();
    assert_eq!(world.found(new, InstancePart::FederationKeys, 2).await, after);
    let place = after[0].place();
    assert_eq!(world.store.instance_row(InstancePart::FederationKeys, place).await.unwrap().as_ref(), Some(&after[0]));
    let places = world.store.instance_places(InstancePart::FederationKeys, None, 9).await.unwrap();
    assert_eq!(places.len(), 3);
}
