//! `POST {base_url}/activations/check`

use super::Inner;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::document::optional_time;
use crate::{answer, checks, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use std::sync::Arc;
use vault_api::CheckRequest;
use vault_core::check::StorageOperation;
use vault_core::namespace::Namespace;
use vault_core::usecase::{CheckNamespaceRequest, CheckedCredential, CheckedNamespace};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = parse(&body.read().await?)?;
    let check = Arc::clone(&api.parts.check);

    let leave = api.ask_stores(&principal)?;
    let checking = async move {
        let _leave = leave;
        check.run(&principal, request).await
    };
    let checked = api.complete(checking).await?;

    answer::object(StatusCode::OK, &shown(&checked))
}

pub(crate) fn parse(body: &[u8]) -> Result<CheckNamespaceRequest, Fault> {
    let (CheckRequest { namespace, operations, until }, mut flaws) = wire::read(body)?;
    let namespace = flaws.check("/namespace", || Namespace::parse(&namespace, "/namespace"));
    let operations = flaws.check_all("/operations", || StorageOperation::parse_all(&operations, "/operations"));
    let until = flaws.check("/until", || optional_time(until.as_deref(), "/until"));
    let request = namespace.zip(operations).zip(until);
    flaws.finish(request.map(|((namespace, operations), until)| CheckNamespaceRequest { namespace, operations, until }))
}

fn shown(checked: &CheckedNamespace) -> vault_api::CheckedNamespace {
    vault_api::CheckedNamespace {
        namespace: checked.namespace.to_string(),
        usable: checked.is_usable(),
        credentials: checked.credentials.iter().map(shown_credential).collect(),
    }
}

fn shown_credential(checked: &CheckedCredential) -> vault_api::CheckedCredential {
    vault_api::CheckedCredential {
        id: checked.id.to_string(),
        kind: checked.kind.as_str().to_owned(),
        usable: checked.report.is_usable(),
        checks: checks::items(&checked.report),
    }
}
