//! Recovery codes: 20 random digits, shown in groups of five.

use secrecy::SecretString;
use vault_core::passcode::{Passcode, RecoveryCode};
use vault_core::port::{Entropy, NoEntropy};
use zeroize::Zeroizing;

/// The number of recovery codes per account.
pub(super) const COUNT: usize = 10;

const DIGITS: usize = Passcode::RECOVERY_DIGITS;
const GROUP: usize = 5;

/// Returns 20 uniformly distributed digits.
pub(super) fn random_digits(entropy: &dyn Entropy) -> Result<Zeroizing<String>, NoEntropy> {
    // Allocate the final size: a buffer that grows would leave copies in memory.
    let mut digits = Zeroizing::new(String::with_capacity(DIGITS));
    let mut random = Zeroizing::new([0; 2 * DIGITS]);
    loop {
        entropy.fill(random.as_mut_slice())?;
        // 250 is the largest multiple of ten within a byte: higher values would favour the low digits.
        for byte in random.iter().filter(|byte| **byte < 250) {
            if digits.len() == DIGITS {
                return Ok(digits);
            }
            digits.push(char::from(b'0' + byte % 10));
        }
    }
}

/// Formats the code in groups of five digits for display.
pub(super) fn in_groups(digits: &str) -> RecoveryCode {
    let mut text = Zeroizing::new(String::with_capacity(DIGITS + DIGITS / GROUP));
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % GROUP == 0 {
            text.push('-');
        }
        text.push(digit);
    }
    // Copy the text, because the buffer and its spare capacity are wiped here.
    RecoveryCode(SecretString::from(text.as_str()))
}
