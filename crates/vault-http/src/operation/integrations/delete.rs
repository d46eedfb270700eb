//! `DELETE {base_url}/integrations/<id>`

use super::named;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::{Inner, precondition};
use crate::{answer, query};
use actix_web::HttpResponse;
use std::sync::Arc;
use vault_core::role::Action;
use vault_core::usecase::{Administrator, IntegrationCommand};

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    precondition::none_but_existence(call.headers())?;
    body.ignore().await?;
    let integration = named(call.place);
    let change = Arc::clone(&api.parts.integrations.change);

    let administrator = Administrator::Session(principal);
    let delete = async move { change.run(administrator, integration, IntegrationCommand::Delete).await };
    api.complete(delete).await?;

    Ok(answer::no_content())
}
