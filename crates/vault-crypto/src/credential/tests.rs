use super::CredentialCrypto;
use crate::testing::{Bench, NOW, card, id, key_id};
use std::error::Error as _;
use std::sync::Arc;
use vault_core::credential::{Card, CredentialData, CredentialType, SecretBytes};
use vault_core::id::{CredentialId, KeyId, OrganizationId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::port::{CardContext, CredentialContext, SealError, SealedCredential};
use vault_core::sealed::{Blob, OrganizationKeys, SealedData};

/// A link whose whole URL is secret.
const LINK: &[u8] = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;

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

    async fn seal_under(&self, key: KeyId, place: CredentialContext, data: &[u8]) -> Result<SealedData, SealError> {
        let data = SecretBytes::from(data.to_vec());
        self.crypto.sealer.seal(key, place, &namespace("imports"), &data).await
    }

    async fn seal_card(&self, key: KeyId, place: CredentialContext) -> Result<Blob, SealError> {
        self.crypto.sealer.seal_card(key, of_card(place), &card()).await
    }

    async fn seal(&self, place: CredentialContext) -> (SealedData, Blob) {
        let key = self.bench.active_key(place.organization);
        (self.seal_under(key, place, LINK).await.unwrap(), self.seal_card(key, place).await.unwrap())
    }

    async fn open(&self, place: CredentialContext, sealed: &SealedData) -> Result<CredentialData, SealError> {
        self.crypto.opener.open(place, &namespace("imports"), CredentialType::DirectLink, sealed).await
    }

    async fn read(&self, place: CredentialContext, sealed: &Blob) -> Result<Card, SealError> {
        self.crypto.list_opener.open_cards(place.organization, &[(of_card(place), sealed)]).await?.remove(0)
    }

    async fn assert_opens(&self, place: CredentialContext, sealed: &SealedData, sealed_card: &Blob) {
        assert_eq!(self.open(place, sealed).await.unwrap().to_canonical_json().expose(), LINK);
        assert_eq!(self.read(place, sealed_card).await.unwrap(), card());
    }

    async fn rewrap(&self, to: KeyId, rows: Vec<SealedCredential>) -> Vec<Result<SealedCredential, SealError>> {
        self.crypto.rewrapper.rewrap(organization(1), to, rows).await.unwrap()
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
    let (credential, version) = (CredentialId::from_uuid(id(3)), card().current.id);
    CredentialContext { organization: organization(1), credential, version: 3, id: version }
}

/// The place of a card whose revision has the number of the version.
fn of_card(place: CredentialContext) -> CardContext {
    CardContext { organization: place.organization, credential: place.credential, revision: place.version }
}

/// Places that differ from `place()` in one part each, the last one only for data.
fn elsewhere() -> [CredentialContext; 4] {
    [
        CredentialContext { organization: organization(2), ..place() },
        CredentialContext { credential: CredentialId::from_uuid(id(4)), ..place() },
        CredentialContext { version: 4, ..place() },
        CredentialContext { id: VersionId::from_uuid(id(6)), ..place() },
    ]
}

fn row(place: CredentialContext, (data, card): &(SealedData, Blob)) -> SealedCredential {
    let (id, revision) = (place.credential, place.version);
    SealedCredential { id, revision, card: card.clone(), data: vec![(place.version, data.clone())] }
}

/// Returns a blob that names another key.
fn under(key: KeyId, sealed: &Blob) -> Blob {
    let mut bytes = sealed.as_bytes().to_vec();
    bytes[2..18].copy_from_slice(key.as_bytes());
    Blob::from_bytes(bytes)
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
        assert_eq!(sealed.data_key.key(), Some(key));
        assert!(process.restarted().open(place(), &sealed).await.is_ok());
        let other_type = process.crypto.opener.open(place(), &namespace("imports"), CredentialType::S3, &sealed).await;
        assert!(is_damaged(other_type));
    }
    for key in [strange, key_id(99)] {
        let refused = process.seal_under(key, place(), LINK).await;
        assert!(matches!(refused, Err(SealError::UnknownKey { key: named, .. }) if named == key));
        assert!(is_unknown(process.seal_card(key, place()).await));
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
    let (sealed, card) = process.seal(place()).await;
    process.assert_opens(place(), &sealed, &card).await;
    for other in elsewhere() {
        // It cannot be decrypted under a key of the other organization either.
        for key in [process.bench.active_key(organization(1)), process.bench.active_key(other.organization)] {
            let data = SealedData { data_key: under(key, &sealed.data_key), ..sealed.clone() };
            assert!(is_damaged(process.open(other, &data).await), "{other:?}");
            if other.id == place().id {
                assert!(is_damaged(process.read(other, &under(key, &card)).await), "{other:?}");
            }
        }
    }
    for other in ["Imports", "imports/a", "import"] {
        let opened = process.crypto.opener.open(place(), &namespace(other), CredentialType::DirectLink, &sealed).await;
        assert!(is_damaged(opened), "{other}");
    }
    // Parts of two versions of one credential cannot be mixed, and one part cannot replace another.
    let next = process.seal(CredentialContext { version: 4, ..place() }).await.0;
    for data in
        [SealedData { data_key: next.data_key, ..sealed.clone() }, SealedData { data: card.clone(), ..sealed.clone() }]
    {
        assert!(is_damaged(process.open(place(), &data).await));
    }
    for blob in [sealed.data, sealed.data_key] {
        assert!(is_damaged(process.read(place(), &blob).await));
    }
}

/// Rows under several keys are decrypted in order. One of another organization does not prevent this.
#[tokio::test]
async fn list_opens_only_rows_of_its_organization() {
    let process = Process::new().await;
    let mut sealed = Vec::new();
    for version in 1..=6 {
        let organization = organization(if version == 4 { 2 } else { 1 });
        let place = CredentialContext { organization, version, ..place() };
        sealed.push((of_card(place), process.seal(place).await.1));
        process.next_key().await;
    }
    let rows: Vec<_> = sealed.iter().map(|(place, card)| (*place, card)).collect();
    let opened = process.crypto.list_opener.open_cards(organization(1), &rows).await.unwrap();
    assert_eq!(opened.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, true, false, true, true]);
    assert!(process.crypto.list_opener.open_cards(organization(1), &[]).await.unwrap().is_empty());
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
    let before = process.seal(place()).await;
    let from = process.bench.active_key(organization(1));
    let to = process.next_key().await;
    let moved = process.rewrap(to, vec![row(place(), &before)]).await.remove(0).unwrap();
    let [(_, after)] = &moved.data[..] else { panic!("one version") };
    assert_eq!((after.data_key.key(), &after.data, moved.card.key()), (Some(to), &before.0.data, Some(to)));
    // A row that cannot be decrypted at its place is not moved.
    for other in &elsewhere()[1..3] {
        assert!(is_damaged(process.rewrap(to, vec![row(*other, &before)]).await.remove(0)), "{other:?}");
    }
    // Data that the card does not list is omitted.
    let listed = SealedCredential { data: vec![(99, before.0.clone())], ..row(place(), &before) };
    assert!(process.rewrap(to, vec![listed]).await.remove(0).unwrap().data.is_empty());

    process.change_keys(|keys| keys.without(from)).await;
    let process = process.restarted();
    process.assert_opens(place(), after, &moved.card).await;
    assert!(is_unknown(process.open(place(), &before.0).await) && is_unknown(process.read(place(), &before.1).await));
    assert!(is_unknown(process.rewrap(to, vec![row(place(), &before)]).await.remove(0)), "from a key that is gone");
}

/// Credentials whose parts are under several keys are resealed.
#[tokio::test]
async fn each_part_is_moved_from_its_own_key() {
    let process = Process::new().await;
    let first = process.seal(place()).await;
    let key = process.next_key().await;
    let mixed = (first.0.clone(), process.seal_card(key, place()).await.unwrap());
    let third = process.next_key().await;
    let rows = vec![row(place(), &first), row(elsewhere()[1], &first), row(place(), &mixed)];
    let moved = process.rewrap(third, rows).await;
    assert_eq!(moved.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
}

/// Neither errors nor debug output contain a part of a secret.
#[tokio::test]
async fn errors_contain_no_secret() {
    let process = Process::new().await;
    let (sealed, card) = process.seal(place()).await;
    let other = elsewhere()[1];
    let cut = Blob::from_bytes(sealed.data.as_bytes()[..20].to_vec());
    let errors = [
        process.crypto.opener.open(place(), &namespace("imports"), CredentialType::S3, &sealed).await.err(),
        process.open(place(), &SealedData { data: cut, ..sealed.clone() }).await.err(),
        process.open(other, &sealed).await.err(),
        process.read(other, &card).await.err(),
        process.seal_under(key_id(99), place(), LINK).await.err(),
        process
            .rewrap(process.bench.active_key(organization(1)), vec![row(other, &(sealed, card))])
            .await
            .remove(0)
            .err(),
    ];
    for error in errors {
        let error = error.expect("it is refused");
        let message = format!("{error} {error:?} {:?}", error.source());
        assert!(!message.contains("c2VjcmV0") && !message.contains("signature"), "a secret is in the error");
    }
}
