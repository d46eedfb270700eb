//! `POST {base_url}/organization-vault/<credential_id>/versions`

use super::document::optional_time;
use super::precondition::Permitted;
use super::save::idempotency_key;
use super::{Inner, ParseData, credential_id};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::wire::Document;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::de::IgnoredAny;
use vault_api::ReplacedCredential;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::time::Timestamp;
use vault_core::usecase::{ChangedVersion, CredentialReplacement, Vault};
use vault_core::{Error, Refusal};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let session = api.session_for(call, Action::Save)?;
    let verify = query::save(call.query(), api.parts.vault.verifies())?;
    content::check(call.headers())?;
    let permitted = Permitted::by(call.headers())?;
    let idempotency = idempotency_key(call.headers())?;
    let body = body.read().await?;
    let document = Document::parse(&body)?;
    let id = credential_id(call.place);
    let organization = session.organization;
    let principal = Principal::Session(session);

    // The format of the data depends on the type, which the request does not contain.
    let (vault, asking, may_be_repeated) =
        (api.parts.vault.for_request(call.origin), principal.clone(), idempotency.is_some());
    let find_kind = async move {
        match vault.type_and_revision(&asking, id).await {
            Ok((kind, _)) => Ok(Some(kind)),
            Err(Error::Refused(Refusal::NotFound)) if may_be_repeated => Ok(None),
            Err(error) => Err(error),
        }
    };
    let Some(kind) = api.complete(call, find_kind).await? else {
        let requests = CredentialType::ALL.into_iter().filter_map(|kind| {
            let Replacement { data, expires_at, stage } =
                parse(Document::parse(&body).ok()?, kind, api.parse_data).ok()?;
            let (credential, idempotency) = (id.into(), idempotency.clone());
            Some(CredentialReplacement { credential, data, expires_at, stage, idempotency, verify })
        });
        let (vault, requests) = (api.parts.vault.for_request(call.origin), requests.collect());
        let version = api.complete(call, async move { repeated(&vault, &principal, requests).await }).await?;
        return answer::object(StatusCode::CREATED, &ReplacedCredential { id: id.to_string(), version });
    };
    let Replacement { data, expires_at, stage } = parse(document, kind, api.parse_data)?;

    let permit = api.verifying(verify, organization)?;
    let vault = api.parts.vault.for_request(call.origin);
    let replacing = async move {
        let _permit = permit;
        let credential = permitted.of(&vault, &principal, id).await?;
        let request = CredentialReplacement { credential, data, expires_at, stage, idempotency, verify };
        vault.replace(&principal, request).await
    };
    let ChangedVersion { version, revision } = api.complete(call, replacing).await?;

    let response = answer::object(StatusCode::CREATED, &ReplacedCredential { id: id.to_string(), version })?;
    match revision {
        Some(revision) => answer::tagged(response, revision),
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

/// The parsed body of a replacement.
pub(crate) struct Replacement {
    pub(crate) data: CredentialData,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) stage: bool,
}

/// Parses `document` as a replacement of a credential of type `kind`.
pub(crate) fn parse(
    mut document: Document,
    kind: CredentialType,
    parse_data: ParseData,
) -> Result<Replacement, ProblemResponse> {
    let data = document.take("data");
    let (vault_api::ReplaceRequest::<IgnoredAny> { expires_at, stage, .. }, mut violations) = document.read()?;
    let data = data.and_then(|data| violations.check_all("/data", || parse_data(kind, data, "/data")));
    let expires_at = violations.check("/expires_at", || optional_time(expires_at.as_deref(), "/expires_at"));
    let replacement =
        data.zip(expires_at).map(|(data, expires_at)| Replacement { data, expires_at, stage: stage.unwrap_or(false) });
    violations.finish(replacement)
}
