//! Cases of the versions of a credential: replacing its data, staging, promoting and destroying.

use super::ContractStore;
use super::tools::{Settled as _, blob, evaluated, race, request_digest};
use super::world::World;
use crate::commands::CredentialCommands as _;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::credential::{
    ChangeCredential, CredentialChange, DeleteCredential, FindRequest, ListVersions, NewVersion, Superseded,
};
use vault_core::id::{CredentialId, KeyId, VersionId};
use vault_core::organization::OrganizationState;
use vault_core::port::{IdGenerator as _, Idempotency, PreviousVersion, StoredVersion, StoredVersions};
use vault_core::principal::{Denial, Principal};
use vault_core::sealed::SealedCredential;
use vault_core::time::Timestamp;
use vault_core::{Command, Error, Refusal};

/// Time for which these cases keep previous versions, in seconds.
const KEPT_SECONDS: i64 = 1_000;

impl World<'_> {
    pub(super) fn sealed_version(&self, id: CredentialId, number: i64) -> SealedCredential {
        SealedCredential {
            key: self.key,
            data_key: blob(&format!("data key of {id}, version {number}")),
            data: blob(&format!("data of {id}, version {number}")),
            information: blob(&format!("information on {id}, version {number}")),
        }
    }

    pub(super) fn new_version(&self, id: CredentialId, number: i64) -> NewVersion {
        NewVersion {
            number,
            id: VersionId::from_uuid(self.ids.random()),
            sealed: self.sealed_version(id, number),
            check: None,
            idempotency: None,
            destroyed: Vec::new(),
        }
    }

    pub(super) fn change_version(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        change: CredentialChange,
    ) -> Command<ChangeCredential> {
        let action = match change {
            CredentialChange::Replace { .. } => AuditAction::CredentialReplaced,
            CredentialChange::Stage(_) => AuditAction::CredentialStaged,
            CredentialChange::Promote { .. } => AuditAction::CredentialPromoted,
            CredentialChange::Destroy(_) => AuditAction::CredentialVersionDestroyed,
            CredentialChange::Describe => AuditAction::CredentialDescribed,
        };
        let (organization, id, revision) = (self.organization, read.current.id, read.current.revision);
        let (description, expires_at) = (None, read.current.expires_at);
        let listed = change.listed_after(read.current.version, &read.current.listed);
        let code = request_digest("changed");
        let changes = Vec::new();
        let payload = ChangeCredential {
            organization,
            id,
            revision,
            change,
            listed,
            description,
            code,
            expires_at,
            action,
            changes,
        };
        self.command(principal, action, payload)
    }

    pub(super) fn replacement(&self, read: &StoredVersions) -> CredentialChange {
        let version = self.new_version(read.current.id, read.current.highest + 1);
        CredentialChange::Replace { version, destroy_at: self.destroy_at() }
    }

    pub(super) fn destroy_at(&self) -> Timestamp {
        self.now().plus_seconds(KEPT_SECONDS)
    }
}

impl World<'_> {
    pub(super) async fn versions(&self, principal: &Principal, id: CredentialId) -> StoredVersions {
        self.operate(principal, ListVersions(self.organization, id)).await.unwrap()
    }

    /// Returns a credential whose data was replaced once.
    pub(super) async fn replaced(&self, principal: &Principal) -> CredentialId {
        let id = self.saved(principal).await;
        let read = self.versions(principal, id).await;
        self.changed(principal, &read, self.replacement(&read)).await;
        id
    }

    pub(super) async fn changed(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        change: CredentialChange,
    ) -> StoredVersions {
        self.store.change_credential(self.change_version(principal, read, change)).await.unwrap();
        self.versions(principal, read.current.id).await
    }
}

/// A new version is current immediately, and the previous one is kept. ID, namespace and creation time are unchanged.
pub async fn replaced_version_is_kept_with_new_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let before = world.versions(&principal, id).await;
    assert_eq!((before.current.revision, before.current.staged, before.current.highest), (1, None, 1));
    assert_eq!((before.created_at, &before.others[..]), (before.current.created_at, &[][..]));

    world.clock.advance_seconds(60);
    let (now, destroy_at) = (world.now(), world.destroy_at());
    let command = world.change_version(&principal, &before, world.replacement(&before));
    let mut expected = before.current.clone();
    expected.listed = command.payload.listed.clone();
    assert_eq!(world.store.change_credential(command).await.unwrap(), 2);
    let after = world.versions(&principal, id).await;
    (expected.version, expected.highest, expected.revision, expected.updated_at) = (2, 2, 2, now);
    expected.previous = Some(PreviousVersion { number: 1, until: destroy_at });
    (expected.information, expected.code) = (world.sealed_version(id, 2).information, request_digest("changed"));
    assert_eq!((&after.current, after.created_at, after.current.highest), (&expected, now, 2));
    let first = StoredVersion {
        number: 1,
        created_at: before.created_at,
        superseded: Some(Superseded { at: now, destroy_at }),
        check: None,
        key: before.current.key,
        information: before.current.information,
    };
    assert_eq!(after.others, [first]);
    assert_eq!(world.show(&principal, id).await.unwrap(), after.current);
    assert_eq!(world.audited(AuditAction::CredentialReplaced).await, 1);
}

/// A version is staged, superseded by another, and promoted. The promotion is undone by another promotion.
pub async fn version_is_staged_promoted_and_withdrawn(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let states = |read: &StoredVersions| {
        let others: Vec<_> = read.others.iter().map(|it| (it.number, it.superseded.is_some())).collect();
        (read.current.version, read.current.staged, read.current.highest, others)
    };
    let read = world.versions(&principal, id).await;
    let read = world.changed(&principal, &read, CredentialChange::Stage(world.new_version(id, 2))).await;
    assert_eq!(states(&read), (1, Some(2), 2, vec![(2, false)]));
    let third = with_destroyed(world.new_version(id, 3), vec![2]);
    let read = world.changed(&principal, &read, CredentialChange::Stage(third)).await;
    assert_eq!(states(&read), (1, Some(3), 3, vec![(3, false)]));

    let created_at = read.others[0].created_at;
    world.clock.advance_seconds(60);
    let promotion = CredentialChange::Promote { number: 3, destroy_at: world.destroy_at(), destroyed: vec![] };
    let read = world.changed(&principal, &read, promotion).await;
    assert_eq!(states(&read), (3, None, 3, vec![(1, true)]));
    assert_eq!((read.created_at, read.current.updated_at), (created_at, world.now()));
    assert_eq!(read.current.information, world.sealed_version(id, 3).information);

    let back = CredentialChange::Promote { number: 1, destroy_at: world.destroy_at(), destroyed: vec![] };
    let read = world.changed(&principal, &read, back).await;
    assert_eq!(states(&read), (1, None, 3, vec![(3, true)]));
    let read = world.changed(&principal, &read, CredentialChange::Destroy(3)).await;
    // A version number is never reused.
    assert_eq!(states(&read), (1, None, 3, vec![]));
    for action in [AuditAction::CredentialPromoted, AuditAction::CredentialStaged] {
        assert_eq!(world.audited(action).await, 2);
    }
    assert_eq!(world.audited(AuditAction::CredentialVersionDestroyed).await, 1);
}

/// A version that is not kept is deleted in the transaction that supersedes it.
pub async fn destroyed_version_is_deleted_immediately(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let read = world.versions(&principal, id).await;
    let version = with_destroyed(world.new_version(id, 2), vec![1]);
    let replacement = CredentialChange::Replace { version, destroy_at: world.now() };
    let read = world.changed(&principal, &read, replacement).await;
    assert_eq!((read.current.version, read.others.len()), (2, 0));
    let read = world.changed(&principal, &read, CredentialChange::Stage(world.new_version(id, 3))).await;
    let promotion = CredentialChange::Promote { number: 3, destroy_at: world.now(), destroyed: vec![2] };
    let read = world.changed(&principal, &read, promotion).await;
    assert_eq!((read.current.version, read.others.len()), (3, 0));
}

/// A change based on an outdated revision is rejected without effect.
pub async fn change_of_stale_revision_is_refused(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let stale = world.versions(&principal, id).await;
    let read = world.changed(&principal, &stale, CredentialChange::Stage(world.new_version(id, 2))).await;
    let entries = world.audit_length().await;
    for change in [
        world.replacement(&stale),
        CredentialChange::Stage(world.new_version(id, 2)),
        CredentialChange::Promote { number: 2, destroy_at: world.destroy_at(), destroyed: vec![] },
        CredentialChange::Destroy(2),
    ] {
        let command = world.change_version(&principal, &stale, change);
        assert_eq!(world.store.change_credential(command).await.decided(), Err(Refusal::Changed));
    }
    let delete = async |revision| {
        let deletion = DeleteCredential { organization: world.organization, id, revision: Some(revision) };
        world.operate(&principal, deletion).await.decided()
    };
    assert_eq!(delete(stale.current.revision).await, Err(Refusal::Changed));
    assert_eq!(world.versions(&principal, id).await, read);
    assert_eq!(world.audit_length().await, entries);
    assert_eq!(delete(read.current.revision).await, Ok(()));
    assert_eq!(world.show(&principal, id).await.decided(), Err(Refusal::NotFound));
}

/// If several changes are based on the same revision, exactly one succeeds.
pub async fn parallel_changes_of_one_revision_apply_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let read = world.versions(&principal, id).await;
    let outcomes = race((0..16).map(|_| {
        let command = world.change_version(&principal, &read, world.replacement(&read));
        let store = Arc::clone(&world.store);
        async move { store.change_credential(command).await.decided() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(2)).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Err(Refusal::Changed)).count(), 15);
    assert_eq!(world.audited(AuditAction::CredentialReplaced).await, 1);
    assert_eq!(world.versions(&principal, id).await.current.revision, 2);
}

/// A repeated request returns the same version number. A different request with the same idempotency key is rejected.
pub async fn replacement_has_one_effect_per_idempotency_key(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let read = world.versions(&principal, id).await;
    let keyed = |read: &StoredVersions, body: &str| {
        let account = principal.account().unwrap();
        let idempotency = Some(Idempotency { account, key: "key".to_owned(), body: request_digest(body).into() });
        let version = NewVersion { idempotency, ..world.new_version(id, read.current.highest + 1) };
        world.change_version(&principal, read, CredentialChange::Replace { version, destroy_at: world.destroy_at() })
    };
    let change = async |read: &StoredVersions, body| evaluated(world.store.change_credential(keyed(read, body)).await);
    assert_eq!(change(&read, "body").await.unwrap(), 2);
    let mismatch = |answer| matches!(answer, Err(Error::Refused(Refusal::IdempotencyMismatch)));
    for read in [&read, &world.versions(&principal, id).await] {
        assert_eq!(change(read, "body").await.unwrap(), 2);
        assert!(mismatch(change(read, "other body").await));
    }
    let key = Some(Idempotency {
        account: principal.account().unwrap(),
        key: "key".to_owned(),
        body: request_digest("body").into(),
    });
    let request = FindRequest { organization: world.organization, idempotency: key };
    assert_eq!(world.operate(&principal, request).await.unwrap(), Some((id, 2)));
    assert_eq!(world.versions(&principal, id).await.current.revision, 2);
    assert_eq!(world.audited(AuditAction::CredentialReplaced).await, 1);
}

/// An unauthorized principal, another organization and an inactive key cannot change versions.
pub async fn versions_change_only_for_their_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let read = world.versions(&principal, id).await;

    let stranger = other.embedder();
    let versions = ListVersions(other.organization, id);
    assert_eq!(other.operate(&stranger, versions).await.decided(), Err(Refusal::NotFound));
    let foreign = other.change_version(&stranger, &read, world.replacement(&read));
    assert_eq!(other.store.change_credential(foreign).await.decided(), Err(Refusal::NotFound));

    let mut inactive = world.new_version(id, 2);
    inactive.sealed.key = KeyId::from_bytes([7; 16]);
    let command = world.change_version(&principal, &read, CredentialChange::Stage(inactive));
    assert_eq!(world.store.change_credential(command).await.decided(), Err(Refusal::Contended));

    world.set_state(OrganizationState::Disabled).await;
    let command = world.change_version(&principal, &read, world.replacement(&read));
    assert_eq!(world.store.change_credential(command).await.settled(), Err(Denial::OrganizationDisabled));
    world.set_state(OrganizationState::Active).await;
    assert_eq!(world.versions(&principal, id).await, read);
}

/// Deleting a credential deletes all its versions.
pub async fn deletion_removes_all_versions(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let rows = suite.rows(world.organization).await;
    let id = world.saved(&principal).await;
    let read = world.versions(&principal, id).await;
    let read = world.changed(&principal, &read, world.replacement(&read)).await;
    world.changed(&principal, &read, CredentialChange::Stage(world.new_version(id, 3))).await;
    world.delete(&principal, id).await.unwrap();
    assert_eq!(suite.rows(world.organization).await, rows);
}

fn with_destroyed(version: NewVersion, destroyed: Vec<i64>) -> NewVersion {
    NewVersion { destroyed, ..version }
}

/// A credential shows the version that was current before, until that is destroyed.
pub async fn previous_version_is_shown_with_the_credential(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let previous = async |number: Option<i64>, until: Timestamp| {
        let expected = number.map(|number| PreviousVersion { number, until });
        let read = world.versions(&principal, id).await;
        assert_eq!(read.current.previous, expected);
        let listed = world.operate(&principal, world.list(&principal)).await.unwrap();
        assert_eq!(listed.rows, *std::slice::from_ref(&read.current));
        read
    };
    let read = previous(None, world.now()).await;
    let first_until = world.destroy_at();
    world.changed(&principal, &read, world.replacement(&read)).await;
    let read = previous(Some(1), first_until).await;
    world.clock.advance_millis(1_000);
    world.changed(&principal, &read, CredentialChange::Stage(world.new_version(id, 3))).await;
    let read = previous(Some(1), first_until).await;
    let promote = CredentialChange::Promote { number: 3, destroy_at: world.destroy_at(), destroyed: Vec::new() };
    let second_until = world.destroy_at();
    world.changed(&principal, &read, promote).await;
    let read = previous(Some(2), second_until).await;
    world.changed(&principal, &read, CredentialChange::Destroy(2)).await;
    let read = previous(Some(1), first_until).await;
    world.changed(&principal, &read, CredentialChange::Destroy(1)).await;
    let read = previous(None, first_until).await;
    // A version that is not kept was never the previous one.
    let version = with_destroyed(world.new_version(id, 4), vec![3]);
    world.changed(&principal, &read, CredentialChange::Replace { version, destroy_at: world.destroy_at() }).await;
    previous(None, first_until).await;
}
