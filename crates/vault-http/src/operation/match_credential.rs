//! `POST {base_url}/organization-vault/<credential_id>/match`

use super::{Inner, ParseData, credential_id};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::wire::Document;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde::de::IgnoredAny;
use vault_api::{MatchRequest, MatchedCredential};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.principal(call, Action::Save)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let document = Document::parse(&body.read().await?)?;
    let id = credential_id(call.place);

    // The format of the data depends on the type, which the request does not contain.
    let (vault, asking) = (api.parts.vault.for_request(call.origin), principal.clone());
    let (kind, _) = api.complete(call, async move { vault.type_and_revision(&asking, id).await }).await?;
    let data = parse(document, kind, api.parse_data)?;

    let vault = api.parts.vault.for_request(call.origin);
    let same = api.complete(call, async move { vault.matches(&principal, id, &data).await }).await?;

    answer::object(StatusCode::OK, &MatchedCredential { same })
}

fn parse(
    mut document: Document,
    kind: CredentialType,
    parse_data: ParseData,
) -> Result<CredentialData, ProblemResponse> {
    let data = document.take("data");
    let (MatchRequest::<IgnoredAny> { .. }, mut violations) = document.read()?;
    let data = data.and_then(|data| violations.check_all("/data", || parse_data(kind, data, "/data")));
    violations.finish(data)
}
