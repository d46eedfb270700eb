//! `PATCH {base_url}/accounts/<id>`

use super::{account_id, item, parse_role};
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, precondition};
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::ChangeAccountRequest;
use vault_core::account::AccountState;
use vault_core::field::{FieldCode, FieldError};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Action;
use vault_core::usecase::{AccountCommand, AccountRef, ChangedAccount};

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    precondition::none_but_existence(call.headers())?;
    let command = parse(&body.read().await?)?;

    let changed = carry_out(api, call, principal, command).await?;

    answer::object(StatusCode::OK, &item(&changed.account))
}

/// Runs a command that needs only the account in the path and no body.
pub(super) async fn by_address(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
    command: AccountCommand,
) -> Result<ChangedAccount, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    carry_out(api, call, principal, command).await
}

async fn carry_out(
    api: &Inner,
    call: &Call<'_>,
    principal: SessionPrincipal,
    command: AccountCommand,
) -> Result<ChangedAccount, ProblemResponse> {
    let account = AccountRef::Id(principal.organization, account_id(call.place));
    let (accounts, principal) = (api.parts.accounts.for_request(call.origin), Principal::from(principal));
    api.complete(call, async move { accounts.change(&principal, account, command).await }).await
}

/// Parses the change in the body. Only one is allowed.
pub(crate) fn parse(body: &[u8]) -> Result<AccountCommand, ProblemResponse> {
    let (ChangeAccountRequest { role, state }, mut violations) = wire::read(body)?;
    let both = role.is_some() && state.is_some();
    let role = role.and_then(|text| violations.check("/role", || parse_role(&text)));
    let state = state.and_then(|text| violations.check("/state", || parse_state(&text)));
    if both {
        let detail = "must not be combined with `role`: send one change per request";
        violations.report(FieldError::new("/state", FieldCode::NotAllowed, detail));
    }
    let command = role.map(AccountCommand::SetRole).or(state);
    if command.is_none() && violations.is_empty() {
        violations.report(FieldError::new("", FieldCode::Required, "must contain `role` or `state`"));
    }
    violations.finish(command)
}

fn parse_state(text: &str) -> Result<AccountCommand, FieldError> {
    match AccountState::parse(text) {
        Some(AccountState::Active) => Ok(AccountCommand::Enable),
        Some(AccountState::Disabled) => Ok(AccountCommand::Disable),
        _ => Err(FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled")),
    }
}
