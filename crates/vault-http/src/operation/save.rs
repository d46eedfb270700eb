//! `PATCH {base_url}/organization-vault`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use serde::de::IgnoredAny;
use vault_api::{ProblemCode, SavedCredential};
use vault_core::credential::{CredentialData, DataPolicy};
use vault_core::json::ObjectReader;
use vault_core::namespace::Namespace;
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::usecase::{IdempotencyKey, SaveRequest};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let session = api.session_for(call, Action::Save)?;
    let verify = query::save(call.query(), api.parts.vault.verifies())?;
    content::check(call.headers())?;
    if call.headers().contains_key(header::IF_MATCH) {
        let detail = "This operation creates a credential. Send the request without `If-Match`.";
        return Err(Fault::new(ProblemCode::PreconditionFailed, detail));
    }
    let idempotency = idempotency_key(call.headers())?;
    let (namespace, data) = parse(&body.read().await?, api.policy)?;
    let request = SaveRequest { namespace, data, idempotency, verify };
    let vault = api.parts.vault.clone();

    let permit = api.verifying(verify, session.organization)?;
    let principal = Principal::Session(session);
    let saving = async move {
        let _permit = permit;
        vault.save(&principal, request).await
    };
    let id = api.complete(saving).await?;

    let saved = SavedCredential { id: id.to_string() };
    let mut response = answer::object(StatusCode::CREATED, &saved)?;
    let location = [api.base.as_str(), "/organization-vault/", &saved.id].concat();
    let location = HeaderValue::try_from(location).map_err(|error| Fault::internal().caused_by(error))?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// The client's name for the request, if it gives one.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Fault> {
    let mut values = headers.get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().and_then(|text| IdempotencyKey::parse(text).ok());
    match (key, values.next()) {
        (Some(key), None) => Ok(Some(key)),
        _ => Err(Fault::malformed("Send `Idempotency-Key` once, with 1 to 255 visible ASCII characters.")),
    }
}

pub(crate) fn parse(body: &[u8], policy: DataPolicy) -> Result<(Namespace, CredentialData), Fault> {
    let mut document = wire::Document::parse(body)?;
    // Its shape depends on the type, so it is read by itself.
    let data = document.take("data");
    let (vault_api::SaveRequest::<IgnoredAny> { kind, namespace, .. }, mut flaws) = document.read()?;
    let kind = flaws.check("/type", || query::parse_type(&kind));
    let namespace = flaws.check("/namespace", || Namespace::parse(&namespace, "/namespace"));
    let data = data.and_then(|data| {
        flaws.check_all("/data", || match kind {
            Some(kind) => CredentialData::parse(kind, data, "/data", policy).map(Some),
            // Without its type there is no telling what the data should be, but that it should be an object.
            None => ObjectReader::new(data, "/data").map(|_| None).map_err(|error| vec![error]),
        })
    });
    flaws.finish(namespace.zip(data.flatten()))
}
