//! `PATCH {base_url}/organization-vault/<credential_id>`

use super::document::optional_time;
use super::precondition::Permitted;
use super::save::{optional_description, parse_rule};
use super::{Inner, credential_id, shown};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::{ACCEPT_PATCH, PATCH_TYPES, ProblemResponse};
use crate::wire::Document;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use serde::Deserialize;
use vault_core::Error;
use vault_core::credential::LabelPatch;
use vault_core::json::Node;
use vault_core::role::Action;
use vault_core::usecase::CredentialPatch;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::Save)?;
    query::none(call.query())?;
    content::check_patch(call.headers())?;
    let permitted = Permitted::by(call.headers())?;
    let request = parse(&body.read().await?)?;
    let id = credential_id(call.place);
    let vault = api.parts.vault.for_request(call.origin);

    let describing = async move {
        let credential = permitted.of(&vault, &principal, id).await?;
        let made = vault.describe(&principal, credential, request).await?.revision;
        Ok::<_, Error>((made, vault.show(&principal, id).await?))
    };
    let (made, credential) = api.complete(call, describing).await?;

    let response = answer::json(StatusCode::OK, shown::credential(&credential));
    let mut response = answer::tagged_as_made(response, made, credential.revision)?;
    response.headers_mut().insert(ACCEPT_PATCH, HeaderValue::from_static(PATCH_TYPES));
    Ok(response)
}

/// The members of a patch other than labels and `null` values.
#[derive(Deserialize)]
struct Set {
    description: Option<String>,
    expires_at: Option<String>,
    vend: Option<String>,
}

/// Parses a merge patch: missing members stay unchanged, and `null` removes a value (RFC 7396).
pub(crate) fn parse(body: &[u8]) -> Result<CredentialPatch, ProblemResponse> {
    let mut document = Document::parse(body)?;
    let labels: Option<Node> = document.remove("labels");
    let gone = ["description", "expires_at"].map(|name| document.take_null(name));
    let (Set { description, expires_at, vend }, mut violations) = document.read()?;
    let labels = labels.map(|node| violations.check_all("/labels", || LabelPatch::parse(node, "/labels")));
    let description = violations.check("/description", || optional_description(description.as_deref()));
    let expires_at = violations.check("/expires_at", || optional_time(expires_at.as_deref(), "/expires_at"));
    let vend = violations.check("/vend", || vend.as_deref().map(parse_rule).transpose());
    let metadata = description.zip(expires_at).zip(vend);
    violations.finish(metadata.map(|((description, expires_at), vend)| CredentialPatch {
        labels: labels.flatten(), // the request is rejected if they are invalid
        description: description.map(Some).or(gone[0].then_some(None)),
        expires_at: expires_at.map(Some).or(gone[1].then_some(None)),
        vend,
    }))
}
