//! Stored password hashes before sealing: PHC strings `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. Other forms are rejected.

use super::Argon2Parameters;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use vault_core::field::Invalid;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The length of the salt, in bytes.
pub(super) const SALT: usize = 16;
/// The length of the hash, in bytes.
pub(super) const HASH: usize = 32;

/// The capacity allocated for a PHC string, in bytes.
const LONGEST: usize = 256;

/// The parameters, salt and hash of a password.
#[derive(ZeroizeOnDrop)]
pub(super) struct Verifier {
    #[zeroize(skip)]
    pub(super) parameters: Argon2Parameters,
    pub(super) salt: [u8; SALT],
    pub(super) hash: [u8; HASH],
}

/// The error for a string in another spelling or with parameters out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

impl From<Invalid> for Damaged {
    fn from(_: Invalid) -> Self {
        Self
    }
}

impl Verifier {
    /// Returns the PHC string.
    pub(super) fn to_text(&self) -> Zeroizing<String> {
        // Allocate the final size: a buffer that grows would leave copies in memory.
        let mut text = Zeroizing::new(String::with_capacity(LONGEST));
        text.push_str(&format!("$argon2id$v=19${}$", self.parameters));
        STANDARD_NO_PAD.encode_string(self.salt, &mut text);
        text.push('$');
        STANDARD_NO_PAD.encode_string(self.hash, &mut text);
        text
    }

    /// Parses a PHC string.
    pub(super) fn read(text: &[u8]) -> Result<Self, Damaged> {
        let text = std::str::from_utf8(text).map_err(|_| Damaged)?;
        let mut parts = text.strip_prefix("$argon2id$v=19$").ok_or(Damaged)?.split('$');
        let (Some(costs), Some(salt), Some(hash), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Damaged);
        };
        let verifier = Self { parameters: costs.parse()?, salt: read_bytes(salt)?, hash: read_bytes(hash)? };
        Ok(verifier)
    }
}

fn read_bytes<const LENGTH: usize>(text: &str) -> Result<[u8; LENGTH], Damaged> {
    let mut bytes = [0; LENGTH];
    match STANDARD_NO_PAD.decode_slice(text, &mut bytes) {
        Ok(length) if length == LENGTH => Ok(bytes),
        _ => {
            bytes.zeroize();
            Err(Damaged)
        }
    }
}
