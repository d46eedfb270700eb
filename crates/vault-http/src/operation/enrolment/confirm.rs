//! `POST {base_url}/enrol/confirm`

use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, document};
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use vault_api::ConfirmEnrolmentRequest;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let request: ConfirmEnrolmentRequest = document::read(call, body).await?;
    let (code, passcode) = (request.enrolment_code.into_secret(), request.passcode.into_secret());
    let accounts = api.parts.accounts.for_request(call.origin);

    api.complete(call, async move { accounts.confirm_enrolment(&code, &passcode).await }).await?;

    Ok(answer::no_content())
}
