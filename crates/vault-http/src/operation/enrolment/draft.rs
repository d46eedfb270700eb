//! `POST {base_url}/enrol`

use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::document::secrets;
use crate::operation::{Inner, shown};
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use std::sync::Arc;
use vault_api::EnrolResponse;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    query::none(call.query())?;
    content::check(call.headers())?;
    let [code, password] = secrets(&body.read().await?, ["enrolment_code", "password"])?;
    let enrol = Arc::clone(&api.parts.accounts.enrol);

    let drafted = api.complete(async move { enrol.run(&code, password).await }).await?;

    let drafted = EnrolResponse {
        email: drafted.email.to_string(),
        totp: shown::totp(drafted.passcode),
        recovery_codes: shown::recovery_codes(drafted.recovery_codes),
    };
    answer::object(StatusCode::OK, &drafted)
}
