//! `{base_url}/namespaces`: the organization's namespaces for admins, and freezing them.

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{FrozenNamespace, NamespaceItem, NamespaceRequest};
use vault_core::namespace::Namespace;
use vault_core::port::{Freezing, ListedNamespace};
use vault_core::role::Action;

/// `GET {base_url}/namespaces`
pub(super) async fn list(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    let request = query::page(call.query())?;
    body.ignore().await?;
    let (integrations, limit) = (api.parts.integrations.clone(), request.limit);

    let organization = principal.organization;
    let list = async move { integrations.list_namespaces(&principal.into(), organization, request).await };
    let page = api.complete(list).await?;

    answer::page(&api.base.below("/namespaces"), &page, limit, item)
}

/// `POST {base_url}/namespaces/freeze`
pub(super) async fn freeze(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    set_frozen(api, call, body, true).await
}

/// `POST {base_url}/namespaces/thaw`
pub(super) async fn thaw(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    set_frozen(api, call, body, false).await
}

async fn set_frozen(
    api: &Inner,
    call: &Call<'_>,
    body: &mut Incoming,
    frozen: bool,
) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let namespace = parse(&body.read().await?)?;
    let (integrations, organization) = (api.parts.integrations.clone(), principal.organization);

    let set = async move {
        let principal = principal.into();
        match frozen {
            true => integrations.freeze(&principal, organization, namespace).await,
            false => integrations.thaw(&principal, organization, namespace).await,
        }
    };
    let Freezing { changed, credentials, integrations } = api.complete(set).await?;

    answer::object(StatusCode::OK, &FrozenNamespace { credentials, integrations, changed })
}

/// Parses the namespace in the body.
pub(crate) fn parse(body: &[u8]) -> Result<Namespace, ProblemResponse> {
    let (NamespaceRequest { namespace }, mut violations) = wire::read(body)?;
    let namespace = violations.check("/namespace", || Namespace::parse(&namespace, "/namespace"));
    violations.finish(namespace)
}

fn item(listed: &ListedNamespace) -> NamespaceItem {
    NamespaceItem {
        namespace: listed.namespace.to_string(),
        credentials: listed.credentials,
        frozen: listed.frozen_at.is_some(),
        frozen_at: listed.frozen_at.map(answer::time_text),
    }
}
