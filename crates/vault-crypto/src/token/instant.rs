//! Points in time in tokens: RFC 3339 in UTC, whole seconds, one spelling.

use vault_core::time::Timestamp;

/// The text of a point in time, rounded down to a second. `None` outside the years 1970 to 9999.
pub(super) fn write(at: Timestamp) -> Option<String> {
    at.to_rfc3339()
}

/// The point in time of a text that [`write`] writes.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    // RFC 3339 also has offsets, fractions, lower-case letters and leap seconds.
    Timestamp::from_rfc3339(text).filter(|at| write(*at).as_deref() == Some(text))
}

#[cfg(test)]
mod tests;
