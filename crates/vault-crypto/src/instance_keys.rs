//! The keys of one instance above its organizations: instance keys, and those of each purpose below them. All adapters
//! share them, and reload them after a rotation.

use crate::aead::{AeadKey, SealingError};
use crate::blob::{self, OpenError};
use crate::context::Context;
use crate::derive::Label;
use crate::error::{does_not_open, fault, not_sealed};
use crate::key::SymmetricKey;
use crate::keyring_error::KeyringError;
use crate::mac::MacKey;
use crate::purpose_keys::PurposeKeys;
use crate::root_key::LoadedRootKey;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::Mutex;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::id::{InstanceId, KeyId};
use vault_core::keyring::{KeyPurpose, KeyringDocument, KeyringRef};
use vault_core::port::{Entropy, KeyRepository, SealError, StoreError};
use vault_core::sealed::{Blob, InstanceRecord};
use vault_core::time::Timestamp;
use zeroize::Zeroizing;

/// Prefix of the document in its hash.
const DOCUMENT_PREFIX: &[u8] = b"orgvault/1/keyring";
/// Number of reads after which a destroyed key is dropped, so that values read before can still be decrypted. A server
/// reads the keys once a second.
const LINGERS: u32 = 60;
/// Minimum time between two reads that only check for new keys, in milliseconds.
const REFRESH_MILLIS: u64 = 1_000;

/// Keys derived from one instance key.
pub(crate) struct InstanceKeys {
    id: KeyId,
    /// Wraps the keys below it.
    pub(crate) wrap: AeadKey,
    /// Seals the keyring document.
    keyring: AeadKey,
    /// Seals the documents of entities.
    pub(crate) entity: AeadKey,
    cursor: MacKey,
}

impl InstanceKeys {
    /// Derives the keys. Blobs and MACs contain `id`.
    pub(crate) fn derive(id: KeyId, key: &SymmetricKey) -> Self {
        Self {
            id,
            wrap: Label::InstanceWrap.sealing_key(key, id),
            keyring: Label::Keyring.sealing_key(key, id),
            entity: Label::Entity.sealing_key(key, id),
            cursor: Label::Digest(DigestPurpose::Cursor).mac_key(key),
        }
    }

    /// ID of the instance key.
    pub(crate) const fn id(&self) -> KeyId {
        self.id
    }

    /// Seals a document that lists the keys of `instance`, with these keys. This one is not among them.
    pub(crate) fn seal_document(
        &self,
        entropy: &dyn Entropy,
        instance: InstanceId,
        document: &KeyringDocument,
        secrets: &Secrets,
    ) -> Result<Blob, SealingError> {
        let content = document.to_bytes();
        // The final size, because a buffer that grows would leave a copy of the keys in memory.
        let size = LENGTH + content.len() + secrets.len() * SymmetricKey::LENGTH;
        let mut text = Zeroizing::new(Vec::with_capacity(size));
        text.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes());
        text.extend_from_slice(&content);
        for key in document.entries().iter().filter_map(|entry| secrets.get(&entry.id)) {
            text.extend_from_slice(key.expose()); // the keys to seal
        }
        self.keyring.seal(entropy, &Context::keyring(instance), &text)
    }

    /// Decrypts the document that lists the keys of `instance`, and these keys. It must list this key as the active one.
    ///
    /// # Errors
    /// The document cannot be decrypted, or lists another key as active.
    pub(crate) fn open_document(&self, instance: InstanceId, sealed: &Blob) -> Result<(Document, Secrets), OpenError> {
        let text = self.keyring.open(&Context::keyring(instance), sealed)?;
        let (length, rest) = text.split_first_chunk::<LENGTH>().ok_or(OpenError::Malformed)?;
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| OpenError::Malformed)?;
        let (content, mut rest) = rest.split_at_checked(length).ok_or(OpenError::Malformed)?;
        let content = KeyringDocument::from_bytes(content).ok_or(OpenError::Malformed)?;
        if content.active(KeyPurpose::Instance).is_none_or(|entry| entry.id != self.id) {
            return Err(OpenError::OtherKey);
        }
        let mut secrets = Secrets::new();
        for entry in content.entries().iter().filter(|entry| entry.id != self.id) {
            let (key, after) = rest.split_first_chunk().ok_or(OpenError::Malformed)?;
            secrets.insert(entry.id, SymmetricKey::take(&mut { *key }));
            rest = after;
        }
        if rest.is_empty() { Ok((Document::new(content), secrets)) } else { Err(OpenError::Malformed) }
    }

    /// Returns the MAC key of this purpose, or `None` if it is not derived from the instance key.
    pub(crate) fn mac_key(&self, purpose: DigestPurpose) -> Option<&MacKey> {
        match purpose {
            DigestPurpose::Cursor => Some(&self.cursor),
            _ => None,
        }
    }
}

/// The keys that a keyring document lists, without the active instance key, which seals it.
pub(crate) type Secrets = HashMap<KeyId, SymmetricKey>;
/// Size of the length of the document before it.
const LENGTH: usize = 4;

/// A keyring document with its hash.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) content: KeyringDocument,
    pub(crate) hash: Digest,
}

impl Document {
    pub(crate) fn new(content: KeyringDocument) -> Self {
        let hash = Sha256::new().chain_update(DOCUMENT_PREFIX).chain_update(content.to_bytes()).finalize();
        Self { content, hash: Digest::from_bytes(hash.into()) }
    }

    /// Returns its number and hash.
    pub(crate) const fn mark(&self) -> KeyringRef {
        KeyringRef { number: self.content.number(), hash: self.hash }
    }

    /// Returns whether it is the document of `mark` or a successor.
    pub(crate) fn is_at_or_after(&self, mark: KeyringRef) -> bool {
        self.content.is_at_or_after(self.hash, mark)
    }

    /// Returns the instance keys that only decrypt.
    fn retiring(&self) -> impl Iterator<Item = KeyId> {
        self.content.retiring().filter(|entry| entry.purpose == KeyPurpose::Instance).map(|entry| entry.id)
    }
}

/// The keyring document is older than one that was read before.
#[derive(Debug, thiserror::Error)]
#[error(
    "the keyring document {found} does not follow document {known}, which this process has read: the database was rolled back \
     to an earlier state. Restore it with `orgvault restore`, or use the newer database"
)]
struct OlderKeyring {
    found: i64,
    known: i64,
}

/// The keys of one instance, as last read.
pub(crate) struct InstanceKeyring {
    instance: InstanceId,
    held: RwLock<Arc<Held>>,
    source: OnceLock<Source>,
    /// Time of the last read that checked for new keys, in milliseconds.
    refreshed_at: AtomicI64,
}

struct Held {
    document: Document,
    active: Arc<InstanceKeys>,
    others: Vec<Other>,
    purposes: Arc<PurposeKeys>,
}

struct Other {
    keys: Arc<InstanceKeys>,
    /// Number of further reads after which this destroyed key is dropped.
    lingers: Option<u32>,
}

/// Ports from which keys are reloaded.
struct Source {
    wrapper: Arc<LoadedRootKey>,
    repository: Arc<dyn KeyRepository>,
    /// Ensures that only one task reads at a time. Waiting tasks use its result.
    reading: Mutex<()>,
}

impl Held {
    fn all(&self) -> impl Iterator<Item = &Arc<InstanceKeys>> {
        std::iter::once(&self.active).chain(self.others.iter().map(|other| &other.keys))
    }

    fn find(&self, id: KeyId) -> Option<&Arc<InstanceKeys>> {
        self.all().find(|keys| keys.id == id)
    }
}

impl InstanceKeyring {
    /// Creates the keyring of an instance with only this instance key.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of(instance: InstanceId, active: InstanceKeys, document: Document, purposes: PurposeKeys) -> Self {
        let held = Held { document, active: Arc::new(active), others: Vec::new(), purposes: Arc::new(purposes) };
        Self { instance, held: RwLock::new(Arc::new(held)), source: OnceLock::new(), refreshed_at: AtomicI64::new(0) }
    }

    /// Loads the keys of an instance. Its active key is verified by the keyring document.
    pub(crate) fn open(wrapper: &LoadedRootKey, record: &InstanceRecord) -> Result<Self, KeyringError> {
        let (active, document, secrets) = open_active(wrapper, record)?;
        let purposes = PurposeKeys::open(&document.content, &secrets, None);
        let purposes = purposes.ok_or(KeyringError::Document { key: active.id, cause: OpenError::Malformed })?;
        let (others, active, purposes) = (retiring(&document, &secrets, None), Arc::new(active), Arc::new(purposes));
        let held = Held { document, active, others, purposes };
        Ok(Self {
            instance: record.id,
            held: RwLock::new(Arc::new(held)),
            source: OnceLock::new(),
            refreshed_at: AtomicI64::new(0),
        })
    }

    /// Enables reloading of keys from `repository` when one is not loaded. Only the first call has an effect.
    pub(crate) fn renewing(&self, wrapper: Arc<LoadedRootKey>, repository: Arc<dyn KeyRepository>) {
        let _ = self.source.set(Source { wrapper, repository, reading: Mutex::new(()) });
    }

    pub(crate) const fn instance(&self) -> InstanceId {
        self.instance
    }

    fn held(&self) -> Arc<Held> {
        // The value is replaced as a whole, so a poisoned lock contains a consistent one.
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn active(&self) -> Arc<InstanceKeys> {
        Arc::clone(&self.held().active)
    }

    /// Returns the keys of each purpose.
    pub(crate) fn purposes(&self) -> Arc<PurposeKeys> {
        Arc::clone(&self.held().purposes)
    }

    /// Returns the document that lists the keys.
    pub(crate) fn document(&self) -> Document {
        self.held().document.clone()
    }

    pub(crate) fn find(&self, id: KeyId) -> Option<Arc<InstanceKeys>> {
        self.held().find(id).cloned()
    }

    /// Returns the key in the header of a blob.
    ///
    /// # Errors
    /// The header has no key, or one that is not loaded.
    pub(crate) fn sealed(&self, context: &Context, blob: &Blob) -> Result<Arc<InstanceKeys>, SealError> {
        let id = blob::sealing_key(blob).ok_or_else(|| does_not_open(context, OpenError::Truncated))?;
        // The caller that read the blob has loaded the existing keys.
        self.find(id).ok_or_else(|| does_not_open(context, OpenError::OtherKey))
    }

    /// Wraps a new instance key with the root key of `current`, and unwraps the one of `current`.
    ///
    /// # Errors
    /// No root key is available, or it is a different one.
    pub(crate) fn replace_under_root(
        &self,
        current: &InstanceRecord,
        id: KeyId,
        key: &SymmetricKey,
    ) -> Result<(Blob, SymmetricKey), SealError> {
        let source = self.source.get().ok_or_else(|| fault("the root key was not kept"))?;
        let before = unwrap(&source.wrapper, current).map_err(fault)?;
        let wrapped = source.wrapper.wrap(&Context::instance_key(current.id, id), key).map_err(not_sealed)?;
        Ok((wrapped, before))
    }

    /// Reloads the keys if one of these is not loaded.
    pub(crate) async fn load_keys(&self, ids: &[KeyId]) -> Result<(), SealError> {
        let held = self.held();
        if ids.iter().all(|id| held.find(*id).is_some() || held.purposes.has(*id)) {
            Ok(())
        } else {
            self.reload_keys().await
        }
    }

    /// Reloads the keys, unless that was done within the last second.
    pub(crate) async fn refresh(&self, now: Timestamp) -> Result<(), SealError> {
        let (now, last) = (now.as_millis(), self.refreshed_at.load(Ordering::Relaxed));
        let is_due = now.abs_diff(last) >= REFRESH_MILLIS;
        // If several tasks call this concurrently, one reloads.
        let takes = || self.refreshed_at.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && takes() { self.reload_keys().await } else { Ok(()) }
    }

    /// Reloads the keys. Keys that are already loaded are not unwrapped again.
    pub(crate) async fn reload_keys(&self) -> Result<(), SealError> {
        let Some(source) = self.source.get() else { return Ok(()) };
        let _reading = source.reading.lock().await;
        let record = source.repository.instance().await?.ok_or_else(|| fault("the vault has no instance"))?;
        let held = self.held();
        let damaged = |error| does_not_open(&Context::keyring(record.id), error);
        let (active, document, secrets) = match held.find(record.instance_key) {
            Some(keys) => {
                let (document, secrets) = keys.open_document(record.id, &record.keyring).map_err(damaged)?;
                (Arc::clone(keys), document, secrets)
            }
            None => {
                let (keys, document, secrets) = open_active(&source.wrapper, &record).map_err(not_renewed)?;
                (Arc::new(keys), document, secrets)
            }
        };
        let known = held.document.mark();
        if !document.is_at_or_after(known) {
            return Err(fault(OlderKeyring { found: document.content.number(), known: known.number }));
        }
        let mut others = retiring(&document, &secrets, Some(&held));
        let purposes = match held.document.hash == document.hash {
            true => Arc::clone(&held.purposes),
            false => {
                let opened = PurposeKeys::open(&document.content, &secrets, Some(&held.purposes));
                Arc::new(opened.ok_or_else(|| damaged(OpenError::Malformed))?)
            }
        };
        let is_stored = |id| id == active.id || others.iter().any(|other: &Other| other.keys.id == id);
        let before = std::iter::once((&held.active, None)).chain(held.others.iter().map(|o| (&o.keys, o.lingers)));
        let before: Vec<_> = before.filter(|(keys, _)| !is_stored(keys.id)).collect();
        for (keys, lingers) in before {
            let left = lingers.unwrap_or(LINGERS).saturating_sub(1);
            if left > 0 {
                others.push(Other { keys: Arc::clone(keys), lingers: Some(left) });
            }
        }
        *self.held.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(Held { document, active, others, purposes });
        Ok(())
    }
}

/// Derives the instance keys that only decrypt, unless they are in `held`.
fn retiring(document: &Document, secrets: &Secrets, held: Option<&Held>) -> Vec<Other> {
    let keys = |id| match held.and_then(|held| held.find(id)) {
        Some(keys) => Some(Arc::clone(keys)),
        None => secrets.get(&id).map(|key| Arc::new(InstanceKeys::derive(id, key))),
    };
    document.retiring().filter_map(keys).map(|keys| Other { keys, lingers: None }).collect()
}

/// Converts the error. A replaced root key requires a restart.
fn not_renewed(error: KeyringError) -> SealError {
    match error {
        KeyringError::WrongRoot { .. } => SealError::Store(StoreError::Unavailable(error.into())),
        error => fault(error),
    }
}

/// Unwraps the active instance key, and opens the keyring with it.
fn open_active(
    wrapper: &LoadedRootKey,
    record: &InstanceRecord,
) -> Result<(InstanceKeys, Document, Secrets), KeyringError> {
    let key = record.instance_key;
    let keys = InstanceKeys::derive(key, &unwrap(wrapper, record)?);
    let opened = keys.open_document(record.id, &record.keyring);
    let (document, secrets) = opened.map_err(|cause| KeyringError::Document { key, cause })?;
    Ok((keys, document, secrets))
}

/// Unwraps the active instance key.
///
/// # Errors
/// The root key is a different one, or the key cannot be unwrapped.
pub(crate) fn unwrap(wrapper: &LoadedRootKey, record: &InstanceRecord) -> Result<SymmetricKey, KeyringError> {
    let key = record.instance_key;
    if record.root_key != wrapper.id() {
        return Err(KeyringError::WrongRoot { expected: record.root_key, given: wrapper.id() });
    }
    let unwrapped = wrapper.unwrap(&Context::instance_key(record.id, key), &record.wrapped);
    unwrapped.map_err(|cause| KeyringError::InstanceKey { key, cause })
}
