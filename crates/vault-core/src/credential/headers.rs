//! Header fields that are sent with requests for a direct link.

use super::spec::FieldClass;
use super::value::{Checks, FieldAt, FieldValue};
use super::violation::Violation;
use super::{SecretText, hygiene};
use crate::field::{FieldCode, FieldError};
use crate::json::{Member, Node, ObjectWriter, pointer_to, write_text};
use std::collections::HashSet;

/// 1 to 32 header fields, ordered by name.
#[derive(Debug)]
pub struct Headers(Vec<Header>);

/// A header field.
#[derive(Debug)]
pub struct Header {
    /// Name of the field, as entered.
    pub name: String,
    /// Value of the field.
    pub value: SecretText,
}

impl Headers {
    /// Maximum number of fields.
    pub const MAX: usize = 32;

    /// Iterates over the fields, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter()
    }
}

impl FieldValue for Headers {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        let Node::Object(members) = node else { return Err(field.wrong_type("must be an object of strings")) };
        let is_new = matches!(field.checks, Checks::New);
        if is_new && members.is_empty() {
            return Err(field.refuse(Violation::new(FieldCode::Blank, "must not be empty: leave it out instead")));
        }
        if is_new && members.len() > Self::MAX {
            return Err(field.refuse(Violation::new(FieldCode::TooLong, "must be at most 32 header fields")));
        }
        let mut errors = Vec::new();
        let mut headers = Vec::with_capacity(members.len());
        let mut seen = HashSet::new();
        for Member { name, value } in members {
            let pointer = pointer_to(&field.pointer(), &name);
            let Node::String(value) = value else {
                errors.push(FieldError::new(pointer, FieldCode::WrongType, "must be a string"));
                continue;
            };
            if is_new {
                let violation = check_name(&name, &mut seen).and_then(|()| check_value(value.expose())); // Fixed text only.
                errors.extend(
                    violation.err().map(|violation| FieldError::new(pointer, violation.code, violation.detail)),
                );
            }
            headers.push(Header { name, value });
        }
        headers.sort_by(|a, b| a.name.cmp(&b.name));
        if errors.is_empty() { Ok(Self(headers)) } else { Err(errors) }
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        let mut object = ObjectWriter::new(sink);
        for header in &self.0 {
            write_text(header.value.expose(), object.member(&header.name)); // The caller chooses the sink.
        }
        object.end();
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        self.0.iter().for_each(|header| each(header.value.expose())); // For comparison with visible fields.
    }
}

fn check_name(name: &str, seen: &mut HashSet<String>) -> Result<(), Violation> {
    /// Header fields that the HTTP client sets based on URL and connection.
    const RESERVED: [&str; 8] =
        ["connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"];
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !(1..=128).contains(&name.len()) || !name.bytes().all(is_token_byte) {
        return Err(Violation::new(
            FieldCode::Malformed,
            "must have header names of 1 to 128 characters, of those that RFC 9110 allows",
        ));
    }
    let name = name.to_ascii_lowercase();
    if RESERVED.contains(&name.as_str()) {
        return Err(Violation::new(
            FieldCode::NotAllowed,
            "is a header that the HTTP client sets itself: leave it out",
        ));
    }
    if !seen.insert(name) {
        return Err(Violation::new(FieldCode::Malformed, "must not be repeated; upper and lower case are the same"));
    }
    Ok(())
}

fn check_value(value: &str) -> Result<(), Violation> {
    hygiene::length(value)?;
    hygiene::blank(value)?;
    hygiene::surrounding_space(value)?;
    hygiene::quotes(value)?;
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(Violation::new(FieldCode::ControlCharacter, "must not contain control characters"));
    }
    if !value.is_ascii() {
        return Err(Violation::new(FieldCode::Malformed, "must be ASCII"));
    }
    // Also check single words, to detect `Bearer ***`. Shorter words are valid values: `*`, `*/*`, `-`.
    let mut words = std::iter::once(value).chain(value.split_ascii_whitespace()).filter(|word| word.len() >= 3);
    words.try_for_each(|word| hygiene::unfilled(word, FieldClass::Secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for value in ["Bearer abc.def", "*", "*/*", "bytes=0-", "a\tb", "text/html; q=0.1"] {
            assert!(check_value(value).is_ok(), "{value}");
        }
        for (value, code) in [
            ("", FieldCode::Blank),
            ("a ", FieldCode::Surrounded),
            ("\"abc\"", FieldCode::Surrounded),
            ("a\r\nb", FieldCode::ControlCharacter),
            ("\u{e4}b", FieldCode::Malformed),
            ("Bearer ***", FieldCode::Masked),
            ("Bearer ${TOKEN}", FieldCode::Placeholder),
        ] {
            assert_eq!(check_value(value).err().map(|violation| violation.code), Some(code), "{value:?}");
        }
    }

    #[test]
    fn names() {
        let mut seen = HashSet::new();
        assert!(check_name("Authorization", &mut seen).is_ok());
        for name in ["", "a b", "a:b", "\u{e4}", "authorization", "Host", "Transfer-Encoding"] {
            assert!(check_name(name, &mut seen).is_err(), "{name:?}");
        }
    }
}
