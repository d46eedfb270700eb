//! Decodes a root key that a command prints.

use super::RootKeyErrorKind;
use super::weak::weakness;
use crate::key::SymmetricKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Length of a key in hexadecimal.
const HEX: usize = 2 * SymmetricKey::LENGTH;

/// Decodes 32 bytes, or the same in hexadecimal or base64, and at most one line feed.
pub(super) fn decode(output: &[u8]) -> Result<SymmetricKey, RootKeyErrorKind> {
    let text = output.strip_suffix(b"\n").filter(|_| output.len() != SymmetricKey::LENGTH).unwrap_or(output);
    let mut key = Zeroizing::new([0; SymmetricKey::LENGTH]);
    let is_key = match text.len() {
        SymmetricKey::LENGTH => {
            key.copy_from_slice(text);
            true
        }
        HEX => text.chunks(2).zip(key.iter_mut()).all(|(digits, byte)| {
            let value = digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?));
            *byte = value.and_then(|value| u8::try_from(value).ok()).unwrap_or_default();
            value.is_some()
        }),
        _ => {
            // The decoder requires space for a multiple of three bytes.
            let mut bytes = Zeroizing::new([0; SymmetricKey::LENGTH + 1]);
            let decoded = STANDARD.decode_slice(text, &mut *bytes) == Ok(SymmetricKey::LENGTH);
            key.copy_from_slice(&bytes[..SymmetricKey::LENGTH]);
            decoded
        }
    };
    if !is_key {
        return Err(RootKeyErrorKind::Encoding(output.len()));
    }
    let key = SymmetricKey::take(&mut key);
    match weakness(&key) {
        Some(weakness) => Err(RootKeyErrorKind::Weak(weakness)),
        None => Ok(key),
    }
}
