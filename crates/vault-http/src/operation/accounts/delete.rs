//! `DELETE {base_url}/accounts/<id>`

use super::account_id;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Inner, precondition};
use crate::{answer, query};
use actix_web::HttpResponse;
use std::sync::Arc;
use vault_core::role::Action;
use vault_core::usecase::AccountCommand;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    let account = account_id(call.place);
    let change = Arc::clone(&api.parts.accounts.change);

    api.complete(async move { change.as_admin(&principal, account, AccountCommand::Delete).await }).await?;

    Ok(answer::no_content())
}
