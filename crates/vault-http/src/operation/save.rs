//! `PATCH {base_url}/organization-vault`

use super::document::optional_time;
use super::{Inner, ParseData};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use serde::de::IgnoredAny;
use vault_api::{ProblemCode, SavedCredential};
use vault_core::activation::VendRule;
use vault_core::credential::{Description, Labels};
use vault_core::field::{FieldCode, FieldError};
use vault_core::json::ObjectReader;
use vault_core::namespace::Namespace;
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::usecase::{IdempotencyKey, NewCredential};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let session = api.session_for(call, Action::Save)?;
    let verify = query::save(call.query(), api.parts.vault.verifies())?;
    content::check(call.headers())?;
    if call.headers().contains_key(header::IF_MATCH) {
        let detail = "This operation creates a credential. Send the request without `If-Match`.";
        return Err(ProblemResponse::new(ProblemCode::PreconditionFailed, detail));
    }
    let idempotency = idempotency_key(call.headers())?;
    let request = NewCredential { idempotency, verify, ..parse(&body.read().await?, api.parse_data)? };
    let vault = api.parts.vault.for_request(call.origin);

    let permit = api.verifying(verify, session.organization)?;
    let principal = Principal::Session(session);
    let saving = async move {
        let _permit = permit;
        vault.save(&principal, request).await
    };
    let id = api.complete(call, saving).await?;

    let saved = SavedCredential { id: id.to_string() };
    let mut response = answer::object(StatusCode::CREATED, &saved)?;
    let location = [api.base.as_str(), "/organization-vault/", &saved.id].concat();
    let location = HeaderValue::try_from(location).map_err(|error| ProblemResponse::internal().caused_by(error))?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// Parses the optional idempotency key.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ProblemResponse> {
    let mut values = headers.get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().and_then(|text| IdempotencyKey::parse(text).ok());
    match (key, values.next()) {
        (Some(key), None) => Ok(Some(key)),
        _ => Err(ProblemResponse::malformed("Send `Idempotency-Key` once, with 1 to 255 visible ASCII characters.")),
    }
}

pub(crate) fn parse(body: &[u8], parse_data: ParseData) -> Result<NewCredential, ProblemResponse> {
    type Read = vault_api::SaveRequest<IgnoredAny, IgnoredAny>;
    let mut document = wire::Document::parse(body)?;
    // Labels have their own rules, and the format of the data depends on the type.
    let (data, labels) = (document.take("data"), document.take("labels"));
    let (Read { kind, namespace, description, expires_at, vend, .. }, mut violations) = document.read()?;
    let kind = violations.check("/type", || query::parse_type(&kind));
    let namespace = violations.check("/namespace", || Namespace::parse(&namespace, "/namespace"));
    let data = data.and_then(|data| {
        violations.check_all("/data", || match kind {
            Some(kind) => parse_data(kind, data, "/data").map(Some),
            // Without a valid type, only check that the data is an object.
            None => ObjectReader::new(data, "/data").map(|_| None).map_err(|error| vec![error]),
        })
    });
    let labels = labels
        .map_or(Some(Labels::default()), |node| violations.check_all("/labels", || Labels::parse(node, "/labels")));
    let description = violations.check("/description", || optional_description(description.as_deref()));
    let expires_at = violations.check("/expires_at", || optional_time(expires_at.as_deref(), "/expires_at"));
    let vend = violations.check("/vend", || vend.as_deref().map(parse_rule).transpose());
    let metadata = labels.zip(description).zip(expires_at).zip(vend);
    let request = namespace.zip(data.flatten()).zip(metadata);
    violations.finish(request.map(|((namespace, data), (((labels, description), expires_at), vend))| {
        let vend = vend.unwrap_or(VendRule::default_of(data.kind()));
        NewCredential { labels, description, expires_at, vend, ..NewCredential::new(namespace, data) }
    }))
}

/// Parses an optional description.
pub(super) fn optional_description(text: Option<&str>) -> Result<Option<Description>, FieldError> {
    text.map(|text| Description::parse(text, "/description")).transpose()
}

/// Parses the allowed forms of issuance.
pub(super) fn parse_rule(text: &str) -> Result<VendRule, FieldError> {
    VendRule::parse(text).ok_or_else(|| FieldError::new("/vend", FieldCode::OutOfRange, "must be any or short"))
}
