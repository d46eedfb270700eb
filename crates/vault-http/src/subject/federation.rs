//! `/.well-known/openid-configuration` and `/federation/jwks.json`: the documents from which storage providers read the
//! public signing keys. They are served from memory, without a token.

use crate::problem::ProblemResponse;
use crate::public::PublicApi;
use crate::respond::json;
use crate::routes::{Access, Endpoint, route};
use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::web::Data;
use vault_core::usecase::federation::PublishedKeys;

/// AWS refuses key sets that must not be cached.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// They ignore the query, because a provider may add one to avoid a cache.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let discovery = "/.well-known/openid-configuration";
    vec![
        route("GET", discovery, "show-federation-issuer", Access::Public, issuer).with_query(),
        route("GET", "/federation/jwks.json", "show-federation-keys", Access::Public, keys).with_query(),
    ]
}

async fn issuer(api: Data<PublicApi>) -> Result<HttpResponse, ProblemResponse> {
    serve(&api, |published| published.discovery_document().to_owned())
}

async fn keys(api: Data<PublicApi>) -> Result<HttpResponse, ProblemResponse> {
    serve(&api, |published| published.key_set_document().to_string())
}

fn serve(api: &PublicApi, document: impl Fn(&PublishedKeys) -> String) -> Result<HttpResponse, ProblemResponse> {
    let published = api.parts.federation.as_ref().ok_or_else(ProblemResponse::not_found)?;
    let mut response = json(document(published));
    response.headers_mut().insert(CACHE_CONTROL, CACHED);
    Ok(response)
}
