//! Small pieces of text that several commands print.

use crate::failure::Failure;
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use secrecy::{ExposeSecret, SecretString};
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vault_core::passcode::{PasscodeSecret, RecoveryCode};
use vault_core::time::Timestamp;

/// A moment as RFC 3339 in UTC, to the second.
pub(crate) fn rfc3339(moment: Timestamp) -> String {
    OffsetDateTime::from_unix_timestamp(moment.as_seconds())
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The moment that `text`, the value of `flag`, names in RFC 3339.
pub(crate) fn moment(flag: &str, text: &str) -> Result<Timestamp, Failure> {
    let moment = OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| Failure::usage(format!("{flag}: must be a moment in RFC 3339, as 2027-01-31T00:00:00Z")))?;
    let millis = i64::try_from(moment.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX);
    Ok(Timestamp::from_millis(millis))
}

/// A QR code of `text` in half-height block characters with its quiet zone, its light parts drawn: right way
/// round on a dark terminal, and with colours of its own, where standard output is a terminal, on any.
pub(crate) fn qr_code(text: &SecretString) -> Result<String, Failure> {
    let code = QrCode::new(text.expose_secret())?; // shown to its owner, once
    let drawn = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    if !io::stdout().is_terminal() {
        return Ok(drawn);
    }
    let (white_on_black, reset) = ("\x1b[40;97m", "\x1b[0m");
    Ok(drawn.lines().map(|line| format!("{white_on_black}{line}{reset}")).collect::<Vec<_>>().join("\n"))
}

/// The second factor as its owner needs it: address for the authenticator, QR code, recovery codes.
pub(crate) fn passcode_sheet(passcode: &PasscodeSecret, recovery_codes: &[RecoveryCode]) -> Result<String, Failure> {
    let mut text = format!("  authenticator  {}\n", passcode.uri.expose_secret()); // shown to its owner, once
    writeln!(text, "\nScan this with an authenticator app:\n\n{}\n", qr_code(&passcode.uri)?)?;
    text += "Recovery codes, each good for one login without the authenticator:\n\n";
    for pair in recovery_codes.chunks(2) {
        let codes: Vec<&str> = pair.iter().map(|code| code.0.expose_secret()).collect(); // shown to their owner, once
        writeln!(text, "  {}", codes.join("   "))?;
    }
    Ok(text)
}

/// `text` as it must stand in a here-document whose commands are expanded.
pub(crate) fn in_here_document(text: &str) -> String {
    text.replace('\\', r"\\").replace('$', r"\$").replace('`', r"\`")
}

/// `text` as one word of a POSIX shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
