//! `POST {base_url}/account/passcode/confirm`

use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::{Inner, document};
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use vault_api::ConfirmPasscodeRequest;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session(call)?;
    let request: ConfirmPasscodeRequest = document::read(call, body).await?;
    let passcode = request.passcode.into_secret();
    let accounts = api.parts.accounts.for_request(call.origin);

    api.complete(call, async move { accounts.confirm_passcode(&principal, &passcode).await })
        .await
        .map_err(ProblemResponse::of_new_passcode)?;

    Ok(answer::no_content())
}
