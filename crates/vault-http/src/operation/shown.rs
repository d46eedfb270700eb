//! What is shown to its owner once: secrets that an answer carries.

use vault_api::{Totp, WireSecret};
use vault_core::passcode::{PasscodeSecret, RecoveryCode};

/// What an authenticator is set up with.
pub(super) fn totp(passcode: PasscodeSecret) -> Totp {
    Totp { secret: passcode.secret.into(), uri: passcode.uri.into() }
}

/// Recovery codes in their groups of digits.
pub(super) fn recovery_codes(codes: Vec<RecoveryCode>) -> Vec<WireSecret> {
    codes.into_iter().map(|RecoveryCode(code)| code.into()).collect()
}
