//! Credentials to be rendered.

use vault_cli::form::{Form, FormError, FormName, FormSubject};
use vault_core::activation::{Vended, VendedForm};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::CredentialId;
use vault_core::time::Timestamp;

/// 2026-11-20T12:00:00Z.
pub(crate) const NOON: Timestamp = Timestamp::from_millis(1_795_176_000_000);

pub(crate) fn raw(kind: CredentialType, json: &str) -> Vended {
    Vended::Raw(CredentialData::from_canonical_json(kind, json.as_bytes()).unwrap())
}

pub(crate) fn short(kind: CredentialType, json: &str) -> Vended {
    // It ends before its activation does.
    let expires_at = Some(NOON.plus_seconds(-600));
    Vended::from_json(kind, VendedForm::Short, expires_at, json.as_bytes()).unwrap()
}

pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// An S3-style credential with these values, and with all else that there can be.
pub(crate) fn s3(id: &str, secret: &str, token: &str) -> Vended {
    let (id, secret, token) = (quoted(id), quoted(secret), quoted(token));
    raw(
        CredentialType::S3,
        &format!(
            r#"{{"access_key_id":{id},"bucket":"nightly","endpoint":"https://s3.example:9000","external_id":"x-1",
            "key_prefix":"in/a b","path_style_access":true,"region":"eu-west-1",
            "role_arn":"arn:aws:iam::123456789012:role/batch","secret_access_key":{secret},"session_token":{token}}}"#
        ),
    )
}

/// Keys of an S3-style credential with these values, and no more than its bucket.
pub(crate) fn keys_of_s3(id: &str, secret: &str, token: &str) -> Vended {
    let (id, secret, token) = (quoted(id), quoted(secret), quoted(token));
    raw(
        CredentialType::S3,
        &format!(r#"{{"access_key_id":{id},"bucket":"nightly","secret_access_key":{secret},"session_token":{token}}}"#),
    )
}

pub(crate) fn plain_s3() -> Vended {
    raw(
        CredentialType::S3,
        r#"{"access_key_id":"AKIA2TESTONLY7SAMPLE","bucket":"nightly","region":"eu-west-1",
        "secret_access_key":"wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET"}"#,
    )
}

pub(crate) fn short_s3() -> Vended {
    short(
        CredentialType::S3,
        r#"{"access_key_id":"ASIA","bucket":"nightly","secret_access_key":"s","session_token":"t"}"#,
    )
}

pub(crate) fn azure(connection: &str) -> Vended {
    let connection = quoted(connection);
    raw(
        CredentialType::AzureIdentity,
        &format!(
            r#"{{"client_id":"c-1","client_secret":"it's","connection_string":{connection},"container":"nightly",
            "key_prefix":"in","tenant_id":"t-1"}}"#
        ),
    )
}

pub(crate) fn short_azure() -> Vended {
    short(
        CredentialType::AzureIdentity,
        r#"{"account_name":"acct","container":"nightly","endpoint":"https://acct.blob.core.windows.net",
        "sas_token":"sv=1&sig=x"}"#,
    )
}

pub(crate) fn gcs() -> Vended {
    raw(
        CredentialType::Gcs,
        r#"{"bucket":"nightly","key_prefix":"in","service_account_key":{"client_email":"a@p.iam.gserviceaccount.com",
        "private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n","project_id":"p-1","type":"service_account"}}"#,
    )
}

pub(crate) fn short_gcs() -> Vended {
    short(CredentialType::Gcs, r#"{"access_token":"ya29.x","bucket":"nightly"}"#)
}

pub(crate) fn link(url: &str, header: &str) -> Vended {
    let (url, header) = (quoted(url), quoted(header));
    raw(CredentialType::DirectLink, &format!(r#"{{"headers":{{"Authorization":{header}}},"url":{url}}}"#))
}

/// One of each type in each form.
pub(crate) fn all() -> Vec<Vended> {
    vec![
        plain_s3(),
        s3("AKIA", "s", "t"),
        short_s3(),
        azure("AccountName=acct;AccountKey=c2VjcmV0"),
        azure("AccountName=acct;SharedAccessSignature=sv=1&sig=x"),
        short_azure(),
        gcs(),
        short_gcs(),
        link("https://files.example/a?sig=x", "Bearer y"),
    ]
}

pub(crate) fn subject<'a>(vended: &'a Vended, name: Option<&'a FormName>) -> FormSubject<'a> {
    let id = CredentialId::from_bytes([7; 16]);
    FormSubject { id, version: 1, vended, expires_at: NOON, name }
}

pub(crate) fn render(form: Form, vended: &Vended) -> Result<String, FormError> {
    form.render(&subject(vended, None)).map(|text| text.expose().to_owned())
}
