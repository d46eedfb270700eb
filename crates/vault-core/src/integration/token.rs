//! Integration tokens: `ovi_`, 256 random bits and a checksum, so that secret scanners recognize them.

use crate::digest::{Digest, DigestPurpose};
use crate::port::{Entropy, KeyedDigester, NoEntropy};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

const PREFIX: &str = "ovi_";
/// Number of random bytes in a token.
const BYTES: usize = 32;
/// Number of base-62 digits for the random bytes: 62^43 > 2^256.
const DIGITS: usize = 43;
/// Number of base-62 digits for a checksum of 32 bits.
const CHECK_DIGITS: usize = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An integration token in plain text. It is shown only once, stored only as a digest, and not shown by `Debug`.
pub struct IntegrationToken(SecretString);

impl IntegrationToken {
    /// Number of characters of a token.
    pub const LENGTH: usize = PREFIX.len() + DIGITS + CHECK_DIGITS;

    /// Generates a token.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub fn generate(entropy: &dyn Entropy) -> Result<Self, NoEntropy> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        entropy.fill(&mut *bytes)?;
        let digits = Zeroizing::new(base_62(&mut bytes));
        let check = check_digits(&*digits);
        let mut text = String::with_capacity(Self::LENGTH);
        text.push_str(PREFIX);
        text.extend(digits.iter().chain(&check).map(|digit| char::from(*digit)));
        Ok(Self(SecretString::from(text)))
    }

    /// Parses a token. Returns `None` if it is malformed or its checksum does not match. Nothing is trimmed or
    /// normalized.
    pub fn read(text: &SecretString) -> Option<Self> {
        Self::is_one(text.expose_secret()).then(|| Self(text.clone())) // only to check the format
    }

    /// Returns whether `text` has the format of a token, to refuse it in other fields.
    pub(crate) fn is_one(text: &str) -> bool {
        let digits = text.strip_prefix(PREFIX).and_then(|digits| digits.as_bytes().split_at_checked(DIGITS));
        digits.is_some_and(|(random, check)| {
            random.iter().all(|digit| ALPHABET.contains(digit)) && check == check_digits(random)
        })
    }

    /// Returns the digest for lookups.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> Digest {
        // Expose the token only to compute a digest.
        digester.digest(DigestPurpose::IntegrationToken, &[self.0.expose_secret().as_bytes()])
    }

    /// Returns the text of the token, to issue it.
    pub const fn text(&self) -> &SecretString {
        &self.0
    }
}

/// Converts the number in these bytes to base 62. The bytes are zero afterwards.
fn base_62(bytes: &mut [u8; BYTES]) -> [u8; DIGITS] {
    let mut digits = [ALPHABET[0]; DIGITS];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u16;
        for byte in bytes.iter_mut() {
            let dividend = (remainder << 8) | u16::from(*byte);
            *byte = u8::try_from(dividend / 62).unwrap_or(u8::MAX);
            remainder = dividend % 62;
        }
        *digit = ALPHABET[usize::from(remainder)];
    }
    digits
}

fn check_digits(digits: &[u8]) -> [u8; CHECK_DIGITS] {
    let mut left = crc_32(digits);
    let mut check = [ALPHABET[0]; CHECK_DIGITS];
    for digit in check.iter_mut().rev() {
        *digit = ALPHABET[usize::try_from(left % 62).unwrap_or_default()];
        left /= 62;
    }
    check
}

/// Computes CRC-32 as in Ethernet, ZIP and the tokens of other services (ISO 3309).
fn crc_32(bytes: &[u8]) -> u32 {
    let fold = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    };
    !bytes.iter().fold(u32::MAX, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc_32() {
        assert_eq!(crc_32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc_32(b""), 0);
        assert_eq!(&check_digits(b""), b"000000");
    }

    #[test]
    fn numbers_are_written_to_base_62() {
        let mut last = [0; BYTES];
        last[BYTES - 1] = 61;
        assert!(base_62(&mut last).ends_with(b"00z"));
        let mut next = [0; BYTES];
        next[BYTES - 1] = 62;
        assert!(base_62(&mut next).ends_with(b"010"));
        // 2^256 - 1 requires all digits.
        assert_ne!(base_62(&mut [u8::MAX; BYTES])[0], ALPHABET[0]);
    }
}
