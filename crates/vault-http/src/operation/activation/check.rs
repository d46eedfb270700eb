//! `POST {base_url}/activations/check`

use super::Inner;
use super::begin::parse_vend;
use crate::body::Incoming;
use crate::call::Call;
use crate::fault::Fault;
use crate::operation::document::{self, keep};
use crate::{answer, checks, content, query};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_core::activation::VendMode;
use vault_core::check::StorageOperation;
use vault_core::namespace::Namespace;
use vault_core::usecase::activations::{CheckNamespaceRequest, CheckedCredential, CheckedNamespace};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, Fault> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = parse(&body.read().await?)?;
    let activations = api.parts.activations.clone();

    let leave = api.ask_stores(&principal)?;
    let checking = async move {
        let _leave = leave;
        activations.check(&principal, request).await
    };
    let checked = api.complete(checking).await?;

    answer::object(StatusCode::OK, &shown(&checked))
}

pub(crate) fn parse(body: &[u8]) -> Result<CheckNamespaceRequest, Fault> {
    let mut members = document::object(body)?;
    // Nothing in it is secret.
    let namespace = members.string("namespace");
    let namespace = namespace.and_then(|text| keep(&mut members, Namespace::parse(text.expose(), "/namespace")));
    let operations = document::texts(&mut members, "operations");
    let operations = operations.and_then(|texts| match StorageOperation::parse_all(&texts, "/operations") {
        Ok(operations) => Some(operations),
        Err(errors) => {
            members.report_all(errors);
            None
        }
    });
    let until = document::optional_time(&mut members, "until");
    let vend = members.optional_string("vend");
    let vend = vend.map_or(Some(VendMode::default()), |text| keep(&mut members, parse_vend(text.expose())));
    match (namespace, operations, vend, members.finish()) {
        (Some(namespace), Some(operations), Some(vend), errors) if errors.is_empty() => {
            Ok(CheckNamespaceRequest { namespace, operations, until, vend })
        }
        (_, _, _, errors) => Err(Fault::fields(errors)),
    }
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
