//! `POST {base_url}/accounts/<id>/re-enrol`

use super::account_id;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Inner, precondition};
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::ReEnrolment;
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

    let changed =
        api.complete(async move { accounts.change(&principal, account, AccountCommand::ReEnrol).await }).await?;

    let (code, expires_at) =
        changed.enrolment.ok_or_else(|| Fault::internal().caused_by("a re-enrolment without a code"))?;
    let enrolment =
        ReEnrolment { enrolment_code: code.text().clone().into(), expires_at: answer::time_text(expires_at) };
    answer::secret(StatusCode::CREATED, &enrolment)
}
