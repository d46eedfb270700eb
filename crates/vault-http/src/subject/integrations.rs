//! `{base}/integrations` and `{base}/issuers`: integrations of an organization, which its admins manage, the workloads that
//! may use them, and the issuers of their tokens.

use crate::body::{Body, OptionalBody, ValueErrors, node};
use crate::caller::Caller;
use crate::extract::Id;
use crate::extract::NoEntityTag;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::query::{PageQuery, SinceQuery, optional_time};
use crate::respond::{JsonResult, JsonStatusResult, NoContent, created, no_content, ok, page, time_text};
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::web::Data;
use serde_json::Value;
use serde_json::value::RawValue;
use vault_api::{
    ChangeIntegrationRequest, IntegrationItem, IntegrationUsageItem, IssuedIntegration, IssuerItem,
    RotateIntegrationRequest, TrustItem,
};
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::IntegrationId;
use vault_core::identity::{StoredIssuer, Trust, TrustId, Trusts};
use vault_core::integration::{
    IntegrationName, IntegrationState, IntegrationToken, ManagedBy, NamespacePatterns, Overlap, StoredIntegration,
};
use vault_core::json::{Member, Node};
use vault_core::principal::Scope;
use vault_core::role::Action;
use vault_core::time::Timestamp;
use vault_core::usecase::integrations::{CreateIntegrationRequest, IntegrationEdit, IntegrationRef, IntegrationUsage};

const ADMINS: Access = Access::Role(Action::ManageIntegrations);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        route("GET", "{base}/integrations", "list-integrations", ADMINS, list).with_query(),
        route("POST", "{base}/integrations", "create-integration", ADMINS, create),
        route("GET", "{base}/integrations/usage", "list-integration-usage", ADMINS, usage).with_query(),
        route("PATCH", "{base}/integrations/{id}", "change-integration", ADMINS, change),
        route("DELETE", "{base}/integrations/{id}", "delete-integration", ADMINS, delete),
        route("POST", "{base}/integrations/{id}/rotate", "rotate-integration", ADMINS, rotate),
        route("GET", "{base}/integrations/{id}/trusts", "list-trusts", ADMINS, trusts),
        route("POST", "{base}/integrations/{id}/trusts", "create-trust", ADMINS, trust),
        route("DELETE", "{base}/integrations/{id}/trusts/{trust}", "delete-trust", ADMINS, distrust),
        route("GET", "{base}/issuers", "list-issuers", ADMINS, issuers),
    ]
}

async fn list(
    caller: Caller,
    api: Data<PublicApi>,
    PageQuery(request): PageQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (integrations, limit) = (api.parts.integrations.for_request(caller.origin), request.limit);
    let scope = Scope::One(caller.organization()?);
    let listed = caller.run(|principal| async move { integrations.list(&principal, scope, request).await }).await?;
    let now = api.parts.integrations.now();
    page(&api.common.base.below("/integrations"), &listed, limit, |stored| item(stored, now))
}

async fn create(
    caller: Caller,
    api: Data<PublicApi>,
    Body(body): Body<vault_api::CreateIntegrationRequest<Box<RawValue>>>,
) -> JsonStatusResult<IssuedIntegration> {
    let request = new_integration(body)?;
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let create = |principal| async move { integrations.create(&principal, organization, request).await };
    let integration = caller.run(create).await?;
    created(issued(&integration.integration, integration.token.as_ref()))
}

fn new_integration(
    body: vault_api::CreateIntegrationRequest<Box<RawValue>>,
) -> Result<CreateIntegrationRequest, ProblemResponse> {
    let vault_api::CreateIntegrationRequest { name, namespaces, expires_at, token, trusts, managed_by } = body;
    let trusts = trusts.unwrap_or_default();
    let trusts = trusts.iter().enumerate().map(|(index, raw)| node(raw, &format!("/trusts/{index}")).map(value));
    let trusts = trusts.collect::<Result<_, _>>()?;
    let token = token.unwrap_or(true);
    let expires_at = match optional_time(expires_at.as_deref(), "/expires_at") {
        Ok(expires_at) => expires_at,
        Err(error) => {
            // The use case does not get this value, so errors of the others are reported with it.
            let mut errors = ValueErrors::default();
            errors.check::<()>(Err(error));
            errors.check(IntegrationName::parse(&name, "/name"));
            errors.check_all(NamespacePatterns::parse(&namespaces, "/namespaces"));
            errors.check(managed_by.as_ref().map(|set| ManagedBy::parse(set, "/managed_by")).transpose());
            return errors.finish(None);
        }
    };
    Ok(CreateIntegrationRequest { name, namespaces, expires_at, token, trusts, managed_by })
}

async fn usage(
    caller: Caller,
    api: Data<PublicApi>,
    SinceQuery(since): SinceQuery,
) -> JsonResult<Vec<IntegrationUsageItem>> {
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let count = |principal| async move { integrations.usage(&principal, organization, since).await };
    ok(caller.run(count).await?.into_iter().map(used).collect())
}

async fn change(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<IntegrationId>,
    _: NoEntityTag,
    Body(body): Body<ChangeIntegrationRequest>,
) -> JsonResult<IntegrationItem> {
    let edit = edit(body)?;
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let named = IntegrationRef::Id(id);
    let change = |principal| async move { integrations.change(&principal, organization, &named, edit).await };
    let changed = caller.run(change).await?;
    ok(item(&changed, api.parts.integrations.now()))
}

/// Namespaces and set are validated here as well as in the use case, so that all errors are reported together.
fn edit(body: ChangeIntegrationRequest) -> Result<IntegrationEdit, ProblemResponse> {
    let ChangeIntegrationRequest { state, namespaces, expires_at, managed_by } = body;
    let mut errors = ValueErrors::default();
    let state = errors.check(state.as_deref().map(parse_state).transpose());
    errors.check_all(namespaces.as_ref().map(|texts| NamespacePatterns::parse(texts, "/namespaces")).transpose());
    errors.check(managed_by.iter().flatten().try_for_each(|set| ManagedBy::parse(set, "/managed_by").map(drop)));
    let expires_at = expires_at.map(|text| optional_time(text.as_deref(), "/expires_at")).transpose();
    let expires_at = errors.check(expires_at);
    let edit = state.zip(expires_at);
    errors.finish(edit.map(|(state, expires_at)| IntegrationEdit { state, namespaces, expires_at, managed_by }))
}

fn parse_state(text: &str) -> Result<IntegrationState, FieldError> {
    IntegrationState::parse(text)
        .ok_or_else(|| FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled"))
}

async fn delete(caller: Caller, api: Data<PublicApi>, Id(id): Id<IntegrationId>, _: NoEntityTag) -> NoContent {
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let named = IntegrationRef::Id(id);
    let delete = |principal| async move { integrations.delete(&principal, organization, &named).await };
    caller.run(delete).await.map(no_content)
}

async fn rotate(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<IntegrationId>,
    _: NoEntityTag,
    OptionalBody(body): OptionalBody<RotateIntegrationRequest>,
) -> JsonResult<IssuedIntegration> {
    let overlap = body.map_or(Ok(Overlap::DEFAULT), |body| Overlap::parse(body.overlap, "/overlap"))?;
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let named = IntegrationRef::Id(id);
    let rotate = |principal| async move { integrations.rotate(&principal, organization, &named, overlap).await };
    let (rotated, token) = caller.run(rotate).await?;
    ok(issued(&rotated, Some(&token)))
}

async fn trusts(caller: Caller, api: Data<PublicApi>, Id(id): Id<IntegrationId>) -> JsonResult<Vec<TrustItem>> {
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let named = IntegrationRef::Id(id);
    let find = |principal| async move { integrations.find(&principal, organization, &named).await };
    ok(trust_items(&caller.run(find).await?.integration.trusts))
}

async fn trust(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<IntegrationId>,
    Body(body): Body<Box<RawValue>>,
) -> JsonStatusResult<TrustItem> {
    let request = value(node(&body, "")?);
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let named = IntegrationRef::Id(id);
    let trust = |principal| async move { integrations.trust(&principal, organization, &named, &request).await };
    created(trust_item(&caller.run(trust).await?))
}

async fn distrust(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<IntegrationId>,
    Id(trust): Id<TrustId>,
    _: NoEntityTag,
) -> NoContent {
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let named = IntegrationRef::Id(id);
    let distrust =
        |principal| async move { integrations.distrust(&principal, organization, &named, trust).await.map(drop) };
    caller.run(distrust).await.map(no_content)
}

async fn issuers(caller: Caller, api: Data<PublicApi>) -> JsonResult<Vec<IssuerItem>> {
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let list = |principal| async move { integrations.issuers(&principal, organization).await };
    ok(caller.run(list).await?.iter().map(issuer).collect())
}

/// Converts an integration and its token, which is shown only once.
fn issued(stored: &StoredIntegration, token: Option<&IntegrationToken>) -> IssuedIntegration {
    let integration = &stored.integration;
    IssuedIntegration {
        id: stored.id.to_string(),
        name: integration.name.to_string(),
        namespaces: spelt(&integration.patterns),
        token: token.map(|token| token.text().clone().into()),
        trusts: trust_items(&integration.trusts),
        expires_at: integration.expires_at.map(time_text),
    }
}

/// Converts an integration for lists, as of `now`.
fn item(stored: &StoredIntegration, now: Timestamp) -> IntegrationItem {
    let integration = &stored.integration;
    IntegrationItem {
        id: stored.id.to_string(),
        name: integration.name.to_string(),
        namespaces: spelt(&integration.patterns),
        state: integration.state_at(now).to_owned(),
        created_at: time_text(integration.created_at),
        expires_at: integration.expires_at.map(time_text),
        last_used_at: stored.last_used_at.map(time_text),
        previous_token_until: integration.previous.map(|previous| time_text(previous.until)),
        trusts: trust_items(&integration.trusts),
        managed_by: integration.managed_by.as_ref().map(|set| set.as_str().to_owned()),
    }
}

fn spelt(patterns: &NamespacePatterns) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

fn used((id, usage): (IntegrationId, IntegrationUsage)) -> IntegrationUsageItem {
    IntegrationUsageItem {
        id: id.to_string(),
        activations: usage.activations,
        last_activated_at: usage.last_activated_at.map(time_text),
        denied: usage.denied,
        last_denied_at: usage.last_denied_at.map(time_text),
    }
}

fn trust_items(trusts: &Trusts) -> Vec<TrustItem> {
    trusts.iter().map(trust_item).collect()
}

/// Converts a trust.
fn trust_item(trust: &Trust) -> TrustItem {
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
        fetched_at: time_text(stored.set.fetched_at),
        last_error: Some(stored.set.failure.clone()).filter(|failure| !failure.is_empty()),
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
        Node::Object(members) => {
            let member = |member: Member| (member.name, value(member.value));
            Value::Object(members.into_iter().map(member).collect())
        }
    }
}
