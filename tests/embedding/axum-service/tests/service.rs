//! The service, on a real vault and on fakes.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum_service::router;
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tower::ServiceExt as _;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::port::StoreError;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::{Operator, OrganizationCommand};
use vault_embed::{Database, RootKey};
use vault_testkit::fake::FakeVault;

const LINK: &str = r#"{"url":"https://files.example/nightly.bin?sig=q11abcdefghijklmnop"}"#;

async fn sessions(operator: &Operator) -> Arc<HashMap<String, Principal>> {
    let acme = operator.ensure_organization("acme").await.unwrap().id;
    let other = operator.ensure_organization("other").await.unwrap().id;
    let user = |organization: OrganizationId, number, role| {
        Principal::embedder(organization, AccountId::from_bytes([number; 16]), role)
    };
    Arc::new(HashMap::from([
        ("ann".to_owned(), user(acme, 1, Role::Editor)),
        ("bob".to_owned(), user(acme, 2, Role::Viewer)),
        ("eve".to_owned(), user(other, 3, Role::Editor)),
    ]))
}

async fn call(service: &Router, who: &str, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header("cookie", format!("theme=dark; session={who}"));
    let request = request.header("idempotency-key", "one").body(Body::from(body.to_owned())).unwrap();
    let response = service.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Checks the service as its users see it, on any store.
async fn users_get_along(service: &Router) {
    assert_eq!(call(service, "unknown", "GET", "/credentials", "").await.0, StatusCode::UNAUTHORIZED);
    let (status, saved) = call(service, "ann", "POST", "/credentials/direct-link/imports/nightly", LINK).await;
    assert_eq!(status, StatusCode::CREATED, "{saved}");
    let (_, again) = call(service, "ann", "POST", "/credentials/direct-link/imports/nightly", LINK).await;
    assert_eq!(again, saved, "the same request has one effect");
    let (status, refused) = call(service, "ann", "POST", "/credentials/direct-link/x", r#"{"url":1,"url":2}"#).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let path = format!("/credentials/{}", saved["id"].as_str().unwrap());

    let (status, listed) = call(service, "bob", "GET", "/credentials", "").await;
    assert_eq!((status, &listed["items"][0]["id"]), (StatusCode::OK, &saved["id"]));
    assert!(!listed.to_string().contains("q11abcdefghijklmnop"), "{listed}");
    assert_eq!(call(service, "bob", "DELETE", &path, "").await.0, StatusCode::FORBIDDEN);
    assert_eq!(call(service, "eve", "GET", "/credentials", "").await.1["items"], serde_json::json!([]));
    assert_eq!(call(service, "eve", "DELETE", &path, "").await.0, StatusCode::NOT_FOUND);
    assert_eq!(call(service, "ann", "DELETE", &path, "").await.0, StatusCode::NO_CONTENT);
    assert_eq!(call(service, "ann", "DELETE", &path, "").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_share_a_real_vault() {
    let directory = tempfile::tempdir().unwrap();
    let (key, file) = (directory.path().join("root.key"), directory.path().join("vault.db"));
    let open = async || {
        vault_embed::open_or_create(RootKey::file(&key), Database::sqlite(&file)).without_maintenance().await.unwrap()
    };
    let opened = open().await;
    let service = router(opened.vault(), sessions(&opened.operator()).await);
    users_get_along(&service).await;
    opened.close().await.unwrap();

    let reopened = open().await;
    let service = router(reopened.vault(), sessions(&reopened.operator()).await);
    assert_eq!(
        call(&service, "ann", "GET", "/credentials", "").await,
        (StatusCode::OK, serde_json::json!({ "items": [], "next": null }))
    );
    reopened.operator().change_organization("acme", OrganizationCommand::Disable).await.unwrap();
    assert_eq!(call(&service, "ann", "GET", "/credentials", "").await.0, StatusCode::UNAUTHORIZED);
    reopened.close().await.unwrap();
}

#[tokio::test]
async fn users_share_fake_stores() {
    let fake = FakeVault::new();
    let service = router(fake.vault(), sessions(&fake.operator()).await);
    users_get_along(&service).await;
    fake.store.fail_next(StoreError::Unavailable("it is down".into()));
    assert_eq!(call(&service, "ann", "GET", "/credentials", "").await.0, StatusCode::SERVICE_UNAVAILABLE);
    fake.store.fail_next(StoreError::Fault("a bug".into()));
    let (status, body) = call(&service, "ann", "GET", "/credentials", "").await;
    assert_eq!((status, body), (StatusCode::INTERNAL_SERVER_ERROR, Value::Null), "what failed is for the log");
}
