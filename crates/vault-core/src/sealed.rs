//! Sealed values, which the crypto adapter creates for the store and only it can read.

use crate::id::{InstanceId, KeyId, OrganizationId};
use crate::time::Timestamp;

/// Ciphertext with its format, algorithm, key ID, nonce and tag. Only the key ID is readable without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob(Vec<u8>);

impl Blob {
    /// First byte of every blob, followed by algorithm and key ID.
    pub const VERSION: u8 = 1;

    /// Creates a blob from its bytes.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the blob.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the key that sealed it, according to its header, or `None` without a header. A blob with a modified
    /// header cannot be decrypted.
    pub fn key(&self) -> Option<KeyId> {
        let ([version, _], rest) = self.0.split_first_chunk::<2>()?;
        let (key, _) = rest.split_first_chunk::<16>()?;
        (*version == Self::VERSION).then_some(KeyId::from_bytes(*key))
    }

    /// Converts the blob into its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The sealed data of a version of a credential, with its wrapped key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedData {
    /// The data key, wrapped with a key of the organization.
    pub data_key: Blob,
    /// Data, sealed with the data key.
    pub data: Blob,
}

/// The stored root of an instance's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRecord {
    /// ID of the instance.
    pub id: InstanceId,
    /// Root key that wraps the instance key.
    pub root_key: KeyId,
    /// ID of the instance key.
    pub instance_key: KeyId,
    /// The instance key, wrapped by the root key.
    pub wrapped: Blob,
    /// The [document](crate::keyring::KeyringDocument) that lists the instance's keys, sealed with the instance key. No
    /// other key is valid, and its successful decryption authenticates the instance key.
    pub keyring: Blob,
    /// Time of creation of the instance.
    pub created_at: Timestamp,
}

/// State in the life cycle of an organization key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// For encryption and decryption.
    Active,
    /// For decryption only, while rows still name it.
    Retiring,
}

impl KeyState {
    /// Returns the stored name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Retiring => "retiring",
        }
    }

    /// Returns the state with this stored name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Retiring].into_iter().find(|state| state.as_str() == text)
    }
}

/// A stored key of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationKeyRecord {
    /// ID of the organization.
    pub organization: OrganizationId,
    /// ID of the key.
    pub id: KeyId,
    /// State in its life cycle.
    pub state: KeyState,
    /// The key, wrapped by the instance key.
    pub wrapped: Blob,
    /// Reserved uses. Servers reserve uses in blocks in advance.
    pub uses: i64,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The stored keys of an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationKeys {
    /// ID of the fingerprint key.
    pub fingerprint_key: KeyId,
    /// The fingerprint key, wrapped by the instance key. The wrap is bound to the IDs and states of the organization
    /// keys: with other ones it cannot be unwrapped.
    pub fingerprint_wrapped: Blob,
    /// The organization keys, exactly one of which is active.
    pub keys: Vec<OrganizationKeyRecord>,
}

impl OrganizationKeys {
    /// Returns the instance keys that wrap them.
    pub fn wrapping_keys(&self) -> impl Iterator<Item = KeyId> {
        self.keys.iter().map(|key| &key.wrapped).chain([&self.fingerprint_wrapped]).filter_map(Blob::key)
    }

    /// Returns the keys after `next` has become the active one.
    #[must_use]
    pub fn with_next(&self, next: &OrganizationKeyRecord) -> Self {
        let retired = |key: &OrganizationKeyRecord| OrganizationKeyRecord { state: KeyState::Retiring, ..key.clone() };
        let keys = self.keys.iter().map(retired).chain([next.clone()]).collect();
        Self { keys, ..self.clone() }
    }

    /// Returns the keys without the key `id`.
    #[must_use]
    pub fn without(&self, id: KeyId) -> Self {
        let keys = self.keys.iter().filter(|key| key.id != id).cloned().collect();
        Self { keys, ..self.clone() }
    }
}

/// The wrap of an organization's fingerprint key before and after a change of the organization's keys. The store
/// changes the keys only if the stored wrap is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReboundKeys {
    /// The wrap as read.
    pub before: Blob,
    /// The wrap that is bound to the new set of keys.
    pub after: Blob,
}
