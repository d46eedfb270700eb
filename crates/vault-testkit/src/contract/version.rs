//! Cases of the versions of a credential: replacing its data, staging, promoting and destroying.

use super::ContractStore;
use super::saving::{Changing, NewVersionOf};
use super::tools::{Settled as _, evaluated, race, request_digest, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::credential::{
    CredentialEdit, CredentialType, DeleteCredential, FindRequest, ListVersions, OpenedVersions, VersionLimits,
};
use vault_core::id::CredentialId;
use vault_core::organization::OrganizationState;
use vault_core::port::{Idempotency, StoredCredential, StoredVersion, StoredVersions};
use vault_core::principal::{Denial, Principal};
use vault_core::time::Timestamp;
use vault_core::{Command, Error, Refusal};

/// Limits of versions in these cases.
const LIMITS: VersionLimits = VersionLimits { versions: 5, previous_seconds: 1_000 };

pub(super) fn highest(versions: &OpenedVersions) -> i64 {
    versions.card.as_ref().unwrap().highest
}

impl World<'_> {
    /// Returns a change of a credential at the revision that was read.
    pub(super) fn change_version(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        edit: CredentialEdit,
        new: Option<NewVersionOf>,
    ) -> Command<Changing> {
        let (organization, id, revision) =
            (principal.organization().unwrap(), read.current.id, Some(read.current.revision));
        let payload = Changing { organization, id, revision, edit, new, limits: LIMITS };
        self.command(principal, AuditAction::CredentialReplaced, payload)
    }

    pub(super) fn replacement(&self, principal: &Principal, read: &StoredVersions) -> Command<Changing> {
        let edit = CredentialEdit::Replace { kind: CredentialType::S3, expires_at: None };
        self.change_version(principal, read, edit, Some(self.new_version()))
    }

    pub(super) fn stage(&self, principal: &Principal, read: &StoredVersions) -> Command<Changing> {
        let edit = CredentialEdit::Stage { kind: CredentialType::S3, expires_at: None };
        self.change_version(principal, read, edit, Some(self.new_version()))
    }

    pub(super) fn promotion(&self, principal: &Principal, read: &StoredVersions, number: i64) -> Command<Changing> {
        self.change_version(principal, read, CredentialEdit::Promote(number), None)
    }

    pub(super) fn withdrawal(&self, principal: &Principal, read: &StoredVersions, number: i64) -> Command<Changing> {
        self.change_version(principal, read, CredentialEdit::Destroy(number), None)
    }

    pub(super) fn destroy_at(&self) -> Timestamp {
        LIMITS.supersede(self.now()).destroy_at
    }

    pub(super) async fn opened(&self, principal: &Principal, id: CredentialId) -> OpenedVersions {
        self.operate(principal, ListVersions(self.organization, id)).await.unwrap()
    }

    pub(super) async fn versions(&self, principal: &Principal, id: CredentialId) -> StoredVersions {
        self.opened(principal, id).await.rows
    }

    /// Returns a credential whose data was replaced once.
    pub(super) async fn replaced(&self, principal: &Principal) -> CredentialId {
        let id = self.saved(principal).await;
        let read = self.versions(principal, id).await;
        self.changed(self.replacement(principal, &read)).await;
        id
    }

    pub(super) async fn changed(&self, command: Command<Changing>) -> StoredVersions {
        let (principal, id, before) =
            (command.principal.clone(), command.payload.id, command.payload.revision.unwrap());
        assert_eq!(self.store.change_credential(command).await.unwrap().revision, Some(before + 1));
        self.versions(&principal, id).await
    }
}

/// A new version is current immediately, and the previous one is kept. ID, namespace and time of the save are unchanged.
pub async fn replaced_version_is_kept_with_new_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let before = world.versions(&principal, id).await;
    assert_eq!((before.current.revision, before.current.version, &before.others[..]), (1, 1, &[][..]));

    world.clock.advance_seconds(60);
    let after = world.changed(world.replacement(&principal, &before)).await;
    let mut expected = StoredCredential { card: after.current.card.clone(), ..before.current.clone() };
    (expected.version, expected.revision, expected.updated_at) = (2, 2, world.now());
    assert_eq!(after.current, expected);
    assert_eq!(after.others, [StoredVersion { number: 1, destroy_at: Some(world.destroy_at()), check: None }]);
    assert_eq!(world.show(&principal, id).await.unwrap(), after.current);
    assert_eq!(world.audited(AuditAction::CredentialReplaced).await, 1);
}

/// A version is staged, superseded by another, and promoted. The promotion is undone by another promotion.
pub async fn version_is_staged_promoted_and_withdrawn(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let states = async |read: &StoredVersions| {
        let others: Vec<_> = read.others.iter().map(|it| (it.number, it.destroy_at.is_some())).collect();
        (read.current.version, highest(&world.opened(&principal, id).await), others)
    };
    let read = world.versions(&principal, id).await;
    let read = world.changed(world.stage(&principal, &read)).await;
    assert_eq!(states(&read).await, (1, 2, vec![(2, false)]));
    let read = world.changed(world.stage(&principal, &read)).await;
    assert_eq!(states(&read).await, (1, 3, vec![(3, false)]));

    world.clock.advance_seconds(60);
    let read = world.changed(world.promotion(&principal, &read, 3)).await;
    assert_eq!(states(&read).await, (3, 3, vec![(1, true)]));
    assert_eq!(read.current.updated_at, world.now());
    let read = world.changed(world.promotion(&principal, &read, 1)).await;
    assert_eq!(states(&read).await, (1, 3, vec![(3, true)]));
    let read = world.changed(world.withdrawal(&principal, &read, 3)).await;
    // A version number is never reused.
    assert_eq!(states(&read).await, (1, 3, vec![]));
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
    let none = VersionLimits { previous_seconds: 0, ..LIMITS };
    let read = world.changed(with(world.replacement(&principal, &read), |change| change.limits = none)).await;
    assert_eq!((read.current.version, read.others.len()), (2, 0));
    let read = world.changed(world.stage(&principal, &read)).await;
    let read = world.changed(with(world.promotion(&principal, &read, 3), |change| change.limits = none)).await;
    assert_eq!((read.current.version, read.others.len()), (3, 0));
}

/// A change based on an outdated revision is rejected without effect.
pub async fn change_of_stale_revision_is_refused(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let stale = world.versions(&principal, id).await;
    let read = world.changed(world.stage(&principal, &stale)).await;
    let entries = world.audit_length().await;
    let promotion =
        with(world.promotion(&principal, &read, 2), |change| change.revision = Some(stale.current.revision));
    for command in [world.replacement(&principal, &stale), world.stage(&principal, &stale), promotion] {
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
        let (command, store) = (world.replacement(&principal, &read), Arc::clone(&world.store));
        async move { store.change_credential(command).await.decided() }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
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
    let account = principal.account().unwrap();
    let key = |body: &str| Some(Idempotency { account, key: "key".to_owned(), body: request_digest(body).into() });
    let change = async |read: &StoredVersions, body| {
        let command = with(world.replacement(&principal, read), |change| {
            change.new.as_mut().unwrap().idempotency = key(body);
        });
        evaluated(world.store.change_credential(command).await).map(|changed| (changed.version, changed.revision))
    };
    assert_eq!(change(&read, "body").await.unwrap(), (2, Some(2)));
    let mismatch = |answer| matches!(answer, Err(Error::Refused(Refusal::IdempotencyMismatch)));
    for read in [&read, &world.versions(&principal, id).await] {
        assert_eq!(change(read, "body").await.unwrap(), (2, None));
        assert!(mismatch(change(read, "other body").await));
    }
    let request = FindRequest { organization: world.organization, idempotency: key("body") };
    assert_eq!(world.operate(&principal, request).await.unwrap(), Some((id, 2)));
    assert_eq!(world.versions(&principal, id).await.current.revision, 2);
    assert_eq!(world.audited(AuditAction::CredentialReplaced).await, 1);
}

/// An unauthorized principal and another organization cannot change versions.
pub async fn versions_change_only_for_their_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let read = world.versions(&principal, id).await;

    let stranger = other.embedder();
    let versions = ListVersions(other.organization, id);
    assert_eq!(other.operate(&stranger, versions).await.decided().err(), Some(Refusal::NotFound));
    let foreign = other.replacement(&stranger, &read);
    assert_eq!(other.store.change_credential(foreign).await.decided(), Err(Refusal::NotFound));

    world.set_state(OrganizationState::Disabled).await;
    let command = world.replacement(&principal, &read);
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
    let read = world.changed(world.replacement(&principal, &read)).await;
    world.changed(world.stage(&principal, &read)).await;
    world.delete(&principal, id).await.unwrap();
    assert_eq!(suite.rows(world.organization).await, rows);
}
