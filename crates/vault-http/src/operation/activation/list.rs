//! `GET {base_url}/activations`

use super::Inner;
use crate::answer::time_text;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, query};
use actix_web::HttpResponse;
use vault_api::ActivationItem;
use vault_core::activation::Activation;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.integration(call).await?;
    let request = query::page(call.query())?;
    body.ignore().await?;
    let (activations, limit) = (api.parts.activations.for_request(call.origin), request.limit);

    let page = api.complete(call, async move { activations.list(&principal, request).await }).await?;

    answer::page(&api.base.below("/activations"), &page, limit, item)
}

fn item(activation: &Activation) -> ActivationItem {
    ActivationItem {
        id: activation.id.to_string(),
        namespace: activation.namespace.to_string(),
        vend: activation.vend.as_str().to_owned(),
        credential_count: activation.credentials,
        started_at: time_text(activation.started_at),
        expires_at: time_text(activation.expires_at),
    }
}
