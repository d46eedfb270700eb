//! `POST {base_url}/enrol/confirm`

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
    query::none(call.query())?;
    content::check(call.headers())?;
    let [code, passcode] = secrets(&body.read().await?, ["enrolment_code", "passcode"])?;
    let confirm = Arc::clone(&api.parts.accounts.confirm_enrolment);

    api.complete(async move { confirm.run(&code, &passcode).await }).await?;

    Ok(answer::no_content())
}
