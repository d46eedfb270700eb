//! Sealed values, which the crypto adapter creates for the store and only it can read.

use crate::id::{InstanceId, KeyId};
use crate::time::Timestamp;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use strum::{EnumString, IntoStaticStr, VariantArray};

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

/// Base64 without padding, within documents.
impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD_NO_PAD.decode(text).map(Self).map_err(de::Error::custom)
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
    /// Restore epoch, which is 0 before the first restore.
    pub restore_epoch: u64,
}

/// State in the life cycle of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum KeyState {
    /// For encryption and decryption.
    Active,
    /// For decryption only, while rows still name it.
    Retiring,
}

named!(KeyState);

/// A key of an organization, wrapped with the instance key that its blob names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrappedKey {
    /// ID of the key.
    pub id: KeyId,
    /// The wrapped key. Only the adapters of [`Sealer`](crate::port::Sealer) and [`Opener`](crate::port::Opener) unwrap it.
    pub wrapped: Blob,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The keys of an organization, each wrapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrganizationKeys {
    /// Key for fingerprints.
    pub fingerprint: WrappedKey,
    /// Key that seals.
    pub active: WrappedKey,
    /// Keys that only decrypt, while rows still name them, the oldest first.
    pub retiring: Vec<WrappedKey>,
}

impl OrganizationKeys {
    /// Returns the key that seals or sealed credentials under this ID.
    pub fn find(&self, id: KeyId) -> Option<&WrappedKey> {
        std::iter::once(&self.active).chain(&self.retiring).find(|key| key.id == id)
    }

    /// Returns all keys, also that for fingerprints.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut WrappedKey> {
        [&mut self.fingerprint, &mut self.active].into_iter().chain(&mut self.retiring)
    }

    /// Returns the keys after `next` has become the active one.
    #[must_use]
    pub fn with_next(&self, next: WrappedKey) -> Self {
        let retiring = self.retiring.iter().chain([&self.active]).cloned().collect();
        Self { active: next, retiring, ..self.clone() }
    }

    /// Returns the keys without the retiring key `id`.
    #[must_use]
    pub fn without(&self, id: KeyId) -> Self {
        let retiring = self.retiring.iter().filter(|key| key.id != id).cloned().collect();
        Self { retiring, ..self.clone() }
    }
}
