//! Errors of single fields, as every parser of this crate reports them.

use std::borrow::Cow;
use std::fmt;

/// What is wrong with a field, in a form that scripts can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldCode {
    /// A required member is absent.
    Required,
    /// A member that the shape does not have.
    Unknown,
    /// A member that is repeated in one object.
    Duplicate,
    /// A member of the wrong JSON type.
    WrongType,
    /// Empty, or nothing but white space.
    Blank,
    /// Longer than the limit.
    TooLong,
    /// Outside its range of values.
    OutOfRange,
    /// Not in the format of the field.
    Malformed,
    /// Begins or ends with white space or quotation marks.
    Surrounded,
    /// Holds a control character.
    ControlCharacter,
    /// A mask instead of the value.
    Masked,
    /// A placeholder instead of the value.
    Placeholder,
    /// Well-formed, but not allowed by the configuration or by policy.
    NotAllowed,
}

/// Whether an error concerns the form of a request or one of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlawKind {
    /// Well-formed, but the value is refused.
    Value,
    /// The document does not have the expected form.
    Form,
}

impl FieldCode {
    /// The code's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Unknown => "unknown",
            Self::Duplicate => "duplicate",
            Self::WrongType => "wrong-type",
            Self::Blank => "blank",
            Self::TooLong => "too-long",
            Self::OutOfRange => "out-of-range",
            Self::Malformed => "malformed",
            Self::Surrounded => "surrounded",
            Self::ControlCharacter => "control-character",
            Self::Masked => "masked",
            Self::Placeholder => "placeholder",
            Self::NotAllowed => "not-allowed",
        }
    }

    /// Whether the flaw is one of form or of value.
    pub const fn kind(self) -> FlawKind {
        match self {
            Self::Required | Self::Unknown | Self::Duplicate | Self::WrongType => FlawKind::Form,
            _ => FlawKind::Value,
        }
    }
}

/// One error of one field: its place, its kind and how to fix it. Never contains the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the field, from the root of the document.
    pub pointer: String,
    /// What is wrong.
    pub code: FieldCode,
    /// What is wrong and how to fix it, for people. Consists of fixed text and limits only.
    pub detail: Cow<'static, str>,
}

impl FieldError {
    /// An error at `pointer`.
    pub fn new(pointer: impl Into<String>, code: FieldCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { pointer: pointer.into(), code, detail: detail.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.detail)
    }
}

impl std::error::Error for FieldError {}

/// A text that is not a value of the type that was asked for; says the rule, never the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub &'static str);

impl Invalid {
    /// As the flaw of the field at `pointer`.
    pub fn at(self, pointer: &str) -> FieldError {
        FieldError::new(pointer, FieldCode::Malformed, self.0)
    }
}

/// `pointer` extended by the member `name`, escaped as RFC 6901 asks.
pub fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
