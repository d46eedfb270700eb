//! `PATCH {base_url}/organization-vault`

use super::document::keep;
use super::{Inner, document};
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use uuid::Uuid;
use vault_api::ProblemCode;
use vault_core::credential::{CredentialData, DataPolicy};
use vault_core::json::{Node, ObjectReader};
use vault_core::namespace::Namespace;
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::usecase::{IdempotencyKey, SaveRequest};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let session = api.session_for(call, Action::Save)?;
    let verify = query::save(call.query(), api.parts.vault.verifies())?;
    content::check(call.headers())?;
    if call.headers().contains_key(header::IF_MATCH) {
        let detail = "This only creates, so there is nothing that `If-Match` could match.";
        return Err(Fault::new(ProblemCode::PreconditionFailed, detail));
    }
    let idempotency = idempotency_key(call.headers())?;
    let (namespace, data) = parse(&body.read().await?, api.policy)?;
    let request = SaveRequest { namespace, data, idempotency, verify };
    let vault = api.parts.vault.clone();

    let leave = verify.then(|| api.verifying.enter(session.organization).ok_or_else(Fault::too_many_under_way));
    let leave = leave.transpose()?;
    let principal = Principal::Session(session);
    let saving = async move {
        let _leave = leave;
        vault.save(&principal, request).await
    };
    let id = api.complete(saving).await?;

    let mut text = Uuid::encode_buffer();
    let text = id.as_uuid().hyphenated().encode_lower(&mut text);
    let mut response = answer::json(StatusCode::CREATED, [b"{\"id\":\"", text.as_bytes(), b"\"}"].concat());
    let location = [api.base.as_str(), "/organization-vault/", text].concat();
    let location = HeaderValue::try_from(location).map_err(|error| Fault::internal().caused_by(error))?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Fault> {
    let mut values = headers.get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().and_then(|text| IdempotencyKey::parse(text).ok());
    match (key, values.next()) {
        (Some(key), None) => Ok(Some(key)),
        _ => Err(Fault::malformed("`Idempotency-Key` must stand once and have 1 to 255 visible ASCII characters.")),
    }
}

pub(crate) fn parse(body: &[u8], policy: DataPolicy) -> Result<(Namespace, CredentialData), Fault> {
    let mut members = document::object(body)?;
    let kind = members.string("type");
    // A type's name is not secret, nor is a namespace's.
    let kind = kind.and_then(|text| keep(&mut members, query::parse_type(text.expose())));
    let namespace = members.string("namespace");
    let namespace = namespace.and_then(|text| keep(&mut members, Namespace::parse(text.expose(), "/namespace")));
    let data = members.node("data").and_then(|node| match kind {
        Some(kind) => match CredentialData::parse(kind, node, "/data", policy) {
            Ok(data) => Some(data),
            Err(errors) => {
                members.report_all(errors);
                None
            }
        },
        // Without its type there is no telling what the data should be, but that it should be an object.
        None => {
            if !matches!(node, Node::Object(_)) {
                keep(&mut members, ObjectReader::new(node, "/data"));
            }
            None
        }
    });
    match (namespace, data, members.finish()) {
        (Some(namespace), Some(data), errors) if errors.is_empty() => Ok((namespace, data)),
        (_, _, errors) => Err(Fault::fields(errors)),
    }
}
