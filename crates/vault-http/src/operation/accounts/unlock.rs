//! `POST {base_url}/accounts/<id>/unlock`

use super::account_id;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Inner, precondition};
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::usecase::{AccountCommand, AccountRef};

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    let account = account_id(call.place);
    let accounts = api.parts.accounts.clone();
    let account = AccountRef::Id(principal.organization, account);
    let principal = Principal::from(principal);

    api.complete(async move { accounts.change(&principal, account, AccountCommand::Unlock).await }).await?;

    Ok(answer::no_content())
}
