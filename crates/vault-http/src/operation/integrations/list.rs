//! `GET {base_url}/integrations`

use super::spelt;
use crate::answer::time_text;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::{answer, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use std::sync::Arc;
use vault_api::IntegrationItem;
use vault_core::integration::Integration;
use vault_core::port::IntegrationScope;
use vault_core::role::Action;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    body.ignore().await?;
    let list = Arc::clone(&api.parts.integrations.list);

    let listed = api.complete(async move { list.run(IntegrationScope::Session(principal)).await }).await?;

    let items: Vec<_> = listed.iter().map(|stored| item(&stored.integration)).collect();
    answer::object(StatusCode::OK, &items)
}

fn item(integration: &Integration) -> IntegrationItem {
    IntegrationItem {
        integration_id: integration.id.to_string(),
        name: integration.name.to_string(),
        namespaces: spelt(&integration.patterns),
        state: integration.state.as_str().to_owned(),
        created_at: time_text(integration.created_at),
        expires_at: integration.expires_at.map(time_text),
        earlier_token_until: integration.earlier.map(|earlier| time_text(earlier.until)),
    }
}
