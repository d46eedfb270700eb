//! Errors of typed parsers, with the pointers and texts of other field errors.

use super::pointer_to;
use crate::field::{FieldCode, FieldError, child};
use serde_path_to_error::{Error, Segment};

/// Returns the error of the first field that has another type. It contains neither values nor unusual names of the
/// document, which the error of serde repeats.
pub fn typed_error(error: &Error<serde_json::Error>) -> FieldError {
    let message = error.inner().to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
    let known = |prefix: &str| message.strip_prefix(prefix)?.strip_suffix('`').map(str::to_owned);
    let (found, expected) = message.rsplit_once(", expected ").unwrap_or((message, ""));
    let mut pointer = String::new();
    for segment in error.path() {
        pointer = match segment {
            Segment::Map { key } => pointer_to(&pointer, key),
            Segment::Seq { index } => child(&pointer, &index.to_string()),
            Segment::Enum { .. } | Segment::Unknown => pointer,
        };
    }
    if let Some(name) = known("missing field `") {
        FieldError::new(child(&pointer, &name), FieldCode::Required, "is required")
    } else if let Some(name) = known("duplicate field `") {
        // The path already ends with the name.
        let pointer = if pointer.ends_with(&child("", &name)) { pointer } else { child(&pointer, &name) };
        FieldError::new(pointer, FieldCode::Duplicate, "must not be repeated")
    } else if message.starts_with("unknown field `") {
        let expected = expected.trim_start_matches("one of ").replace('`', "");
        let detail = match expected.is_empty() {
            true => "unknown field; this request has no fields".to_owned(),
            false => format!("unknown field; expected one of {}", expected.replace(" or ", ", ")),
        };
        FieldError::new(pointer, FieldCode::Unknown, detail)
    } else {
        let detail = match expected {
            _ if found == "invalid type: null" => "must not be null",
            "a string" => "must be a string",
            "a boolean" => "must be true or false",
            "a sequence" => "must be an array",
            "i64" | "i32" | "u32" => "must be a whole number",
            _ => "must be an object",
        };
        FieldError::new(pointer, FieldCode::WrongType, detail)
    }
}
