//! `POST {base_url}/account/passcode/confirm`

use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::operation::document::secrets;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use std::sync::Arc;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session(call)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let [passcode] = secrets(&body.read().await?, ["passcode"])?;
    let confirm = Arc::clone(&api.parts.own_account.confirm_passcode);

    api.complete(async move { confirm.run(&principal, &passcode).await }).await?;

    Ok(answer::no_content())
}
