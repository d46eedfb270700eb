//! JSON as requests bring it: strict, bounded, and held in memory that is wiped.
//!
//! A document is read whole before anything looks at it, so that a caller can report all of its flaws at
//! once. Members that stand twice are therefore collected, not fatal; the first of them is kept.

mod object;
mod parse;
mod write;

pub use object::{ObjectReader, unknown_field};
pub use parse::{Document, Limits, SyntaxError, parse};
pub(crate) use write::{ObjectWriter, write_members, write_text};

use crate::credential::SecretText;
use crate::field::child;
use std::fmt;

/// A JSON value. Its `Debug` form names the kind of value and nothing of its content.
pub enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number that a 64-bit integer or a 64-bit float can hold.
    Number(serde_json::Number),
    /// A string. All are held as if they were secret, since nothing here knows which are.
    String(SecretText),
    /// An array.
    Array(Vec<Node>),
    /// An object, its members in the order of the document, each name once.
    Object(Vec<Member>),
}

impl Node {
    /// The integer. One outside 64 bits is read as the nearest 64-bit integer, so that the range of the field
    /// decides. `None` for a fraction, also `1.0`, and for everything that is no number.
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
    /// The member's name.
    pub name: String,
    /// The member's value.
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
        // The name too: somebody will paste a secret where a name belongs.
        f.debug_struct("Member").field("value", &self.value).finish_non_exhaustive()
    }
}

/// The pointer to the member `name` of the object at `parent`; the object's own pointer where the name is not
/// one that may be repeated in an answer (1 to 64 characters of `A-Z a-z 0-9 _ . -`).
pub fn pointer_to(parent: &str, name: &str) -> String {
    if is_plain_name(name) { child(parent, name) } else { parent.to_owned() }
}

fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}
