//! The operator's way to the API: the same app, called by the process that has opened the vault.

use crate::caller::IsOperator;
use crate::parts::ServerParts;
use crate::public::{self, PublicApi};
use crate::settings::{BasePath, ListenerSettings, ServerSettings};
use actix_http::{BoxedPayloadStream, HttpMessage as _, Payload};
use actix_service::{IntoServiceFactory as _, Service as _, ServiceFactory as _};
use actix_web::body::{self, MessageBody as _};
use actix_web::dev::AppConfig;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, Uri};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use std::future::ready;
use std::sync::Arc;
use vault_core::id::OrganizationId;

/// The API of this process, for the operator of this host. It is below the default base path.
#[derive(Clone)]
pub struct OperatorApi(Arc<PublicApi>);

impl OperatorApi {
    /// Creates the API with these use cases.
    pub fn new(parts: ServerParts) -> Self {
        let settings = ServerSettings {
            listener: ListenerSettings::new(Vec::new()),
            unix: None,
            base_path: BasePath::default(),
            example_keys: false,
            activation_url: None,
            rate: None,
            requests_per_account: usize::MAX,
            requests_per_organization: usize::MAX,
        };
        Self(Arc::new(PublicApi::new(&settings, parts)))
    }

    /// Answers a request. Without an organization, it concerns the instance.
    pub async fn answer(&self, organization: Option<OrganizationId>, request: Request<Vec<u8>>) -> Response<Vec<u8>> {
        let called = called(request, IsOperator { organization });
        match called {
            Some(called) => self.answered(called).await.unwrap_or_else(|| status(StatusCode::INTERNAL_SERVER_ERROR)),
            None => status(StatusCode::BAD_REQUEST),
        }
    }

    async fn answered(&self, called: actix_http::Request<BoxedPayloadStream>) -> Option<Response<Vec<u8>>> {
        // A separate service for each request is cheap enough for a command.
        let app = public::app(Arc::clone(&self.0));
        let service = app.into_factory().new_service(AppConfig::default()).await.ok()?;
        let response = service.call(called).await.ok()?;
        let mut answer = status(StatusCode::from_u16(response.status().as_u16()).ok()?);
        for (name, value) in response.headers() {
            let name = http::HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
            answer.headers_mut().append(name, http::HeaderValue::from_bytes(value.as_bytes()).ok()?);
        }
        *answer.body_mut() = body::to_bytes(response.into_body().boxed()).await.ok()?.to_vec();
        Some(answer)
    }
}

/// Converts a request to one of the framework. `operator` is a private type, so no request from a network can contain it.
fn called(request: Request<Vec<u8>>, operator: IsOperator) -> Option<actix_http::Request<BoxedPayloadStream>> {
    let (parts, bytes) = request.into_parts();
    let stream: BoxedPayloadStream = Box::pin(stream::once(ready(Ok(Bytes::from(bytes)))));
    let mut called = actix_http::Request::with_payload(Payload::Stream { payload: stream });
    called.head_mut().method = Method::from_bytes(parts.method.as_str().as_bytes()).ok()?;
    called.head_mut().uri = parts.uri.path_and_query()?.as_str().parse::<Uri>().ok()?;
    for (name, value) in &parts.headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
        called.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    called.extensions_mut().insert(operator);
    Some(called)
}

fn status(status: StatusCode) -> Response<Vec<u8>> {
    let mut response = Response::new(Vec::new());
    *response.status_mut() = status;
    response
}
