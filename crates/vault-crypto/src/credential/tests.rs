use super::CredentialCrypto;
use crate::keyring::Keyring;
use crate::testing::{NOW, card, id, new_instance, root};
use std::error::Error as _;
use vault_core::credential::{Card, CredentialData, CredentialType, SecretBytes};
use vault_core::id::{CredentialId, KeyId, OrganizationId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::port::{CardContext, CredentialContext, EntitySealer as _, SealError, SealedCredential};
use vault_core::sealed::{Blob, OrganizationKeys, SealedData, WrappedKey};

/// A link whose whole URL is secret.
const LINK: &[u8] = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;

/// A process of an instance with the organizations 1 and 2.
struct Process {
    keyring: Keyring,
    crypto: CredentialCrypto,
    keys: [OrganizationKeys; 2],
}

impl Process {
    fn new() -> Self {
        let (_directory, root) = root();
        let keyring = new_instance(&root).keyring;
        let crypto = keyring.credentials();
        let keys = [1, 2].map(|number| crypto.sealer.new_keys(organization(number), NOW).unwrap());
        Self { keyring, crypto, keys }
    }

    fn keys(&self, of: OrganizationId) -> &OrganizationKeys {
        &self.keys[usize::from(of == organization(2))]
    }

    /// Replaces the active key of organization 1.
    fn next_key(&mut self) -> KeyId {
        let next = self.crypto.sealer.new_key(organization(1), NOW).unwrap();
        let id = next.id;
        self.keys[0] = self.keys[0].with_next(next);
        id
    }

    fn seal_data(&self, place: CredentialContext, data: &[u8]) -> SealedData {
        let data = SecretBytes::from(data.to_vec());
        self.crypto.sealer.seal(self.keys(place.organization), place, &namespace("imports"), &data).unwrap()
    }

    fn seal_card(&self, place: CredentialContext) -> Blob {
        self.crypto.sealer.seal_card(self.keys(place.organization), of_card(place), &card()).unwrap()
    }

    fn seal(&self, place: CredentialContext) -> (SealedData, Blob) {
        (self.seal_data(place, LINK), self.seal_card(place))
    }

    fn open_in(&self, place: CredentialContext, of: &str, sealed: &SealedData) -> Result<CredentialData, SealError> {
        let kind = CredentialType::DirectLink;
        self.crypto.opener.open(self.keys(place.organization), place, &namespace(of), kind, sealed)
    }

    fn open(&self, place: CredentialContext, sealed: &SealedData) -> Result<CredentialData, SealError> {
        self.open_in(place, "imports", sealed)
    }

    fn read(&self, place: CredentialContext, sealed: &Blob) -> Result<Card, SealError> {
        self.crypto.sealer.open_card(self.keys(place.organization), of_card(place), sealed)
    }

    fn assert_opens(&self, place: CredentialContext, sealed: &SealedData, sealed_card: &Blob) {
        assert_eq!(self.open(place, sealed).unwrap().to_canonical_json().expose(), LINK);
        assert_eq!(self.read(place, sealed_card).unwrap(), card());
    }

    fn rewrap(&self, row: &SealedCredential) -> Result<SealedCredential, SealError> {
        self.crypto.sealer.rewrap(organization(1), &self.keys[0], row)
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
    let (id, revision, key) = (place.credential, place.version, card.key().unwrap());
    SealedCredential { id, key, revision, card: card.clone(), data: vec![(place.version, data.clone())] }
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

#[test]
fn credential_is_sealed_with_the_active_key() {
    let mut process = Process::new();
    for _ in 0..2 {
        let key = process.keys[0].active.id;
        let sealed = process.seal(place());
        assert_eq!((sealed.0.data_key.key(), sealed.1.key()), (Some(key), Some(key)));
        process.assert_opens(place(), &sealed.0, &sealed.1);
        let other =
            process.crypto.opener.open(&process.keys[0], place(), &namespace("imports"), CredentialType::S3, &sealed.0);
        assert!(is_damaged(other));
        process.next_key();
    }
}

#[test]
fn wrapped_keys_unwrap_only_in_their_organization_and_use() {
    let process = Process::new();
    let [own, other] = process.keys.clone();
    let sealed = process.seal_card(place());
    let flipped = |key: &WrappedKey, place: usize| {
        let mut bytes = key.wrapped.as_bytes().to_vec();
        bytes[place] ^= 1;
        WrappedKey { wrapped: Blob::from_bytes(bytes), ..key.clone() }
    };
    let mut wrong = vec![
        WrappedKey { id: own.active.id, ..other.active.clone() },
        WrappedKey { id: own.active.id, ..own.fingerprint.clone() },
    ];
    wrong.extend((0..own.active.wrapped.as_bytes().len()).map(|place| flipped(&own.active, place)));
    for active in wrong {
        let keys = OrganizationKeys { active, ..own.clone() };
        assert!(is_damaged(process.crypto.sealer.open_card(&keys, of_card(place()), &sealed)));
        assert!(process.keyring.entity_sealer().rewrap_keys(organization(1), &keys).is_err());
    }
    assert_eq!(process.keyring.entity_sealer().rewrap_keys(organization(1), &own), Ok(None));
}

#[test]
fn lengths_are_padded_and_each_version_has_its_data_key() {
    let process = Process::new();
    let sealed = [&LINK[..30], LINK].map(|data| process.seal_data(place(), data).data);
    assert!(sealed.iter().all(|data| data.as_bytes().len() == 30 + 256 + 16));
    assert_ne!(sealed[0].as_bytes()[2..18], sealed[1].as_bytes()[2..18], "the id of the data key");
}

#[test]
fn credential_opens_only_in_its_row() {
    let process = Process::new();
    let (sealed, card) = process.seal(place());
    process.assert_opens(place(), &sealed, &card);
    for other in elsewhere() {
        // It cannot be decrypted under a key of the other organization either.
        for key in [process.keys[0].active.id, process.keys(other.organization).active.id] {
            let data = SealedData { data_key: under(key, &sealed.data_key), ..sealed.clone() };
            assert!(is_damaged(process.open(other, &data)), "{other:?}");
            if other.id == place().id {
                assert!(is_damaged(process.read(other, &under(key, &card))), "{other:?}");
            }
        }
    }
    for other in ["Imports", "imports/a", "import"] {
        assert!(is_damaged(process.open_in(place(), other, &sealed)), "{other}");
    }
    // Parts of two versions of one credential cannot be mixed, and one part cannot replace another.
    let next = process.seal(CredentialContext { version: 4, ..place() }).0;
    for data in
        [SealedData { data_key: next.data_key, ..sealed.clone() }, SealedData { data: card.clone(), ..sealed.clone() }]
    {
        assert!(is_damaged(process.open(place(), &data)));
    }
    for blob in [sealed.data, sealed.data_key] {
        assert!(is_damaged(process.read(place(), &blob)));
    }
}

#[test]
fn fingerprints_distinguish_data_within_organization() {
    let mut process = Process::new();
    let of = |process: &Process, number, data: &[u8]| {
        let keys = process.keys(organization(number));
        process.crypto.sealer.fingerprint(organization(number), keys, &SecretBytes::from(data.to_vec())).unwrap()
    };
    let first = of(&process, 1, LINK);
    assert_ne!(first, of(&process, 2, LINK));
    for other in [&b"{}"[..], &LINK[..LINK.len() - 1], b""] {
        assert_ne!(first, of(&process, 1, other));
    }
    // A new key of the organization does not change fingerprints.
    process.next_key();
    assert_eq!(first, of(&process, 1, LINK));
}

/// After the old key is destroyed, everything can be decrypted with only the new key. The data has the same bytes as
/// before. Each part is moved from its own key.
#[test]
fn moved_data_opens_only_with_its_new_key() {
    let mut process = Process::new();
    let before = process.seal(place());
    let from = process.keys[0].active.id;
    process.next_key();
    let mixed = (before.0.clone(), process.seal_card(place()));
    let to = process.next_key();
    assert!(process.rewrap(&row(place(), &mixed)).is_ok());
    let moved = process.rewrap(&row(place(), &before)).unwrap();
    let [(_, after)] = &moved.data[..] else { panic!("one version") };
    assert_eq!((after.data_key.key(), &after.data, moved.card.key()), (Some(to), &before.0.data, Some(to)));
    assert_eq!(moved.key, to);
    // A row that cannot be decrypted at its place is not moved.
    for other in &elsewhere()[1..3] {
        assert!(is_damaged(process.rewrap(&row(*other, &before))), "{other:?}");
    }
    // Data that the card does not list is omitted.
    let listed = SealedCredential { data: vec![(99, before.0.clone())], ..row(place(), &before) };
    assert!(process.rewrap(&listed).unwrap().data.is_empty());

    process.keys[0] = process.keys[0].without(from);
    process.assert_opens(place(), after, &moved.card);
    assert!(is_unknown(process.open(place(), &before.0)) && is_unknown(process.read(place(), &before.1)));
    assert!(is_unknown(process.rewrap(&row(place(), &before))), "from a key that is gone");
}

/// Neither errors nor debug output contain a part of a secret.
#[test]
fn errors_contain_no_secret() {
    let process = Process::new();
    let (sealed, card) = process.seal(place());
    let other = elsewhere()[1];
    let cut = Blob::from_bytes(sealed.data.as_bytes()[..20].to_vec());
    let errors = [
        process.crypto.opener.open(&process.keys[0], place(), &namespace("imports"), CredentialType::S3, &sealed).err(),
        process.open(place(), &SealedData { data: cut, ..sealed.clone() }).err(),
        process.open(other, &sealed).err(),
        process.read(other, &card).err(),
        process.rewrap(&row(other, &(sealed, card))).err(),
    ];
    for error in errors {
        let error = error.expect("it is refused");
        let message = format!("{error} {error:?} {:?}", error.source());
        assert!(!message.contains("c2VjcmV0") && !message.contains("signature"), "a secret is in the error");
    }
}
