//! `POST {base_url}/accounts/<id>/re-enrol`

use super::change::by_address;
use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::ReEnrolment;
use vault_core::usecase::AccountCommand;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let changed = by_address(api, call, body, AccountCommand::ReEnrol).await?;
    let (code, expires_at) =
        changed.enrolment.ok_or_else(|| ProblemResponse::internal().caused_by("a re-enrolment without a code"))?;
    let enrolment =
        ReEnrolment { enrolment_code: code.text().clone().into(), expires_at: answer::time_text(expires_at) };
    answer::secret(StatusCode::CREATED, &enrolment)
}
