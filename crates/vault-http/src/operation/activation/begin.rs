//! `POST {base_url}/activations`

use super::Inner;
use crate::answer::time_text;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use crate::{answer, content, query, wire};
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use secrecy::SecretString;
use std::str;
use vault_api::{ActivateRequest, BegunActivation, VendedCredential, WireJson};
use vault_core::activation::{Activated, ActivatedCredential, ActivationTtl, Purpose, VendMode};
use vault_core::field::{FieldCode, FieldError};
use vault_core::namespace::Namespace;
use vault_core::usecase::activations::ActivationRequest;

pub(super) async fn run(api: &Inner, call: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    let principal = api.integration(call).await?;
    query::none(call.query())?;
    content::check(call.headers())?;
    let request = parse(&body.read().await?)?;
    let activations = api.parts.activations.for_request(call.origin);

    let asks_stores = request.vend != VendMode::Raw;
    let permit = asks_stores.then(|| api.ask_stores(&principal)).transpose()?;
    let activating = async move {
        let _permit = permit;
        activations.activate(&principal, request).await
    };
    let activated = api.complete(call, activating).await?;

    answer::secret(StatusCode::CREATED, &started(&activated)?)
}

pub(crate) fn parse(body: &[u8]) -> Result<ActivationRequest, ProblemResponse> {
    let (ActivateRequest { namespace, purpose, ttl, vend }, mut violations) = wire::read(body)?;
    let namespace = violations.check("/namespace", || Namespace::parse(&namespace, "/namespace"));
    let purpose = violations.check("/purpose", || purpose.map(|text| Purpose::parse(&text, "/purpose")).transpose());
    let ttl = violations.check("/ttl", || ActivationTtl::parse(ttl));
    let vend = violations.check("/vend", || vend.map_or(Ok(VendMode::default()), |text| parse_vend(&text)));
    let request = namespace.zip(purpose).zip(ttl).zip(vend);
    violations.finish(request.map(|(((namespace, purpose), ttl), vend)| ActivationRequest {
        namespace,
        purpose,
        ttl,
        vend,
    }))
}

pub(super) fn parse_vend(text: &str) -> Result<VendMode, FieldError> {
    VendMode::parse(text)
        .ok_or_else(|| FieldError::new("/vend", FieldCode::OutOfRange, "must be raw, short or prefer-short"))
}

pub(super) fn started(activated: &Activated) -> Result<BegunActivation, ProblemResponse> {
    Ok(BegunActivation {
        id: activated.id.to_string(),
        namespace: activated.namespace.to_string(),
        expires_at: time_text(activated.expires_at),
        credentials: activated.credentials.iter().map(vended).collect::<Result<_, _>>()?,
    })
}

fn vended(credential: &ActivatedCredential) -> Result<VendedCredential, ProblemResponse> {
    let data = credential.data();
    // This response is the purpose of the activation.
    let data =
        str::from_utf8(data.expose()).map_err(|_| ProblemResponse::internal().caused_by("data that is not UTF-8"))?;
    Ok(VendedCredential {
        id: credential.id.to_string(),
        kind: credential.kind.as_str().to_owned(),
        version: credential.version,
        form: credential.vended.form().as_str().to_owned(),
        data: WireJson::from(SecretString::from(data)),
        expires_at: credential.vended.expires_at().map(time_text),
    })
}
