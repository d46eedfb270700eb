//! `{base}/accounts`: accounts of an organization, which its admins manage.

use crate::body::{Body, ValueErrors};
use crate::caller::Caller;
use crate::extract::Id;
use crate::extract::NoEntityTag;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::query::PageQuery;
use crate::respond::{JsonResult, JsonStatusResult, NoContent, created, no_content, ok, page, time_text};
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::web::Data;
use vault_api::{AccountItem, ChangeAccountRequest, InviteRequest, InvitedAccount, ReEnrolment};
use vault_core::account::{AccountState, ListedAccount};
use vault_core::email::EmailAddress;
use vault_core::field::{FieldCode, FieldError};
use vault_core::id::AccountId;
use vault_core::principal::Scope;
use vault_core::role::{Action, Role};
use vault_core::usecase::{AccountCommand, AccountRef, ChangedAccount};

const ADMINS: Access = Access::Role(Action::ManageAccounts);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        route("GET", "{base}/accounts", "list-accounts", ADMINS, list).with_query(),
        route("POST", "{base}/accounts", "invite", ADMINS, invite),
        route("PATCH", "{base}/accounts/{id}", "change-account", ADMINS, change),
        route("DELETE", "{base}/accounts/{id}", "delete-account", ADMINS, delete),
        route("POST", "{base}/accounts/{id}/unlock", "unlock-account", ADMINS, unlock),
        route("POST", "{base}/accounts/{id}/re-enrol", "re-enrol", ADMINS, re_enrol),
    ]
}

async fn list(
    caller: Caller,
    api: Data<PublicApi>,
    PageQuery(request): PageQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (accounts, limit) = (api.parts.accounts.for_request(caller.origin), request.limit);
    let scope = Scope::One(caller.organization()?);
    let listed = caller.run(|principal| async move { accounts.list(&principal, scope, request).await }).await?;
    page(&api.common.base.below("/accounts"), &listed, limit, item)
}

async fn invite(
    caller: Caller,
    api: Data<PublicApi>,
    Body(body): Body<InviteRequest>,
) -> JsonStatusResult<InvitedAccount> {
    let mut errors = ValueErrors::default();
    let email = errors.check(EmailAddress::parse(&body.email).map_err(|error| error.at("/email")));
    let role = errors.check(parse_role(&body.role));
    let (email, role) = errors.finish(email.zip(role))?;
    let (accounts, organization) = (api.parts.accounts.for_request(caller.origin), caller.organization()?);
    let invite = |principal| async move { accounts.invite(&principal, organization, email.as_str(), role).await };
    let invited = caller.run(invite).await?;
    created(InvitedAccount {
        id: invited.grant.account.to_string(),
        enrolment_code: invited.code.text().clone().into(),
        expires_at: time_text(invited.expires_at),
    })
}

async fn change(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<AccountId>,
    _: NoEntityTag,
    Body(body): Body<ChangeAccountRequest>,
) -> JsonResult<AccountItem> {
    let changed = carry_out(&caller, &api, id, command(body)?).await?;
    ok(item(&changed.account))
}

/// Parses the change. Only one is allowed.
fn command(ChangeAccountRequest { role, state }: ChangeAccountRequest) -> Result<AccountCommand, ProblemResponse> {
    let mut errors = ValueErrors::default();
    if role.is_some() && state.is_some() {
        let detail = "must not be combined with `role`: send one change per request";
        errors.check::<()>(Err(FieldError::new("/state", FieldCode::NotAllowed, detail)));
    }
    let role = role.and_then(|text| errors.check(parse_role(&text).map(AccountCommand::SetRole)));
    let command = role.or(state.and_then(|text| errors.check(parse_state(&text))));
    let missing = || FieldError::new("", FieldCode::Required, "must contain `role` or `state`");
    match command {
        None if errors.is_empty() => Err(ProblemResponse::fields(vec![missing()])),
        command => errors.finish(command),
    }
}

fn parse_state(text: &str) -> Result<AccountCommand, FieldError> {
    match AccountState::parse(text) {
        Some(AccountState::Active) => Ok(AccountCommand::Enable),
        Some(AccountState::Disabled) => Ok(AccountCommand::Disable),
        _ => Err(FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled")),
    }
}

async fn delete(caller: Caller, api: Data<PublicApi>, Id(id): Id<AccountId>, _: NoEntityTag) -> NoContent {
    carry_out(&caller, &api, id, AccountCommand::Delete).await.map(|_| no_content(()))
}

async fn unlock(caller: Caller, api: Data<PublicApi>, Id(id): Id<AccountId>, _: NoEntityTag) -> NoContent {
    carry_out(&caller, &api, id, AccountCommand::Unlock).await.map(|_| no_content(()))
}

async fn re_enrol(
    caller: Caller,
    api: Data<PublicApi>,
    Id(id): Id<AccountId>,
    _: NoEntityTag,
) -> JsonStatusResult<ReEnrolment> {
    let changed = carry_out(&caller, &api, id, AccountCommand::ReEnrol).await?;
    let (code, expires_at) =
        changed.enrolment.ok_or_else(|| ProblemResponse::internal().caused_by("a re-enrolment without a code"))?;
    created(ReEnrolment { enrolment_code: code.text().clone().into(), expires_at: time_text(expires_at) })
}

async fn carry_out(
    caller: &Caller,
    api: &PublicApi,
    id: AccountId,
    command: AccountCommand,
) -> Result<ChangedAccount, ProblemResponse> {
    let account = AccountRef::Id(caller.organization()?, id);
    let accounts = api.parts.accounts.for_request(caller.origin);
    caller.run(|principal| async move { accounts.change(&principal, account, command).await }).await
}

/// Parses the exact name of a role.
fn parse_role(text: &str) -> Result<Role, FieldError> {
    Role::parse(text).ok_or_else(|| FieldError::new("/role", FieldCode::OutOfRange, "must be admin, editor or viewer"))
}

/// Converts an account or invitation.
fn item(account: &ListedAccount) -> AccountItem {
    AccountItem {
        id: account.grant.account.to_string(),
        email: account.grant.email.to_string(),
        role: account.grant.role.as_str().to_owned(),
        state: account.grant.state.as_str().to_owned(),
        created_at: time_text(account.created_at),
        last_login_at: account.logins.last_login_at.map(time_text),
        locked: account.logins.is_locked(),
        locked_since: account.logins.locked_since().map(time_text),
        failed_logins: account.logins.attempts.attempts,
        last_failed_login_at: account.logins.last_refused_at.map(time_text),
        locked_until: account.logins.attempts.waits_until.map(time_text),
        login_closed: account.logins.attempts.closed,
        wrong_passcodes: account.logins.wrong_passcodes,
        passcode_disabled: account.logins.passcode_disabled(),
        invitation_expires_at: account.invitation_expires_at.map(time_text),
    }
}
