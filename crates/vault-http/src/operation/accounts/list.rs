//! `GET {base_url}/accounts`

use super::item;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use std::sync::Arc;
use vault_api::AccountItem;
use vault_core::port::AccountScope;
use vault_core::role::Action;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    query::none(call.query())?;
    body.ignore().await?;
    let list = Arc::clone(&api.parts.accounts.list);

    let accounts = api.complete(async move { list.run(AccountScope::Session(principal)).await }).await?;

    answer::object(StatusCode::OK, &accounts.iter().map(item).collect::<Vec<AccountItem>>())
}
