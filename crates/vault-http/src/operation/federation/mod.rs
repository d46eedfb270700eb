//! `GET /.well-known/openid-configuration` and `GET /federation/jwks.json`: the documents from which storage providers read
//! the public signing keys. They are served from memory, without a token.

use super::Inner;
use crate::answer;
use crate::body::Incoming;
use crate::call::Call;
use crate::problem_response::ProblemResponse;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use bytes::Bytes;
use vault_core::usecase::federation::PublishedKeys;

/// AWS refuses key sets that must not be cached.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");

pub(super) async fn discovery(api: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    serve(api, body, |published| published.discovery_document().to_owned().into()).await
}

pub(super) async fn key_set(api: &Inner, _: &Call<'_>, body: &mut Incoming) -> Result<HttpResponse, ProblemResponse> {
    serve(api, body, |published| Bytes::copy_from_slice(published.key_set_document().as_bytes())).await
}

/// Ignores the query, because a provider may add one to avoid a cache.
async fn serve(
    api: &Inner,
    body: &mut Incoming,
    document: impl Fn(&PublishedKeys) -> Bytes,
) -> Result<HttpResponse, ProblemResponse> {
    body.ignore().await?;
    let published = api.parts.federation.as_ref().ok_or_else(ProblemResponse::not_found)?;
    let mut response = answer::json(StatusCode::OK, document(published));
    response.headers_mut().insert(CACHE_CONTROL, CACHED);
    Ok(response)
}
