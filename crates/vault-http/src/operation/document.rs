//! The JSON document of a request.

use crate::fault::Fault;
use vault_core::json::{self, Limits, ObjectReader, SyntaxError};

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
