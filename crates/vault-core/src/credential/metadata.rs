//! What people say about a credential: labels and a description. Sealed like information, because names of systems and
//! customers are worth something to a thief.

use crate::field::{FieldCode, FieldError, child};
use crate::integration::is_printable;
use crate::json::Node;
use std::collections::BTreeMap;

/// A credential's labels: at most [`Labels::MAX`] names, each with one value.
///
/// A name has 1 to 63 characters of `a-z 0-9 . _ - /`, a value 0 to 63 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// The most labels of one credential.
    pub const MAX: usize = 16;
    /// The longest name and the longest value, in characters.
    pub const MAX_LENGTH: usize = 63;

    /// The labels in the object `node` at `pointer`.
    ///
    /// # Errors
    /// All flaws. A pointer names a member only where its name is a valid one.
    pub fn parse(node: Node, pointer: &str) -> Result<Self, Vec<FieldError>> {
        Self::default().merged(node, pointer)
    }

    /// These labels after the merge patch (RFC 7396) `node` at `pointer`: a string sets a label, `null` removes it, and
    /// the others stay. `null` in place of the object removes all.
    ///
    /// # Errors
    /// All flaws, among them that there would be too many.
    pub fn merged(&self, node: Node, pointer: &str) -> Result<Self, Vec<FieldError>> {
        let members = match node {
            Node::Object(members) => members,
            Node::Null => return Ok(Self::default()),
            _ => return Err(vec![FieldError::new(pointer, FieldCode::WrongType, "must be an object of strings")]),
        };
        let (mut labels, mut flaws) = (self.0.clone(), Vec::new());
        for member in members {
            if !is_name(&member.name) {
                flaws.push(FieldError::new(pointer, FieldCode::Malformed, NAME_RULE));
                continue;
            }
            match member.value {
                Node::Null => _ = labels.remove(&member.name),
                // Labels are shown in full.
                Node::String(value) if is_value(value.expose()) => {
                    labels.insert(member.name, value.expose().to_owned());
                }
                Node::String(_) => {
                    flaws.push(FieldError::new(child(pointer, &member.name), FieldCode::Malformed, VALUE_RULE));
                }
                _ => {
                    let detail = "must be a string, or null to remove the label";
                    flaws.push(FieldError::new(child(pointer, &member.name), FieldCode::WrongType, detail));
                }
            }
        }
        if labels.len() > Self::MAX {
            flaws.push(FieldError::new(pointer, FieldCode::TooLong, "must have at most 16 labels"));
        }
        flaws.dedup();
        if flaws.is_empty() { Ok(Self(labels)) } else { Err(flaws) }
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

const NAME_RULE: &str = "a label's name must have 1 to 63 characters of a-z 0-9 . _ - /";
const VALUE_RULE: &str = "must have at most 63 characters of A-Z a-z 0-9 . _ -";

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/".contains(&byte);
    (1..=Labels::MAX_LENGTH).contains(&text.len()) && text.bytes().all(fits)
}

fn is_value(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() <= Labels::MAX_LENGTH && text.bytes().all(fits)
}

/// A label that a list asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelFilter {
    /// The label's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl LabelFilter {
    /// The filter spelt `name:value`. Neither can hold a colon.
    ///
    /// # Errors
    /// The text is not of that form.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let (name, value) = text.split_once(':').unwrap_or((text, ":"));
        if is_name(name) && is_value(value) {
            return Ok(Self { name: name.to_owned(), value: value.to_owned() });
        }
        let detail = "must be name:value, as the label was set";
        Err(FieldError::new(pointer, FieldCode::Malformed, detail))
    }
}

/// What a credential is for, in words: 1 to 500 printable characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description(String);

impl Description {
    /// The longest description, in characters.
    pub const MAX_LENGTH: usize = 500;

    /// The description `text` of the member at `pointer`.
    ///
    /// # Errors
    /// Says which rule the text breaks.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let flaw = |code, detail: &'static str| Err(FieldError::new(pointer, code, detail));
        if text.trim().is_empty() {
            return flaw(FieldCode::Blank, "must not be empty or blank; leave it out instead");
        }
        if text.chars().count() > Self::MAX_LENGTH {
            return flaw(FieldCode::TooLong, "must be at most 500 characters");
        }
        if !text.chars().all(is_printable) {
            return flaw(FieldCode::ControlCharacter, "must not hold control or invisible characters");
        }
        Ok(Self(text.to_owned()))
    }

    /// The description's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
