//! The JSON document of a request.

use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{content, query};
use secrecy::SecretString;
use std::ops::Range;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vault_core::credential::SecretText;
use vault_core::field::{FieldCode, FieldError, child};
use vault_core::json::{self, Limits, Node, ObjectReader, SyntaxError};
use vault_core::time::Timestamp;

/// A reader of the object in `body`.
pub(super) fn object(body: &[u8]) -> Result<ObjectReader, Fault> {
    let document = json::parse(body, Limits::REQUEST).map_err(|error| {
        Fault::malformed(match error {
            SyntaxError::NotUtf8 => "The body is not UTF-8.",
            SyntaxError::TooDeep => "The body is nested too deeply.",
            SyntaxError::TooManyMembers => "The body has too many members.",
            _ => "The body is not JSON.",
        })
    })?;
    document.into_reader().map_err(Fault::fields)
}

/// A member's text, to be kept.
pub(super) fn secret(text: &SecretText) -> SecretString {
    SecretString::from(text.expose()) // from one wiped form to another
}

/// The strings `names`, which are all that the object in `body` may hold, to be kept.
pub(crate) fn secrets<const N: usize>(body: &[u8], names: [&str; N]) -> Result<[SecretString; N], Fault> {
    let mut members = object(body)?;
    let found = names.map(|name| members.string(name).as_ref().map(secret));
    let errors = members.finish();
    match <[SecretString; N]>::try_from(found.into_iter().flatten().collect::<Vec<_>>()) {
        Ok(found) if errors.is_empty() => Ok(found),
        _ => Err(Fault::fields(errors)),
    }
}

/// The strings `names`, which are all that a request may hold: no query, and a JSON body of them.
pub(super) async fn read_secrets<const N: usize>(
    call: &Call<'_>,
    body: &mut Incoming,
    names: [&str; N],
) -> Result<[SecretString; N], Fault> {
    query::none(call.query())?;
    content::check(call.headers())?;
    secrets(&body.read().await?, names)
}

/// What was parsed, or nothing and its flaw among those of `members`.
pub(super) fn keep<T>(members: &mut ObjectReader, parsed: Result<T, FieldError>) -> Option<T> {
    parsed.map_err(|error| members.report(error)).ok()
}

/// The strings of the array `name`, which must be there and which are not secret.
pub(super) fn texts(members: &mut ObjectReader, name: &str) -> Option<Vec<String>> {
    let node = members.node(name)?;
    as_texts(members, name, node)
}

/// The strings of the array `name`, if it is there, which are not secret.
pub(super) fn optional_texts(members: &mut ObjectReader, name: &str) -> Option<Vec<String>> {
    let node = members.optional_node(name)?;
    as_texts(members, name, node)
}

fn as_texts(members: &mut ObjectReader, name: &str, node: Node) -> Option<Vec<String>> {
    let pointer = child(members.pointer(), name);
    let wrong = |pointer, detail: &'static str| FieldError::new(pointer, FieldCode::WrongType, detail);
    let Node::Array(elements) = node else {
        members.report(wrong(pointer, "must be an array of strings"));
        return None;
    };
    let mut texts = Some(Vec::with_capacity(elements.len()));
    for (index, element) in elements.into_iter().enumerate() {
        match (element, &mut texts) {
            (Node::String(text), Some(texts)) => texts.push(text.expose().to_owned()), // not secret here
            (Node::String(_), None) => {}
            _ => {
                members.report(wrong(child(&pointer, &index.to_string()), "must be a string"));
                texts = None;
            }
        }
    }
    texts
}

/// The years 1970 to 9999, as seconds.
const TIMES: Range<i64> = 0..253_402_300_800;

/// The point in time `name`, if it is there, to the second.
pub(super) fn optional_time(members: &mut ObjectReader, name: &str) -> Option<Timestamp> {
    let text = members.optional_string(name)?;
    // A time is not secret.
    let time = OffsetDateTime::parse(text.expose(), &Rfc3339).ok().map(OffsetDateTime::unix_timestamp);
    let time = time.filter(|seconds| TIMES.contains(seconds)).map(|seconds| Timestamp::from_millis(seconds * 1_000));
    if time.is_none() {
        let detail = "must be a time as RFC 3339 has it, such as 2026-11-20T12:00:00Z";
        members.report(FieldError::new(child(members.pointer(), name), FieldCode::Malformed, detail));
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of the object `body` as a list, and which flaws it has.
    fn list(body: &str) -> (Option<Vec<String>>, Vec<(String, &'static str)>) {
        let Ok(mut members) = object(body.as_bytes()) else { panic!("an object: {body}") };
        let texts = texts(&mut members, "a");
        (texts, members.finish().into_iter().map(|error| (error.pointer, error.code.as_str())).collect())
    }

    #[test]
    fn a_list_of_texts_is_an_array_of_strings_and_nothing_else() {
        let all = |texts: &[&str]| (Some(texts.iter().map(|text| (*text).to_owned()).collect()), Vec::new());
        assert_eq!(list(r#"{"a": []}"#), all(&[]));
        assert_eq!(list(r#"{"a": ["x", ""]}"#), all(&["x", ""]));
        let none = |flaws: &[(&str, &'static str)]| {
            (None, flaws.iter().map(|(pointer, code)| ((*pointer).to_owned(), *code)).collect())
        };
        assert_eq!(list("{}"), none(&[("/a", "required")]));
        for wrong in ["null", "\"x\"", "{}", "1", "true"] {
            assert_eq!(list(&format!("{{\"a\": {wrong}}}")), none(&[("/a", "wrong-type")]), "{wrong}");
        }
        let mixed = none(&[("/a/0", "wrong-type"), ("/a/2", "wrong-type")]);
        assert_eq!(list(r#"{"a": [null, "x", ["y"]]}"#), mixed);
    }

    #[test]
    fn times_are_read_with_their_offset_and_to_the_second() {
        let read = |text: &str| {
            let body = serde_json::json!({ "t": text }).to_string();
            let Ok(mut members) = object(body.as_bytes()) else { panic!("an object: {body}") };
            let time = optional_time(&mut members, "t").map(Timestamp::as_millis);
            let flaws: Vec<_> =
                members.finish().into_iter().map(|error| (error.pointer, error.code.as_str())).collect();
            assert_eq!(flaws.is_empty(), time.is_some(), "{text}");
            assert!(flaws.iter().all(|flaw| *flaw == ("/t".to_owned(), "malformed")), "{text}");
            time
        };
        for text in ["2026-11-20T12:00:00Z", "2026-11-20T13:00:00+01:00", "2026-11-20T12:00:00.999Z"] {
            assert_eq!(read(text), Some(1_795_176_000_000), "{text}");
        }
        for text in ["", "2026-11-20", "2026-11-20T12:00:00", "1795176000", "2026-02-30T12:00:00Z", "tomorrow"]
            .into_iter()
            .chain(["1969-12-31T23:59:59Z", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
