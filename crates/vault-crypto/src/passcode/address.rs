//! The `otpauth:` address that an authenticator reads from a QR code.

use vault_core::email::EmailAddress;
use zeroize::Zeroizing;

const ISSUER: &str = "OrgVault";

/// The address of a seed (Base32 text). Names algorithm, digits and period, although they are the defaults.
pub(super) fn otpauth(email: &EmailAddress, secret: &str) -> Zeroizing<String> {
    let parameters = "&algorithm=SHA1&digits=6&period=30";
    // Allocated at its final size: growing would leave copies behind. An escaped byte takes three.
    let mut text = Zeroizing::new(String::with_capacity(128 + 3 * email.as_str().len() + secret.len()));
    text.push_str("otpauth://totp/");
    text.push_str(ISSUER);
    text.push(':');
    escape(email.as_str(), &mut text);
    text.push_str("?secret=");
    text.push_str(secret);
    text.push_str("&issuer=");
    text.push_str(ISSUER);
    text.push_str(parameters);
    text
}

/// Everything but unreserved characters (RFC 3986 section 2.3) as `%` and two digits.
fn escape(plain: &str, text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in plain.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}
