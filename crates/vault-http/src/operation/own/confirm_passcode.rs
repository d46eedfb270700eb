//! `POST {base_url}/account/passcode/confirm`

use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::operation::document::read_secrets;
use actix_web::HttpResponse;
use std::sync::Arc;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session(call)?;
    let [passcode] = read_secrets(call, body, ["passcode"]).await?;
    let confirm = Arc::clone(&api.parts.own_account.confirm_passcode);

    api.complete(async move { confirm.run(&principal, &passcode).await }).await?;

    Ok(answer::no_content())
}
