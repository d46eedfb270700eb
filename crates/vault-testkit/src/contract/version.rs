//! Cases of the versions of a credential: replacing its data, staging, promoting and destroying.

use super::ContractStore;
use super::tools::{Settled as _, blob, evaluated, race, request_digest, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use std::sync::Arc;
use vault_core::activation::VendRule;
use vault_core::audit::AuditAction;
use vault_core::credential::{
    Card, CardVersion, ChangeCredential, CredentialType, DeleteCredential, FindRequest, Information, ListVersions,
    Metadata, NewVersion, VersionLimits,
};
use vault_core::id::{CredentialId, KeyId, VersionId};
use vault_core::organization::OrganizationState;
use vault_core::port::{IdGenerator as _, Idempotency, StoredCredential, StoredVersion, StoredVersions};
use vault_core::principal::{Denial, Principal};
use vault_core::sealed::{Blob, SealedData};
use vault_core::time::Timestamp;
use vault_core::{Command, Error, Refusal};

/// Limits of versions in these cases.
const LIMITS: VersionLimits = VersionLimits { versions: 5, previous_seconds: 1_000 };

/// Returns a card with one version. Stores do not interpret it, so it is not encrypted.
pub(super) fn first_card(version: &NewVersion, now: Timestamp) -> Card {
    Card {
        kind: CredentialType::S3,
        namespace: super::tools::namespace("contract"),
        vend: VendRule::Any,
        highest: version.number,
        current: listed(version, now),
        others: Vec::new(),
        metadata: Metadata::default(),
    }
}

fn listed(version: &NewVersion, now: Timestamp) -> CardVersion {
    let information = Information::from_json(format!("{{\"version\":{}}}", version.number)).unwrap();
    let NewVersion { number, id, .. } = *version;
    CardVersion { number, id, created_at: now, superseded: None, expires_at: None, information }
}

pub(super) fn card_of(row: &StoredCredential) -> Card {
    Card::from_bytes(row.card.as_bytes()).unwrap()
}

impl World<'_> {
    pub(super) fn sealed_version(&self, id: CredentialId, number: i64) -> SealedData {
        SealedData {
            data_key: blob(&format!("data key of {id}, version {number}")),
            data: blob(&format!("data of {id}, version {number}")),
        }
    }

    pub(super) fn new_version(&self, id: CredentialId, number: i64) -> NewVersion {
        let (data, version) = (self.sealed_version(id, number), VersionId::from_uuid(self.ids.random()));
        NewVersion { number, id: version, data, check: None, idempotency: None }
    }

    /// Returns the next version of a credential.
    pub(super) fn next_version(&self, read: &StoredVersions) -> NewVersion {
        self.new_version(read.current.id, card_of(&read.current).highest + 1)
    }

    /// Returns the change of a credential to this card.
    pub(super) fn change_to(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        action: AuditAction,
        version: Option<NewVersion>,
        after: &Card,
    ) -> Command<ChangeCredential> {
        let before = card_of(&read.current);
        let payload = ChangeCredential {
            organization: self.organization,
            id: read.current.id,
            revision: read.current.revision,
            key: self.key,
            card: Blob::from_bytes(after.to_bytes()),
            current: after.current.number,
            version,
            effects: before.effects(after),
            vend: after.vend,
            expires_at: after.expires_at(),
            labels: None,
            action,
            changes: Vec::new(),
        };
        self.command(principal, action, payload)
    }

    pub(super) fn replace_by(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        version: NewVersion,
    ) -> Command<ChangeCredential> {
        let after = card_of(&read.current).replaced(listed(&version, self.now()), LIMITS, self.now());
        self.change_to(principal, read, AuditAction::CredentialReplaced, Some(version), &after)
    }

    pub(super) fn replacement(&self, principal: &Principal, read: &StoredVersions) -> Command<ChangeCredential> {
        self.replace_by(principal, read, self.next_version(read))
    }

    pub(super) fn stage_version(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        version: NewVersion,
    ) -> Command<ChangeCredential> {
        let after = card_of(&read.current).with_staged(listed(&version, self.now()), LIMITS, self.now());
        self.change_to(principal, read, AuditAction::CredentialStaged, Some(version), &after)
    }

    pub(super) fn stage(&self, principal: &Principal, read: &StoredVersions) -> Command<ChangeCredential> {
        self.stage_version(principal, read, self.next_version(read))
    }

    pub(super) fn promotion(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        number: i64,
    ) -> Command<ChangeCredential> {
        let after = card_of(&read.current).promoted(number, LIMITS, self.now()).unwrap();
        self.change_to(principal, read, AuditAction::CredentialPromoted, None, &after)
    }

    pub(super) fn withdrawal(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        number: i64,
    ) -> Command<ChangeCredential> {
        let after = card_of(&read.current).without(number, self.now()).unwrap();
        self.change_to(principal, read, AuditAction::CredentialVersionDestroyed, None, &after)
    }

    pub(super) fn destroy_at(&self) -> Timestamp {
        LIMITS.supersede(self.now()).destroy_at
    }

    pub(super) async fn versions(&self, principal: &Principal, id: CredentialId) -> StoredVersions {
        self.operate(principal, ListVersions(self.organization, id)).await.unwrap()
    }

    /// Returns a credential whose data was replaced once.
    pub(super) async fn replaced(&self, principal: &Principal) -> CredentialId {
        let id = self.saved(principal).await;
        let read = self.versions(principal, id).await;
        self.changed(self.replacement(principal, &read)).await;
        id
    }

    pub(super) async fn changed(&self, command: Command<ChangeCredential>) -> StoredVersions {
        let (principal, id) = (command.principal.clone(), command.payload.id);
        assert_eq!(self.store.change_credential(command).await.unwrap(), None);
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
    let command = world.replacement(&principal, &before);
    let mut expected = before.current.clone();
    expected.card = command.payload.card.clone();
    (expected.version, expected.revision, expected.updated_at) = (2, 2, world.now());
    let after = world.changed(command).await;
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
    let states = |read: &StoredVersions| {
        let others: Vec<_> = read.others.iter().map(|it| (it.number, it.destroy_at.is_some())).collect();
        (read.current.version, card_of(&read.current).highest, others)
    };
    let read = world.versions(&principal, id).await;
    let read = world.changed(world.stage(&principal, &read)).await;
    assert_eq!(states(&read), (1, 2, vec![(2, false)]));
    let read = world.changed(world.stage(&principal, &read)).await;
    assert_eq!(states(&read), (1, 3, vec![(3, false)]));

    world.clock.advance_seconds(60);
    let read = world.changed(world.promotion(&principal, &read, 3)).await;
    assert_eq!(states(&read), (3, 3, vec![(1, true)]));
    assert_eq!(read.current.updated_at, world.now());
    let read = world.changed(world.promotion(&principal, &read, 1)).await;
    assert_eq!(states(&read), (1, 3, vec![(3, true)]));
    let read = world.changed(world.withdrawal(&principal, &read, 3)).await;
    // A version number is never reused.
    assert_eq!(states(&read), (1, 3, vec![]));
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
    let version = world.next_version(&read);
    let after = card_of(&read.current).replaced(listed(&version, world.now()), none, world.now());
    let read =
        world.changed(world.change_to(&principal, &read, AuditAction::CredentialReplaced, Some(version), &after));
    let read = read.await;
    assert_eq!((read.current.version, read.others.len()), (2, 0));
    let read = world.changed(world.stage(&principal, &read)).await;
    let after = card_of(&read.current).promoted(3, none, world.now()).unwrap();
    let read = world.changed(world.change_to(&principal, &read, AuditAction::CredentialPromoted, None, &after)).await;
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
    let promotion = with(world.promotion(&principal, &read, 2), |change| change.revision = stale.current.revision);
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
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(None)).count(), 1);
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
        let version = NewVersion { idempotency: key(body), ..world.next_version(read) };
        evaluated(world.store.change_credential(world.replace_by(&principal, read, version)).await)
    };
    assert_eq!(change(&read, "body").await.unwrap(), None);
    let mismatch = |answer| matches!(answer, Err(Error::Refused(Refusal::IdempotencyMismatch)));
    for read in [&read, &world.versions(&principal, id).await] {
        assert_eq!(change(read, "body").await.unwrap(), Some(2));
        assert!(mismatch(change(read, "other body").await));
    }
    let request = FindRequest { organization: world.organization, idempotency: key("body") };
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
    let foreign = other.replacement(&stranger, &read);
    assert_eq!(other.store.change_credential(foreign).await.decided(), Err(Refusal::NotFound));

    let command = with(world.stage(&principal, &read), |change| change.key = KeyId::from_bytes([7; 16]));
    assert_eq!(world.store.change_credential(command).await.decided(), Err(Refusal::Contended));

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
