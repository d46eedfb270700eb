//! `{base_url}/integrations/<id>/trusts` and `{base_url}/issuers`: the workloads that may use an integration, and the
//! issuers of their tokens.

use super::named;
use crate::answer::time_text;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, precondition};
use crate::problem_response::ProblemResponse;
use crate::wire::Document;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde_json::Value;
use uuid::Uuid;
use vault_api::{IssuerItem, TrustItem};
use vault_core::field::{FieldCode, FieldError};
use vault_core::identity::{StoredIssuer, Trust, TrustId, Trusts};
use vault_core::json::{Member, Node};
use vault_core::role::Action;

/// `GET {base_url}/integrations/<id>/trusts`
pub(crate) async fn list(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    body.ignore().await?;
    let integration = named(call.place);
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let find = async move { integrations.find(&principal.into(), organization, &integration).await };
    let found = api.complete(call, find).await?;

    answer::object(StatusCode::OK, &items(&found.integration.trusts))
}

/// `POST {base_url}/integrations/<id>/trusts`
pub(crate) async fn create(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = Document::parse(&body.read().await?)?.into_members()?;
    let request = object(request);
    let integration = named(call.place);
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let trust = async move { integrations.trust(&principal.into(), organization, &integration, &request).await };
    let trust = api.complete(call, trust).await?;

    answer::object(StatusCode::CREATED, &item(&trust))
}

/// `DELETE {base_url}/integrations/<id>/trusts/<trust>`
pub(crate) async fn delete(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    // An invalid ID is handled like that of a trust that does not exist.
    let trust = call.place.version().parse().unwrap_or(TrustId::from_uuid(Uuid::nil()));
    let integration = named(call.place);
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let distrust = async move { integrations.distrust(&principal.into(), organization, &integration, trust).await };
    api.complete(call, distrust).await?;

    Ok(answer::no_content())
}

/// `GET {base_url}/issuers`
pub(crate) async fn issuers(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    body.ignore().await?;
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let list = async move { integrations.issuers(&principal.into(), organization).await };
    let issuers = api.complete(call, list).await?;

    answer::object(StatusCode::OK, &issuers.iter().map(issuer).collect::<Vec<_>>())
}

/// Converts trusts for responses.
pub(super) fn items(trusts: &Trusts) -> Vec<TrustItem> {
    trusts.iter().map(item).collect()
}

/// Converts a trust.
pub fn item(trust: &Trust) -> TrustItem {
    TrustItem {
        id: trust.id.to_string(),
        issuer: trust.issuer.to_string(),
        claims: trust.claims.iter().map(|(pointer, pattern)| (pointer.to_string(), pattern.to_value())).collect(),
        max_lifetime: trust.max_lifetime,
    }
}

fn issuer(stored: &StoredIssuer) -> IssuerItem {
    let issuer = &stored.issuer;
    IssuerItem {
        name: issuer.name.to_string(),
        issuer: issuer.url.clone(),
        required_claims: issuer.required.iter().map(ToString::to_string).collect(),
        fetched_at: time_text(stored.fetched_at),
        last_error: Some(stored.failure.clone()).filter(|failure| !failure.is_empty()),
    }
}

/// Returns the elements of an array of trusts.
pub(super) fn array(node: Node) -> Result<Vec<Value>, FieldError> {
    match node {
        Node::Array(items) => Ok(items.into_iter().map(value).collect()),
        _ => Err(FieldError::new("/trusts", FieldCode::WrongType, "must be an array")),
    }
}

/// Converts a value. Trusts contain no secrets.
fn value(node: Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => Value::Bool(value),
        Node::Number(number) => Value::Number(number),
        Node::String(text) => Value::String(text.expose().to_owned()), // claims are not secret
        Node::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        Node::Object(members) => object(members),
    }
}

fn object(members: Vec<Member>) -> Value {
    Value::Object(members.into_iter().map(|member| (member.name, value(member.value))).collect())
}
