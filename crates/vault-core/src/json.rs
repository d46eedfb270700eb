//! Strict and bounded parser for the JSON of requests, whose memory is wiped.
//!
//! A document is parsed completely before it is validated, so that a caller can report all violations together.
//! Repeated members are therefore collected instead of aborting the parser, and the first of them is kept.

mod object;
mod parse;
mod typed;
mod write;

pub use object::{ObjectReader, unknown_field};
pub use parse::{Document, Limits, SyntaxError, parse};
pub use typed::typed_error;
pub(crate) use write::write_members;
pub use write::{ObjectWriter, write_text};

use crate::credential::SecretText;
use crate::field::child;
use std::fmt;

/// A JSON value. Its `Debug` form shows only the kind of value.
pub enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number that fits into a 64-bit integer or a 64-bit float.
    Number(serde_json::Number),
    /// A string. All strings are treated as secret, because the parser cannot distinguish them.
    String(SecretText),
    /// An array.
    Array(Vec<Node>),
    /// An object with its members in the order of the document, without duplicate names.
    Object(Vec<Member>),
}

impl Node {
    /// Returns the integer. An integer outside 64 bits is returned as the nearest 64-bit integer, so that the range of
    /// the field decides. Returns `None` for a fraction, including `1.0`, and for values that are not numbers.
    pub fn as_integer(&self) -> Option<i64> {
        /// 2^63: floats at least this large are whole, and digits beyond 64 bits arrive as floats.
        const BEYOND: f64 = 9_223_372_036_854_775_808.0;
        let Self::Number(number) = self else { return None };
        if number.is_f64() {
            return match number.as_f64()? {
                large if large >= BEYOND => Some(i64::MAX),
                large if large <= -BEYOND => Some(i64::MIN),
                _ => None,
            };
        }
        Some(number.as_i64().unwrap_or(i64::MAX))
    }
}

/// A member of an object.
pub struct Member {
    /// Name of the member.
    pub name: String,
    /// Value of the member.
    pub value: Node,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "Null",
            Self::Bool(_) => "Bool(..)",
            Self::Number(_) => "Number(..)",
            Self::String(_) => "String(..)",
            Self::Array(_) => "Array(..)",
            Self::Object(_) => "Object(..)",
        })
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omit the name too, because a user may paste a secret into it.
        f.debug_struct("Member").field("value", &self.value).finish_non_exhaustive()
    }
}

/// Returns the pointer to the member `name` of the object at `parent`. Returns the object's own pointer if the name
/// must not be repeated in a response (it has other than 1 to 64 characters of `A-Z a-z 0-9 _ . -`).
pub fn pointer_to(parent: &str, name: &str) -> String {
    if is_plain_name(name) { child(parent, name) } else { parent.to_owned() }
}

fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}
