//! Cases of [`Sealer`](vault_core::port::Sealer), [`InformationOpener`](vault_core::port::InformationOpener),
//! [`Opener`](vault_core::port::Opener) and [`Rewrapper`](vault_core::port::Rewrapper) that fakes also pass.

use super::crypto::{CryptoSubject, SealingPorts};
use super::world::World;
use crate::clock::ManualClock;
use crate::memory::MemoryStore;
use std::collections::HashSet;
use std::error::Error as _;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialData, CredentialType, Fingerprint, Information, Metadata, SecretBytes};
use vault_core::id::{CredentialId, KeyId, OrganizationId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::port::{
    CredentialContext, DestroyOrganizationKey, IdGenerator, KeyDestruction, KeyRepository, KeyRotation, SealError,
    SealedContent, SealedInformation, SealedRow,
};
use vault_core::principal::Principal;
use vault_core::sealed::{KeyState, SealedCredential, SealedMetadata};

/// Link whose whole URL is secret.
pub(super) const LINK: &[u8] = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;
pub(super) const INFORMATION: &str = r#"{"secrets":["url"],"fingerprint":"000000000000"}"#;
pub(super) const METADATA: &str = r#"{"labels":{"stage":"nightly"}}"#;

/// Instance with organizations and their keys.
pub(super) struct Deployment<S> {
    subject: S,
    store: Arc<MemoryStore>,
    /// Ports of the running process.
    pub(super) ports: SealingPorts,
}

impl<S: CryptoSubject> Deployment<S> {
    pub(super) async fn new(make: &impl AsyncFn() -> S) -> Self {
        let store = Arc::new(MemoryStore::new());
        let subject = make().await;
        Self { ports: subject.start(Arc::clone(&store) as Arc<dyn KeyRepository>), store, subject }
    }

    /// Returns the same instance in a new process, which has an empty cache.
    fn restarted(self) -> Self {
        let ports = self.subject.start(Arc::clone(&self.store) as Arc<dyn KeyRepository>);
        Self { ports, ..self }
    }

    /// Returns a process of another instance that reads the keys of this one.
    pub(super) async fn intruded(&self, make: &impl AsyncFn() -> S) -> SealingPorts {
        make().await.start(Arc::clone(&self.store) as Arc<dyn KeyRepository>)
    }

    fn world(&self, organization: OrganizationId) -> World<'_> {
        World::within(&self.store, organization, ManualClock::START)
    }

    /// Returns the row key of the third version of a credential in a new organization.
    pub(super) async fn place(&self) -> CredentialContext {
        let (world, mut creation) = World::prepare(&self.store, ManualClock::START);
        let organization = world.organization;
        creation.keys = self.ports.sealer.new_organization_keys(organization, world.now()).unwrap();
        world.operate(&Principal::Operator, creation).await.unwrap();
        let credential = CredentialId::from_uuid(world.ids.ordered(world.now()));
        let id = VersionId::from_uuid(world.ids.random());
        CredentialContext { organization, credential, version: 3, id: Some(id) }
    }

    /// Returns the row key of another credential in the same organization.
    fn neighbour(&self, place: CredentialContext) -> CredentialContext {
        CredentialContext { credential: CredentialId::from_uuid(self.world(place.organization).ids.random()), ..place }
    }

    async fn active_key(&self, organization: OrganizationId) -> KeyId {
        let keys = self.store.organization_keys(organization).await.unwrap().unwrap();
        keys.keys.iter().find(|key| key.state == KeyState::Active).unwrap().id
    }

    /// Replaces the organization's active key.
    pub(super) async fn next_key(&self, organization: OrganizationId) -> KeyId {
        let (world, current) = (self.world(organization), self.active_key(organization).await);
        let next = self.ports.sealer.new_organization_key(organization, world.now()).unwrap();
        let id = next.id;
        let keys = self.store.organization_keys(organization).await.unwrap().unwrap();
        let after = keys.with_next(&next);
        let fingerprint = self.ports.sealer.bind_organization_keys(organization, &keys, &after).await.unwrap();
        let command = vault_core::port::ReplaceOrganizationKey { next, fingerprint, ..world.replace_key(current) };
        assert!(world.store.replace_organization_key(command).await.unwrap());
        id
    }

    async fn destroy_key(&self, organization: OrganizationId, key: KeyId) {
        let audit = self.world(organization).audit(AuditAction::OrganizationKeyDestroyed);
        let keys = self.store.organization_keys(organization).await.unwrap().unwrap();
        let after = keys.without(key);
        let fingerprint = self.ports.sealer.bind_organization_keys(organization, &keys, &after).await.unwrap();
        let command = DestroyOrganizationKey { organization, key, fingerprint, audit };
        assert_eq!(self.store.destroy_organization_key(command).await.unwrap(), KeyDestruction::Destroyed);
    }

    /// Seals under a key.
    async fn seal_under(&self, key: KeyId, place: CredentialContext) -> Result<SealedCredential, SealError> {
        let information = Information::from_json(INFORMATION.to_owned()).unwrap();
        let data = SecretBytes::from(LINK.to_vec());
        self.ports.sealer.seal(key, place, &namespace(), &data, &information).await
    }

    /// Seals under the organization's active key.
    pub(super) async fn seal(&self, place: CredentialContext) -> SealedCredential {
        self.seal_under(self.active_key(place.organization).await, place).await.unwrap()
    }

    pub(super) async fn seal_metadata(&self, place: CredentialContext) -> SealedMetadata {
        let (key, metadata) = (self.active_key(place.organization).await, Metadata::from_json(METADATA).unwrap());
        self.ports.sealer.seal_metadata(key, place, &metadata).await.unwrap()
    }

    pub(super) async fn rewrap(
        &self,
        place: CredentialContext,
        to: KeyId,
        content: SealedContent,
    ) -> Result<SealedContent, SealError> {
        let rows = vec![row(place, content)];
        let mut moved = self.ports.rewrapper.rewrap(place.organization, to, rows).await?;
        assert_eq!(moved.len(), 1);
        Ok(moved.remove(0)?.content)
    }
}

impl SealingPorts {
    pub(super) async fn open(
        &self,
        place: CredentialContext,
        sealed: &SealedCredential,
    ) -> Result<CredentialData, SealError> {
        self.opener.open(place, &namespace(), CredentialType::DirectLink, sealed).await
    }

    pub(super) async fn list(
        &self,
        place: CredentialContext,
        sealed: &SealedCredential,
    ) -> Result<Information, SealError> {
        let row = SealedInformation { context: place, key: sealed.key, blob: &sealed.information };
        self.lister.open_information(place.organization, &[row]).await?.remove(0)
    }

    pub(super) async fn read(&self, place: CredentialContext, sealed: &SealedMetadata) -> Result<Metadata, SealError> {
        let row = SealedInformation { context: place, key: sealed.key, blob: &sealed.blob };
        self.lister.open_metadata(place.organization, &[row]).await?.remove(0)
    }
}

pub(super) fn namespace() -> Namespace {
    super::tools::namespace("imports")
}

fn row(place: CredentialContext, content: SealedContent) -> SealedRow {
    SealedRow { credential: place.credential, version: place.version, id: place.id, content }
}

/// Returns whether the result is an integrity error. For another organization the key is unknown.
pub(super) fn is_damaged<T>(result: Result<T, SealError>) -> bool {
    matches!(result, Err(SealError::Integrity { .. } | SealError::UnknownKey { .. }))
}

fn is_unknown<T>(result: Result<T, SealError>) -> bool {
    matches!(result, Err(SealError::UnknownKey { .. }))
}

/// Data, information and metadata are decrypted as they were sealed. Data of another type is rejected.
pub async fn sealed_data_opens<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let (sealed, message) = (deployment.seal(place).await, deployment.seal_metadata(place).await);
    assert_eq!(message.revision, place.version);
    let deployment = deployment.restarted();
    let ports = &deployment.ports;
    assert_eq!(ports.open(place, &sealed).await.unwrap().to_canonical_json().expose(), LINK);
    assert_eq!(ports.list(place, &sealed).await.unwrap().as_json(), INFORMATION);
    assert_eq!(ports.read(place, &message).await.unwrap(), Metadata::from_json(METADATA).unwrap());
    assert!(is_damaged(ports.opener.open(place, &namespace(), CredentialType::S3, &sealed).await));
}

/// A credential is sealed under the requested key; an unknown key or one of another organization is rejected.
pub async fn credential_is_sealed_under_the_key_that_is_named<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let (place, other) = (deployment.place().await, deployment.place().await);
    let first = deployment.active_key(place.organization).await;
    let second = deployment.next_key(place.organization).await;
    for key in [first, second] {
        let sealed = deployment.seal_under(key, place).await.unwrap();
        assert_eq!(sealed.key, key);
        deployment.ports.open(place, &sealed).await.unwrap();
    }
    let strange = deployment.active_key(other.organization).await;
    for key in [strange, KeyId::from_uuid(deployment.world(place.organization).ids.random())] {
        let refused = deployment.seal_under(key, place).await;
        assert!(matches!(refused, Err(SealError::UnknownKey { key: named, .. }) if named == key));
        let metadata = Metadata::from_json(METADATA).unwrap();
        assert!(is_unknown(deployment.ports.sealer.seal_metadata(key, place, &metadata).await));
    }
}

/// A blob that is moved to another organization, credential, version, namespace or column cannot be decrypted.
pub async fn credential_opens_only_in_its_row<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let (place, strange) = (deployment.place().await, deployment.place().await);
    let (sealed, message) = (deployment.seal(place).await, deployment.seal_metadata(place).await);
    let ports = &deployment.ports;
    let next = CredentialContext { version: place.version + 1, ..place };
    let moved = CredentialContext { organization: strange.organization, ..place };
    let renewed = CredentialContext { id: deployment.place().await.id, ..place };
    let unlisted = CredentialContext { id: None, ..place };
    for other in [next, deployment.neighbour(place), moved, renewed, unlisted] {
        assert!(is_damaged(ports.open(other, &sealed).await), "{other:?}");
        assert!(is_damaged(ports.list(other, &sealed).await), "{other:?}");
        assert!(is_damaged(ports.read(other, &message).await), "{other:?}");
        // It cannot be decrypted under a key of the other organization either.
        let key = deployment.active_key(other.organization).await;
        let renamed = SealedCredential { key, ..sealed.clone() };
        assert!(is_damaged(ports.open(other, &renamed).await), "{other:?}");
        assert!(is_damaged(ports.list(other, &renamed).await), "{other:?}");
    }
    for other in ["Imports", "imports/a", "import"].map(super::tools::namespace) {
        let opened = ports.opener.open(place, &other, CredentialType::DirectLink, &sealed).await;
        assert!(is_damaged(opened), "{other}");
    }
    // Parts of two versions of one credential cannot be mixed.
    let mixed = SealedCredential { data_key: deployment.seal(next).await.data_key, ..sealed.clone() };
    assert!(is_damaged(ports.open(place, &mixed).await));
    // One part cannot replace another.
    let exchanged =
        SealedCredential { data: sealed.information.clone(), information: sealed.data.clone(), ..sealed.clone() };
    assert!(is_damaged(ports.open(place, &exchanged).await) && is_damaged(ports.list(place, &exchanged).await));
    let exchanged = SealedCredential { information: message.blob, ..sealed.clone() };
    assert!(is_damaged(ports.list(place, &exchanged).await));
    let exchanged = SealedMetadata { blob: sealed.information, ..deployment.seal_metadata(place).await };
    assert!(is_damaged(ports.read(place, &exchanged).await));
}

/// A row of another organization cannot be decrypted, and does not prevent the decryption of others.
pub async fn list_opens_only_for_one_organization<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let places = [deployment.place().await, deployment.place().await];
    let sealed = [deployment.seal(places[0]).await, deployment.seal(places[1]).await];
    let rows: Vec<_> = std::iter::zip(places, &sealed)
        .map(|(context, sealed)| SealedInformation { context, key: sealed.key, blob: &sealed.information })
        .collect();
    let list = async |rows: &[SealedInformation<'_>]| {
        deployment.ports.lister.open_information(places[0].organization, rows).await.unwrap()
    };
    assert!(list(&[]).await.is_empty());
    let mut opened = list(&rows).await;
    assert_eq!(opened.len(), 2);
    assert!(is_damaged(opened.remove(1)));
    assert_eq!(opened.remove(0).unwrap().as_json(), INFORMATION);
}

/// Rows under replaced keys are decrypted together with the others, in order.
pub async fn list_may_use_several_keys<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let mut sealed = Vec::new();
    for version in 1..=6 {
        let place = CredentialContext { version, ..place };
        sealed.push((place, deployment.seal(place).await));
        if version % 2 == 0 {
            deployment.next_key(place.organization).await;
        }
    }
    let rows: Vec<_> = sealed
        .iter()
        .map(|(context, sealed)| SealedInformation { context: *context, key: sealed.key, blob: &sealed.information })
        .collect();
    let opened = deployment.ports.lister.open_information(place.organization, &rows).await.unwrap();
    assert_eq!(opened.len(), 6);
    assert!(opened.iter().all(|information| information.as_ref().unwrap().as_json() == INFORMATION));
    assert_eq!(rows.iter().map(|row| row.key).collect::<HashSet<_>>().len(), 3);
}

/// Fingerprints are equal exactly for equal data within an organization, also after a restart.
pub async fn fingerprints_distinguish_data_within_organization<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let [one, two] = [deployment.place().await.organization, deployment.place().await.organization];
    let of = async |deployment: &Deployment<S>, organization, data: &[u8]| -> Fingerprint {
        deployment.ports.sealer.fingerprint(organization, &SecretBytes::from(data.to_vec())).await.unwrap()
    };
    let first = of(&deployment, one, LINK).await;
    assert_ne!(first, of(&deployment, two, LINK).await);
    for other in [&b"{}"[..], &LINK[..LINK.len() - 1], b""] {
        assert_ne!(first, of(&deployment, one, other).await);
    }
    // A new key of the organization does not change fingerprints.
    deployment.next_key(one).await;
    let deployment = deployment.restarted();
    assert_eq!(first, of(&deployment, one, LINK).await);
}

/// An organization without keys can neither seal nor open.
pub async fn organization_without_keys_neither_seals_nor_opens<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let (sealed, key) = (deployment.seal(place).await, deployment.active_key(place.organization).await);
    let world = deployment.world(place.organization);
    world.delete_organization().await;
    drop(world);
    let deployment = deployment.restarted();
    let ports = &deployment.ports;
    assert!(matches!(ports.open(place, &sealed).await, Err(SealError::NoKeys)));
    assert!(matches!(ports.list(place, &sealed).await, Err(SealError::NoKeys | SealError::UnknownKey { .. })));
    let data = SecretBytes::from(LINK.to_vec());
    assert!(matches!(ports.sealer.fingerprint(place.organization, &data).await, Err(SealError::NoKeys)));
    assert!(matches!(deployment.seal_under(key, place).await, Err(SealError::NoKeys)));
    let content = SealedContent::Version(sealed);
    assert!(matches!(deployment.rewrap(place, key, content).await, Err(SealError::NoKeys)));
}

/// An organization gets one active key without uses; each new key has a unique id.
pub async fn new_keys_have_unique_ids<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let (organization, now) = (deployment.place().await.organization, ManualClock::START);
    let mut ids = HashSet::new();
    for _ in 0..2 {
        let created = deployment.ports.sealer.new_organization_keys(organization, now).unwrap();
        let [first] = &created.keys[..] else { panic!("{} keys", created.keys.len()) };
        let next = deployment.ports.sealer.new_organization_key(organization, now).unwrap();
        for key in [first, &next] {
            let message = (key.organization, key.state, key.uses, key.created_at);
            assert_eq!(message, (organization, KeyState::Active, 0, now));
        }
        assert!([created.fingerprint_key, first.id, next.id].into_iter().all(|id| ids.insert(id)));
    }
}

/// After the old key is destroyed, everything can be decrypted with only the new key. The data has the same bytes as
/// before.
pub async fn moved_data_opens_only_with_its_new_key<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let (before, message) = (deployment.seal(place).await, deployment.seal_metadata(place).await);
    let to = deployment.next_key(place.organization).await;
    let content = SealedContent::Version(before.clone());
    let Ok(SealedContent::Version(after)) = deployment.rewrap(place, to, content).await else {
        panic!("a version stays one")
    };
    let content = SealedContent::Metadata(message.clone());
    let Ok(SealedContent::Metadata(said_after)) = deployment.rewrap(place, to, content).await else {
        panic!("metadata stays metadata")
    };
    assert_eq!((after.key, &after.data), (to, &before.data));
    assert_eq!((said_after.key, said_after.revision), (to, message.revision));

    deployment.destroy_key(place.organization, before.key).await;
    let deployment = deployment.restarted();
    let ports = &deployment.ports;
    assert_eq!(ports.open(place, &after).await.unwrap().to_canonical_json().expose(), LINK);
    assert_eq!(ports.list(place, &after).await.unwrap().as_json(), INFORMATION);
    assert_eq!(ports.read(place, &said_after).await.unwrap(), Metadata::from_json(METADATA).unwrap());
    assert!(is_unknown(ports.open(place, &before).await) && is_unknown(ports.list(place, &before).await));
    assert!(is_unknown(ports.read(place, &message).await));
    let from_there = deployment.rewrap(place, to, SealedContent::Version(before.clone())).await;
    assert!(is_unknown(from_there), "from a key that is gone");
    assert!(is_unknown(deployment.rewrap(place, before.key, SealedContent::Version(after)).await), "to such a key");
}

/// A row that cannot be decrypted at its row key is not moved. Other rows are.
pub async fn unopenable_data_is_not_resealed<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let (sealed, message) = (deployment.seal(place).await, deployment.seal_metadata(place).await);
    let to = deployment.next_key(place.organization).await;
    let contents = [SealedContent::Version(sealed), SealedContent::Metadata(message)];
    let next = CredentialContext { version: place.version + 1, ..place };
    for content in contents {
        let renewed = CredentialContext { id: deployment.place().await.id, ..place };
        for elsewhere in [next, deployment.neighbour(place), renewed] {
            assert!(is_damaged(deployment.rewrap(elsewhere, to, content.clone()).await), "{elsewhere:?}");
        }
        let rows = vec![row(next, content.clone()), row(place, content)];
        let moved = deployment.ports.rewrapper.rewrap(place.organization, to, rows).await.unwrap();
        assert!(moved.len() == 2 && moved[0].is_err() && moved[1].is_ok());
    }
}

/// Neither errors nor debug output contain a part of a secret.
pub async fn errors_contain_no_secret<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let deployment = Deployment::new(&make).await;
    let place = deployment.place().await;
    let sealed = deployment.seal(place).await;
    let elsewhere = deployment.neighbour(place);
    let ports = &deployment.ports;
    let another_type = ports.opener.open(place, &namespace(), CredentialType::S3, &sealed).await;
    let truncated = vault_core::sealed::Blob::from_bytes(sealed.data.as_bytes()[..20].to_vec());
    let damaged = SealedCredential { data: truncated, ..sealed.clone() };
    let unknown = KeyId::from_uuid(deployment.world(place.organization).ids.random());
    let errors = [
        another_type.err(),
        ports.open(place, &damaged).await.err(),
        ports.open(elsewhere, &sealed).await.err(),
        ports.list(elsewhere, &sealed).await.err(),
        deployment.seal_under(unknown, place).await.err(),
        deployment.rewrap(elsewhere, sealed.key, SealedContent::Version(sealed)).await.err(),
    ];
    for error in errors {
        let error = error.expect("it is refused");
        let message = format!("{error} {error:?} {:?}", error.source());
        assert!(!message.contains("c2VjcmV0") && !message.contains("signature"), "a secret is in the error");
    }
}
