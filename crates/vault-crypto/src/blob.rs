//! The sealed form: `version 1 | algorithm 1 | key id 16 | nonce 12 | ciphertext | tag 16` (lengths in bytes).

use vault_core::id::KeyId;
use vault_core::sealed::Blob;

/// Version and algorithm of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Version 1, algorithm 1: AES-256-GCM (NIST SP 800-38D) over plaintext padded to steps of 256 bytes.
    Padded,
    /// Version 1, algorithm 2: AES-256-GCM over a 256-bit key. All keys have the same length, so padding
    /// would hide nothing.
    Key,
    /// Version 1, algorithm 3: a 256-bit key, sealed by a [`KeyService`](vault_core::port::KeyService) in a form of its
    /// own. After the key id comes what the service gave.
    Service,
}

impl Format {
    /// Its two bytes.
    pub const fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::Padded => [1, 1],
            Self::Key => [1, 2],
            Self::Service => [1, 3],
        }
    }
}

/// Why a blob does not open. Contains no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Too short to be a blob.
    #[error("truncated")]
    Truncated,
    /// The version is unknown to this program.
    #[error("unknown version")]
    UnknownVersion,
    /// The algorithm is not the expected one.
    #[error("unknown algorithm")]
    UnknownAlgorithm,
    /// The blob names another key.
    #[error("sealed under another key")]
    OtherKey,
    /// Changed, moved, or sealed under another key of the same id.
    #[error("not authentic")]
    NotAuthentic,
    /// Authentic, but the plaintext does not have the expected form.
    #[error("malformed inside")]
    Malformed,
}

impl OpenError {
    /// The reason in port errors.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::UnknownVersion => "unknown version",
            Self::UnknownAlgorithm => "unknown algorithm",
            Self::OtherKey => "sealed under another key",
            Self::NotAuthentic => "not authentic",
            Self::Malformed => "malformed inside",
        }
    }
}

pub(crate) const NONCE: usize = 12;
pub(crate) const TAG: usize = 16;
pub(crate) const HEADER: usize = 2 + 16 + NONCE;

/// The parts of a blob.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) key: KeyId,
    pub(crate) nonce: &'a [u8; NONCE],
    pub(crate) ciphertext: &'a [u8],
    pub(crate) tag: &'a [u8; TAG],
}

/// Reads a blob of `format`.
pub(crate) fn read(bytes: &[u8], format: Format) -> Result<Parts<'_>, OpenError> {
    let ([version, algorithm], rest) = bytes.split_first_chunk().ok_or(OpenError::Truncated)?;
    let [expected_version, expected_algorithm] = format.to_bytes();
    if *version != expected_version {
        return Err(OpenError::UnknownVersion);
    }
    if *algorithm != expected_algorithm {
        return Err(OpenError::UnknownAlgorithm);
    }
    let (key, rest) = rest.split_first_chunk().ok_or(OpenError::Truncated)?;
    let (nonce, rest) = rest.split_first_chunk().ok_or(OpenError::Truncated)?;
    let (ciphertext, tag) = rest.split_last_chunk().ok_or(OpenError::Truncated)?;
    Ok(Parts { key: KeyId::from_bytes(*key), nonce, ciphertext, tag })
}

/// Writes the part of a blob before the ciphertext.
pub(crate) fn begin(bytes: &mut Vec<u8>, format: Format, key: KeyId, nonce: &[u8; NONCE]) {
    bytes.extend_from_slice(&format.to_bytes());
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(nonce);
}

/// The id of the key that a blob of any format names.
pub(crate) fn sealing_key(blob: &Blob) -> Option<KeyId> {
    let (_, rest) = blob.as_bytes().split_first_chunk::<2>()?;
    let (key, _) = rest.split_first_chunk()?;
    Some(KeyId::from_bytes(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_in_port_errors_is_what_the_error_says() {
        let errors = [
            OpenError::Truncated,
            OpenError::UnknownVersion,
            OpenError::UnknownAlgorithm,
            OpenError::OtherKey,
            OpenError::NotAuthentic,
            OpenError::Malformed,
        ];
        for error in errors {
            assert_eq!(error.reason(), error.to_string());
        }
    }
}
