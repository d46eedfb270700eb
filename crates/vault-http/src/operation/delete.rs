//! `DELETE {base_url}/organization-vault/<credential_id>`

use super::{Inner, credential_id};
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::header;
use std::sync::Arc;
use vault_api::ProblemCode;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.principal(call, Action::Delete)?;
    query::none(call.query())?;
    // Credentials have no entity tags, so only `*` can hold (RFC 9110 section 13.1.1).
    if call.headers().get_all(header::IF_MATCH).any(|value| value.as_bytes().trim_ascii() != b"*") {
        let detail = "Credentials have no entity tags that `If-Match` could match.";
        return Err(Fault::new(ProblemCode::PreconditionFailed, detail));
    }
    body.ignore().await?;
    let id = credential_id(call.place);
    let delete = Arc::clone(&api.parts.delete);

    api.complete(async move { delete.run(&principal, id).await }).await?;

    Ok(answer::no_content())
}
