//! `{base}/organization-vault/{id}/versions` and `…/promote`: versions of a credential.

use super::credential_json;
use super::credentials::ParseData;
use crate::body::{Body, ValueErrors, node};
use crate::caller::Caller;
use crate::extract::{Id, Version};
use crate::extract::{Idempotency, IfMatch};
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::query::{SaveQuery, optional_time};
use crate::respond::{NoContent, json, no_content, tagged, tagged_as_made};
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::web::Data;
use serde_json::value::RawValue;
use vault_api::{PromoteRequest, ReplacedCredential};
use vault_core::credential::ChangedVersion;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::CredentialId;
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::time::Timestamp;
use vault_core::usecase::{CredentialReplacement, Vault};
use vault_core::{Error, Refusal};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let editors = Access::Role(Action::Save);
    let (all, one) = ("{base}/organization-vault/{id}/versions", "{base}/organization-vault/{id}/versions/{version}");
    vec![
        route("GET", all, "list-versions", Access::Role(Action::List), list),
        route("POST", all, "replace", editors, replace).with_query(),
        route("DELETE", one, "destroy-version", editors, destroy),
        route("POST", "{base}/organization-vault/{id}/promote", "promote", editors, promote),
    ]
}

async fn list(caller: Caller, api: Data<PublicApi>, Id(id): Id<CredentialId>) -> Result<HttpResponse, ProblemResponse> {
    let vault = api.parts.vault.for_request(caller.origin);
    let versions = caller.run(|principal| async move { vault.versions(&principal, id).await }).await?;
    Ok(json(credential_json::versions(&versions)))
}

/// The body of a replacement. The domain parses the data.
pub(crate) type ReplaceRequest = vault_api::ReplaceRequest<Box<RawValue>>;

async fn replace(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    SaveQuery(verify): SaveQuery,
    IfMatch(permitted): IfMatch,
    Idempotency(idempotency): Idempotency,
    Body(body): Body<ReplaceRequest>,
) -> Result<HttpResponse, ProblemResponse> {
    // The format of the data depends on the type, which the request does not contain.
    let (vault, may_be_repeated) = (api.parts.vault.for_request(caller.origin), idempotency.is_some());
    let find_kind = |principal| async move {
        match vault.type_and_revision(&principal, id).await {
            Ok((kind, _)) => Ok(Some(kind)),
            Err(Error::Refused(Refusal::NotFound)) if may_be_repeated => Ok(None),
            Err(error) => Err(error),
        }
    };
    let kind = caller.run(find_kind).await?;
    let vault = api.parts.vault.for_request(caller.origin);
    let request = move |Replacement { data, expires_at, stage }, credential, idempotency| CredentialReplacement {
        credential,
        data,
        expires_at,
        stage,
        idempotency,
        verify,
    };
    let Some(kind) = kind else {
        let requests = CredentialType::ALL.into_iter().filter_map(|kind| {
            Some(request(replacement(&body, kind, api.parse_data).ok()?, id.into(), idempotency.clone()))
        });
        let requests = requests.collect();
        let version = caller.run(|principal| async move { repeated(&vault, &principal, requests).await }).await?;
        return Ok(HttpResponse::Created().json(ReplacedCredential { id: id.to_string(), version }));
    };
    let replacement = replacement(&body, kind, api.parse_data)?;
    let permit = api.verifying(verify, caller.organization()?)?;
    let replacing = move |principal| async move {
        let _permit = permit;
        let credential = permitted.of(&vault, &principal, id).await?;
        vault.replace(&principal, request(replacement, credential, idempotency)).await
    };
    let ChangedVersion { version, revision } = caller.run(replacing).await?;
    let response = HttpResponse::Created().json(ReplacedCredential { id: id.to_string(), version });
    match revision {
        Some(revision) => tagged(response, revision),
        // The response to a repeated request contains no entity tag, because the credential may have changed since.
        None => Ok(response),
    }
}

/// Returns the result of a request that was executed before its credential was deleted. The type is no longer known, so
/// `requests` contains the body parsed as each type.
async fn repeated(vault: &Vault, principal: &Principal, requests: Vec<CredentialReplacement>) -> Result<i64, Error> {
    for request in &requests {
        match vault.find_replacement(principal, request).await {
            Ok(Some(version)) => return Ok(version),
            Ok(None) | Err(Error::Refused(Refusal::IdempotencyMismatch)) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Refusal::NotFound.into())
}

/// The values of a replacement.
pub(crate) struct Replacement {
    pub(crate) data: CredentialData,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) stage: bool,
}

/// Converts the replacement of a credential of type `kind`.
pub(crate) fn replacement(
    body: &ReplaceRequest,
    kind: CredentialType,
    parse_data: ParseData,
) -> Result<Replacement, ProblemResponse> {
    let mut errors = ValueErrors::default();
    let data = errors.check_all(parse_data(kind, node(&body.data, "/data")?, "/data"));
    let expires_at = errors.check(optional_time(body.expires_at.as_deref(), "/expires_at"));
    let stage = body.stage.unwrap_or(false);
    errors.finish(data.zip(expires_at).map(|(data, expires_at)| Replacement { data, expires_at, stage }))
}

async fn promote(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    IfMatch(permitted): IfMatch,
    Body(PromoteRequest { version }): Body<PromoteRequest>,
) -> Result<HttpResponse, ProblemResponse> {
    let vault = api.parts.vault.for_request(caller.origin);
    let promoting = |principal| async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        let made = vault.promote(&principal, credential, version).await?.revision;
        Ok::<_, Error>((made, vault.show(&principal, id).await?))
    };
    let (made, credential) = caller.run(promoting).await?;
    tagged_as_made(json(credential_json::credential(&credential)), made, credential.revision)
}

async fn destroy(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<CredentialId>,
    Version(version): Version,
    IfMatch(permitted): IfMatch,
) -> NoContent {
    let vault = api.parts.vault.for_request(caller.origin);
    let destroying = |principal| async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        vault.destroy_version(&principal, credential, version).await
    };
    caller.run(destroying).await.map(no_content)
}
