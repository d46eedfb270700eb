//! `GET {base_url}/audit`: the audit log of the organization, for its admins.

use super::Inner;
use crate::answer::{self, time_text};
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{links, query};
use actix_web::HttpResponse;
use vault_api::{AuditItem, AuditedChange, AuditedCredential};
use vault_core::audit::AuditEntry;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Action;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.session_for(call, Action::ReadAudit)?;
    let (filter, order, request) = query::audit(call.query())?;
    body.ignore().await?;
    let (reader, limit, asked) = (api.parts.audit.for_request(call.origin), request.limit, filter.clone());
    let scope = Scope::One(principal.organization);
    let principal = Principal::from(principal);

    let list = async move { reader.list(&principal, scope, order, &asked, &request).await };
    let page = api.complete(call, list).await?;

    answer::page(&links::audit(&api.base.below("/audit"), &filter, order), &page, limit, item)
}

fn item(entry: &AuditEntry) -> AuditItem {
    AuditItem {
        id: entry.id.clone(),
        at: time_text(entry.at),
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
    }
}
