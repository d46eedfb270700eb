//! Lifetimes of activations.

use crate::field::{FieldCode, FieldError};

/// Lifetime of an activation in whole seconds, within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActivationTtl(u32);

impl ActivationTtl {
    /// Minimum lifetime, in seconds.
    pub const MIN: u32 = 60;
    /// Maximum lifetime, in seconds: 12 h.
    pub const MAX: u32 = 43_200;
    /// Default lifetime in seconds.
    pub const DEFAULT: u32 = 3_600;

    /// Validates the requested lifetime, or returns the default.
    ///
    /// # Errors
    /// [`FieldCode::OutOfRange`] outside [`ActivationTtl::MIN`] to [`ActivationTtl::MAX`].
    pub fn parse(wished: Option<i64>) -> Result<Self, FieldError> {
        let Some(wished) = wished else { return Ok(Self(Self::DEFAULT)) };
        match u32::try_from(wished) {
            Ok(seconds) if (Self::MIN..=Self::MAX).contains(&seconds) => Ok(Self(seconds)),
            _ => Err(FieldError::new("/ttl", FieldCode::OutOfRange, "must be 60 to 43200 seconds")),
        }
    }

    /// Returns the lifetime in seconds.
    pub const fn as_seconds(self) -> u32 {
        self.0
    }
}
