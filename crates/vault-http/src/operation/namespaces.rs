//! `{base_url}/namespaces`: the organization's namespaces, their usage, and freezing them.

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{FrozenNamespace, NamespaceDenialItem, NamespaceItem, NamespaceRequest, NamespaceUseItem};
use vault_core::namespace::Namespace;
use vault_core::namespace::{Freezing, ListedNamespace};
use vault_core::role::Action;
use vault_core::usecase::integrations::{NamespaceDenial, NamespaceUsage, NamespaceUse};

/// `GET {base_url}/namespaces`
pub(super) async fn list(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::List)?;
    let request = query::page(call.query())?;
    body.ignore().await?;
    let (integrations, limit) = (api.parts.integrations.for_request(call.origin), request.limit);

    let organization = principal.organization;
    let list = async move { integrations.list_namespaces(&principal.into(), organization, request).await };
    let page = api.complete(call, list).await?;

    answer::page(&api.base.below("/namespaces"), &page, limit, item)
}

/// `GET {base_url}/namespaces/usage`
pub(super) async fn usage(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ManageIntegrations)?;
    let (since, integration) = query::usage(call.query())?;
    body.ignore().await?;
    let integrations = api.parts.integrations.for_request(call.origin);

    let organization = principal.organization;
    let counted =
        async move { integrations.namespace_usage(&principal.into(), organization, since, integration).await };
    let NamespaceUsage { since, activations, denied, uses, denials } = api.complete(call, counted).await?;

    let usage = vault_api::NamespaceUsage {
        since: answer::time_text(since),
        activations,
        denied,
        uses: uses.into_iter().map(used).collect(),
        denials: denials.into_iter().map(refused).collect(),
    };
    answer::object(StatusCode::OK, &usage)
}

fn used(used: NamespaceUse) -> NamespaceUseItem {
    NamespaceUseItem {
        integration: used.integration.to_string(),
        namespace: used.namespace.to_string(),
        activations: used.activations,
        last_activated_at: answer::time_text(used.last_activated_at),
        every_days: used.rhythm.map(|rhythm| rhythm.every_days),
        usual_time: used
            .rhythm
            .and_then(|rhythm| rhythm.minute)
            .map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60)),
        silent: used.rhythm.is_some_and(|rhythm| rhythm.is_silent),
    }
}

fn refused(refused: NamespaceDenial) -> NamespaceDenialItem {
    NamespaceDenialItem {
        integration: refused.integration.to_string(),
        namespace: refused.namespace.map(|namespace| namespace.to_string()),
        action: refused.action.as_str().to_owned(),
        denied: refused.denied,
        last_denied_at: answer::time_text(refused.last_denied_at),
    }
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
    let (integrations, organization) = (api.parts.integrations.for_request(call.origin), principal.organization);

    let set = async move {
        let principal = principal.into();
        match frozen {
            true => integrations.freeze(&principal, organization, namespace).await,
            false => integrations.thaw(&principal, organization, namespace).await,
        }
    };
    let Freezing { changed, credentials, integrations } = api.complete(call, set).await?;

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
