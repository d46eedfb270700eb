//! `{base}/audit`: the audit log of an organization, for its admins.

use crate::caller::Caller;
use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::query::{AuditQuery, audit_path};
use crate::respond::{page, time_text};
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::web::Data;
use vault_api::{AuditItem, AuditedChange, AuditedCredential};
use vault_core::audit::AuditEntry;
use vault_core::principal::Principal;
use vault_core::role::Action;

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![route("GET", "{base}/audit", "list-audit", Access::Role(Action::ReadAudit), list).with_query()]
}

async fn list(
    caller: Caller,
    api: Data<PublicApi>,
    AuditQuery(filter, order, request): AuditQuery,
) -> Result<HttpResponse, ProblemResponse> {
    let (reader, limit, asked) = (api.parts.audit.for_request(caller.origin), request.limit, filter.clone());
    let scope = caller.scope();
    let list = |principal| async move { reader.list(&principal, scope, order, &asked, &request).await };
    let listed = caller.run(list).await?;
    let is_operator = caller.principal == Principal::Operator;
    page(&audit_path(&api.common.base.below("/audit"), &filter, order), &listed, limit, |entry| match item(entry) {
        item if is_operator => item,
        item => AuditItem { organization: None, checkpoint: None, ..item },
    })
}

/// Converts an entry, for commands and deliveries too.
pub fn item(entry: &AuditEntry) -> AuditItem {
    AuditItem {
        id: entry.id.clone(),
        at: time_text(entry.at),
        organization: entry.organization.clone(),
        actor: entry.actor.clone(),
        account: entry.account.clone(),
        session: entry.session.clone(),
        integration: entry.integration.clone(),
        action: entry.action.clone(),
        subject: entry.subject().into_owned(),
        count: entry.count,
        namespace: entry.namespace.clone(),
        purpose: entry.purpose.clone(),
        network: entry.network.clone(),
        request_id: entry.request.clone(),
        changes: entry
            .changes()
            .into_iter()
            .map(|change| AuditedChange { field: change.field, from: change.from, to: change.to })
            .collect(),
        credentials: entry
            .credentials()
            .into_iter()
            .map(|one| AuditedCredential {
                id: one.id,
                version: one.version,
                form: one.form,
                expires_at: one.expires_at.map(time_text),
            })
            .collect(),
        checkpoint: entry.checkpoint,
    }
}
