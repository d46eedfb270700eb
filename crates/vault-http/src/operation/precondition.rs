//! Preconditions of requests that change or delete something.

use crate::fault::Fault;
use actix_web::http::header::{self, HeaderMap};
use vault_api::ProblemCode;

/// Refuses every `If-Match` but `*`: nothing here has an entity tag, so only that can hold (RFC 9110 section 13.1.1).
pub(super) fn none_but_existence(headers: &HeaderMap) -> Result<(), Fault> {
    if headers.get_all(header::IF_MATCH).all(|value| value.as_bytes().trim_ascii() == b"*") {
        return Ok(());
    }
    let detail = "This operation has no `ETag`. Send the request without `If-Match`.";
    Err(Fault::new(ProblemCode::PreconditionFailed, detail))
}
