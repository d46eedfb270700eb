use super::CredentialCrypto;
use crate::testing::{Bench, NOW, id, key_id};
use std::error::Error as _;
use std::sync::Arc;
use vault_core::credential::{CredentialData, CredentialType, Information, Metadata, SecretBytes};
use vault_core::id::{CredentialId, KeyId, OrganizationId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::port::{CredentialContext, SealError, SealedContent, SealedInformation, SealedRow};
use vault_core::sealed::{Blob, OrganizationKeys, SealedCredential, SealedMetadata};

/// A link whose whole URL is secret.
const LINK: &[u8] = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;
const INFORMATION: &str = r#"{"secrets":["url"],"fingerprint":"000000000000"}"#;
const METADATA: &str = r#"{"labels":{"stage":"nightly"}}"#;

/// A process of an instance with the organizations 1 and 2.
struct Process {
    bench: Arc<Bench>,
    crypto: CredentialCrypto,
}

impl Process {
    async fn new() -> Self {
        let process = Self::of(Arc::new(Bench::new().await));
        for number in [1, 2] {
            let keys = process.crypto.sealer.new_organization_keys(organization(number), NOW).unwrap();
            process.bench.keys.rows.lock().unwrap().insert(organization(number), keys);
        }
        process
    }

    /// A process with empty caches.
    fn of(bench: Arc<Bench>) -> Self {
        Self { crypto: bench.keyring.credentials(bench.keys.clone()), bench }
    }

    fn restarted(&self) -> Self {
        Self::of(Arc::clone(&self.bench))
    }

    /// Changes the keys of organization 1.
    async fn change_keys(&self, change: impl FnOnce(&OrganizationKeys) -> OrganizationKeys) {
        let before = self.bench.keys.rows.lock().unwrap()[&organization(1)].clone();
        let after = change(&before);
        let bound = self.crypto.sealer.bind_organization_keys(organization(1), &before, &after).await.unwrap();
        let after = OrganizationKeys { fingerprint_wrapped: bound.after, ..after };
        self.bench.keys.rows.lock().unwrap().insert(organization(1), after);
    }

    /// Replaces the active key of organization 1.
    async fn next_key(&self) -> KeyId {
        let next = self.crypto.sealer.new_organization_key(organization(1), NOW).unwrap();
        self.change_keys(|keys| keys.with_next(&next)).await;
        next.id
    }

    async fn seal_under(
        &self,
        key: KeyId,
        place: CredentialContext,
        data: &[u8],
    ) -> Result<SealedCredential, SealError> {
        let information = Information::from_json(INFORMATION.to_owned()).unwrap();
        let data = SecretBytes::from(data.to_vec());
        self.crypto.sealer.seal(key, place, &namespace("imports"), &data, &information).await
    }

    async fn seal(&self, place: CredentialContext) -> (SealedCredential, SealedMetadata) {
        let key = self.bench.active_key(place.organization);
        let metadata = Metadata::from_json(METADATA).unwrap();
        let sealed = self.seal_under(key, place, LINK).await.unwrap();
        (sealed, self.crypto.sealer.seal_metadata(key, place, &metadata).await.unwrap())
    }

    async fn open(&self, place: CredentialContext, sealed: &SealedCredential) -> Result<CredentialData, SealError> {
        self.crypto.opener.open(place, &namespace("imports"), CredentialType::DirectLink, sealed).await
    }

    async fn list(&self, place: CredentialContext, sealed: &SealedCredential) -> Result<Information, SealError> {
        let row = SealedInformation { context: place, key: sealed.key, blob: &sealed.information };
        self.crypto.list_opener.open_information(place.organization, &[row]).await?.remove(0)
    }

    async fn read(&self, place: CredentialContext, sealed: &SealedMetadata) -> Result<Metadata, SealError> {
        let row = SealedInformation { context: place, key: sealed.key, blob: &sealed.blob };
        self.crypto.list_opener.open_metadata(place.organization, &[row]).await?.remove(0)
    }

    async fn assert_opens(&self, place: CredentialContext, sealed: &SealedCredential, metadata: &SealedMetadata) {
        assert_eq!(self.open(place, sealed).await.unwrap().to_canonical_json().expose(), LINK);
        assert_eq!(self.list(place, sealed).await.unwrap().as_json(), INFORMATION);
        assert_eq!(self.read(place, metadata).await.unwrap(), Metadata::from_json(METADATA).unwrap());
    }

    async fn rewrap(&self, to: KeyId, rows: Vec<SealedRow>) -> Vec<Result<SealedContent, SealError>> {
        let moved = self.crypto.rewrapper.rewrap(organization(1), to, rows).await.unwrap();
        moved.into_iter().map(|row| row.map(|row| row.content)).collect()
    }
}

fn organization(number: u128) -> OrganizationId {
    OrganizationId::from_uuid(id(number))
}

fn namespace(name: &str) -> Namespace {
    Namespace::parse(name, "").unwrap()
}

/// A version of credential 3 of organization 1.
fn place() -> CredentialContext {
    let (credential, version) = (CredentialId::from_uuid(id(3)), VersionId::from_uuid(id(5)));
    CredentialContext { organization: organization(1), credential, version: 3, id: Some(version) }
}

/// Places that differ from `place()` in one part each.
fn elsewhere() -> [CredentialContext; 5] {
    [
        CredentialContext { organization: organization(2), ..place() },
        CredentialContext { credential: CredentialId::from_uuid(id(4)), ..place() },
        CredentialContext { version: 4, ..place() },
        CredentialContext { id: Some(VersionId::from_uuid(id(6))), ..place() },
        CredentialContext { id: None, ..place() },
    ]
}

fn row(place: CredentialContext, content: SealedContent) -> SealedRow {
    SealedRow { credential: place.credential, version: place.version, id: place.id, content }
}

/// Returns whether the value was refused. In another organization, the key is unknown.
fn is_damaged<T>(result: Result<T, SealError>) -> bool {
    matches!(result, Err(SealError::Integrity { .. } | SealError::UnknownKey { .. }))
}

fn is_unknown<T>(result: Result<T, SealError>) -> bool {
    matches!(result, Err(SealError::UnknownKey { .. }))
}

#[tokio::test]
async fn credential_is_sealed_under_the_key_that_is_named() {
    let process = Process::new().await;
    let (first, strange) = (process.bench.active_key(organization(1)), process.bench.active_key(organization(2)));
    let second = process.next_key().await;
    for key in [first, second] {
        let sealed = process.seal_under(key, place(), LINK).await.unwrap();
        assert_eq!(sealed.key, key);
        assert!(process.restarted().open(place(), &sealed).await.is_ok());
        let other_type = process.crypto.opener.open(place(), &namespace("imports"), CredentialType::S3, &sealed).await;
        assert!(is_damaged(other_type));
    }
    for key in [strange, key_id(99)] {
        let refused = process.seal_under(key, place(), LINK).await;
        assert!(matches!(refused, Err(SealError::UnknownKey { key: named, .. }) if named == key));
        let metadata = Metadata::from_json(METADATA).unwrap();
        assert!(is_unknown(process.crypto.sealer.seal_metadata(key, place(), &metadata).await));
    }
    process.bench.keys.rows.lock().unwrap().clear();
    let refused = process.restarted().seal_under(first, place(), LINK).await;
    assert!(matches!(refused, Err(SealError::NoKeys)));
}

#[tokio::test]
async fn lengths_are_padded_and_each_version_has_its_data_key() {
    let process = Process::new().await;
    let mut sealed = Vec::new();
    for data in [&LINK[..30], LINK] {
        sealed.push(process.seal_under(process.bench.active_key(organization(1)), place(), data).await.unwrap().data);
    }
    assert!(sealed.iter().all(|data| data.as_bytes().len() == 30 + 256 + 16));
    assert_ne!(sealed[0].as_bytes()[2..18], sealed[1].as_bytes()[2..18], "the id of the data key");
}

#[tokio::test]
async fn credential_opens_only_in_its_row() {
    let process = Process::new().await;
    let (sealed, metadata) = process.seal(place()).await;
    process.assert_opens(place(), &sealed, &metadata).await;
    for other in elsewhere() {
        // It cannot be decrypted under a key of the other organization either.
        for key in [sealed.key, process.bench.active_key(other.organization)] {
            let (sealed, metadata) =
                (SealedCredential { key, ..sealed.clone() }, SealedMetadata { key, ..metadata.clone() });
            assert!(is_damaged(process.open(other, &sealed).await), "{other:?}");
            assert!(is_damaged(process.list(other, &sealed).await), "{other:?}");
            assert!(is_damaged(process.read(other, &metadata).await), "{other:?}");
        }
    }
    for other in ["Imports", "imports/a", "import"] {
        let opened = process.crypto.opener.open(place(), &namespace(other), CredentialType::DirectLink, &sealed).await;
        assert!(is_damaged(opened), "{other}");
    }
    // Parts of two versions of one credential cannot be mixed, and one part cannot replace another.
    let next = process.seal(CredentialContext { version: 4, ..place() }).await.0;
    for data in [
        SealedCredential { data_key: next.data_key, ..sealed.clone() },
        SealedCredential { data: sealed.information.clone(), ..sealed.clone() },
    ] {
        assert!(is_damaged(process.open(place(), &data).await));
    }
    for information in [sealed.data.clone(), metadata.blob.clone()] {
        assert!(is_damaged(process.list(place(), &SealedCredential { information, ..sealed.clone() }).await));
    }
    let exchanged = SealedMetadata { blob: sealed.information.clone(), ..metadata };
    assert!(is_damaged(process.read(place(), &exchanged).await));
}

/// Rows under several keys are decrypted in order. One of another organization does not prevent this.
#[tokio::test]
async fn list_opens_only_rows_of_its_organization() {
    let process = Process::new().await;
    let mut sealed = Vec::new();
    for version in 1..=6 {
        let organization = organization(if version == 4 { 2 } else { 1 });
        let place = CredentialContext { organization, version, ..place() };
        sealed.push((place, process.seal(place).await.0));
        process.next_key().await;
    }
    let row =
        |(context, sealed): &(CredentialContext, SealedCredential)| (*context, sealed.key, sealed.information.clone());
    let rows: Vec<_> = sealed.iter().map(row).collect();
    let rows: Vec<_> =
        rows.iter().map(|(context, key, blob)| SealedInformation { context: *context, key: *key, blob }).collect();
    let opened = process.crypto.list_opener.open_information(organization(1), &rows).await.unwrap();
    assert_eq!(opened.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, false, true, true]);
    assert!(process.crypto.list_opener.open_information(organization(1), &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn fingerprints_distinguish_data_within_organization() {
    let process = Process::new().await;
    let of = async |process: &Process, number, data: &[u8]| {
        process.crypto.sealer.fingerprint(organization(number), &SecretBytes::from(data.to_vec())).await.unwrap()
    };
    let first = of(&process, 1, LINK).await;
    assert_ne!(first, of(&process, 2, LINK).await);
    for other in [&b"{}"[..], &LINK[..LINK.len() - 1], b""] {
        assert_ne!(first, of(&process, 1, other).await);
    }
    // A new key of the organization does not change fingerprints.
    process.next_key().await;
    assert_eq!(first, of(&process.restarted(), 1, LINK).await);
}

/// After the old key is destroyed, everything can be decrypted with only the new key. The data has the same bytes as
/// before.
#[tokio::test]
async fn moved_data_opens_only_with_its_new_key() {
    let process = Process::new().await;
    let (before, metadata) = process.seal(place()).await;
    let to = process.next_key().await;
    let contents = || [SealedContent::Version(before.clone()), SealedContent::Metadata(metadata.clone())];
    let moved = process.rewrap(to, contents().map(|content| row(place(), content)).to_vec()).await;
    let [Ok(SealedContent::Version(after)), Ok(SealedContent::Metadata(metadata_after))] = &moved[..] else {
        panic!("each stays what it is")
    };
    assert_eq!((after.key, &after.data), (to, &before.data));
    assert_eq!((metadata_after.key, metadata_after.revision), (to, metadata.revision));
    // A row that cannot be decrypted at its place is not moved.
    for other in &elsewhere()[1..] {
        let moved = process.rewrap(to, contents().map(|content| row(*other, content)).to_vec()).await;
        assert!(moved.into_iter().all(is_damaged), "{other:?}");
    }

    process.change_keys(|keys| keys.without(before.key)).await;
    let process = process.restarted();
    process.assert_opens(place(), after, metadata_after).await;
    assert!(is_unknown(process.open(place(), &before).await) && is_unknown(process.list(place(), &before).await));
    assert!(is_unknown(process.read(place(), &metadata).await));
    let moved = process.rewrap(to, contents().map(|content| row(place(), content)).to_vec()).await;
    assert!(moved.into_iter().all(is_unknown), "from a key that is gone");
}

/// Rows under several keys are resealed concurrently, in any order.
#[tokio::test]
async fn each_row_is_moved_from_its_own_key() {
    let process = Process::new().await;
    let first = process.seal(place()).await.0;
    let version = |sealed: &SealedCredential, place| row(place, SealedContent::Version(sealed.clone()));
    let second = process.rewrap(process.next_key().await, vec![version(&first, place())]).await.remove(0);
    let Ok(SealedContent::Version(second)) = second else { panic!("a version stays one") };
    let third = process.next_key().await;
    let own = [&first, &second, &second, &first].map(|sealed| version(sealed, place())).to_vec();
    assert!(process.rewrap(third, own).await.iter().all(Result::is_ok));
    let rows = vec![version(&first, place()), version(&second, elsewhere()[1]), version(&second, place())];
    let moved = process.rewrap(third, rows).await;
    assert_eq!(moved.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
}

/// Neither errors nor debug output contain a part of a secret.
#[tokio::test]
async fn errors_contain_no_secret() {
    let process = Process::new().await;
    let sealed = process.seal(place()).await.0;
    let other = elsewhere()[1];
    let cut = Blob::from_bytes(sealed.data.as_bytes()[..20].to_vec());
    let errors = [
        process.crypto.opener.open(place(), &namespace("imports"), CredentialType::S3, &sealed).await.err(),
        process.open(place(), &SealedCredential { data: cut, ..sealed.clone() }).await.err(),
        process.open(other, &sealed).await.err(),
        process.list(other, &sealed).await.err(),
        process.seal_under(key_id(99), place(), LINK).await.err(),
        process.rewrap(sealed.key, vec![row(other, SealedContent::Version(sealed))]).await.remove(0).err(),
    ];
    for error in errors {
        let error = error.expect("it is refused");
        let message = format!("{error} {error:?} {:?}", error.source());
        assert!(!message.contains("c2VjcmV0") && !message.contains("signature"), "a secret is in the error");
    }
}
