//! URI of type `otpauth:` that an authenticator app reads from a QR code.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use vault_core::email::EmailAddress;
use zeroize::Zeroizing;

const ISSUER: &str = "OrgVault";
/// The characters to escape: all except the unreserved ones (RFC 3986 section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the URI of a TOTP secret in Base32. Algorithm, digits and period are explicit, although they are the
/// defaults.
pub(super) fn otpauth(email: &EmailAddress, secret: &str) -> Zeroizing<String> {
    let parameters = "&algorithm=SHA1&digits=6&period=30";
    // Allocate the final size: a buffer that grows would leave copies of the secret in memory. An escaped byte takes
    // three.
    let mut text = Zeroizing::new(String::with_capacity(128 + 3 * email.as_str().len() + secret.len()));
    text.push_str("otpauth://totp/");
    text.push_str(ISSUER);
    text.push(':');
    text.extend(utf8_percent_encode(email.as_str(), UNRESERVED));
    text.push_str("?secret=");
    text.push_str(secret);
    text.push_str("&issuer=");
    text.push_str(ISSUER);
    text.push_str(parameters);
    text
}
