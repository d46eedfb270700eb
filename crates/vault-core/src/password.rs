//! Rules for passwords of accounts (NIST SP 800-63B-4 section 3.1.1.2).

use crate::email::EmailAddress;
use crate::port::{Entropy, NoEntropy};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

/// Maximum length of a password, in bytes.
pub const MAX_BYTES: usize = 1_024;
/// Minimum length of a password, in characters. It is sufficient because a second factor is always required.
pub const MIN_CHARACTERS: usize = 8;

/// Reason why a password is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Shorter than [`MIN_CHARACTERS`].
    #[error("a password must have at least 8 characters")]
    TooShort,
    /// Longer than [`MAX_BYTES`].
    #[error("a password must have at most 1,024 bytes")]
    TooLong,
    /// One of the passwords that attackers try first.
    #[error("this password is one of the most common; choose another")]
    Common,
    /// The address, its local part, the organization's name or the name of this product.
    #[error(
        "a password must not be the address, the part before its @, the organization's name or the name of this service, with or \
         without digits after it"
    )]
    Guessable,
}

/// Validates a new password. There are no composition rules, and the password is neither trimmed nor normalized.
///
/// # Errors
/// The first rule that the password violates.
pub fn check_new_password(
    password: &SecretString,
    email: &EmailAddress,
    organization: &str,
) -> Result<(), PasswordError> {
    let password = password.expose_secret(); // only to validate it
    if password.chars().count() < MIN_CHARACTERS {
        return Err(PasswordError::TooShort);
    }
    if password.len() > MAX_BYTES {
        return Err(PasswordError::TooLong);
    }
    let folded = password.to_lowercase();
    let guesses = [email.as_str(), email.local_part(), organization, "orgvault"];
    let guessable = guesses.iter().filter(|guess| !guess.is_empty()).any(|guess| {
        let rest = folded.strip_prefix(&guess.to_lowercase());
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '!'))
    });
    if guessable {
        return Err(PasswordError::Guessable);
    }
    if is_common(&folded) { Err(PasswordError::Common) } else { Ok(()) }
}

/// Generates a password of 26 characters: 130 random bits as Base32 letters and digits.
///
/// # Errors
/// The operating system returns no randomness.
pub fn generate_password(entropy: &dyn Entropy) -> Result<SecretString, NoEntropy> {
    random_letters(entropy)
}

/// Letters and digits of [`random_letters`], without similar characters.
pub(crate) const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Number of characters that [`random_letters`] generates.
pub(crate) const LETTER_COUNT: usize = 26;

/// Generates 130 random bits as letters and digits.
pub(crate) fn random_letters(entropy: &dyn Entropy) -> Result<SecretString, NoEntropy> {
    let mut bytes = Zeroizing::new([0; LETTER_COUNT]);
    entropy.fill(&mut *bytes)?;
    // 32 divides 256, so the remainder is distributed uniformly.
    let letters: String = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    Ok(SecretString::from(letters))
}

fn is_common(folded: &str) -> bool {
    static COMMON: std::sync::LazyLock<std::collections::HashSet<&'static str>> =
        std::sync::LazyLock::new(|| include_str!("password/common.txt").lines().collect());
    COMMON.contains(folded)
}
