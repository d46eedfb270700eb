//! Enrolment codes, which authenticate invited users.

use crate::digest::{Digest, DigestPurpose};
use crate::password::{LETTER_COUNT, LETTERS, random_letters};
use crate::port::{Entropy, KeyedDigester, NoEntropy};
use secrecy::{ExposeSecret, SecretString};

/// An enrolment code: 26 letters and digits with 130 random bits. It is shown only once, and stored only as a digest.
pub struct EnrolmentCode(SecretString);

impl EnrolmentCode {
    /// Generates a code.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub fn generate(entropy: &dyn Entropy) -> Result<Self, NoEntropy> {
        random_letters(entropy).map(Self)
    }

    /// Parses a code. Returns `None` if it is malformed. Nothing is trimmed or normalized.
    pub fn read(text: &SecretString) -> Option<Self> {
        let spelling = text.expose_secret().as_bytes(); // only to check the format
        let possible = spelling.len() == LETTER_COUNT && spelling.iter().all(|byte| LETTERS.contains(byte));
        possible.then(|| Self(text.clone()))
    }

    /// Returns the digest for lookups.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> Digest {
        // Expose the code only to compute a digest.
        digester.digest(DigestPurpose::EnrolmentCode, &[self.0.expose_secret().as_bytes()])
    }

    /// Returns the text of the code, to issue it.
    pub const fn text(&self) -> &SecretString {
        &self.0
    }
}
