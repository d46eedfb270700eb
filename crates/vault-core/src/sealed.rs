//! Sealed forms: what leaves the crypto adapter for the store. Opaque to everything else.

use crate::id::{InstanceId, KeyId, OrganizationId, SeedId};
use crate::time::Timestamp;

/// Ciphertext with its format, algorithm, key id, nonce and tag. Nothing but the key's id can be read without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob(Vec<u8>);

impl Blob {
    /// The first byte of every blob; algorithm and key follow.
    pub const VERSION: u8 = 1;

    /// The blob with these bytes.
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The blob's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key that sealed it, as its header says; `None`: it has no header. A changed header keeps it from opening.
    pub fn key(&self) -> Option<KeyId> {
        let ([version, _], rest) = self.0.split_first_chunk::<2>()?;
        let (key, _) = rest.split_first_chunk::<16>()?;
        (*version == Self::VERSION).then_some(KeyId::from_bytes(*key))
    }

    /// The blob's bytes, taken.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A password's sealed verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPassword(pub Blob);

/// A sealed passcode seed with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSeed {
    /// The seed's id.
    pub id: SeedId,
    /// The sealed seed.
    pub blob: Blob,
}

/// A credential's two sealed parts and the wrapped key of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedCredential {
    /// The organization key under which data key and information lie.
    pub key: KeyId,
    /// The data key, wrapped.
    pub data_key: Blob,
    /// The data, sealed under the data key.
    pub data: Blob,
    /// The information, sealed under the organization's information key.
    pub information: Blob,
}

/// A credential's sealed labels, description and declared expiries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedMetadata {
    /// The organization key whose information key sealed it.
    pub key: KeyId,
    /// The revision of the credential that it was sealed for.
    pub revision: i64,
    /// The sealed metadata.
    pub blob: Blob,
}

/// The root of one deployment's keys, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRecord {
    /// The deployment.
    pub id: InstanceId,
    /// The root key that wraps the instance key.
    pub root_key: KeyId,
    /// ID of the instance key.
    pub instance_key: KeyId,
    /// The instance key, wrapped by the root key.
    pub wrapped: Blob,
    /// The [document](crate::keyring::KeyringDocument) that names the deployment's keys, sealed under the instance key: no other
    /// key is valid, and that it opens proves the instance key.
    pub keyring: Blob,
    /// When the deployment was made.
    pub created_at: Timestamp,
}

/// An instance key that was replaced, as stored: it opens what is left under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiringInstanceKey {
    /// ID of the key.
    pub id: KeyId,
    /// The root key that wraps it.
    pub root_key: KeyId,
    /// The key, wrapped by the root key.
    pub wrapped: Blob,
    /// Time at which a successor replaced it.
    pub retired_at: Timestamp,
}

/// What an instance-wide key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstanceKeyPurpose {
    /// Digests that are looked up.
    LookUp,
    /// Codes over audit records.
    Audit,
    /// Access tokens.
    Token,
    /// Addresses and signing secrets of receivers.
    Receiver,
}

impl InstanceKeyPurpose {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::LookUp, Self::Audit, Self::Token, Self::Receiver];
}

impl InstanceKeyPurpose {
    /// The purpose's stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LookUp => "look-up",
            Self::Audit => "audit",
            Self::Token => "token",
            Self::Receiver => "receiver",
        }
    }

    /// The purpose of this stored name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.as_str() == text)
    }
}

/// One instance-wide key, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceKeyRecord {
    /// ID of the key.
    pub id: KeyId,
    /// Purpose.
    pub purpose: InstanceKeyPurpose,
    /// The key, wrapped by the instance key.
    pub wrapped: Blob,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// How far an organization key is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Seals and opens.
    Active,
    /// Opens only; rows still name it.
    Retiring,
}

impl KeyState {
    /// The state's stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Retiring => "retiring",
        }
    }

    /// The state of this stored name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Retiring].into_iter().find(|state| state.as_str() == text)
    }
}

/// One key of an organization, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationKeyRecord {
    /// The organization.
    pub organization: OrganizationId,
    /// ID of the key.
    pub id: KeyId,
    /// How far it is in its life.
    pub state: KeyState,
    /// The key, wrapped by the instance key.
    pub wrapped: Blob,
    /// Uses reserved; taken in blocks in advance.
    pub uses: i64,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The keys of an organization, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationKeys {
    /// The fingerprint key's id.
    pub fingerprint_key: KeyId,
    /// The fingerprint key, wrapped by the instance key.
    pub fingerprint_wrapped: Blob,
    /// The organization keys; exactly one is active.
    pub keys: Vec<OrganizationKeyRecord>,
}
