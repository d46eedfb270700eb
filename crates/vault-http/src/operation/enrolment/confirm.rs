//! `POST {base_url}/enrol/confirm`

use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::operation::document::read_secrets;
use actix_web::HttpResponse;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let [code, passcode] = read_secrets(call, body, ["enrolment_code", "passcode"]).await?;
    let accounts = api.parts.accounts.clone();

    api.complete(async move { accounts.confirm_enrolment(&code, &passcode).await }).await?;

    Ok(answer::no_content())
}
