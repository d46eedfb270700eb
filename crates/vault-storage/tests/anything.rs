//! Whatever is saved, a check ends and says so.

use crate::support;

use self::support::{ALL, check, data, order};
use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use vault_core::check::CheckReason;
use vault_core::credential::CredentialType;
use vault_core::port::CredentialVendor;
use vault_storage::{EgressPolicy, Places, Resolve, Storage, StorageSettings};
use vault_testkit::clock::SequentialIds;
use vault_testkit::stores::{SERVICE_ACCOUNT_KEY, Scripted};

/// Knows no name at all.
struct Nobody;

#[async_trait]
impl Resolve for Nobody {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn storage(places: Places) -> Storage {
    let egress = EgressPolicy::allowing(vec!["127.0.0.1/32".parse().unwrap()]).into();
    let settings = StorageSettings { egress, places, ..StorageSettings::default() };
    Storage::with_resolver(settings, Arc::new(SequentialIds::default()), Arc::new(Nobody)).unwrap()
}

/// Text that somebody might save, and text that nobody would.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9-]{1,20}", "xn--[a-z0-9]{0,9}", "\\PC{0,20}", ".{0,20}", any::<String>()]
}

fn address() -> impl Strategy<Value = String> {
    prop_oneof![
        text(),
        text().prop_map(|host| format!("https://{host}")),
        (text(), text()).prop_map(|(host, path)| format!("http://{host}.example/{path}")),
        (text(), any::<u16>()).prop_map(|(host, port)| format!("https://{host}.test:{port}/")),
    ]
}

/// An object of some of these members.
fn object(members: Vec<(&'static str, Option<String>)>) -> Value {
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?)))).collect()
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn of_s3(
        required in (text(), text(), text()),
        places in (proptest::option::of(text()), proptest::option::of(address()), proptest::option::of(text())),
        rest in (proptest::option::of(text()), proptest::option::of(text()), proptest::option::of(text())),
        path_style: Option<bool>,
    ) {
        let mut saved = object(vec![
            ("access_key_id", Some(required.0)), ("secret_access_key", Some(required.1)), ("bucket", Some(required.2)),
            ("region", places.0), ("endpoint", places.1), ("key_prefix", places.2), ("session_token", rest.0),
            ("role_arn", rest.1), ("external_id", rest.2),
        ]);
        if let Some(path_style) = path_style {
            saved["path_style_access"] = path_style.into();
        }
        let saved = data(CredentialType::S3, &saved);
        let storage = storage(Places::default());
        let report = run(check(&storage, &saved, &ALL));
        prop_assert!(report[0].starts_with("authenticate failed"), "{report:?}");
        let refusal = run(storage.vend(&saved, order(3_600))).unwrap_err();
        prop_assert_ne!(refusal, CheckReason::NotConfigured);
    }

    #[test]
    fn of_links(url in address(), name in text(), value in text()) {
        let saved = data(CredentialType::DirectLink, &json!({"url": url, "headers": {name: value}}));
        let report = run(check(&storage(Places::default()), &saved, &ALL));
        prop_assert!(report[0].starts_with("authenticate failed"), "{report:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_azure_storage(
        ids in (text(), text(), text()),
        places in (text(), address(), proptest::option::of(text()), proptest::option::of(text())),
        key in prop_oneof![text(), Just("c2VjcmV0".to_owned())],
        token in text(),
    ) {
        let directory = Scripted::start(move |_| {
            (200, vec![], json!({"access_token": token, "expires_in": 3_599}).to_string())
        });
        let connection_string = format!("AccountName={};BlobEndpoint={};AccountKey={key}", places.0, places.1);
        let saved = object(vec![
            ("tenant_id", Some(ids.0)), ("client_id", Some(ids.1)), ("client_secret", Some(ids.2)),
            ("connection_string", Some(connection_string)), ("container", places.2), ("key_prefix", places.3),
        ]);
        let saved = data(CredentialType::AzureIdentity, &saved);
        let storage = storage(Places { azure_directory: Some(directory.endpoint()), ..Places::default() });
        let report = run(check(&storage, &saved, &ALL));
        prop_assert!(report[0].starts_with("authenticate failed"), "{report:?}");
        // Without a container, the application may be vended as a token. No input may panic.
        drop(run(storage.vend(&saved, order(3_600))));
    }

    #[test]
    fn of_google_storage(
        places in (text(), address(), proptest::option::of(text())),
        key in prop_oneof![text(), Just(SERVICE_ACCOUNT_KEY.to_owned())],
        token in text(),
        is_granted: bool,
    ) {
        let tokens = Scripted::start(move |_| {
            (200, vec![], json!({"access_token": token, "expires_in": 3_599}).to_string())
        });
        let token_uri = if is_granted { tokens.endpoint() } else { places.1.clone() };
        let key_file = json!({"private_key": key, "client_email": places.0, "token_uri": token_uri});
        let mut saved = object(vec![("bucket", Some(places.0)), ("key_prefix", places.2)]);
        saved["service_account_key"] = key_file;
        let saved = data(CredentialType::Gcs, &saved);
        let report = run(check(&storage(Places { google_storage: places.1, ..Places::default() }), &saved, &ALL));
        prop_assert!(report[0].starts_with("authenticate failed"), "{report:?}");
    }
}
