//! `POST {base_url}/integrations`

use super::{issued, trusts};
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::Inner;
use crate::operation::document::optional_time;
use crate::problem_response::ProblemResponse;
use crate::wire::Document;
use crate::{answer, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_core::integration::{IntegrationName, ManagedBy, NamespacePatterns};
use vault_core::role::Action;
use vault_core::usecase::integrations::CreateIntegrationRequest;

pub(crate) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = parse(&body.read().await?)?;
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let create = async move { integrations.create(&principal.into(), organization, request).await };
    let created = api.complete(call, create).await?;

    answer::secret(StatusCode::CREATED, &issued(&created.integration, created.token.as_ref()))
}

/// Name and patterns are validated here as well as in the use case, which commands call too, so that all errors are
/// reported together.
pub(crate) fn parse(body: &[u8]) -> Result<CreateIntegrationRequest, ProblemResponse> {
    let mut document = Document::parse(body)?;
    let trusts = document.remove("trusts").map(trusts::array);
    let (request, mut violations) = document.read::<vault_api::CreateIntegrationRequest>()?;
    let vault_api::CreateIntegrationRequest { name, namespaces, expires_at, token, managed_by, .. } = request;
    let trusts = violations.check("/trusts", || trusts.transpose());
    violations.check("/name", || IntegrationName::parse(&name, "/name"));
    violations.check_all("/namespaces", || NamespacePatterns::parse(&namespaces, "/namespaces"));
    violations.check("/managed_by", || managed_by.as_ref().map(|set| ManagedBy::parse(set, "/managed_by")).transpose());
    let expires_at = violations.check("/expires_at", || optional_time(expires_at.as_deref(), "/expires_at"));
    let request = expires_at.zip(trusts).map(|(expires_at, trusts)| CreateIntegrationRequest {
        name,
        namespaces,
        expires_at,
        token: token.unwrap_or(true),
        trusts: trusts.unwrap_or_default(),
        managed_by,
    });
    violations.finish(request)
}
