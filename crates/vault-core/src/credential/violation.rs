//! Violation of a value.

use crate::field::FieldCode;
use std::borrow::Cow;

/// A violation of a value, without its position.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) code: FieldCode,
    pub(super) detail: Cow<'static, str>,
}

impl Violation {
    pub(super) fn new(code: FieldCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// Returns the same violation, for the part of the value with the name `part`.
    pub(super) fn of(self, part: &str) -> Self {
        Self { code: self.code, detail: format!("{part} {}", self.detail).into() }
    }
}
