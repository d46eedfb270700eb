//! The buckets that one key opens.

use super::value::{Checks, FieldAt, FieldValue};
use super::violation::Violation;
use crate::field::{FieldCode, FieldError, child};
use crate::json::{Node, write_text};
use std::iter::once;

/// 1 to 100 names of buckets, each once, in the order in which they were saved. JSON: a string, or an array of strings
/// if there are several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    first: String,
    others: Vec<String>,
}

impl Buckets {
    /// How many buckets one credential can have.
    pub const MAX: usize = 100;

    /// The name of the only bucket. `None` if there are several.
    pub fn single(&self) -> Option<&str> {
        self.others.is_empty().then_some(&*self.first)
    }

    /// The names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        once(&self.first).chain(&self.others).map(String::as_str)
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// Only the bucket `name`. `None` if it is not one of these.
    pub fn only(&self, name: &str) -> Option<Self> {
        self.iter().any(|bucket| bucket == name).then(|| Self::one(name.to_owned()))
    }

    const fn one(first: String) -> Self {
        Self { first, others: Vec::new() }
    }

    /// Reads what [`Buckets::write_json`] wrote.
    pub(crate) fn read_json(node: Node) -> Option<Self> {
        // Names of buckets are no secrets.
        let text = |node| if let Node::String(text) = node { Some(text.expose().to_owned()) } else { None };
        match node {
            Node::Array(items) => Self::of(items.into_iter().map(text).collect::<Option<_>>()?),
            node => text(node).map(Self::one),
        }
    }

    fn of(names: Vec<String>) -> Option<Self> {
        let mut names = names.into_iter();
        Some(Self { first: names.next()?, others: names.collect() })
    }

    /// Writes a string, or an array of strings.
    pub(crate) fn write_json(&self, sink: &mut dyn FnMut(&str)) {
        if let Some(name) = self.single() {
            return write_text(name, sink);
        }
        let mut before = "[";
        for name in self.iter() {
            sink(before);
            write_text(name, sink);
            before = ",";
        }
        sink("]");
    }
}

impl FieldValue for Buckets {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        let items = match node {
            Node::Array(items) => items,
            node @ Node::String(_) => return String::read(node, field).map(Self::one),
            _ => return Err(field.wrong_type("must be a string, or a list of strings")),
        };
        field.validate(|| {
            if items.len() > Self::MAX {
                return Err(Violation::new(FieldCode::TooLong, "must be at most 100 buckets"));
            }
            Ok(())
        })?;
        let is_new = matches!(field.checks, Checks::New);
        let mut names: Vec<String> = Vec::with_capacity(items.len());
        let mut errors = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let mut report =
                |code, detail| errors.push(FieldError::new(child(&field.pointer(), &index.to_string()), code, detail));
            let Node::String(text) = item else {
                report(FieldCode::WrongType, "must be a string".into());
                continue;
            };
            let name = text.expose().to_owned(); // shown in lists
            match field.spec.check(&name) {
                Err(violation) if is_new => report(violation.code, violation.detail),
                _ if is_new && names.contains(&name) => report(FieldCode::Malformed, "must not be repeated".into()),
                _ => names.push(name),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Self::of(names).ok_or_else(|| field.refuse(Violation::new(FieldCode::Blank, "must contain a bucket")))
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        self.write_json(sink);
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        self.iter().for_each(each);
    }
}
