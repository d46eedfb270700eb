//! Errors of single fields, as all parsers of this crate report them.

use std::borrow::Cow;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Code of a field's violation, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case")]
pub enum FieldCode {
    /// A required member is missing.
    Required,
    /// The member is not defined.
    Unknown,
    /// The member is repeated in one object.
    Duplicate,
    /// The member has the wrong JSON type.
    WrongType,
    /// The value is empty, or only white space.
    Blank,
    /// The value exceeds the maximum length.
    TooLong,
    /// The value is out of range.
    OutOfRange,
    /// The value does not have the format of the field.
    Malformed,
    /// The value starts or ends with white space or quotation marks.
    Surrounded,
    /// The value contains a control character.
    ControlCharacter,
    /// The value is a mask instead of a secret.
    Masked,
    /// The value is a placeholder.
    Placeholder,
    /// The value is well-formed, but not allowed by the configuration or by policy.
    NotAllowed,
}

named!(FieldCode);

/// Whether a violation concerns the format of a request or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// A well-formed value is refused.
    Value,
    /// The document does not have the expected form.
    Form,
}

impl FieldCode {
    /// Returns whether the violation concerns the format or a value.
    pub const fn kind(self) -> ViolationKind {
        match self {
            Self::Required | Self::Unknown | Self::Duplicate | Self::WrongType => ViolationKind::Form,
            _ => ViolationKind::Value,
        }
    }
}

/// An error of one field with its position, code and remedy. It never contains the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the field, from the root of the document.
    pub pointer: String,
    /// Code of the violation.
    pub code: FieldCode,
    /// Violation and remedy, for users. It contains only fixed text and limits.
    pub detail: Cow<'static, str>,
}

impl FieldError {
    /// Creates an error at `pointer`.
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

/// The text is not a valid value of the type. The message contains the rule, never the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub &'static str);

impl Invalid {
    /// Converts it to an error of the field at `pointer`.
    pub fn at(self, pointer: &str) -> FieldError {
        FieldError::new(pointer, FieldCode::Malformed, self.0)
    }
}

/// Returns `pointer` extended by the member `name`, escaped according to RFC 6901.
pub fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}
