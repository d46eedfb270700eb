//! Enrolment codes: what an invited person proves to be invited with.

use crate::digest::{Digest, DigestPurpose};
use crate::password::{LETTER_COUNT, LETTERS, random_letters};
use crate::port::{Entropy, KeyedDigester, NoEntropy};
use secrecy::{ExposeSecret, SecretString};

/// An enrolment code: 26 letters and digits that carry 130 random bits. Shown once, stored only as a digest.
pub struct EnrolmentCode(SecretString);

impl EnrolmentCode {
    /// A new code.
    ///
    /// # Errors
    /// The operating system returns no randomness.
    pub fn generate(entropy: &dyn Entropy) -> Result<Self, NoEntropy> {
        random_letters(entropy).map(Self)
    }

    /// The code spelt `text`, if one can be spelt so. Nothing is trimmed or normalised.
    pub fn read(text: &SecretString) -> Option<Self> {
        let spelling = text.expose_secret().as_bytes(); // only to tell the form by
        let possible = spelling.len() == LETTER_COUNT && spelling.iter().all(|byte| LETTERS.contains(byte));
        possible.then(|| Self(text.clone()))
    }

    /// The digest it is found by.
    pub fn digest(&self, digester: &dyn KeyedDigester) -> Digest {
        // Only digested.
        digester.digest(DigestPurpose::EnrolmentCode, &[self.0.expose_secret().as_bytes()])
    }

    /// The code's text, for the one who hands it to its owner.
    pub const fn text(&self) -> &SecretString {
        &self.0
    }
}
