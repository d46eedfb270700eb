//! Points in time in tokens: RFC 3339 in UTC, whole seconds, one spelling.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vault_core::time::Timestamp;

/// The text of a point in time, rounded down to a second. `None` outside the years 0 to 9999.
pub(super) fn write(at: Timestamp) -> Option<String> {
    OffsetDateTime::from_unix_timestamp(at.as_seconds()).ok()?.format(&Rfc3339).ok()
}

/// The point in time of a text that [`write`] writes.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let at = Timestamp::from_millis(at.unix_timestamp() * 1000);
    // RFC 3339 also has offsets, fractions, lower-case letters and leap seconds.
    (write(at)? == text).then_some(at)
}

#[cfg(test)]
mod tests;
