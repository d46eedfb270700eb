//! Times in tokens: RFC 3339 in UTC, whole seconds, one form.

use vault_core::time::Timestamp;

/// Formats a time, rounded down to a second, or returns `None` outside the years 1970 to 9999.
pub(super) fn write(at: Timestamp) -> Option<String> {
    at.to_rfc3339()
}

/// Parses a time in the form that [`write`] produces.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    // RFC 3339 also allows offsets, fractions, lower-case letters and leap seconds.
    Timestamp::from_rfc3339(text).filter(|at| write(*at).as_deref() == Some(text))
}

#[cfg(test)]
mod tests;
