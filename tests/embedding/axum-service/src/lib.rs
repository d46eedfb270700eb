//! A small web service with its own users and a vault. It authenticates the users. The vault authorizes them, separates
//! the organizations and records all requests.
//!
//! | Request | Does |
//! |---|---|
//! | `POST /credentials/{type}/{namespace}` | saves the credential in the body; `Idempotency-Key` makes it repeatable |
//! | `GET /credentials?cursor=` | lists what the user's organization has, 100 to a page |
//! | `DELETE /credentials/{id}` | deletes one for good |

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRef, FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{delete, get, post};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::collections::HashMap;
use std::sync::Arc;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::cursor::PageRequest;
use vault_core::id::CredentialId;
use vault_core::principal::Principal;
use vault_core::usecase::{IdempotencyKey, NewCredential, Vault};
use vault_core::{Error, ErrorKind};

/// The logged-in users by the cookie `session`. A real service queries its session store here.
pub type Sessions = Arc<HashMap<String, Principal>>;

/// The state of the handlers.
#[derive(Clone)]
struct App {
    vault: Vault,
    sessions: Sessions,
}

impl FromRef<App> for Vault {
    fn from_ref(app: &App) -> Self {
        app.vault.clone()
    }
}

/// The service.
pub fn router(vault: Vault, sessions: Sessions) -> Router {
    Router::new()
        .route("/credentials", get(list))
        .route("/credentials/{id}", delete(remove))
        .route("/credentials/{type}/{*namespace}", post(save))
        .with_state(App { vault, sessions })
}

/// A logged-in user.
struct User(Principal);

impl FromRequestParts<App> for User {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, StatusCode> {
        let cookies = parts.headers.get(header::COOKIE).and_then(|cookies| cookies.to_str().ok()).unwrap_or_default();
        let session = cookies.split("; ").find_map(|cookie| cookie.strip_prefix("session="));
        let user = session.and_then(|session| app.sessions.get(session));
        user.cloned().map(Self).ok_or(StatusCode::UNAUTHORIZED)
    }
}

async fn save(
    State(vault): State<Vault>,
    User(user): User,
    Path((kind, namespace)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<impl IntoResponse, Failure> {
    let kind = CredentialType::parse(&kind).ok_or(vault_core::Refusal::NotFound)?;
    let data = CredentialData::from_json(kind, &body)?;
    let mut request = NewCredential::new(namespace.parse()?, data);
    if let Some(key) = headers.get("idempotency-key") {
        let key = IdempotencyKey::parse(key.to_str().unwrap_or_default());
        request.idempotency = Some(key.map_err(|violation| violation.at("/idempotency-key"))?);
    }
    let id = vault.save(&user, request).await?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id.to_string() }))))
}

#[derive(Deserialize)]
struct Paging {
    cursor: Option<String>,
}

async fn list(
    State(vault): State<Vault>,
    User(user): User,
    Query(Paging { cursor }): Query<Paging>,
) -> Result<Json<Value>, Failure> {
    let page = vault.list(&user, Default::default(), PageRequest { limit: 100, cursor }).await?;
    let item = |item: &vault_core::usecase::ListedCredential| {
        // Information is JSON and safe to show; nothing, where the row is damaged.
        let information = item.information.as_ref().and_then(|it| RawValue::from_string(it.as_json().to_owned()).ok());
        json!({ "id": item.id.to_string(), "namespace": item.namespace.as_str(), "information": information })
    };
    Ok(Json(json!({ "items": page.items.iter().map(item).collect::<Vec<_>>(), "next": page.next })))
}

async fn remove(State(vault): State<Vault>, User(user): User, Path(id): Path<String>) -> Result<StatusCode, Failure> {
    let id: CredentialId = id.parse().map_err(|_| vault_core::Refusal::NotFound)?;
    vault.delete(&user, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Any error: one type, one match.
struct Failure(Error);

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self.0.kind() {
            ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ErrorKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Retry => StatusCode::SERVICE_UNAVAILABLE,
            // Damage and faults are for the operator's log, not for the caller.
            _ => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
        (status, Json(json!({ "error": self.0.to_string() }))).into_response() // never contains values
    }
}
