//! `POST {base_url}/enrol`

use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, document, shown};
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{EnrolRequest, EnrolResponse};

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let request: EnrolRequest = document::read(call, body).await?;
    let (code, password) = (request.enrolment_code.into_secret(), request.password.into_secret());
    let accounts = api.parts.accounts.for_request(call.origin);

    let drafted = api.complete(call, async move { accounts.enrol(&code, password).await }).await?;

    let drafted = EnrolResponse {
        email: drafted.email.to_string(),
        totp: shown::totp(drafted.passcode),
        recovery_codes: shown::recovery_codes(drafted.recovery_codes),
    };
    answer::object(StatusCode::OK, &drafted)
}
