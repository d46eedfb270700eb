//! Keyed digests and MACs of values that are looked up, compared or bound without being stored in plain text.

use crate::id::KeyId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use subtle::ConstantTimeEq;

/// Purpose of a digest. Digests of different purposes never match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DigestPurpose {
    /// Network of a login.
    Network,
    /// An enrolment code.
    EnrolmentCode,
    /// An integration token.
    IntegrationToken,
    /// Request body of an idempotency key.
    IdempotentBody,
    /// A list cursor.
    Cursor,
    /// A label of a credential, for lookups.
    Label,
    /// A queued event delivery, and the position up to which events were read.
    EventDelivery,
    /// Content of an event without an ID of its own, from which the ID is derived.
    EventId,
}

impl DigestPurpose {
    /// All variants.
    pub const ALL: [Self; 8] = [
        Self::Network,
        Self::EnrolmentCode,
        Self::IntegrationToken,
        Self::IdempotentBody,
        Self::Cursor,
        Self::Label,
        Self::EventDelivery,
        Self::EventId,
    ];

    /// Returns the label that separates this purpose's key from all others.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::EnrolmentCode => "enrolment code",
            Self::IntegrationToken => "integration token",
            Self::IdempotentBody => "idempotent body",
            Self::Cursor => "cursor",
            Self::Label => "label",
            Self::EventDelivery => "event delivery",
            Self::EventId => "event id",
        }
    }

    /// Returns whether the digest is keyed. Enrolment codes and tokens have at least 128 random bits, which a plain
    /// hash does not disclose. They are therefore looked up by a plain hash, and remain valid when keys are replaced.
    /// The ID of an event is not secret.
    pub const fn is_keyed(self) -> bool {
        !matches!(self, Self::EnrolmentCode | Self::IntegrationToken | Self::EventId)
    }
}

/// A digest of 256 bits, compared in constant time.
#[derive(Clone, Copy, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Creates a digest from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digest in Base64 for URLs, without padding (RFC 4648, section 5).
    pub fn to_base64(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = URL_SAFE_NO_PAD.decode(String::deserialize(deserializer)?).ok();
        let digest = bytes.and_then(|bytes| bytes.try_into().ok()).map(Self);
        digest.ok_or_else(|| de::Error::custom("not a digest"))
    }
}

/// Lookup digests of a value under each available lookup key. While a key is being replaced, a lookup finds rows under
/// the old and the new key alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupDigests {
    /// The digest for new rows.
    current: Digest,
    /// All digests, the current one first.
    digests: Vec<Digest>,
}

impl LookupDigests {
    /// Creates lookup digests from the current one and those that other rows may have.
    pub fn new(current: Digest, others: impl IntoIterator<Item = Digest>) -> Self {
        Self { current, digests: std::iter::once(current).chain(others).collect() }
    }

    /// Returns the digest for new rows.
    pub const fn current(&self) -> &Digest {
        &self.current
    }

    /// Returns all digests. A row with any of them matches.
    pub fn all(&self) -> &[Digest] {
        &self.digests
    }
}

impl From<Digest> for LookupDigests {
    fn from(digest: Digest) -> Self {
        Self::new(digest, [])
    }
}

/// MAC of a cursor, with the instance key that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMac {
    /// Instance key of the MAC.
    pub key: KeyId,
    /// Value of the MAC.
    pub mac: Digest,
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}
