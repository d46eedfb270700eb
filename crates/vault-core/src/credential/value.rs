//! Values of fields: how they are parsed, checked and written.

use super::SecretText;
use super::flaw::Flaw;
use super::spec::{DataPolicy, FieldSpec};
use crate::field::{FieldCode, FieldError, child};
use crate::json::{Node, write_text};

/// How much of a value is looked at.
#[derive(Clone, Copy)]
pub(super) enum Checks {
    /// Its shape: it was accepted once, and whatever rules came since must not shut it in.
    Stored,
    /// Its shape and every rule of today.
    New(DataPolicy),
}

/// A field being parsed: its row in the table, and the pointer of its object.
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

    pub(super) fn refuse(&self, flaw: Flaw) -> Vec<FieldError> {
        vec![FieldError::new(self.pointer(), flaw.code, flaw.detail)]
    }

    /// The text of a string that passes the field's rule.
    pub(super) fn text(&self, node: Node) -> Result<SecretText, Vec<FieldError>> {
        let Node::String(text) = node else { return Err(self.wrong_type("must be a string")) };
        // Looked at by the rule, which answers with fixed text only.
        self.judge(|_| self.spec.check(text.expose()))?;
        Ok(text)
    }

    /// Applies `rule`, if the value is new.
    pub(super) fn judge(&self, rule: impl FnOnce(DataPolicy) -> Result<(), Flaw>) -> Result<(), Vec<FieldError>> {
        match self.checks {
            Checks::Stored => Ok(()),
            Checks::New(policy) => rule(policy).map_err(|flaw| self.refuse(flaw)),
        }
    }
}

/// A type that a field's value can have.
pub(super) trait FieldValue {
    /// The value in `node`.
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>>
    where
        Self: Sized;

    /// Writes the value in canonical JSON.
    fn write(&self, sink: &mut dyn FnMut(&str));

    /// Gives `each` the texts within the value: of a secret, those that may stand in no other field.
    fn texts(&self, each: &mut dyn FnMut(&str));
}

impl FieldValue for SecretText {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        field.text(node)
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        write_text(self.expose(), sink); // The caller's sink decides where it may go.
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(self.expose()); // For comparison with the fields that can be seen.
    }
}

impl FieldValue for String {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        // Used for places alone, which are shown in full.
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
