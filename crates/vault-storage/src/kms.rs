//! Root keys in AWS KMS, with the operations `Encrypt` and `Decrypt`
//! (<https://docs.aws.amazon.com/kms/latest/APIReference/>). The key never leaves the service. KMS binds a ciphertext
//! to its encryption context, which also appears in CloudTrail.

mod uri;

pub use self::uri::{InvalidKmsUri, KmsAccess, KmsUri};

use self::uri::is_name;
use crate::guard::{Answer, GuardedClient, Resolve, SystemResolver, TrustError};
use crate::s3::{SessionParameters, web_identity};
use crate::text::{address, is_sendable};
use crate::{Egress, StorageSettings};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::{Request, StatusCode, header};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::HttpRequestBody;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use vault_core::check::CheckReason;
use vault_core::credential::SecretBytes;
use vault_core::port::{Cause, KeyService, KeyServiceError};
use zeroize::Zeroizing;

/// Name of the context in the encryption context.
const CONTEXT: &str = "orgvault";

/// Reads the file with the credentials on demand.
pub type ReadCredentials = Arc<dyn Fn() -> Result<Zeroizing<Vec<u8>>, Cause> + Send + Sync>;

/// A key in AWS KMS.
pub struct KmsKey {
    uri: KmsUri,
    name: String,
    read: ReadCredentials,
    client: GuardedClient,
}

/// An error of KMS, or of the security token service (STS) that issues credentials for it. The messages contain the ARN, the
/// endpoint and the service's error code, but no secret.
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
    /// The file with the identity token contains none.
    #[error("{} contains no identity token", .file.display())]
    NoToken {
        /// Path of the file.
        file: PathBuf,
    },
    /// The service is unreachable.
    #[error("AWS {service} at {endpoint} does not respond: {}", .reason.as_str())]
    Unreachable {
        /// KMS or STS.
        service: &'static str,
        /// URL of the service.
        endpoint: String,
        /// Cause of the failure.
        reason: CheckReason,
    },
    /// The outgoing proxy opens no tunnel to the service.
    #[error("AWS {service} at {endpoint} cannot be reached through the outgoing proxy {proxy}: {}", .reason.as_str())]
    Proxy {
        /// KMS or STS.
        service: &'static str,
        /// URL of the service.
        endpoint: String,
        /// URL of the proxy.
        proxy: String,
        /// Cause of the failure.
        reason: CheckReason,
    },
    /// The service rejected the request.
    #[error("AWS {service} at {endpoint} rejects {arn}: {code}")]
    Refused {
        /// KMS or STS.
        service: &'static str,
        /// URL of the service.
        endpoint: String,
        /// ARN of the key or the role.
        arn: String,
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
    /// [`TrustError::Tls`].
    pub fn new(uri: KmsUri, read: ReadCredentials, egress: &Egress) -> Result<Self, TrustError> {
        // The operator chooses the endpoint, which may be in a private network.
        let settings = StorageSettings { egress: egress.for_operator(), ..StorageSettings::default() };
        let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
        // Omits the region, because the replicas of a multi-Region key are the same key.
        let name = format!("aws-kms:{}:{}", uri.account, uri.key);
        Ok(Self { client: GuardedClient::new(&settings, resolver)?, uri, name, read })
    }

    async fn ask(&self, action: &str, body: serde_json::Value) -> Result<Answer, KeyServiceError> {
        let refused = |code: &str| self.refused(code);
        let keys = self.credentials().await?;
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
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|reason| self.unreachable("KMS", self.uri.endpoint(), reason))?;
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

    fn unreachable(&self, service: &'static str, endpoint: String, reason: CheckReason) -> KeyServiceError {
        let error = match self.client.proxy().filter(|_| reason.is_of_proxy()) {
            Some(proxy) => KmsError::Proxy { service, endpoint, proxy: proxy.url().to_string(), reason },
            None => KmsError::Unreachable { service, endpoint, reason },
        };
        match reason {
            CheckReason::Unreachable | CheckReason::Dns | CheckReason::ProxyUnreachable => {
                KeyServiceError::Unavailable(error.into())
            }
            _ => KeyServiceError::Refused(error.into()),
        }
    }

    fn refusal(&self, code: &str) -> KmsError {
        refusal("KMS", self.uri.endpoint(), &self.uri.arn, code)
    }

    fn refused(&self, code: &str) -> KeyServiceError {
        KeyServiceError::Refused(self.refusal(code).into())
    }

    /// Returns keys for a request. Not cached, because tools and the platform replace the file.
    async fn credentials(&self) -> Result<AwsCredential, KeyServiceError> {
        let content = (self.read)().map_err(|error| KeyServiceError::Refused(KmsError::Credentials(error).into()))?;
        let text = std::str::from_utf8(&content).unwrap_or_default();
        let missing = |error: KmsError| KeyServiceError::Refused(error.into());
        match self.uri.access() {
            KmsAccess::Keys { file, profile } => keys_of(text, profile)
                .ok_or_else(|| missing(KmsError::NoProfile { file: file.clone(), profile: profile.clone() })),
            KmsAccess::WebIdentity { file, role, sts_endpoint } => {
                let token = Some(text.trim()).filter(|token| !token.is_empty() && is_sendable(token));
                let token = token.ok_or_else(|| missing(KmsError::NoToken { file: file.clone() }))?;
                let endpoint = sts_endpoint.clone().unwrap_or_else(|| self.uri.regional("sts"));
                self.assume_role(role, endpoint, &token.into()).await
            }
        }
    }

    /// Returns the keys of a session of `role`.
    async fn assume_role(
        &self,
        role: &str,
        endpoint: String,
        token: &SecretString,
    ) -> Result<AwsCredential, KeyServiceError> {
        let answer =
            web_identity::request(&self.client, role, &endpoint, &SessionParameters::of_root_key(), token).await;
        let answer = answer.map_err(|reason| self.unreachable("STS", endpoint.clone(), reason))?;
        if answer.status != StatusCode::OK {
            let code = answer.stated().code;
            let is_passing = answer.status.is_server_error()
                || answer.status == StatusCode::TOO_MANY_REQUESTS
                || matches!(&*code, "Throttling" | "IDPCommunicationError");
            let code = if code.is_empty() { answer.status.as_str() } else { &code };
            let error = refusal("STS", endpoint, role, code).into();
            return Err(if is_passing { KeyServiceError::Unavailable(error) } else { KeyServiceError::Refused(error) });
        }
        let session = web_identity::session(&answer).ok_or_else(|| {
            KeyServiceError::Refused(refusal("STS", endpoint, role, "its response has no credentials").into())
        })?;
        // Used for signing, as the keys in a file are.
        Ok(AwsCredential {
            key_id: session.access_key_id.expose().to_owned(),
            secret_key: session.secret_access_key.expose().to_owned(),
            token: Some(session.session_token.expose().to_owned()),
        })
    }
}

fn refusal(service: &'static str, endpoint: String, arn: &str, code: &str) -> KmsError {
    // Error codes are single words. Other text of the response must not reach the log.
    let code = if is_name(code) || code.contains(' ') && code.is_ascii() { code } else { "an unknown code" };
    KmsError::Refused { service, endpoint, arn: arn.to_owned(), code: code.to_owned() }
}

/// Returns the keys of a profile in a credentials file.
fn keys_of(text: &str, profile: &str) -> Option<AwsCredential> {
    let (mut key_id, mut secret_key, mut token) = (None, None, None);
    let mut is_ours = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_ours = section.trim() == profile;
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
    Some(AwsCredential { key_id: key_id?, secret_key: secret_key?, token })
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
