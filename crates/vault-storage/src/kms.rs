//! Root keys in AWS KMS, with the operations `Encrypt` and `Decrypt`
//! (<https://docs.aws.amazon.com/kms/latest/APIReference/>). The key never leaves the service. KMS binds a ciphertext
//! to its encryption context, which also appears in CloudTrail.

use crate::guard::{Answer, GuardedClient, Resolve, SystemResolver, TrustError};
use crate::text::{address, is_sendable};
use crate::{Egress, StorageSettings};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use vault_core::check::CheckReason;
use vault_core::credential::SecretBytes;
use vault_core::port::{Cause, KeyService, KeyServiceError};
use zeroize::Zeroizing;

/// Name of the context in the encryption context.
const CONTEXT: &str = "orgvault";
/// Default profile of a credentials file.
const DEFAULT_PROFILE: &str = "default";

/// The URI of a key in AWS KMS, and of the file with credentials for it:
/// `aws-kms:arn:aws:kms:REGION:ACCOUNT:key/ID?credentials-file=/FILE`, with optional `&profile=NAME` and
/// `&endpoint=URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsUri {
    arn: String,
    region: String,
    account: String,
    key: String,
    endpoint: Option<String>,
    credentials: PathBuf,
    profile: String,
}

/// An error in the URI. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidKmsUri(&'static str);

impl KmsUri {
    /// Returns the path of the credentials file.
    pub fn credentials(&self) -> &Path {
        &self.credentials
    }

    fn endpoint(&self) -> String {
        let Self { arn, region, endpoint, .. } = self;
        let domain = if arn.starts_with("arn:aws-cn:") { "amazonaws.com.cn" } else { "amazonaws.com" };
        endpoint.clone().unwrap_or_else(|| format!("https://kms.{region}.{domain}"))
    }
}

impl FromStr for KmsUri {
    type Err = InvalidKmsUri;

    fn from_str(text: &str) -> Result<Self, InvalidKmsUri> {
        let rest = text.strip_prefix("aws-kms:").ok_or(InvalidKmsUri("must begin with aws-kms:"))?;
        let (arn, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parts: Vec<&str> = arn.split(':').collect();
        let ["arn", "aws" | "aws-cn" | "aws-us-gov", "kms", region, account, key] = parts[..] else {
            return Err(InvalidKmsUri("needs the key's ARN: arn:aws:kms:REGION:ACCOUNT:key/ID"));
        };
        // Reject aliases, because an alias may be reassigned to another key.
        if !key.strip_prefix("key/").is_some_and(is_name) {
            return Err(InvalidKmsUri("needs the ARN of a key (…:key/ID), not of an alias"));
        }
        if !is_name(region) || !is_name(account) {
            return Err(InvalidKmsUri("needs region and account in the key's ARN"));
        }
        let (mut credentials, mut profile, mut endpoint) = (None, None, None);
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (place, value) = match part.split_once('=') {
                Some(("credentials-file", value)) if value.starts_with('/') => (&mut credentials, value),
                Some(("credentials-file", _)) => return Err(InvalidKmsUri("credentials-file= needs an absolute path")),
                Some(("profile", value)) if is_name(value) => (&mut profile, value),
                Some(("endpoint", value)) if is_endpoint(value) => (&mut endpoint, value.trim_end_matches('/')),
                Some(("endpoint", _)) => {
                    return Err(InvalidKmsUri(
                        "endpoint= needs an https URL without path, or an http one of this host",
                    ));
                }
                _ => return Err(InvalidKmsUri("supports credentials-file, profile and endpoint after the ?")),
            };
            if place.replace(value).is_some() {
                return Err(InvalidKmsUri("names something twice"));
            }
        }
        Ok(Self {
            arn: arn.to_owned(),
            region: region.to_owned(),
            account: account.to_owned(),
            key: key.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            credentials: credentials
                .ok_or(InvalidKmsUri("needs the file of the credentials: ?credentials-file=/FILE"))?
                .into(),
            profile: profile.unwrap_or(DEFAULT_PROFILE).to_owned(),
        })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte))
}

fn is_endpoint(text: &str) -> bool {
    let Ok(url) = url::Url::parse(text) else { return false };
    let is_local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let has_user = !url.username().is_empty() || url.password().is_some();
    (url.scheme() == "https" || url.scheme() == "http" && is_local) && is_bare && !has_user
}

impl fmt::Display for KmsUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aws-kms:{}?credentials-file={}", self.arn, self.credentials.display())?;
        if self.profile != DEFAULT_PROFILE {
            write!(f, "&profile={}", self.profile)?;
        }
        self.endpoint.as_ref().map_or(Ok(()), |endpoint| write!(f, "&endpoint={endpoint}"))
    }
}

/// Reads the credentials file on demand.
pub type ReadCredentials = Arc<dyn Fn() -> Result<Zeroizing<Vec<u8>>, Cause> + Send + Sync>;

/// A key in AWS KMS.
pub struct KmsKey {
    uri: KmsUri,
    name: String,
    read: ReadCredentials,
    client: GuardedClient,
}

/// An error of KMS. The messages contain the key's ARN, the endpoint and KMS's error code, but no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KmsError {
    /// The credentials file cannot be read.
    #[error("credentials for AWS KMS: {0}")]
    Credentials(#[source] Cause),
    /// The profile in the file contains no keys.
    #[error("the credentials file {} has no aws_access_key_id and aws_secret_access_key in [{profile}]", .file.display())]
    NoProfile {
        /// Path of the file.
        file: PathBuf,
        /// Name of the profile.
        profile: String,
    },
    /// The service is unreachable.
    #[error("AWS KMS at {endpoint} does not respond: {}", .reason.as_str())]
    Unreachable {
        /// URL of the service.
        endpoint: String,
        /// Cause of the failure.
        reason: CheckReason,
    },
    /// The outgoing proxy opens no tunnel to the service.
    #[error("AWS KMS at {endpoint} cannot be reached through the outgoing proxy {proxy}: {}", .reason.as_str())]
    Proxy {
        /// URL of the service.
        endpoint: String,
        /// URL of the proxy.
        proxy: String,
        /// Cause of the failure.
        reason: CheckReason,
    },
    /// The service rejected the request.
    #[error("AWS KMS at {endpoint} rejects {key}: {code}")]
    Refused {
        /// URL of the service.
        endpoint: String,
        /// ARN of the key.
        key: String,
        /// Error code of the service.
        code: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Encrypted {
    ciphertext_blob: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Decrypted {
    plaintext: String,
}

#[derive(Deserialize)]
struct ErrorType {
    #[serde(rename = "__type")]
    kind: String,
}

impl KmsKey {
    /// Creates the key of `uri`. Does not connect.
    ///
    /// # Errors
    /// The system's certificates, or those in `ca_file`, cannot be read.
    pub fn new(
        uri: KmsUri,
        read: ReadCredentials,
        egress: &Egress,
        ca_file: Option<PathBuf>,
    ) -> Result<Self, TrustError> {
        // The operator chooses the endpoint, which may be in a private network.
        let settings = StorageSettings { egress: egress.for_operator(), ca_file, ..StorageSettings::default() };
        let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
        // Omits the region, because the replicas of a multi-Region key are the same key.
        let name = format!("aws-kms:{}:{}", uri.account, uri.key);
        Ok(Self { client: GuardedClient::new(&settings, resolver)?, uri, name, read })
    }

    async fn ask(&self, action: &str, body: serde_json::Value) -> Result<Answer, KeyServiceError> {
        let refused = |code: &str| self.refused(code);
        let keys = self.keys()?;
        let body = Bytes::from(serde_json::to_vec(&body).map_err(|error| KeyServiceError::Refused(error.into()))?);
        let target = address(&self.uri.endpoint()).ok_or_else(|| refused("the address cannot be used"))?;
        let mut request = Request::post(target)
            .header(header::CONTENT_TYPE, "application/x-amz-json-1.1")
            .header("x-amz-target", format!("TrentService.{action}"))
            .body(HttpRequestBody::from(body))
            .map_err(|_| refused("the request cannot be made"))?;
        AwsAuthorizer::new(&keys, "kms", &self.uri.region)
            .try_authorize(&mut request, None)
            .map_err(|_| refused("the request cannot be signed"))?;
        let request = request.map(|body| body.as_bytes().cloned().unwrap_or_default());
        let answer = self.client.send(request).await.map_err(|reason| {
            let endpoint = self.uri.endpoint();
            let error = match self.client.proxy().filter(|_| reason.is_of_proxy()) {
                Some(proxy) => KmsError::Proxy { endpoint, proxy: proxy.url().to_string(), reason },
                None => KmsError::Unreachable { endpoint, reason },
            };
            match reason {
                CheckReason::Unreachable | CheckReason::Dns | CheckReason::ProxyUnreachable => {
                    KeyServiceError::Unavailable(error.into())
                }
                _ => KeyServiceError::Refused(error.into()),
            }
        })?;
        if answer.status == StatusCode::OK {
            return Ok(answer);
        }
        // The layer that checks signatures before KMS responds in XML.
        let code = answer.json::<ErrorType>().map_or_else(|| answer.stated().code, |fault| fault.kind);
        let code = code.rsplit('#').next().unwrap_or_default();
        Err(match code {
            "InvalidCiphertextException" | "IncorrectKeyException" => KeyServiceError::DoesNotOpen,
            "ThrottlingException"
            | "KMSInternalException"
            | "DependencyTimeoutException"
            | "KeyUnavailableException"
            | "InternalFailure"
            | "ServiceUnavailable" => KeyServiceError::Unavailable(self.refusal(code).into()),
            _ if answer.status.is_server_error() || answer.status == StatusCode::TOO_MANY_REQUESTS => {
                KeyServiceError::Unavailable(self.refusal(answer.status.as_str()).into())
            }
            "" => self.refused(answer.status.as_str()),
            code => self.refused(code),
        })
    }

    fn refusal(&self, code: &str) -> KmsError {
        // Error codes are single words. Other text of the response must not reach the log.
        let code = if is_name(code) || code.contains(' ') && code.is_ascii() { code } else { "an unknown code" };
        KmsError::Refused { endpoint: self.uri.endpoint(), key: self.uri.arn.clone(), code: code.to_owned() }
    }

    fn refused(&self, code: &str) -> KeyServiceError {
        KeyServiceError::Refused(self.refusal(code).into())
    }

    /// Reads the profile's keys. Not cached, because tools replace them.
    fn keys(&self) -> Result<AwsCredential, KeyServiceError> {
        let content = (self.read)().map_err(|error| KeyServiceError::Refused(KmsError::Credentials(error).into()))?;
        let text = std::str::from_utf8(&content).unwrap_or_default();
        let missing = || {
            let (file, profile) = (self.uri.credentials.clone(), self.uri.profile.clone());
            KeyServiceError::Refused(KmsError::NoProfile { file, profile }.into())
        };
        let (mut key_id, mut secret_key, mut token) = (None, None, None);
        let mut is_ours = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                is_ours = section.trim() == self.uri.profile;
            } else if let Some((name, value)) = line.split_once('=').filter(|_| is_ours) {
                let value = Some(value.trim()).filter(|value| is_sendable(value)).map(str::to_owned);
                match name.trim() {
                    "aws_access_key_id" => key_id = value,
                    "aws_secret_access_key" => secret_key = value,
                    "aws_session_token" => token = value,
                    _ => {}
                }
            }
        }
        // Used for signing. The signer's type stores plain text, which the allocator overwrites when it is freed.
        let (Some(key_id), Some(secret_key)) = (key_id, secret_key) else { return Err(missing()) };
        Ok(AwsCredential { key_id, secret_key, token })
    }
}

#[async_trait]
impl KeyService for KmsKey {
    fn key(&self) -> &str {
        &self.name
    }

    async fn seal(&self, secret: &SecretBytes, context: &[u8]) -> Result<Vec<u8>, KeyServiceError> {
        let plaintext = Zeroizing::new(STANDARD.encode(secret.expose())); // sent to KMS for encryption
        let context = json!({ CONTEXT: STANDARD.encode(context) });
        let body = json!({"KeyId": self.uri.arn, "Plaintext": *plaintext, "EncryptionContext": context});
        let answer = self.ask("Encrypt", body).await?;
        let sealed = answer.json::<Encrypted>().and_then(|found| STANDARD.decode(found.ciphertext_blob).ok());
        sealed.filter(|sealed| !sealed.is_empty()).ok_or_else(|| self.refused("its response has no ciphertext"))
    }

    async fn open(&self, sealed: &[u8], context: &[u8]) -> Result<SecretBytes, KeyServiceError> {
        let context = json!({ CONTEXT: STANDARD.encode(context) });
        let body =
            json!({"KeyId": self.uri.arn, "CiphertextBlob": STANDARD.encode(sealed), "EncryptionContext": context});
        let answer = self.ask("Decrypt", body).await?;
        let found = answer.json::<Decrypted>().map(|found| Zeroizing::new(found.plaintext));
        let opened = found.and_then(|found| STANDARD.decode(&*found).ok());
        opened.map(SecretBytes::from).ok_or_else(|| self.refused("its response has no plaintext"))
    }
}

impl fmt::Debug for KmsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KmsKey({})", self.name)
    }
}
