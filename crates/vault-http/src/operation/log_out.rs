//! `POST {base_url}/logout`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session(call)?;
    query::none(call.query())?;
    body.ignore().await?;
    let accounts = api.parts.accounts.for_request(call.origin);

    api.complete(call, async move { accounts.log_out(&principal).await }).await?;

    Ok(answer::no_content())
}
