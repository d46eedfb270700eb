//! Tests that every later version opens stored formats: the stored values of one instance, committed as
//! `tests/vectors/v1.txt`.
//!
//! A changed format gets a new version and a separate file; released vectors never change.

use crate::testing::{NOW, card, id};
use crate::{Argon2Parameters, CredentialCrypto, DatabaseKeyFile, HashingPool, Keyring, LoadedRootKey, OsEntropy};
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, AuditNote, AuditRecord, Subject};
use vault_core::credential::{CredentialType, SecretBytes};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::entity::DocumentSecret;
use vault_core::hash_slots::Requester;
use vault_core::id::{AccountId, AuditId, CredentialId, InstanceId, KeyId, OrganizationId, SessionId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::passcode::{Digits, Passcode, TimeStep};
use vault_core::port::{
    AuditSealer as _, CardContext, CredentialContext, KeyedDigester as _, PasscodeVerifier as _, PasswordHasher as _,
    PasswordVerdict, TokenIssuer as _,
};
use vault_core::role::Role;
use vault_core::sealed::{Blob, InstanceRecord, OrganizationKeys, SealedData, WrappedKey};
use vault_core::session::SessionClaims;
use vault_core::time::Timestamp;

const DATA: &[u8] = br#"{"url":"https://example.com/drop?signature=c2VjcmV0"}"#;
const PASSWORD: &str = "correct horse battery staple";

const PURPOSES: [DigestPurpose; 8] = [
    DigestPurpose::Network,
    DigestPurpose::IdempotentBody,
    DigestPurpose::Cursor,
    DigestPurpose::IntegrationToken,
    DigestPurpose::EventDelivery,
    DigestPurpose::EventId,
    DigestPurpose::EnrolmentCode,
    DigestPurpose::Label,
];

fn digits(text: &str) -> Digits {
    match Passcode::read(&text.into()) {
        Passcode::Recovery(digits) | Passcode::TimeBased(digits) => digits,
        Passcode::Impossible => unreachable!("digits"),
    }
}

fn recovery_digits() -> Digits {
    digits("01234-56789-01234-56789")
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/v1.txt")
}

fn context() -> CredentialContext {
    CredentialContext {
        organization: OrganizationId::from_uuid(id(2)),
        credential: CredentialId::from_uuid(id(3)),
        version: 4,
        id: VersionId::from_uuid(id(6)),
    }
}

fn of_card() -> CardContext {
    CardContext { organization: context().organization, credential: context().credential, revision: 4 }
}

fn namespace() -> Namespace {
    Namespace::parse("imports/nightly", "").unwrap()
}

fn account() -> AccountId {
    AccountId::from_uuid(id(5))
}

fn record() -> AuditRecord {
    AuditRecord {
        id: AuditId::from_uuid(id(6)),
        at: NOW,
        organization: Some(context().organization),
        actor: Actor::Operator,
        action: AuditAction::OrganizationCreated,
        subject: Subject::Organization(context().organization),
        count: 1,
        note: None,
        origin: vault_core::audit::Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    }
}

fn noted() -> AuditRecord {
    AuditRecord { note: Some(AuditNote::of(namespace())), ..record() }
}

fn claims() -> SessionClaims {
    SessionClaims {
        instance: InstanceId::from_uuid(id(1)),
        session: SessionId::from_uuid(id(7)),
        account: account(),
        organization: context().organization,
        role: Role::Admin,
        version: 3,
        issued_at: NOW,
        expires_at: NOW.plus_seconds(3_600),
    }
}

/// Committed file: a name and hexadecimal bytes on each line.
struct Vectors(BTreeMap<String, Vec<u8>>);

impl Vectors {
    fn read() -> Self {
        Self::of(&file())
    }

    fn of(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().map(|line| line.split_once(' ').unwrap());
        Self(lines.map(|(name, bytes)| (name.to_owned(), hex::decode(bytes).unwrap())).collect())
    }

    fn bytes(&self, name: &str) -> &[u8] {
        &self.0[name]
    }

    fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.bytes(name)).unwrap()
    }

    fn secret(&self, name: &str) -> DocumentSecret {
        SecretString::from(self.text(name)).into()
    }

    fn blob(&self, name: &str) -> Blob {
        Blob::from_bytes(self.bytes(name).to_vec())
    }

    fn key(&self, name: &str) -> KeyId {
        KeyId::from_bytes(self.bytes(name).try_into().unwrap())
    }

    fn digest(&self, name: &str) -> Digest {
        Digest::from_bytes(self.bytes(name).try_into().unwrap())
    }

    fn put(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        assert!(self.0.insert(name.to_owned(), bytes.as_ref().to_vec()).is_none());
    }

    fn write(&self, file: &Path) {
        let lines = self.0.iter().map(|(name, bytes)| format!("{name} {}\n", hex::encode(bytes)));
        std::fs::write(file, lines.collect::<String>()).unwrap();
    }
}

fn load_root(directory: &Path, content: &[u8]) -> LoadedRootKey {
    let path = directory.join("root.key");
    crate::durable::create_new(&path, content).unwrap();
    LoadedRootKey::load(&path, Arc::new(OsEntropy)).unwrap()
}

/// Opens the instance of the vectors.
fn open(vectors: &Vectors, root: &LoadedRootKey) -> (Keyring, OrganizationKeys, CredentialCrypto) {
    let instance = InstanceRecord {
        id: InstanceId::from_uuid(id(1)),
        root_key: vectors.key("root-key.id"),
        instance_key: vectors.key("instance-key.id"),
        wrapped: vectors.blob("instance-key.wrapped"),
        keyring: vectors.blob("keyring"),
        created_at: NOW,
        restore_epoch: 0,
    };
    let keyring = Keyring::open(root, Arc::new(OsEntropy), &instance).unwrap();
    let key = |name: &str| WrappedKey {
        id: vectors.key(&format!("{name}.id")),
        wrapped: vectors.blob(&format!("{name}.wrapped")),
        created_at: NOW,
    };
    let (fingerprint, active) = (key("fingerprint-key"), key("organization-key"));
    let (keys, crypto) = (OrganizationKeys { fingerprint, active, retiring: Vec::new() }, keyring.credentials());
    (keyring, keys, crypto)
}

#[tokio::test]
async fn key_format_is_pinned() {
    let (vectors, directory) = (Vectors::read(), tempfile::tempdir().unwrap());
    let root = load_root(directory.path(), vectors.bytes("root-key"));
    assert_eq!(root.id(), vectors.key("root-key.id"));
    let file = DatabaseKeyFile::next_to(&directory.path().join("orgvault.db"));
    for name in ["database-key.file", "database-key.file-while-rotating"] {
        std::fs::write(directory.path().join("orgvault.db.key"), vectors.bytes(name)).unwrap();
        let key = file.load(&root).unwrap();
        assert_eq!(key.expose_bytes().as_slice(), vectors.bytes("database-key"));
    }
    open(&vectors, &root);
}

#[tokio::test]
async fn macs_are_pinned() {
    let (vectors, directory) = (Vectors::read(), tempfile::tempdir().unwrap());
    let root = load_root(directory.path(), vectors.bytes("root-key"));
    let (keyring, keys, crypto) = open(&vectors, &root);
    for purpose in PURPOSES {
        let name = format!("digest.{}", purpose.label().replace(' ', "-"));
        assert_eq!(keyring.digester(Arc::new(NOW)).digest(purpose, &[b"one", b"two"]), vectors.digest(&name), "{name}");
    }
    let sealed = keyring.audit_sealer().seal(record());
    assert_eq!((sealed.key, sealed.mac), (vectors.key("audit-code.key"), vectors.digest("audit-code")));
    assert_eq!(keyring.audit_sealer().seal(noted()).mac, vectors.digest("audit-code-of-a-note"));
    let data = SecretBytes::from(DATA.to_vec());
    let fingerprint = crypto.sealer.fingerprint(context().organization, &keys, &data);
    assert_eq!(fingerprint.unwrap().to_string(), vectors.text("fingerprint"));
}

#[tokio::test]
async fn sealed_formats_are_pinned() {
    let (vectors, directory) = (Vectors::read(), tempfile::tempdir().unwrap());
    let root = load_root(directory.path(), vectors.bytes("root-key"));
    let (keyring, keys, crypto) = open(&vectors, &root);

    let sealed = vectors.blob("credential.card");
    assert_eq!(sealed.key(), Some(vectors.key("organization-key.id")));
    assert_eq!(crypto.sealer.open_card(&keys, of_card(), &sealed).unwrap(), card());

    let (data_key, data) = (vectors.blob("credential.data-key"), vectors.blob("credential.data"));
    let sealed = SealedData { data_key, data };
    let opened = crypto.opener.open(&keys, context(), &namespace(), CredentialType::DirectLink, &sealed).unwrap();
    assert_eq!(opened.to_canonical_json().expose(), DATA);
    let other = Namespace::parse("imports/daily", "").unwrap();
    assert!(crypto.opener.open(&keys, context(), &other, CredentialType::DirectLink, &sealed).is_err());

    let pool = HashingPool::with_size(1, 1).unwrap();
    let hasher = keyring.password_hasher(pool, Argon2Parameters::LEAST, Vec::new()).unwrap();
    let permit = hasher.permit(Requester::Trusted).unwrap();
    let verdict = hasher.verify(permit, PASSWORD.into(), Some(vectors.secret("password"))).await.unwrap();
    assert!(matches!(verdict, PasswordVerdict::Right { rehashed: None }));

    let seed = vectors.secret("seed");
    let code = digits(vectors.text("seed.code-of-step-1"));
    let step = keyring.passcodes().matching_step(Some(&seed), &code, Timestamp::from_millis(30_000)).unwrap();
    assert_eq!(step, Some(TimeStep(1)));
    let found = keyring.passcodes().recovery_code(account(), Some(&seed), &recovery_digits()).unwrap();
    assert_eq!(found, vectors.digest("seed.recovery-code"));

    assert_eq!(keyring.token_issuer(7).verify(vectors.text("token"), NOW), Ok(claims()));
}

/// Writes the file, once per version. Run manually.
#[tokio::test]
#[ignore = "writes the vectors of a new version"]
async fn write() {
    assert!(!file().exists(), "committed vectors never change");
    let mut vectors = Vectors(BTreeMap::new());
    let entropy = Arc::new(OsEntropy);
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path().join("root.key");
    let root = LoadedRootKey::generate(&path, entropy.clone()).unwrap();
    vectors.put("root-key", std::fs::read(path).unwrap());
    vectors.put("root-key.id", root.id().as_bytes());

    let file_of_key = DatabaseKeyFile::next_to(&directory.path().join("orgvault.db"));
    let key = file_of_key.create(&root, &*entropy).unwrap();
    vectors.put("database-key", key.expose_bytes().as_slice());
    vectors.put("database-key.file", std::fs::read(directory.path().join("orgvault.db.key")).unwrap());
    let next = LoadedRootKey::generate(&other.path().join("root.key"), entropy.clone()).unwrap();
    file_of_key.begin_root_rotation(&root, &next).unwrap();
    let rotating = std::fs::read(directory.path().join("orgvault.db.key")).unwrap();
    vectors.put("database-key.file-while-rotating", rotating);

    let made = Keyring::create(&root, entropy, InstanceId::from_uuid(id(1)), NOW).unwrap();
    vectors.put("instance-key.id", made.instance.instance_key.as_bytes());
    vectors.put("instance-key.wrapped", made.instance.wrapped.as_bytes());
    vectors.put("keyring", made.instance.keyring.as_bytes());
    let keyring = made.keyring;
    for purpose in PURPOSES {
        let digest = keyring.digester(Arc::new(NOW)).digest(purpose, &[b"one", b"two"]);
        vectors.put(&format!("digest.{}", purpose.label().replace(' ', "-")), digest.as_bytes());
    }
    let sealed = keyring.audit_sealer().seal(record());
    vectors.put("audit-code.key", sealed.key.as_bytes());
    vectors.put("audit-code", sealed.mac.as_bytes());
    vectors.put("audit-code-of-a-note", keyring.audit_sealer().seal(noted()).mac.as_bytes());

    let crypto = keyring.credentials();
    let keys = crypto.sealer.new_keys(context().organization, NOW).unwrap();
    for (name, key) in [("fingerprint-key", &keys.fingerprint), ("organization-key", &keys.active)] {
        vectors.put(&format!("{name}.id"), key.id.as_bytes());
        vectors.put(&format!("{name}.wrapped"), key.wrapped.as_bytes());
    }
    let data = SecretBytes::from(DATA.to_vec());
    let fingerprint = crypto.sealer.fingerprint(context().organization, &keys, &data).unwrap();
    vectors.put("fingerprint", fingerprint.to_string());
    let sealed = crypto.sealer.seal(&keys, context(), &namespace(), &data).unwrap();
    vectors.put("credential.data-key", sealed.data_key.as_bytes());
    vectors.put("credential.data", sealed.data.as_bytes());
    let sealed = crypto.sealer.seal_card(&keys, of_card(), &card()).unwrap();
    vectors.put("credential.card", sealed.as_bytes());

    let pool = HashingPool::with_size(1, 1).unwrap();
    let hasher = keyring.password_hasher(pool, Argon2Parameters::LEAST, Vec::new()).unwrap();
    let permit = hasher.permit(Requester::Trusted).unwrap();
    let password = hasher.hash(permit, PASSWORD.into()).await.unwrap();
    vectors.put("password", password.text().expose_secret());
    let passcodes = keyring.passcodes();
    let email = vault_core::email::EmailAddress::parse("a@example.com").unwrap();
    let made = passcodes.new_seed(&email).unwrap();
    vectors.put("seed", made.seed.text().expose_secret());
    vectors.put("seed.code-of-step-1", crate::passcode_of(&made.secret, TimeStep(1)).unwrap().expose_secret());
    let found = passcodes.recovery_code(account(), Some(&made.seed), &recovery_digits()).unwrap();
    vectors.put("seed.recovery-code", found.as_bytes());
    let token = keyring.token_issuer(7).issue(&claims()).unwrap();
    vectors.put("token", token.0.expose_secret());
    vectors.write(&file());
}
