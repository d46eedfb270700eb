//! Reading an object member by member, collecting every flaw on the way.

use super::{Member, Node, pointer_to};
use crate::credential::SecretText;
use crate::field::{FieldCode, FieldError, child};

/// What is said of a member that is none of `known`.
pub fn unknown_field(known: &[&str]) -> String {
    match known {
        [] => "unknown field; this request takes none".to_owned(),
        known => format!("unknown field; expected one of {}", known.join(", ")),
    }
}

/// Takes the members of one object. A required member that is read as `None` has been reported, so a caller may
/// read everything first, then call [`ObjectReader::finish`] and look only there.
///
/// `null` is a value of the wrong type, never a member left out, except where [`ObjectReader::is_null`] asks for it.
pub struct ObjectReader {
    pointer: String,
    members: Vec<Member>,
    /// The names asked for, in this order.
    known: Vec<String>,
    errors: Vec<FieldError>,
}

impl ObjectReader {
    /// A reader of `node`; `pointer` is its place in the document.
    ///
    /// # Errors
    /// [`FieldCode::WrongType`] where it is not an object.
    pub fn new(node: Node, pointer: &str) -> Result<Self, FieldError> {
        match node {
            Node::Object(members) => {
                Ok(Self { pointer: pointer.to_owned(), members, known: Vec::new(), errors: Vec::new() })
            }
            _ => Err(FieldError::new(pointer, FieldCode::WrongType, "must be an object")),
        }
    }

    /// The pointer to the object itself.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The string `name`, which is required.
    pub fn string(&mut self, name: &str) -> Option<SecretText> {
        let node = self.node(name)?;
        self.as_string(name, node)
    }

    /// The string `name`, if present.
    pub fn optional_string(&mut self, name: &str) -> Option<SecretText> {
        let node = self.optional_node(name)?;
        self.as_string(name, node)
    }

    /// The boolean `name`, if present.
    pub fn optional_bool(&mut self, name: &str) -> Option<bool> {
        match self.optional_node(name)? {
            Node::Bool(value) => Some(value),
            _ => self.wrong_type(name, "must be true or false"),
        }
    }

    /// The member `name` of any type, which is required.
    pub fn node(&mut self, name: &str) -> Option<Node> {
        match self.take(name) {
            None => {
                self.flaw(name, FieldCode::Required, "is required");
                None
            }
            Some(Node::Null) => self.wrong_type(name, "must not be null"),
            found => found,
        }
    }

    /// The member `name` of any type, if present.
    pub fn optional_node(&mut self, name: &str) -> Option<Node> {
        match self.take(name) {
            Some(Node::Null) => self.wrong_type(name, "must not be null: leave the member out instead"),
            found => found,
        }
    }

    /// Whether the member `name` is `null`, for requests in which `null` removes a value. A `null` is taken.
    pub fn is_null(&mut self, name: &str) -> bool {
        let null = self.members.iter().any(|member| member.name == name && matches!(member.value, Node::Null));
        if null {
            self.take(name);
        }
        null
    }

    /// Adds a flaw that the caller found.
    pub fn report(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// Adds flaws that the caller found.
    pub fn report_all(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.errors.extend(errors);
    }

    /// Whether an error was reported for `pointer`.
    pub(crate) fn has_error_at(&self, pointer: &str) -> bool {
        self.errors.iter().any(|error| error.pointer == pointer)
    }

    /// All flaws, among them the members that the caller did not ask for. Empty if there are none.
    #[must_use]
    pub fn finish(mut self) -> Vec<FieldError> {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        let detail = unknown_field(&known);
        for member in &self.members {
            let pointer = pointer_to(&self.pointer, &member.name);
            let error = FieldError::new(pointer, FieldCode::Unknown, detail.clone());
            // Names that may not be repeated share the object's pointer; saying so once is enough.
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
        self.flaw(name, FieldCode::WrongType, detail);
        None
    }

    fn flaw(&mut self, name: &str, code: FieldCode, detail: &'static str) {
        self.errors.push(FieldError::new(child(&self.pointer, name), code, detail));
    }
}
