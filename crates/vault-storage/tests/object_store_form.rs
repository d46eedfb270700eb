//! What `--format object-store` prints, as the crate of that name reads it.

use crate::support;

use self::support::data;
use object_store::ObjectStoreScheme;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use proptest::prelude::*;
use serde_json::{Value, json};
use vault_cli::form::{Form, FormError, FormSubject};
use vault_core::activation::Vended;
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::CredentialId;
use vault_core::time::Timestamp;

fn render(data: CredentialData) -> Result<Value, FormError> {
    let id = CredentialId::from_bytes([7; 16]);
    let vended = Vended::Raw(data);
    let subject = FormSubject { id, version: 1, vended: &vended, expires_at: Timestamp::from_millis(0), name: None };
    let text = Form::ObjectStore.render(&subject)?;
    Ok(serde_json::from_str(text.expose()).unwrap())
}

fn s3(prefix: &str) -> Result<Value, FormError> {
    let data = json!({"access_key_id": "A", "secret_access_key": "s", "bucket": "nightly", "key_prefix": prefix});
    render(self::data(CredentialType::S3, &data))
}

/// The path that the crate reads in the document's address.
fn path(document: &Value) -> String {
    let url = url::Url::parse(document["url"].as_str().unwrap()).unwrap();
    let (_, path) = ObjectStoreScheme::parse(&url).unwrap_or_else(|error| panic!("{url}: {error}"));
    path.to_string()
}

proptest! {
    /// Every prefix is read as it was saved (the crate's paths have no slash at their end), or refused by name.
    #[test]
    fn prefix_is_unchanged_or_url_is_absent(
        prefix in prop_oneof!["(/?(a|b c|\\.|\\.\\.|%2F|ü|~|\\?|#|\\\\|\\{|\\*|:|@|//)){1,6}/?", "\\PC{1,12}", ".{1,8}"],
    ) {
        match s3(&prefix) {
            Ok(document) => prop_assert_eq!(path(&document), prefix.strip_suffix('/').unwrap_or(&prefix)),
            Err(error) => {
                prop_assert!(matches!(error, FormError::Unrepresentable { field: "key_prefix", .. }), "{error}");
                // The crate itself drops a slash at the beginning, and would read another prefix.
                let read = object_store::path::Path::parse(&prefix);
                prop_assert!(read.is_err() || prefix.starts_with('/') || prefix.is_empty(), "{prefix:?} could be read");
            }
        }
    }
}

#[test]
fn prefixes_that_the_crate_cannot_read_are_refused_with_the_reason() {
    for prefix in ["a//b", "/a", "a//", "/", "//", "a/../b", "./a"] {
        let error = s3(prefix).unwrap_err().to_string();
        assert_eq!(
            error,
            "format object-store cannot contain this key_prefix: object_store refuses paths with an empty segment, `.` or \
             `..`. Use another --format",
            "{prefix}"
        );
    }
    assert_eq!(path(&s3("in/").unwrap()), "in");
}

/// The crate takes no option that it does not know.
#[test]
fn options_match_object_store_crate() {
    let data = json!({
        "access_key_id": "A", "secret_access_key": "s", "session_token": "t", "bucket": "nightly", "region": "r",
        "endpoint": "http://127.0.0.1:9000", "path_style_access": true,
    });
    let document = render(self::data(CredentialType::S3, &data)).unwrap();
    assert_eq!(document["options"].as_object().unwrap().len(), 7);
    for option in document["options"].as_object().unwrap().keys() {
        assert!(option.parse::<AmazonS3ConfigKey>().is_ok(), "{option}");
    }
    for connection in ["AccountName=acct", "AccountName=acct;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/acct"]
    {
        let data = json!({
            "tenant_id": "t", "client_id": "c", "client_secret": "s", "connection_string": connection, "container": "n",
        });
        let document = render(self::data(CredentialType::AzureIdentity, &data)).unwrap();
        for option in document["options"].as_object().unwrap().keys() {
            assert!(option.parse::<AzureConfigKey>().is_ok(), "{option}");
        }
    }
}
