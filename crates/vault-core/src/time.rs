//! Points in time and lifetimes. The clock itself is the port [`Clock`](crate::port::Clock).

use crate::field::{FieldCode, FieldError};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The point `milliseconds` after the epoch.
    pub const fn from_millis(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This point rounded down to a whole second: what tokens and answers can carry.
    pub const fn floor_to_second(self) -> Self {
        Self(self.as_seconds() * 1000)
    }

    /// This moment's minute, without the seconds of it.
    pub const fn floor_to_minute(self) -> Self {
        Self(self.0.div_euclid(60_000) * 60_000)
    }

    /// The point `seconds` later, saturating.
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    /// Milliseconds from `earlier` to this point; negative if it lies ahead.
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The wished lifetime of an access token, in whole seconds, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(u32);

impl Ttl {
    /// The shortest lifetime, in seconds.
    pub const MIN: u32 = 60;
    /// The longest lifetime any configuration allows, in seconds: one day.
    pub const MAX: u32 = 86_400;
    /// The lifetime where none is wished, in seconds.
    pub const DEFAULT: u32 = 3_600;

    /// The wished lifetime, or the default where none is wished (at most `ceiling`).
    ///
    /// # Errors
    /// [`FieldCode::OutOfRange`] outside [`Ttl::MIN`] to `ceiling`: a lifetime is never silently changed.
    pub fn parse(wished: Option<i64>, ceiling: u32) -> Result<Self, FieldError> {
        let ceiling = ceiling.clamp(Self::MIN, Self::MAX);
        let Some(wished) = wished else { return Ok(Self(Self::DEFAULT.min(ceiling))) };
        match u32::try_from(wished) {
            Ok(seconds) if (Self::MIN..=ceiling).contains(&seconds) => Ok(Self(seconds)),
            _ => Err(FieldError::new(
                "/ttl",
                FieldCode::OutOfRange,
                format!("must be {} to {ceiling} seconds", Self::MIN),
            )),
        }
    }

    /// The lifetime in seconds.
    pub const fn as_seconds(self) -> u32 {
        self.0
    }
}
