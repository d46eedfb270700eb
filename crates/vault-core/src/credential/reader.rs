//! Parser for the fields of a credential type.

use super::spec::{FieldClass, FieldSpec};
use super::value::{Checks, FieldAt, FieldValue};
use crate::field::{FieldCode, FieldError, child};
use crate::json::ObjectReader;
use std::borrow::Cow;

/// A field that is set.
pub(super) struct Entry<'a> {
    pub(super) spec: &'static FieldSpec,
    pub(super) value: &'a dyn FieldValue,
}

/// Reads the fields of one type from one object.
pub(super) struct FieldReader {
    object: ObjectReader,
    checks: Checks,
}

impl FieldReader {
    pub(super) fn new(object: ObjectReader, checks: Checks) -> Self {
        Self { object, checks }
    }

    pub(super) fn read<T: FieldValue>(&mut self, spec: &'static FieldSpec) -> Option<T> {
        let node = if spec.required { self.object.node(spec.name) } else { self.object.optional_node(spec.name) }?;
        match T::read(node, &FieldAt { spec, parent: self.object.pointer(), checks: self.checks }) {
            Ok(value) => Some(value),
            Err(errors) => {
                self.object.report_all(errors);
                None
            }
        }
    }

    /// Refuses a visible field that contains a secret of the same credential: two fields were mixed up, and lists would
    /// show the secret.
    pub(super) fn refuse_exposed_secrets(&mut self, entries: &[Entry<'_>]) {
        if let Checks::Stored = self.checks {
            return;
        }
        let (secrets, seen): (Vec<&Entry<'_>>, Vec<&Entry<'_>>) =
            entries.iter().partition(|entry| entry.spec.class == FieldClass::Secret);
        for entry in seen {
            let mut exposes = false;
            entry.value.texts(&mut |text| {
                for secret in &secrets {
                    secret.value.texts(&mut |secret| exposes |= contains_secret(text, secret));
                }
            });
            if exposes {
                let detail = "must not contain a secret of this credential: this field is shown in lists";
                let pointer = child(self.object.pointer(), entry.spec.name);
                self.object.report(FieldError::new(pointer, FieldCode::NotAllowed, detail));
            }
        }
    }

    /// Reports an error that depends on several fields. Ignored for stored data, and for a field that already has an
    /// error.
    pub(super) fn refuse(&mut self, name: &'static str, code: FieldCode, detail: impl Into<Cow<'static, str>>) {
        let pointer = child(self.object.pointer(), name);
        if let Checks::New = self.checks
            && !self.object.has_error_at(&pointer)
        {
            self.object.report(FieldError::new(pointer, code, detail));
        }
    }

    pub(super) fn finish(self) -> Vec<FieldError> {
        self.object.finish()
    }
}

fn contains_secret(text: &str, secret: &str) -> bool {
    /// Shorter secrets, such as an external ID, can be words that a location legitimately contains.
    const LONG: usize = 16;
    text == secret || (secret.len() >= LONG && text.contains(secret))
}
