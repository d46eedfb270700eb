//! `{base}/organization-vault`: credentials. Their versions are in `versions`.

use super::credential_json::{self, JsonArray};
use crate::body::{Body, OptionalBody, Patch, ValueErrors, node};
use crate::caller::Caller;
use crate::extract::Id;
use crate::extract::{Creation, IfMatch};
use crate::problem::{ACCEPT_PATCH, PATCH_TYPES, ProblemResponse};
use crate::public::PublicApi;
use crate::query::{ListQuery, PageQuery, SaveQuery, list_path, optional_time, parse_type};
use crate::respond::{
    JsonResult, NoContent, json, linked, no_content, ok, page, tagged, tagged_as_made, time_text, with,
};
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Data;
use serde_json::value::RawValue;
use vault_api::{
    CheckCredentialRequest, CredentialHolder, MatchRequest, MatchedCredential, ProviderTrust, ProviderTrustStep,
    SavedCredential,
};
use vault_core::Error;
use vault_core::activation::VendRule;
use vault_core::credential::CredentialPatch;
use vault_core::credential::{CredentialData, CredentialType, CredentialUse, Description, Holder, LabelPatch, Labels};
use vault_core::field::{FieldCode, FieldError, child};
use vault_core::id::CredentialId;
use vault_core::json::{Node, ObjectReader};
use vault_core::namespace::Namespace;
use vault_core::role::Action;
use vault_core::usecase::NewCredential;

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let (viewers, editors) = (Access::Role(Action::List), Access::Role(Action::Save));
    vec![
        route("GET", "{base}/organization-vault", "list", viewers, list).with_query(),
        route("PATCH", "{base}/organization-vault", "save", editors, save).with_query(),
        route("GET", "{base}/organization-vault/{id}", "show", viewers, show),
        route("PATCH", "{base}/organization-vault/{id}", "describe", editors, describe),
        route("DELETE", "{base}/organization-vault/{id}", "delete", Access::Role(Action::Delete), delete),
        route("POST", "{base}/organization-vault/{id}/match", "match", editors, matches),
        route("POST", "{base}/organization-vault/{id}/check", "check-credential", editors, check),
        route("GET", "{base}/organization-vault/{id}/activations", "list-uses", editors, uses).with_query(),
        route("GET", "{base}/organization-vault/{id}/holders", "list-holders", editors, holders),
        route("GET", "{base}/organization-vault/{id}/trust", "show-trust", viewers, trust),
    ]
}

async fn list(
    caller: Caller,
    api: Data<PublicApi>,
    ListQuery(filter, request): ListQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (vault, asked, limit) = (api.parts.vault.for_request(caller.origin), filter.clone(), request.limit);
    let add = JsonArray::add_credential;
    let listing = |principal| async move { vault.list_into(&principal, asked, request, add).await };
    let (credentials, next) = caller.run(listing).await?;
    let path = list_path(&api.common.base.below("/organization-vault"), &filter);
    linked(json(credentials.finish()), &path, next.as_deref(), limit)
}

async fn show(caller: Caller, api: Data<PublicApi>, Id(id): Id<CredentialId>) -> Result<HttpResponse, ProblemResponse> {
    let vault = api.parts.vault.for_request(caller.origin);
    let credential = caller.run(|principal| async move { vault.show(&principal, id).await }).await?;
    tagged(json(credential_json::credential(&credential)), credential.revision)
}

/// The body of a save. Data and labels have rules of their own.
pub(crate) type SaveRequest = vault_api::SaveRequest<Box<RawValue>, Box<RawValue>>;

async fn save(
    caller: Caller,
    api: Data<PublicApi>,
    SaveQuery(verify): SaveQuery,
    Creation(idempotency): Creation,
    Body(body): Body<SaveRequest>,
) -> Result<HttpResponse, ProblemResponse> {
    let request = NewCredential { idempotency, verify, ..new_credential(body, api.parse_data)? };
    let permit = api.verifying(verify, caller.organization()?)?;
    let vault = api.parts.vault.for_request(caller.origin);
    let saving = |principal| async move {
        let _permit = permit;
        vault.save(&principal, request).await
    };
    let id = caller.run(saving).await?.to_string();
    let location = api.common.base.below(&format!("/organization-vault/{id}"));
    with(HttpResponse::Created().json(SavedCredential { id }), header::LOCATION, location)
}

/// Parser of the data of a credential, whose position in the request is a pointer.
pub(crate) type ParseData = fn(CredentialType, Node, &str) -> Result<CredentialData, Vec<FieldError>>;

/// Returns the parser that accepts or refuses example keys of the AWS documentation.
pub(crate) fn parser(accepts_example_keys: bool) -> ParseData {
    if accepts_example_keys { parse_data_on_trial } else { parse_data }
}

/// Parses data, and refuses example keys of the AWS documentation.
fn parse_data(kind: CredentialType, node: Node, pointer: &str) -> Result<CredentialData, Vec<FieldError>> {
    let data = CredentialData::parse(kind, node, pointer)?;
    let detail = "is an example key of the AWS documentation: enter the value itself";
    let violation = |field| FieldError::new(child(pointer, field), FieldCode::Placeholder, detail);
    let violations: Vec<_> = data.example_keys().into_iter().map(violation).collect();
    if violations.is_empty() { Ok(data) } else { Err(violations) }
}

/// Parses data for a vault that is tried out.
fn parse_data_on_trial(kind: CredentialType, node: Node, pointer: &str) -> Result<CredentialData, Vec<FieldError>> {
    let data = CredentialData::parse(kind, node, pointer)?;
    let fields = data.example_keys();
    if !fields.is_empty() {
        tracing::warn!(?fields, "accepted an example key of the AWS documentation. AWS rejects it");
    }
    Ok(data)
}

pub(crate) fn new_credential(body: SaveRequest, parse_data: ParseData) -> Result<NewCredential, ProblemResponse> {
    let SaveRequest { kind, namespace, data, labels, description, expires_at, vend } = body;
    let data = node(&data, "/data")?;
    let labels = labels.map(|labels| node(&labels, "/labels")).transpose()?;
    let mut errors = ValueErrors::default();
    let kind = errors.check(parse_type(&kind));
    let namespace = errors.check(Namespace::parse(&namespace, "/namespace"));
    let data = match kind {
        Some(kind) => errors.check_all(parse_data(kind, data, "/data")),
        // Without a valid type, only check that the data is an object.
        None => errors.check(ObjectReader::new(data, "/data")).and(None),
    };
    let labels = labels.map_or(Ok(Labels::default()), |node| Labels::parse(node, "/labels"));
    let labels = errors.check_all(labels);
    let description = errors.check(optional_description(description.as_deref()));
    let expires_at = errors.check(optional_time(expires_at.as_deref(), "/expires_at"));
    let vend = errors.check(vend.as_deref().map(parse_rule).transpose());
    let metadata = labels.zip(description).zip(expires_at).zip(vend);
    let request = namespace.zip(data).zip(metadata);
    errors.finish(request.map(|((namespace, data), (((labels, description), expires_at), vend))| {
        let vend = vend.unwrap_or(VendRule::default_of(data.kind()));
        NewCredential { labels, description, expires_at, vend, ..NewCredential::new(namespace, data) }
    }))
}

/// The body of a change of metadata.
pub(crate) type DescribeRequest = vault_api::DescribeRequest<Box<RawValue>>;

async fn describe(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    IfMatch(permitted): IfMatch,
    Patch(body): Patch<DescribeRequest>,
) -> Result<HttpResponse, ProblemResponse> {
    let request = patch(body)?;
    let vault = api.parts.vault.for_request(caller.origin);
    let describing = |principal| async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        let made = vault.describe(&principal, credential, request).await?.revision;
        Ok::<_, Error>((made, vault.show(&principal, id).await?))
    };
    let (made, credential) = caller.run(describing).await?;
    let response = json(credential_json::credential(&credential));
    let mut response = tagged_as_made(response, made, credential.revision)?;
    response.headers_mut().insert(ACCEPT_PATCH, HeaderValue::from_static(PATCH_TYPES));
    Ok(response)
}

/// Converts a merge patch: missing members stay unchanged, and `null` removes a value (RFC 7396).
pub(crate) fn patch(body: DescribeRequest) -> Result<CredentialPatch, ProblemResponse> {
    let DescribeRequest { labels, description, expires_at, vend } = body;
    let labels = labels.map(|labels| node(&labels, "/labels")).transpose()?;
    let mut errors = ValueErrors::default();
    let labels = errors.check_all(labels.map(|node| LabelPatch::parse(node, "/labels")).transpose());
    let description = description.map(|text| optional_description(text.as_deref())).transpose();
    let description = errors.check(description);
    let expires_at = expires_at.map(|text| optional_time(text.as_deref(), "/expires_at")).transpose();
    let expires_at = errors.check(expires_at);
    let vend = errors.check(vend.as_deref().map(parse_rule).transpose());
    let patch = labels.zip(description).zip(expires_at).zip(vend);
    errors.finish(patch.map(|(((labels, description), expires_at), vend)| CredentialPatch {
        labels,
        description,
        expires_at,
        vend,
    }))
}

async fn delete(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    IfMatch(permitted): IfMatch,
) -> NoContent {
    let vault = api.parts.vault.for_request(caller.origin);
    let deleting = |principal| async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        vault.delete(&principal, credential).await
    };
    caller.run(deleting).await.map(no_content)
}

async fn matches(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    Body(body): Body<MatchRequest<Box<RawValue>>>,
) -> JsonResult<MatchedCredential> {
    let (data, parse_data) = (node(&body.data, "/data")?, api.parse_data);
    let vault = api.parts.vault.for_request(caller.origin);
    let matching = |principal| async move {
        // The format of the data depends on the type, which the request does not contain.
        let (kind, _) = vault.type_and_revision(&principal, id).await?;
        let data = parse_data(kind, data, "/data").map_err(Error::Invalid)?;
        vault.matches(&principal, id, &data).await
    };
    ok(MatchedCredential { same: caller.run(matching).await? })
}

async fn check(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    OptionalBody(body): OptionalBody<CheckCredentialRequest>,
) -> NoContent {
    // The use case checks whether the version exists.
    let version = body.and_then(|body| body.version);
    let vault = api.parts.vault.for_request(caller.origin);
    caller.run(|principal| async move { vault.request_check(&principal, id, version).await }).await?;
    Ok(HttpResponse::Accepted().finish())
}

async fn uses(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    PageQuery(request): PageQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (vault, limit) = (api.parts.vault.for_request(caller.origin), request.limit);
    let listed = caller.run(|principal| async move { vault.uses(&principal, id, request).await }).await?;
    page(&api.common.base.below(&format!("/organization-vault/{id}/activations")), &listed, limit, used)
}

fn used(used: &CredentialUse) -> vault_api::CredentialUse {
    let by_id = || used.integration.to_string();
    vault_api::CredentialUse {
        integration: used.name.as_ref().map_or_else(by_id, ToString::to_string),
        at: time_text(used.at),
        expires_at: time_text(used.expires_at),
        ended_at: used.ended_at.map(time_text),
        version: used.version,
        form: used.form.as_str().to_owned(),
        purpose: used.purpose.as_ref().map(|purpose| purpose.as_str().to_owned()),
        workload: used.workload.clone(),
    }
}

async fn holders(caller: Caller, api: Data<PublicApi>, Id(id): Id<CredentialId>) -> JsonResult<Vec<CredentialHolder>> {
    let vault = api.parts.vault.for_request(caller.origin);
    let found = caller.run(|principal| async move { vault.holders(&principal, id).await }).await?;
    let (current, holders, names) = found;
    let holder = |one: Holder| CredentialHolder {
        integration: names.get(&one.integration).map_or_else(|| one.integration.to_string(), ToString::to_string),
        version: one.version,
        current: one.version == current,
        activations: one.activations,
        last_activated_at: time_text(one.last_activated_at),
        held_until: one.until.map(time_text),
    };
    ok(holders.into_iter().map(holder).collect())
}

async fn trust(caller: Caller, api: Data<PublicApi>, Id(id): Id<CredentialId>) -> JsonResult<ProviderTrust> {
    let vault = api.parts.vault.for_request(caller.origin);
    let trust = caller.run(|principal| async move { vault.trust(&principal, id).await }).await?;
    let steps = trust.steps.into_iter();
    ok(ProviderTrust {
        issuer: trust.issuer.to_string(),
        subject: trust.subject.to_string(),
        audience: trust.audience.to_string(),
        steps: steps
            .map(|step| ProviderTrustStep { title: step.title, language: step.language.to_owned(), text: step.text })
            .collect(),
    })
}

/// Parses an optional description.
fn optional_description(text: Option<&str>) -> Result<Option<Description>, FieldError> {
    text.map(|text| Description::parse(text, "/description")).transpose()
}

/// Parses the allowed forms of issuance.
fn parse_rule(text: &str) -> Result<VendRule, FieldError> {
    VendRule::parse(text).ok_or_else(|| FieldError::new("/vend", FieldCode::OutOfRange, "must be any or short"))
}
