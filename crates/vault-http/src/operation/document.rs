//! The JSON document of a request.

use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{content, query};
use secrecy::SecretString;
use vault_core::credential::SecretText;
use vault_core::field::FieldError;
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
