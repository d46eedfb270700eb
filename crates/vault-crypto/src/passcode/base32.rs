//! Base32 (RFC 4648 section 6) without padding, as authenticator apps expect it.

use zeroize::Zeroizing;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Encodes `bytes`.
pub(super) fn encode(bytes: &[u8]) -> Zeroizing<String> {
    // Allocate the final size: a buffer that grows would leave copies of the secret in memory.
    let mut text = Zeroizing::new(String::with_capacity((bytes.len() * 8).div_ceil(5)));
    for group in bytes.chunks(5) {
        let mut bits = [0; 8];
        bits[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(bits);
        for place in 0..(group.len() * 8).div_ceil(5) {
            let digit = (bits >> (35 - 5 * place)) & 31;
            text.push(char::from(ALPHABET[digit as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::encode;

    /// RFC 4648 section 10.
    #[test]
    fn rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(*encode(bytes.as_bytes()), text);
        }
    }
}
