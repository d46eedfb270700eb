//! `POST {base_url}/logout`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{answer, query};
use actix_web::HttpResponse;
use std::sync::Arc;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.session(call)?;
    query::none(call.query())?;
    body.ignore().await?;
    let log_out = Arc::clone(&api.parts.log_out);

    api.complete(async move { log_out.run(&principal).await }).await?;

    Ok(answer::no_content())
}
