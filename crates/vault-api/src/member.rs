//! Optional members of requests. `null` is a value of the wrong type, not an absent member.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Reads a member that is present. With an optional type, `null` becomes `Some(None)`.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Same as [`number`], for an optional one.
pub(crate) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    number(from).map(Some)
}

/// Reads a whole number. Numbers beyond 64 bits become the largest or smallest one, which no range contains.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    struct Whole;

    impl Visitor<'_> for Whole {
        type Value = i64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("i64")
        }

        fn visit_i64<E>(self, number: i64) -> Result<i64, E> {
            Ok(number)
        }

        fn visit_u64<E>(self, number: u64) -> Result<i64, E> {
            Ok(number.try_into().unwrap_or(i64::MAX))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<i64, E> {
            /// 2^63: floats at least this large are whole, and digits beyond 64 bits arrive as floats.
            const BEYOND: f64 = 9_223_372_036_854_775_808.0;
            match number {
                large if large >= BEYOND => Ok(i64::MAX),
                large if large <= -BEYOND => Ok(i64::MIN),
                other => Err(E::invalid_type(Unexpected::Float(other), &self)),
            }
        }
    }

    from.deserialize_i64(Whole)
}
