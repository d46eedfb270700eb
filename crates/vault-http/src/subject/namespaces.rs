//! `{base}/namespaces`: an organization's namespaces, their usage, and freezing them.

use crate::body::Body;
use crate::caller::Caller;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::query::{NamespacesQuery, UsageQuery};
use crate::respond::{JsonResult, ok, page, time_text};
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::web::Data;
use vault_api::{FrozenNamespace, NamespaceDenialItem, NamespaceItem, NamespaceRequest, NamespaceUseItem};
use vault_core::namespace::{Freezing, ListedNamespace, Namespace};
use vault_core::role::Action;
use vault_core::usecase::integrations::{NamespaceDenial, NamespaceUsage, NamespaceUse};

const ADMINS: Access = Access::Role(Action::ManageIntegrations);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        route("GET", "{base}/namespaces", "list-namespaces", Access::Role(Action::List), list).with_query(),
        route("GET", "{base}/namespaces/usage", "show-namespace-usage", ADMINS, usage).with_query(),
        route("POST", "{base}/namespaces/freeze", "freeze-namespace", ADMINS, freeze),
        route("POST", "{base}/namespaces/thaw", "thaw-namespace", ADMINS, thaw),
    ]
}

async fn list(
    caller: Caller,
    api: Data<PublicApi>,
    NamespacesQuery(only, request): NamespacesQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (integrations, limit) = (api.parts.integrations.for_request(caller.origin), request.limit);
    let organization = caller.organization()?;
    let list = |principal| async move { integrations.list_namespaces(&principal, organization, only, request).await };
    let listed = caller.run(list).await?;
    page(&api.common.base.below("/namespaces"), &listed, limit, item)
}

async fn usage(
    caller: Caller,
    api: Data<PublicApi>,
    UsageQuery(since, integration): UsageQuery,
) -> JsonResult<vault_api::NamespaceUsage> {
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let count =
        |principal| async move { integrations.namespace_usage(&principal, organization, since, integration).await };
    let NamespaceUsage { since, activations, denied, uses, denials } = caller.run(count).await?;
    ok(vault_api::NamespaceUsage {
        since: time_text(since),
        activations,
        denied,
        uses: uses.into_iter().map(used).collect(),
        denials: denials.into_iter().map(refused).collect(),
    })
}

async fn freeze(
    caller: Caller,
    api: Data<PublicApi>,
    Body(body): Body<NamespaceRequest>,
) -> JsonResult<FrozenNamespace> {
    let namespace = Namespace::parse(&body.namespace, "/namespace")?;
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let freeze = |principal| async move { integrations.freeze(&principal, organization, namespace).await };
    ok(frozen(caller.run(freeze).await?))
}

async fn thaw(caller: Caller, api: Data<PublicApi>, Body(body): Body<NamespaceRequest>) -> JsonResult<FrozenNamespace> {
    let namespace = Namespace::parse(&body.namespace, "/namespace")?;
    let (integrations, organization) = (api.parts.integrations.for_request(caller.origin), caller.organization()?);
    let thaw = |principal| async move { integrations.thaw(&principal, organization, namespace).await };
    ok(frozen(caller.run(thaw).await?))
}

fn frozen(Freezing { changed, credentials, integrations }: Freezing) -> FrozenNamespace {
    FrozenNamespace { credentials, integrations, changed }
}

fn used(used: NamespaceUse) -> NamespaceUseItem {
    NamespaceUseItem {
        integration: used.integration.to_string(),
        namespace: used.namespace.to_string(),
        activations: used.activations,
        last_activated_at: time_text(used.last_activated_at),
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
        last_denied_at: time_text(refused.last_denied_at),
    }
}

fn item(listed: &ListedNamespace) -> NamespaceItem {
    NamespaceItem {
        namespace: listed.namespace.to_string(),
        credentials: listed.credentials,
        frozen: listed.frozen_at.is_some(),
        frozen_at: listed.frozen_at.map(time_text),
    }
}
