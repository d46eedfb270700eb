//! What is wrong with a value.

use crate::field::FieldCode;
use std::borrow::Cow;

/// An error of a value, without its place.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) code: FieldCode,
    pub(super) detail: Cow<'static, str>,
}

impl Flaw {
    pub(super) fn new(code: FieldCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into() }
    }

    /// The same flaw, of the part of the value that `part` names.
    pub(super) fn of(self, part: &str) -> Self {
        Self { code: self.code, detail: format!("{part} {}", self.detail).into() }
    }
}
