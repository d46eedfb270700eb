//! Ports that the rotation of keys requires.

use crate::id::{CredentialId, KeyId};
use crate::sealed::{Blob, SealedData};

/// The sealed parts of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Key of the organization that the row names.
    pub key: KeyId,
    /// Revision to which the card is bound.
    pub revision: i64,
    /// The sealed card.
    pub card: Blob,
    /// Sealed data of each version, by number. It is sealed with its data key, which does not change.
    pub data: Vec<(i64, SealedData)>,
}

/// Result of the request to destroy a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDestruction {
    /// The key was destroyed.
    Destroyed,
    /// Rows still name it.
    InUse,
    /// The key is active, or is none of the keys.
    NotRetiring,
}
