//! Values of fields: parsing, validation and encoding.

use super::SecretText;
use super::spec::FieldSpec;
use super::violation::Violation;
use crate::field::{FieldCode, FieldError, child};
use crate::json::{Node, write_text};

/// Rules that apply to a value.
#[derive(Clone, Copy)]
pub(super) enum Checks {
    /// Only the format: the value was accepted before, and newer rules must not make it unreadable.
    Stored,
    /// The format and all current rules.
    New,
}

/// A field during parsing: its description, and the pointer of its object.
#[derive(Clone, Copy)]
pub(super) struct FieldAt<'a> {
    pub(super) spec: &'static FieldSpec,
    pub(super) parent: &'a str,
    pub(super) checks: Checks,
}

impl FieldAt<'_> {
    pub(super) fn pointer(&self) -> String {
        child(self.parent, self.spec.name)
    }

    pub(super) fn wrong_type(&self, detail: &'static str) -> Vec<FieldError> {
        vec![FieldError::new(self.pointer(), FieldCode::WrongType, detail)]
    }

    pub(super) fn refuse(&self, violation: Violation) -> Vec<FieldError> {
        vec![FieldError::new(self.pointer(), violation.code, violation.detail)]
    }

    /// Returns the text of a string that meets the field's rule.
    pub(super) fn text(&self, node: Node) -> Result<SecretText, Vec<FieldError>> {
        let Node::String(text) = node else { return Err(self.wrong_type("must be a string")) };
        // Read only by the rule, whose messages contain only fixed text.
        self.validate(|| self.spec.check(text.expose()))?;
        Ok(text)
    }

    /// Applies `rule` if the value is new.
    pub(super) fn validate(&self, rule: impl FnOnce() -> Result<(), Violation>) -> Result<(), Vec<FieldError>> {
        match self.checks {
            Checks::Stored => Ok(()),
            Checks::New => rule().map_err(|violation| self.refuse(violation)),
        }
    }
}

/// A type of field values.
pub(super) trait FieldValue {
    /// Parses the value in `node`.
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>>
    where
        Self: Sized;

    /// Writes the value in canonical JSON.
    fn write(&self, sink: &mut dyn FnMut(&str));

    /// Passes the texts in the value to `each`. For a secret, these are the texts that no other field may contain.
    fn texts(&self, each: &mut dyn FnMut(&str));
}

impl FieldValue for SecretText {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        field.text(node)
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        write_text(self.expose(), sink); // The caller's sink determines the destination.
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(self.expose()); // For comparison with the fields that are not secret.
    }
}

impl FieldValue for String {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        // Used only for locations, which are not secret.
        field.text(node).map(|text| text.expose().to_owned())
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        write_text(self, sink);
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(self);
    }
}

impl FieldValue for bool {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        match node {
            Node::Bool(value) => Ok(value),
            _ => Err(field.wrong_type("must be true or false")),
        }
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        sink(if *self { "true" } else { "false" });
    }

    fn texts(&self, _: &mut dyn FnMut(&str)) {}
}
