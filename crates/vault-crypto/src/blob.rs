//! Format of sealed blobs: `version 1 | algorithm 1 | key id 16 | nonce 12 | ciphertext | tag 16` (lengths in bytes).

use vault_core::id::KeyId;
use vault_core::sealed::Blob;

/// Version and algorithm of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Version 1, algorithm 1: AES-256-GCM (NIST SP 800-38D) over plaintext padded to steps of 256 bytes.
    Padded,
    /// Version 1, algorithm 2: AES-256-GCM over a 256-bit key. All keys have the same length, so padding
    /// would hide nothing.
    Key,
}

impl Format {
    /// Returns the version and algorithm bytes.
    pub(crate) const fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::Padded => [1, 1],
            Self::Key => [1, 2],
        }
    }
}

/// The reason why a blob cannot be opened, without any content of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The input is too short to be a blob.
    #[error("truncated")]
    Truncated,
    /// This program does not support the version.
    #[error("unknown version")]
    UnknownVersion,
    /// The algorithm is not the expected one.
    #[error("unknown algorithm")]
    UnknownAlgorithm,
    /// The blob names another key.
    #[error("sealed under another key")]
    OtherKey,
    /// The blob was modified, moved, or sealed under another key with the same ID.
    #[error("not authentic")]
    NotAuthentic,
    /// The blob is authentic, but its plaintext is malformed.
    #[error("malformed inside")]
    Malformed,
}

impl OpenError {
    /// Returns the reason for errors of the ports.
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

/// Splits a blob of `format` into its parts.
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

/// Appends the header of a blob: all fields before the ciphertext.
pub(crate) fn begin(bytes: &mut Vec<u8>, format: Format, key: KeyId, nonce: &[u8; NONCE]) {
    bytes.extend_from_slice(&format.to_bytes());
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(nonce);
}

/// Returns the key ID of a blob of any format, or `None` if the blob is truncated.
pub(crate) fn sealing_key(blob: &Blob) -> Option<KeyId> {
    let (_, rest) = blob.as_bytes().split_first_chunk::<2>()?;
    let (key, _) = rest.split_first_chunk()?;
    Some(KeyId::from_bytes(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_errors_contain_reason_of_error() {
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
