//! Parser from bytes to a [`Document`].

use super::{Member, Node, ObjectReader, is_plain_name};
use crate::credential::SecretText;
use crate::field::{FieldCode, FieldError, child};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Limits of a document. The caller must limit its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum nesting depth of arrays and objects.
    pub depth: usize,
    /// Maximum number of members and array elements in the document.
    pub members: usize,
}

impl Limits {
    /// Limits of requests.
    pub const REQUEST: Self = Self { depth: 16, members: 1_000 };
    /// Limits of sealed documents. They are wider than those of requests ever were, so that stored data can always be
    /// read.
    pub const STORED: Self = Self { depth: 64, members: 100_000 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::REQUEST
    }
}

/// The bytes are not a document within the limits. No variant contains content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxError {
    /// Not UTF-8.
    #[error("is not UTF-8")]
    NotUtf8,
    /// Not one JSON text (RFC 8259), a number out of range, or a lone surrogate.
    #[error("is not JSON")]
    NotJson,
    /// Deeper than [`Limits::depth`].
    #[error("is nested too deeply")]
    TooDeep,
    /// More than [`Limits::members`].
    #[error("has too many fields")]
    TooManyMembers,
}

/// A document that is JSON within its limits.
#[derive(Debug)]
pub struct Document {
    /// Value of the document.
    pub root: Node,
    /// One [`FieldCode::Duplicate`] for each repeated name of an object.
    pub duplicates: Vec<FieldError>,
}

impl Document {
    /// Returns a reader of the document's members, which also reports the duplicates.
    ///
    /// # Errors
    /// The document is not an object.
    pub fn into_reader(self) -> Result<ObjectReader, Vec<FieldError>> {
        let mut duplicates = self.duplicates;
        match ObjectReader::new(self.root, "") {
            Ok(mut reader) => {
                reader.report_all(duplicates);
                Ok(reader)
            }
            Err(error) => {
                duplicates.push(error);
                Err(duplicates)
            }
        }
    }
}

/// Parses the document in `bytes`.
///
/// # Errors
/// The reason in [`SyntaxError`].
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Document, SyntaxError> {
    let text = std::str::from_utf8(bytes).map_err(|_| SyntaxError::NotUtf8)?;
    let mut state = State { left: limits.members, failure: None, duplicates: Vec::new() };
    let mut source = serde_json::Deserializer::from_str(text);
    let root = ValueSeed { state: &mut state, path: &Path::Root, depth_left: limits.depth }
        .deserialize(&mut source)
        .and_then(|root| source.end().map(|()| root));
    match root {
        Ok(root) => Ok(Document { root, duplicates: state.duplicates }),
        Err(_) => Err(state.failure.unwrap_or(SyntaxError::NotJson)),
    }
}

/// State shared by all parts of the document during parsing.
struct State {
    left: usize,
    failure: Option<SyntaxError>,
    duplicates: Vec<FieldError>,
}

impl State {
    fn fail<E: Error>(&mut self, failure: SyntaxError) -> E {
        self.failure = Some(failure);
        E::custom(failure)
    }

    fn count_one<E: Error>(&mut self) -> Result<(), E> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return Err(self.fail(SyntaxError::TooManyMembers)),
        }
        Ok(())
    }
}

/// Position in the document. It is kept on the stack and converted to a JSON pointer only for errors.
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Element(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// Returns the JSON pointer up to the first name that must not be repeated in messages, and whether it is complete.
    fn pointer(&self) -> (String, bool) {
        match self {
            Self::Root => (String::new(), true),
            Self::Member(parent, name) => match parent.pointer() {
                (pointer, true) if is_plain_name(name) => (child(&pointer, name), true),
                (pointer, _) => (pointer, false),
            },
            Self::Element(parent, index) => match parent.pointer() {
                (pointer, true) => (format!("{pointer}/{index}"), true),
                incomplete => incomplete,
            },
        }
    }
}

struct ValueSeed<'a> {
    state: &'a mut State,
    path: &'a Path<'a>,
    depth_left: usize,
}

impl ValueSeed<'_> {
    fn descend<E: Error>(&mut self) -> Result<usize, E> {
        self.depth_left.checked_sub(1).ok_or_else(|| self.state.fail(SyntaxError::TooDeep))
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        serde_json::Number::from_f64(value).map(Node::Number).ok_or_else(|| self.state.fail(SyntaxError::NotJson))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::String(SecretText::from(value)))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Node, E> {
        Ok(Node::String(SecretText::from(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Node, A::Error> {
        let depth_left = self.descend()?;
        let mut array = Vec::new();
        loop {
            let path = Path::Element(self.path, array.len());
            let seed = ValueSeed { state: &mut *self.state, path: &path, depth_left };
            match elements.next_element_seed(seed)? {
                Some(element) => array.push(element),
                None => return Ok(Node::Array(array)),
            }
            self.state.count_one()?;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Node, A::Error> {
        let depth_left = self.descend()?;
        let mut members: Vec<Member> = Vec::new();
        while let Some(name) = entries.next_key::<String>()? {
            self.state.count_one()?;
            let path = Path::Member(self.path, &name);
            let value = entries.next_value_seed(ValueSeed { state: &mut *self.state, path: &path, depth_left })?;
            members.push(Member { name, value });
        }
        keep_first_of_each(&mut members, self.path, &mut self.state.duplicates);
        Ok(Node::Object(members))
    }
}

fn keep_first_of_each(members: &mut Vec<Member>, path: &Path<'_>, duplicates: &mut Vec<FieldError>) {
    // Sort instead of comparing all pairs, which would be quadratic in the number of members.
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by(|&a, &b| members[a].name.cmp(&members[b].name));
    let mut superfluous = Vec::new();
    for same in order.chunk_by(|&a, &b| members[a].name == members[b].name).filter(|same| same.len() > 1) {
        let (pointer, complete) = path.pointer();
        let name = &members[same[0]].name;
        let pointer = if complete && is_plain_name(name) { child(&pointer, name) } else { pointer };
        let error = FieldError::new(pointer, FieldCode::Duplicate, "must not be repeated");
        // Names that must not be repeated in messages share the object's pointer. Report it once.
        if duplicates.last() != Some(&error) {
            duplicates.push(error);
        }
        superfluous.extend_from_slice(&same[1..]);
    }
    superfluous.sort_unstable();
    for index in superfluous.into_iter().rev() {
        members.remove(index);
    }
}
