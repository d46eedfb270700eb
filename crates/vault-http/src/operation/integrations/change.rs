//! `PATCH {base_url}/integrations/<id>`

use super::{item, named};
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::document::{self, keep};
use crate::operation::{Inner, precondition};
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_core::field::{FieldCode, FieldError};
use vault_core::integration::{IntegrationState, NamespacePatterns};
use vault_core::role::Action;
use vault_core::usecase::integrations::IntegrationEdit;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    precondition::none_but_existence(call.headers())?;
    let edit = parse(&body.read().await?)?;
    let integration = named(call.place);
    let (integrations, organization) = (api.parts.integrations.clone(), principal.organization);

    let change = async move { integrations.change(&principal.into(), organization, &integration, edit).await };
    let changed = api.complete(change).await?;

    answer::object(StatusCode::OK, &item(&changed.integration))
}

/// What the body changes. The use case judges the namespaces again; here they are judged so that all flaws are told at
/// once.
pub(crate) fn parse(body: &[u8]) -> Result<IntegrationEdit, Fault> {
    let mut members = document::object(body)?;
    // Nothing in it is secret.
    let state = members.optional_string("state");
    let state = state.and_then(|text| keep(&mut members, parse_state(text.expose())));
    let namespaces = document::optional_texts(&mut members, "namespaces");
    if let Some(Err(errors)) = namespaces.as_ref().map(|texts| NamespacePatterns::parse(texts, "/namespaces")) {
        members.report_all(errors);
    }
    let never = members.is_null("expires_at");
    let expires_at = document::optional_time(&mut members, "expires_at").map(Some).or(never.then_some(None));
    let errors = members.finish();
    if errors.is_empty() { Ok(IntegrationEdit { state, namespaces, expires_at }) } else { Err(Fault::fields(errors)) }
}

fn parse_state(text: &str) -> Result<IntegrationState, FieldError> {
    IntegrationState::parse(text)
        .ok_or_else(|| FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled"))
}
