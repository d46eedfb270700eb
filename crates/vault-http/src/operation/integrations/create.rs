//! `POST {base_url}/integrations`

use super::issued;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::Inner;
use crate::operation::document::{self, keep};
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_core::integration::{IntegrationName, NamespacePatterns};
use vault_core::role::Action;
use vault_core::usecase::integrations::CreateIntegrationRequest;

pub(in crate::operation) async fn run(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
) -> Result<HttpResponse, Fault> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = parse(&body.read().await?)?;
    let (integrations, organization) = (api.parts.integrations.clone(), principal.organization);

    let create = async move { integrations.create(&principal.into(), organization, request).await };
    let created = api.complete(create).await?;

    answer::secret(StatusCode::CREATED, &issued(&created.integration, &created.token))
}

/// The use case judges name and patterns again, since they come from a terminal too; here they are judged so that all
/// flaws are told at once.
pub(crate) fn parse(body: &[u8]) -> Result<CreateIntegrationRequest, Fault> {
    let mut members = document::object(body)?;
    // Neither names nor times are secret.
    let name = members.string("name").map(|text| text.expose().to_owned());
    if let Some(name) = &name {
        keep(&mut members, IntegrationName::parse(name, "/name"));
    }
    let namespaces = document::texts(&mut members, "namespaces");
    if let Some(Err(errors)) = namespaces.as_ref().map(|texts| NamespacePatterns::parse(texts, "/namespaces")) {
        members.report_all(errors);
    }
    let expires_at = document::optional_time(&mut members, "expires_at");
    match (name, namespaces, members.finish()) {
        (Some(name), Some(namespaces), errors) if errors.is_empty() => {
            Ok(CreateIntegrationRequest { name, namespaces, expires_at })
        }
        (_, _, errors) => Err(Fault::fields(errors)),
    }
}
