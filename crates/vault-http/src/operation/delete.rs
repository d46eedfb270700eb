//! `DELETE {base_url}/organization-vault/<credential_id>`

use super::{Inner, credential_id, precondition};
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.principal(call, Action::Delete)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    let id = credential_id(call.place);
    let vault = api.parts.vault.clone();

    api.complete(async move { vault.delete(&principal, id).await }).await?;

    Ok(answer::no_content())
}
