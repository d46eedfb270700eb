//! `POST {base_url}/accounts`

use super::parse_role;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{InviteRequest, InvitedAccount};
use vault_core::email::EmailAddress;
use vault_core::principal::Principal;
use vault_core::role::{Action, Role};

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageAccounts)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let (email, role) = parse(&body.read().await?)?;
    let accounts = api.parts.accounts.for_request(call.origin);
    let organization = principal.organization;
    let principal = Principal::from(principal);

    let invited = api
        .complete(call, async move { accounts.invite(&principal, organization, email.as_str(), role).await })
        .await?;

    let invited = InvitedAccount {
        id: invited.grant.account.to_string(),
        enrolment_code: invited.code.text().clone().into(),
        expires_at: answer::time_text(invited.expires_at),
    };
    answer::object(StatusCode::CREATED, &invited)
}

pub(crate) fn parse(body: &[u8]) -> Result<(EmailAddress, Role), ProblemResponse> {
    let (InviteRequest { email, role }, mut violations) = wire::read(body)?;
    let email = violations.check("/email", || EmailAddress::parse(&email).map_err(|error| error.at("/email")));
    let role = violations.check("/role", || parse_role(&role));
    violations.finish(email.zip(role))
}
