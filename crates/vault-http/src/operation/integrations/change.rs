//! `PATCH {base_url}/integrations/<id>`

use super::{item, named};
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::document::optional_time;
use crate::operation::{Inner, precondition};
use crate::problem_response::ProblemResponse;
use crate::wire::Document;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::ChangeIntegrationRequest;
use vault_core::field::{FieldCode, FieldError};
use vault_core::integration::{IntegrationState, ManagedBy, NamespacePatterns};
use vault_core::role::Action;
use vault_core::usecase::integrations::IntegrationEdit;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    precondition::none_but_existence(call.headers())?;
    let edit = parse(&body.read().await?)?;
    let integration = named(call.place);
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let change = async move { integrations.change(&principal.into(), organization, &integration, edit).await };
    let changed = api.complete(call, change).await?;

    answer::object(StatusCode::OK, &item(&changed, api.parts.integrations.now()))
}

/// Parses the changes. Namespaces are validated here as well as in the use case, so that all errors are reported
/// together.
pub(crate) fn parse(body: &[u8]) -> Result<IntegrationEdit, ProblemResponse> {
    let mut document = Document::parse(body)?;
    let (never, unmanaged) = (document.take_null("expires_at"), document.take_null("managed_by"));
    let (ChangeIntegrationRequest { state, namespaces, expires_at, managed_by }, mut violations) = document.read()?;
    let state = violations.check("/state", || state.as_deref().map(parse_state).transpose());
    violations.check_all("/namespaces", || {
        namespaces.as_ref().map(|texts| NamespacePatterns::parse(texts, "/namespaces")).transpose()
    });
    violations.check("/managed_by", || managed_by.as_ref().map(|set| ManagedBy::parse(set, "/managed_by")).transpose());
    let expires_at = violations.check("/expires_at", || optional_time(expires_at.as_deref(), "/expires_at"));
    let edit = state.zip(expires_at).map(|(state, expires_at)| IntegrationEdit {
        state,
        namespaces,
        expires_at: expires_at.map(Some).or(never.then_some(None)),
        managed_by: managed_by.map(Some).or(unmanaged.then_some(None)),
    });
    violations.finish(edit)
}

fn parse_state(text: &str) -> Result<IntegrationState, FieldError> {
    IntegrationState::parse(text)
        .ok_or_else(|| FieldError::new("/state", FieldCode::OutOfRange, "must be active or disabled"))
}
