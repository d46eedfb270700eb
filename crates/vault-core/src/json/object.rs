//! Reader of an object's members, which collects all violations.

use super::{Member, Node, pointer_to};
use crate::credential::SecretText;
use crate::field::{FieldCode, FieldError, child};

/// Returns the message for a member that is not one of `known`.
pub fn unknown_field(known: &[&str]) -> String {
    match known {
        [] => "unknown field; this request has no fields".to_owned(),
        known => format!("unknown field; expected one of {}", known.join(", ")),
    }
}

/// Reads the members of one object. A required member that is returned as `None` has been reported, so a caller may
/// read all members first and then check the result of [`ObjectReader::finish`].
///
/// `null` is a value of the wrong type and not an absent member, except where [`ObjectReader::is_null`] accepts it.
pub struct ObjectReader {
    pointer: String,
    members: Vec<Member>,
    /// Requested names, in this order.
    known: Vec<String>,
    errors: Vec<FieldError>,
}

impl ObjectReader {
    /// Creates a reader of `node`. `pointer` is its position in the document.
    ///
    /// # Errors
    /// [`FieldCode::WrongType`] if it is not an object.
    pub fn new(node: Node, pointer: &str) -> Result<Self, FieldError> {
        match node {
            Node::Object(members) => {
                Ok(Self { pointer: pointer.to_owned(), members, known: Vec::new(), errors: Vec::new() })
            }
            _ => Err(FieldError::new(pointer, FieldCode::WrongType, "must be an object")),
        }
    }

    /// Returns the pointer of the object.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns the required string `name`.
    pub fn string(&mut self, name: &str) -> Option<SecretText> {
        let node = self.node(name)?;
        self.as_string(name, node)
    }

    /// Returns the string `name`, if present.
    pub fn optional_string(&mut self, name: &str) -> Option<SecretText> {
        let node = self.optional_node(name)?;
        self.as_string(name, node)
    }

    /// Returns the boolean `name`, if present.
    pub fn optional_bool(&mut self, name: &str) -> Option<bool> {
        match self.optional_node(name)? {
            Node::Bool(value) => Some(value),
            _ => self.wrong_type(name, "must be true or false"),
        }
    }

    /// Returns the required member `name` of any type.
    pub fn node(&mut self, name: &str) -> Option<Node> {
        match self.take(name) {
            None => {
                self.violation(name, FieldCode::Required, "is required");
                None
            }
            Some(Node::Null) => self.wrong_type(name, "must not be null"),
            found => found,
        }
    }

    /// Returns the member `name` of any type, if present.
    pub fn optional_node(&mut self, name: &str) -> Option<Node> {
        match self.take(name) {
            Some(Node::Null) => self.wrong_type(name, "must not be null: omit the field instead"),
            found => found,
        }
    }

    /// Returns whether the member `name` is `null`, for requests in which `null` removes a value. Consumes the `null`.
    pub fn is_null(&mut self, name: &str) -> bool {
        let null = self.members.iter().any(|member| member.name == name && matches!(member.value, Node::Null));
        if null {
            self.take(name);
        }
        null
    }

    /// Adds a violation that the caller found.
    pub fn report(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// Adds violations that the caller found.
    pub fn report_all(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.errors.extend(errors);
    }

    /// Returns whether an error was reported for `pointer`.
    pub(crate) fn has_error_at(&self, pointer: &str) -> bool {
        self.errors.iter().any(|error| error.pointer == pointer)
    }

    /// Returns all violations, including members that the caller did not request.
    #[must_use]
    pub fn finish(mut self) -> Vec<FieldError> {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        let detail = unknown_field(&known);
        for member in &self.members {
            let pointer = pointer_to(&self.pointer, &member.name);
            let error = FieldError::new(pointer, FieldCode::Unknown, detail.clone());
            // Names that must not be repeated in messages share the object's pointer. Report it once.
            if self.errors.last() != Some(&error) {
                self.errors.push(error);
            }
        }
        self.errors
    }

    fn take(&mut self, name: &str) -> Option<Node> {
        if !self.known.iter().any(|known| known == name) {
            self.known.push(name.to_owned());
        }
        let index = self.members.iter().position(|member| member.name == name)?;
        Some(self.members.remove(index).value)
    }

    fn as_string(&mut self, name: &str, node: Node) -> Option<SecretText> {
        match node {
            Node::String(text) => Some(text),
            _ => self.wrong_type(name, "must be a string"),
        }
    }

    fn wrong_type<T>(&mut self, name: &str, detail: &'static str) -> Option<T> {
        self.violation(name, FieldCode::WrongType, detail);
        None
    }

    fn violation(&mut self, name: &str, code: FieldCode, detail: &'static str) {
        self.errors.push(FieldError::new(child(&self.pointer, name), code, detail));
    }
}
