//! Short-lived credentials, issued instead of the saved ones. They do not contain the saved secret.

use crate::credential::{Buckets, CredentialType, SecretText};
use crate::field::FieldError;
use crate::json::{Node, ObjectReader, ObjectWriter, write_text};

/// The data of a short-lived credential.
#[derive(Debug)]
pub enum ShortData {
    /// Keys of a role's session.
    S3(S3Short),
    /// A shared access signature.
    AzureIdentity(AzureShort),
    /// An access token.
    Gcs(GcsShort),
}

/// Keys of a role's session, for a bucket of S3-compatible storage.
#[derive(Debug)]
pub struct S3Short {
    /// ID of the session key.
    pub access_key_id: SecretText,
    /// Secret of the session key.
    pub secret_access_key: SecretText,
    /// Token of the session.
    pub session_token: SecretText,
    /// The bucket, or several.
    pub bucket: Buckets,
    /// Region of the storage.
    pub region: Option<String>,
    /// URL of the storage, if it is not Amazon's.
    pub endpoint: Option<String>,
    /// Prefix of the names of all affected objects.
    pub key_prefix: Option<String>,
    /// Whether the bucket is part of the path instead of the host.
    pub path_style_access: Option<bool>,
    /// Key of AWS KMS that encrypts new objects.
    pub sse_kms_key_id: Option<String>,
}

/// A shared access signature for a container of Azure storage.
#[derive(Debug)]
pub struct AzureShort {
    /// URL of the account's blobs.
    pub endpoint: String,
    /// Name of the storage account.
    pub account_name: String,
    /// Name of the container.
    pub container: String,
    /// Prefix of the names of all affected objects.
    pub key_prefix: Option<String>,
    /// The signature as the query of a URL, without a question mark.
    pub sas_token: SecretText,
}

/// An access token for a bucket of Google Cloud Storage.
#[derive(Debug)]
pub struct GcsShort {
    /// The access token.
    pub access_token: SecretText,
    /// The bucket, or several.
    pub bucket: Buckets,
    /// Prefix of the names of all affected objects.
    pub key_prefix: Option<String>,
    /// Domain of the cloud that accepts the token, unless it is Google's own.
    pub universe_domain: Option<String>,
}

impl ShortData {
    /// Returns the type of the issued credential.
    pub const fn kind(&self) -> CredentialType {
        match self {
            Self::S3(_) => CredentialType::S3,
            Self::AzureIdentity(_) => CredentialType::AzureIdentity,
            Self::Gcs(_) => CredentialType::Gcs,
        }
    }

    /// Writes it as JSON, with sorted members and without absent ones.
    pub(super) fn write(&self, sink: &mut dyn FnMut(&str)) {
        // The caller's sink determines the destination of the secrets.
        let flag = |flag: bool| if flag { "true" } else { "false" };
        let mut object = Members(ObjectWriter::new(sink));
        match self {
            Self::S3(data) => {
                object.text("access_key_id", Some(data.access_key_id.expose()));
                data.bucket.write_json(object.0.member("bucket"));
                object.text("endpoint", data.endpoint.as_deref());
                object.text("key_prefix", data.key_prefix.as_deref());
                if let Some(path_style) = data.path_style_access {
                    object.0.member("path_style_access")(flag(path_style));
                }
                object.text("region", data.region.as_deref());
                object.text("secret_access_key", Some(data.secret_access_key.expose()));
                object.text("session_token", Some(data.session_token.expose()));
                object.text("sse_kms_key_id", data.sse_kms_key_id.as_deref());
            }
            Self::AzureIdentity(data) => {
                object.text("account_name", Some(&data.account_name));
                object.text("container", Some(&data.container));
                object.text("endpoint", Some(&data.endpoint));
                object.text("key_prefix", data.key_prefix.as_deref());
                object.text("sas_token", Some(data.sas_token.expose()));
            }
            Self::Gcs(data) => {
                object.text("access_token", Some(data.access_token.expose()));
                data.bucket.write_json(object.0.member("bucket"));
                object.text("key_prefix", data.key_prefix.as_deref());
                object.text("universe_domain", data.universe_domain.as_deref());
            }
        }
        object.0.end();
    }

    /// Parses the output of [`ShortData::write`] for an issued credential of type `kind`. Returns `None` if it is malformed.
    pub(super) fn read(kind: CredentialType, node: Node) -> Option<Self> {
        let mut source = ObjectReader::new(node, "").ok()?;
        let data = match kind {
            CredentialType::S3 => read_s3(&mut source).map(Self::S3),
            CredentialType::AzureIdentity => read_azure(&mut source).map(Self::AzureIdentity),
            CredentialType::Gcs => read_gcs(&mut source).map(Self::Gcs),
            CredentialType::DirectLink
            | CredentialType::S3Federated
            | CredentialType::AzureFederated
            | CredentialType::GcsFederated => None,
        };
        let violations: Vec<FieldError> = source.finish();
        data.filter(|_| violations.is_empty())
    }
}

struct Members<'a>(ObjectWriter<'a>);

impl Members<'_> {
    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            write_text(value, self.0.member(name));
        }
    }
}

fn read_s3(source: &mut ObjectReader) -> Option<S3Short> {
    Some(S3Short {
        access_key_id: source.string("access_key_id")?,
        secret_access_key: source.string("secret_access_key")?,
        session_token: source.string("session_token")?,
        bucket: Buckets::read_json(source.node("bucket")?)?,
        region: place(source.optional_string("region")),
        endpoint: place(source.optional_string("endpoint")),
        key_prefix: place(source.optional_string("key_prefix")),
        path_style_access: source.optional_bool("path_style_access"),
        sse_kms_key_id: place(source.optional_string("sse_kms_key_id")),
    })
}

fn read_azure(source: &mut ObjectReader) -> Option<AzureShort> {
    Some(AzureShort {
        endpoint: place(source.string("endpoint"))?,
        account_name: place(source.string("account_name"))?,
        container: place(source.string("container"))?,
        key_prefix: place(source.optional_string("key_prefix")),
        sas_token: source.string("sas_token")?,
    })
}

fn read_gcs(source: &mut ObjectReader) -> Option<GcsShort> {
    Some(GcsShort {
        access_token: source.string("access_token")?,
        bucket: Buckets::read_json(source.node("bucket")?)?,
        key_prefix: place(source.optional_string("key_prefix")),
        universe_domain: place(source.optional_string("universe_domain")),
    })
}

/// Returns the text of a location, which is not secret.
fn place(text: Option<SecretText>) -> Option<String> {
    text.map(|text| text.expose().to_owned())
}
