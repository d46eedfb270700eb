//! `DELETE {base_url}/activations/<id>`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{NO_ID, precondition};
use crate::{answer, query};
use actix_web::HttpResponse;
use std::sync::Arc;
use vault_core::id::ActivationId;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    // Text that is no id stands for an activation that is not there.
    let activation = call.place.id().parse().unwrap_or(ActivationId::from_bytes(NO_ID));
    let own = Arc::clone(&api.parts.own);

    api.complete(async move { own.end(&principal, activation).await }).await?;

    Ok(answer::no_content())
}
