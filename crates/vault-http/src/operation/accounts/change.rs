//! `PATCH {base_url}/accounts/<id>`

use super::{account_id, item, parse_role};
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::document::{self, keep};
use crate::operation::{Inner, precondition};
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_core::account::AccountState;
use vault_core::field::{FieldCode, FieldError};
use vault_core::principal::Principal;
use vault_core::role::Action;
use vault_core::usecase::{AccountCommand, AccountRef};

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    precondition::none_but_existence(call.headers())?;
    let command = parse(&body.read().await?)?;
    let account = account_id(call.place);
    let accounts = api.parts.accounts.clone();
    let account = AccountRef::Id(principal.organization, account);
    let principal = Principal::from(principal);

    let changed = api.complete(async move { accounts.change(&principal, account, command).await }).await?;

    answer::object(StatusCode::OK, &item(&changed.account))
}

/// The one change that the body asks for.
pub(crate) fn parse(body: &[u8]) -> Result<AccountCommand, Fault> {
    let mut members = document::object(body)?;
    // Neither a role's name nor a state's is secret.
    let role = members.optional_string("role");
    let role = role.map(|text| keep(&mut members, parse_role(text.expose())).map(AccountCommand::SetRole));
    let state = members.optional_string("state");
    let state = state.map(|text| keep(&mut members, parse_state(text.expose())));
    if role.is_some() && state.is_some() {
        let detail = "must not be given beside `role`: each is a change of its own";
        members.report(FieldError::new("/state", FieldCode::NotAllowed, detail));
    }
    let mut errors = members.finish();
    match role.or(state) {
        Some(Some(command)) if errors.is_empty() => Ok(command),
        None if errors.is_empty() => {
            errors.push(FieldError::new("", FieldCode::Required, "`role` or `state` must be given"));
            Err(Fault::fields(errors))
        }
        _ => Err(Fault::fields(errors)),
    }
}

fn parse_state(text: &str) -> Result<AccountCommand, FieldError> {
    match AccountState::parse(text) {
        Some(AccountState::Active) => Ok(AccountCommand::Enable),
        Some(AccountState::Disabled) => Ok(AccountCommand::Disable),
        _ => Err(FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled")),
    }
}
