//! The fields of a credential as they were found in a file.

use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use vault_core::credential::CredentialType;

/// The names by which files call the fields of an S3-style credential.
const S3: [(&str, &str); 32] = [
    ("access_key_id", "access_key_id"),
    ("access_key", "access_key_id"),
    ("accesskeyid", "access_key_id"),
    ("aws_access_key_id", "access_key_id"),
    ("secret_access_key", "secret_access_key"),
    ("secret_key", "secret_access_key"),
    ("secretaccesskey", "secret_access_key"),
    ("aws_secret_access_key", "secret_access_key"),
    ("session_token", "session_token"),
    ("sessiontoken", "session_token"),
    ("security_token", "session_token"),
    ("aws_session_token", "session_token"),
    ("bucket", "bucket"),
    ("bucket_name", "bucket"),
    ("aws_bucket", "bucket"),
    ("s3_bucket", "bucket"),
    ("region", "region"),
    ("region_name", "region"),
    ("aws_region", "region"),
    ("aws_default_region", "region"),
    ("endpoint", "endpoint"),
    ("endpoint_url", "endpoint"),
    ("aws_endpoint_url", "endpoint"),
    ("aws_endpoint_url_s3", "endpoint"),
    ("role_arn", "role_arn"),
    ("aws_role_arn", "role_arn"),
    ("external_id", "external_id"),
    ("sts_endpoint", "sts_endpoint"),
    ("sse_kms_key_id", "sse_kms_key_id"),
    ("key_prefix", "key_prefix"),
    ("path_style_access", "path_style_access"),
    ("force_path_style", "path_style_access"),
];
/// Those of an identity of Azure.
const AZURE: [(&str, &str); 17] = [
    ("tenant_id", "tenant_id"),
    ("tenant", "tenant_id"),
    ("tenantid", "tenant_id"),
    ("azure_tenant_id", "tenant_id"),
    ("arm_tenant_id", "tenant_id"),
    ("client_id", "client_id"),
    ("clientid", "client_id"),
    ("appid", "client_id"),
    ("azure_client_id", "client_id"),
    ("arm_client_id", "client_id"),
    ("client_secret", "client_secret"),
    ("clientsecret", "client_secret"),
    ("azure_client_secret", "client_secret"),
    ("arm_client_secret", "client_secret"),
    ("connection_string", "connection_string"),
    ("azure_storage_connection_string", "connection_string"),
    ("container", "container"),
];
/// Those of a key of Google.
const GCS: [(&str, &str); 7] = [
    ("service_account_key", "service_account_key"),
    ("service_account_credentials", "service_account_key"),
    ("keyfile_dict", "service_account_key"),
    ("key", "service_account_key"),
    ("bucket", "bucket"),
    ("bucket_name", "bucket"),
    ("key_prefix", "key_prefix"),
];

/// A field and where it was found.
pub(crate) struct Field {
    value: Value,
    /// The line, from one.
    pub(crate) line: usize,
    /// What the file calls it.
    pub(crate) called: String,
}

impl Field {
    /// Its text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        self.value.as_str()
    }
}

/// A credential in a file.
pub(crate) struct Fields {
    pub(crate) kind: CredentialType,
    /// Where it begins.
    pub(crate) line: usize,
    fields: BTreeMap<&'static str, Field>,
}

impl Fields {
    pub(crate) const fn new(kind: CredentialType, line: usize) -> Self {
        Self { kind, line, fields: BTreeMap::new() }
    }

    /// The field that the credential calls `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// Sets a field, which the file calls `called`. An empty text sets none.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<Value>, line: usize, called: &str) {
        let value = value.into();
        if !matches!(&value, Value::Null) && value.as_str() != Some("") {
            self.fields.insert(name, Field { value, line, called: called.to_owned() });
        }
    }

    /// Sets the field that the type knows by the name `called`. `false`: it knows none.
    pub(crate) fn set_called(&mut self, called: &str, value: Value, line: usize) -> bool {
        let names: &[(&str, &'static str)] = match self.kind {
            CredentialType::S3 => &S3,
            CredentialType::AzureIdentity => &AZURE,
            CredentialType::Gcs => &GCS,
            CredentialType::DirectLink => &[("url", "url"), ("headers", "headers")],
        };
        let lower = called.to_ascii_lowercase();
        let Some((_, name)) = names.iter().find(|(other, _)| *other == lower) else { return false };
        let value = match (*name, value) {
            ("path_style_access", Value::String(text)) => match &*text.to_ascii_lowercase() {
                "true" | "1" | "yes" => Value::Bool(true),
                "false" | "0" | "no" => Value::Bool(false),
                _ => Value::String(text),
            },
            // Some programs leave the scheme away.
            ("endpoint", Value::String(text)) if !text.is_empty() && !text.contains("://") => {
                Value::String(format!("https://{text}"))
            }
            (_, value) => value,
        };
        self.set(name, value, line, called);
        true
    }

    /// As the interface takes it.
    pub(crate) fn to_json(&self) -> Result<Zeroizing<String>, serde_json::Error> {
        let members: Map<String, Value> =
            self.fields.iter().map(|(name, field)| ((*name).to_owned(), field.value.clone())).collect();
        serde_json::to_string(&members).map(Zeroizing::new)
    }
}
