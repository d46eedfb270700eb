//! `POST {base_url}/activations/check`

use super::Inner;
use super::begin::parse_vend;
use crate::body::Incoming;
use crate::call::Call;
use crate::operation::document::optional_time;
use crate::problem_response::ProblemResponse;
use crate::{answer, checks, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use vault_api::{CheckRequest, CheckedNamespace};
use vault_core::activation::VendMode;
use vault_core::check::StorageOperation;
use vault_core::namespace::Namespace;
use vault_core::usecase::activations::{CheckNamespaceRequest, CheckedCredential};

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = parse(&body.read().await?)?;
    let activations = api.parts.activations.for_request(call.origin);

    let namespace = request.namespace.to_string();
    let permit = api.ask_stores(&principal)?;
    let checking = async move {
        let _permit = permit;
        activations.check(&principal, request).await
    };
    let checked = api.complete(call, checking).await?;

    let credentials: Vec<_> = checked.iter().map(shown).collect();
    let usable = credentials.iter().all(|credential| credential.usable);
    answer::object(StatusCode::OK, &CheckedNamespace { namespace, usable, credentials })
}

pub(crate) fn parse(body: &[u8]) -> Result<CheckNamespaceRequest, ProblemResponse> {
    let (CheckRequest { namespace, operations, until, vend }, mut violations) = wire::read(body)?;
    let namespace = violations.check("/namespace", || Namespace::parse(&namespace, "/namespace"));
    let operations = violations.check_all("/operations", || StorageOperation::parse_all(&operations, "/operations"));
    let until = violations.check("/until", || optional_time(until.as_deref(), "/until"));
    let vend = violations.check("/vend", || vend.map_or(Ok(VendMode::default()), |text| parse_vend(&text)));
    let request = namespace.zip(operations).zip(until).zip(vend);
    violations.finish(request.map(|(((namespace, operations), until), vend)| CheckNamespaceRequest {
        namespace,
        operations,
        until,
        vend,
    }))
}

fn shown(checked: &CheckedCredential) -> vault_api::CheckedCredential {
    vault_api::CheckedCredential {
        id: checked.id.to_string(),
        kind: checked.kind.as_str().to_owned(),
        usable: checked.report.is_usable(),
        form: checked.form.map(|form| form.as_str().to_owned()),
        checks: checks::items(&checked.report),
    }
}
