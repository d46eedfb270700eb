//! Formats that tools read: pure renderings of one credential. A value that a format cannot express is refused, not
//! altered.

mod aws_credential_process;
mod aws_ini;
mod curl;
mod duckdb;
mod env;
mod gcp_key_file;
mod hadoop;
mod ini;
mod json;
mod rclone;
mod served;
mod shell;

pub use env::{Assignment, CHECKSUMS, EnvironmentVariables, JOB_VARIABLES, PrivateFile, WHEN_REQUIRED};
pub use served::{CredentialEndpoint, EndpointAnswer};

use std::borrow::Cow;
use std::fmt;
use vault_core::activation::Vended;
use vault_core::credential::{
    Addressing, Application, AzureCloud, AzureIdentity, Buckets, CredentialType, KeyFile, S3Location, SecretText,
};
use vault_core::field::Invalid;
use vault_core::id::CredentialId;
use vault_core::time::Timestamp;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The credential as the HTTP API returns it.
    Json,
    /// Lines that a shell evaluates, with the variables that the tools of the storage read.
    Env,
    /// Output of a `credential_process` of the AWS tools.
    AwsCredentialProcess,
    /// A section of the AWS tools' credentials file.
    AwsIni,
    /// A section of rclone's configuration.
    Rclone,
    /// A service account's key file.
    GcpKeyFile,
    /// A statement that creates a secret in DuckDB.
    Duckdb,
    /// Properties for Spark's Hadoop file systems.
    Hadoop,
}

/// A credential to render.
#[derive(Clone, Copy, Debug)]
pub struct FormSubject<'a> {
    /// ID of the credential.
    pub id: CredentialId,
    /// Version of the credential.
    pub version: i64,
    /// The issued credential.
    pub vended: &'a Vended,
    /// Expiry of the activation.
    pub expires_at: Timestamp,
    /// Name of the section, or prefix of the variables, if there are several credentials.
    pub name: Option<&'a FormName>,
}

impl FormSubject<'_> {
    /// Returns the time at which tools should request the credential again.
    pub fn ends_at(&self) -> Timestamp {
        self.vended.expires_at().map_or(self.expires_at, |end| end.min(self.expires_at))
    }

    fn section<'a>(&'a self, default: &'a str) -> &'a str {
        self.name.map_or(default, FormName::as_str)
    }
}

/// Reason why a credential cannot be written in a format. It never contains a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The format is for another type.
    #[error("format {form} is not available for credentials of type {kind}")]
    NotForType {
        /// The form.
        form: Form,
        /// The credential's type.
        kind: CredentialType,
    },
    /// The format does not support short-lived credentials.
    #[error(
        "format {form} cannot contain a short-lived credential of type {kind}: use another --format, or --vend raw"
    )]
    NotForShort {
        /// The form.
        form: Form,
        /// The credential's type.
        kind: CredentialType,
    },
    /// The format requires a field that the credential does not have.
    #[error("format {form} needs {field}, which the credential does not have")]
    Missing {
        /// The form.
        form: Form,
        /// Name of the missing field.
        field: &'static str,
    },
    /// The format cannot express a value.
    #[error("format {form} cannot contain this {field}: {reason}. Use another --format")]
    Unrepresentable {
        /// The form.
        form: Form,
        /// Name of the field.
        field: &'static str,
        /// Reason for the refusal.
        reason: &'static str,
    },
}

const INVALID: Invalid = Invalid("a name must start with a letter and have 1 to 64 letters A-Z a-z, digits, - and _");

/// Name of a section: 1 to 64 of `A-Z a-z 0-9 - _`, starting with a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormName(String);

impl FormName {
    /// Parses a name.
    ///
    /// # Errors
    /// The text violates the rule above.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let sound = (1..=64).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if sound { Ok(Self(text.to_owned())) } else { Err(INVALID) }
    }

    /// Returns the text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the prefix of variable names.
    pub fn variable_prefix(&self) -> String {
        self.0.to_ascii_uppercase().replace('-', "_") + "_"
    }
}

impl Form {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Json,
        Self::Env,
        Self::AwsCredentialProcess,
        Self::AwsIni,
        Self::Rclone,
        Self::GcpKeyFile,
        Self::Duckdb,
        Self::Hadoop,
    ];

    /// Returns the name of the format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Env => "env",
            Self::AwsCredentialProcess => "aws-credential-process",
            Self::AwsIni => "aws-ini",
            Self::Rclone => "rclone",
            Self::GcpKeyFile => "gcp-key-file",
            Self::Duckdb => "duckdb",
            Self::Hadoop => "hadoop",
        }
    }

    /// Returns the form with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.as_str() == text)
    }

    /// Returns the credential in this format, with a final line break.
    ///
    /// # Errors
    /// The reason why the credential has no such form.
    pub fn render(self, subject: &FormSubject<'_>) -> Result<SecretText, FormError> {
        match self {
            Self::Json => Ok(json::render(subject)),
            Self::Env => env::render(subject),
            Self::AwsCredentialProcess => aws_credential_process::render(subject),
            Self::AwsIni => aws_ini::render(subject),
            Self::Rclone => rclone::render(subject),
            Self::GcpKeyFile => gcp_key_file::render(subject),
            Self::Duckdb => duckdb::render(subject),
            Self::Hadoop => hadoop::render(subject),
        }
    }

    const fn not_for_type(self, kind: CredentialType) -> FormError {
        FormError::NotForType { form: self, kind }
    }

    const fn cloud_unknown(self) -> FormError {
        let reason = "the account's cloud is unknown, and the application's secret must not be sent to another cloud";
        self.unrepresentable("connection_string", reason)
    }

    const fn missing(self, field: &'static str) -> FormError {
        FormError::Missing { form: self, field }
    }

    const fn unrepresentable(self, field: &'static str, reason: &'static str) -> FormError {
        FormError::Unrepresentable { form: self, field, reason }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Collects the output of `write`. Computes the length first: a buffer that grows would leave copies of secrets in
/// memory.
fn gather(write: impl Fn(&mut dyn FnMut(&str))) -> SecretText {
    let mut length = 0;
    write(&mut |piece| length += piece.len());
    let mut text = String::with_capacity(length);
    write(&mut |piece| text.push_str(piece));
    SecretText::from(text)
}

/// A named value of a configuration, in the order of the tool's documentation.
type Setting = (&'static str, SecretText);

/// Returns the settings that have a value.
fn settings(all: impl IntoIterator<Item = (&'static str, Option<SecretText>)>) -> Vec<Setting> {
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Returns a tool's name for one of two addressing styles.
fn spelt(addressing: Option<Addressing>, host: &str, path: &str) -> Option<SecretText> {
    copied(match addressing? {
        Addressing::Host => host,
        Addressing::Path => path,
    })
}

fn copied(text: &str) -> Option<SecretText> {
    Some(SecretText::from(text))
}

/// Secret that gives access to an Azure storage account. The key and the signature have priority, because the
/// application requires roles that are not known here.
enum AzureAccess<'a> {
    Key(&'a str),
    Signature(&'a str),
    Application(Application<'a>, AzureCloud),
}

impl<'a> AzureAccess<'a> {
    fn of(form: Form, data: &'a AzureIdentity) -> Result<Self, FormError> {
        let connection = &data.connection_string;
        // Both are written where the connection string is written.
        match (connection.account_key(), connection.shared_access_signature(), data.application()) {
            (Some(key), ..) => Ok(Self::Key(key)),
            (None, Some(signature), _) => Ok(Self::Signature(signature)),
            (None, None, Some(application)) => {
                Ok(Self::Application(application, connection.cloud().ok_or(form.cloud_unknown())?))
            }
            (None, None, None) => Err(form.missing("an application, an account key or a shared access signature")),
        }
    }

    /// Returns the access for a format whose tools authenticate only at the public cloud's directory.
    fn of_public_cloud(form: Form, data: &'a AzureIdentity) -> Result<Self, FormError> {
        match Self::of(form, data)? {
            Self::Application(_, cloud) if cloud != AzureCloud::Public => {
                let reason = "its tools would send the application's secret to the directory of the public cloud";
                Err(form.unrepresentable("connection_string", reason))
            }
            access => Ok(access),
        }
    }
}

fn is_plain_http(address: Option<&str>) -> bool {
    address.is_some_and(|address| address.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")))
}

/// Returns the address of an account's blobs, unless it is the default in Azure's public cloud.
fn unusual_blob_endpoint(account: &str, endpoint: String) -> Option<String> {
    let usual = format!("https://{account}.blob.{}", AzureCloud::Public.endpoint_suffix());
    (endpoint != usual).then_some(endpoint)
}

/// Returns the storage address of the Google cloud with this domain, unless it is Google's own.
fn unusual_google_endpoint(domain: Option<&str>) -> Option<String> {
    domain.map(|domain| format!("https://storage.{domain}"))
}

/// Returns the domain of the cloud that issued the key, unless it is Google's own.
fn unusual_universe(key: &KeyFile) -> Option<&str> {
    Some(key.universe_domain()).filter(|domain| *domain != KeyFile::GOOGLE)
}

/// The common fields of a raw and a short-lived S3 credential. It is used only by formats, which contain the secrets.
struct S3View<'a> {
    access_key_id: &'a str,
    secret_access_key: &'a str,
    session_token: Option<&'a str>,
    buckets: &'a Buckets,
    region: Option<&'a str>,
    endpoint: Option<&'a str>,
    key_prefix: Option<&'a str>,
    path_style_access: Option<bool>,
    sse_kms_key_id: Option<&'a str>,
}

impl<'a> S3View<'a> {
    /// Returns the position of the bucket in URLs, as in the requests of a check.
    fn addressing(&self) -> Addressing {
        Addressing::of(self.buckets, self.endpoint, self.path_style_access)
    }

    /// Returns the same, unless it is the default of tools for Amazon's storage.
    fn stated_addressing(&self) -> Option<Addressing> {
        let addressing = self.addressing();
        let is_usual = self.endpoint.is_none() && self.path_style_access.is_none() && addressing == Addressing::Host;
        (!is_usual).then_some(addressing)
    }

    /// Returns whether the storage is Amazon's. Others may refuse the checksums that Amazon's tools add by default.
    fn is_amazon(&self) -> bool {
        let (bucket, endpoint) = (self.buckets, self.endpoint);
        let location = S3Location {
            bucket,
            region: None,
            endpoint,
            sts_endpoint: None,
            key_prefix: None,
            path_style_access: None,
            role_arn: None,
            sse_kms_key_id: None,
        };
        location.is_amazon()
    }

    /// Returns the saved endpoint, or that of Amazon in a region that tools would look up under another domain.
    fn endpoint_with_domain(&self) -> Option<Cow<'a, str>> {
        let amazon = || {
            let region = self.region.filter(|region| region.starts_with("cn-"))?;
            Some(Cow::Owned(format!("https://s3.{region}.amazonaws.com.cn")))
        };
        self.endpoint.map(Cow::Borrowed).or_else(amazon)
    }

    fn of(vended: &'a Vended) -> Option<Self> {
        use vault_core::activation::ShortData;
        use vault_core::credential::CredentialData;
        match vended {
            Vended::Raw(CredentialData::S3(data)) => Some(Self {
                access_key_id: data.access_key_id.expose(),
                secret_access_key: data.secret_access_key.expose(),
                session_token: data.session_token.as_ref().map(SecretText::expose),
                buckets: &data.bucket,
                region: data.region.as_deref(),
                endpoint: data.endpoint.as_deref(),
                key_prefix: data.key_prefix.as_deref(),
                path_style_access: data.path_style_access,
                sse_kms_key_id: data.sse_kms_key_id.as_deref(),
            }),
            Vended::Short { data: ShortData::S3(data), .. } => Some(Self {
                access_key_id: data.access_key_id.expose(),
                secret_access_key: data.secret_access_key.expose(),
                session_token: Some(data.session_token.expose()),
                buckets: &data.bucket,
                region: data.region.as_deref(),
                endpoint: data.endpoint.as_deref(),
                key_prefix: data.key_prefix.as_deref(),
                path_style_access: data.path_style_access,
                sse_kms_key_id: data.sse_kms_key_id.as_deref(),
            }),
            _ => None,
        }
    }
}
