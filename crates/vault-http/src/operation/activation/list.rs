//! `GET {base_url}/activations`

use super::Inner;
use crate::answer::time_text;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use std::sync::Arc;
use vault_api::ActivationItem;
use vault_core::activation::Activation;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    body.ignore().await?;
    let own = Arc::clone(&api.parts.own);

    let live = api.complete(async move { own.list(&principal).await }).await?;

    answer::object(StatusCode::OK, &live.iter().map(item).collect::<Vec<_>>())
}

fn item(activation: &Activation) -> ActivationItem {
    ActivationItem {
        id: activation.id.to_string(),
        namespace: activation.namespace.to_string(),
        vend: activation.vend.as_str().to_owned(),
        credential_count: activation.credentials,
        begun_at: time_text(activation.begun_at),
        expires_at: time_text(activation.expires_at),
    }
}
