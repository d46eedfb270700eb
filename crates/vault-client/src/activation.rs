//! Operations of integrations: activations.

use crate::ClientError;
use crate::base::{BaseUrl, encode};
use crate::client::{Answer, Client, json};
use crate::trust::{self, ClientIdentity};
use crate::unix::{NoResolver, UnixConnector};
use secrecy::SecretString;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use ureq::Agent;
use ureq::http::Method;
use vault_api::{ActivateRequest, ActivationItem, BegunActivation, CheckRequest, CheckedNamespace, RenewRequest};

const ACTIVATIONS: &str = "/activations";
const CHECK: &str = "/activations/check";
/// Default maximum duration of a request. A check waits for storages.
const DEADLINE: Duration = Duration::from_secs(60);
/// Maximum duration of a connection attempt.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Address of an activation listener: `unix:/path/to/socket`, or `https://host:port/v1`. `http` is permitted only for
/// loopback addresses, because tokens and credentials are transmitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivationAddress(ListenerAddress);

#[derive(Clone, Debug, PartialEq, Eq)]
enum ListenerAddress {
    Socket(PathBuf),
    Network(BaseUrl),
}

impl FromStr for ActivationAddress {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let sound = path.starts_with('/') && !path.ends_with('/') && !path.contains('\0');
            return if sound {
                Ok(Self(ListenerAddress::Socket(path.into())))
            } else {
                Err(ClientError::ActivationAddress)
            };
        }
        let base: BaseUrl = text.parse().map_err(|_| ClientError::ActivationAddress)?;
        if base.is_private() { Ok(Self(ListenerAddress::Network(base))) } else { Err(ClientError::ActivationAddress) }
    }
}

impl fmt::Display for ActivationAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ListenerAddress::Socket(path) => write!(f, "unix:{}", path.display()),
            ListenerAddress::Network(base) => base.fmt(f),
        }
    }
}

/// Options of a client for activations.
#[derive(Clone, Debug)]
pub struct ActivationSettings {
    /// Base path of the API behind a Unix socket. A URL already contains its path.
    pub base_path: String,
    /// File with additional CA certificates (PEM) for the server, in addition to those of the operating system.
    pub ca_file: Option<PathBuf>,
    /// Client certificate, if the server requires one.
    pub identity: Option<ClientIdentity>,
    /// Id of the user who runs the server behind a Unix socket. A socket of another user gets no request.
    pub server_user: Option<u32>,
    /// Maximum duration of a request.
    pub deadline: Duration,
}

impl Default for ActivationSettings {
    fn default() -> Self {
        Self { base_path: "/v1".to_owned(), ca_file: None, identity: None, server_user: None, deadline: DEADLINE }
    }
}

/// An activation, and the time at which the server sent it. Clients whose clock is wrong can still compute the remaining
/// time.
#[derive(Debug)]
pub struct DatedActivation {
    /// The activation.
    pub activation: BegunActivation,
    /// The server's time in seconds since the epoch, if the response contains it.
    pub sent_at: Option<i64>,
}

impl DatedActivation {
    fn of(answer: &Answer) -> Result<Self, ClientError> {
        Ok(Self { activation: answer.json()?, sent_at: answer.date() })
    }
}

/// Client of an integration for the activation listener. It follows no redirects and uses no proxy.
pub struct ActivationClient {
    client: Client,
    token: SecretString,
}

impl ActivationClient {
    /// Creates a client for the integration with the token `token`, without sending anything.
    ///
    /// # Errors
    /// [`ClientError::BaseUrl`] if the base path is invalid. [`ClientError::CaFile`] if the file cannot be used.
    pub fn new(
        address: &ActivationAddress,
        token: SecretString,
        settings: &ActivationSettings,
    ) -> Result<Self, ClientError> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            // Hours may pass until the next request, so each uses a new connection.
            .max_idle_connections(0)
            .max_idle_connections_per_host(0)
            .timeout_connect(Some(CONNECT_DEADLINE.min(settings.deadline)))
            .timeout_global(Some(settings.deadline));
        let client = match &address.0 {
            ListenerAddress::Socket(path) => {
                if !settings.base_path.is_empty() && !settings.base_path.starts_with('/') {
                    return Err(ClientError::BaseUrl);
                }
                let base = ["http://localhost", &settings.base_path].concat().parse()?;
                let connector = UnixConnector::new(path, settings.server_user);
                Client::of(Agent::with_parts(config.build(), connector, NoResolver), base, address.to_string())
            }
            ListenerAddress::Network(base) => {
                let tls = base.is_https().then(|| trust::tls(settings.ca_file.as_deref(), settings.identity.as_ref()));
                let config = match tls.transpose()? {
                    Some(tls) => config.tls_config(tls),
                    None => config,
                };
                Client::of(config.build().new_agent(), base.clone(), base.to_string())
            }
        };
        Ok(Self { client, token })
    }

    /// Activates a namespace, and returns its decrypted credentials.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the integration is not permitted to, the namespace is frozen, empty or too large, or
    /// the requested form is not available.
    pub fn activate(&self, request: &ActivateRequest) -> Result<DatedActivation, ClientError> {
        DatedActivation::of(&self.send_json(ACTIVATIONS, request)?)
    }

    /// Renews an active activation: returns its namespace's current credentials in its original form, with a new
    /// expiry.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if no active activation has this ID, and for the reasons of
    /// [`ActivationClient::activate`].
    pub fn renew(&self, id: &str, request: &RenewRequest) -> Result<DatedActivation, ClientError> {
        DatedActivation::of(&self.send_json(&[ACTIVATIONS, "/", &encode(id), "/renew"].concat(), request)?)
    }

    /// Returns the integration's active activations, newest first.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the token is invalid.
    pub fn list(&self) -> Result<Vec<ActivationItem>, ClientError> {
        self.send(Method::GET, ACTIVATIONS)?.json()
    }

    /// Ends an activation before its expiry. Credentials that the storage provider can revoke are revoked.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if no active activation has this ID.
    pub fn end(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &[ACTIVATIONS, "/", &encode(id)].concat()).map(|_| ())
    }

    /// Checks whether the namespace's credentials are sufficient for a job.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the integration is not permitted to, or the namespace is frozen, empty or too large.
    pub fn check(&self, request: &CheckRequest) -> Result<CheckedNamespace, ClientError> {
        self.send_json(CHECK, request)?.json()
    }

    fn send(&self, method: Method, path: &str) -> Result<Answer, ClientError> {
        self.client.send(self.client.request(method, path).bearer(&self.token)?, None)
    }

    fn send_json(&self, path: &str, body: &impl Serialize) -> Result<Answer, ClientError> {
        self.client.send(self.client.request(Method::POST, path).bearer(&self.token)?, Some(&json(body)?))
    }
}

impl fmt::Debug for ActivationClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivationClient").field("client", &self.client).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_over_sockets_tls_and_loopback_only() {
        for (text, sound) in [
            ("unix:/run/orgvault/activation.sock", true),
            ("https://vault.example:8443/v1", true),
            ("https://10.0.0.1/v1", true),
            ("http://127.0.0.1:8081/v1", true),
            ("http://127.9.9.9/v1", true),
            ("http://[::1]:8081/v1", true),
            ("http://localhost:8081", true),
            ("http://vault.example/v1", false),
            ("http://127.0.0.1.example/v1", false),
            ("http://localhost.example/v1", false),
            ("http://10.0.0.1/v1", false),
            ("http://[::2]/v1", false),
            ("http://0.0.0.0/v1", false),
            ("http://127.0.0.1@vault.example/v1", false),
            ("unix:relative.sock", false),
            ("unix:", false),
            ("unix:/run/", false),
            ("/run/orgvault/activation.sock", false),
            ("", false),
        ] {
            let read = text.parse::<ActivationAddress>().ok().map(|address| address.to_string());
            assert_eq!(read.as_deref(), sound.then_some(text), "{text}");
        }
    }

    #[test]
    fn base_paths_are_kept_behind_socket() {
        let address: ActivationAddress = "unix:/run/a".parse().expect("an address");
        for (base_path, sound) in [("/v1", true), ("", true), ("/a/b/", true), ("v1", false), ("/v1?a", false)] {
            let settings = ActivationSettings { base_path: base_path.to_owned(), ..ActivationSettings::default() };
            let client = ActivationClient::new(&address, SecretString::from("ovi_secret"), &settings);
            assert_eq!(client.is_ok(), sound, "{base_path}");
            assert!(!format!("{client:?}").contains("ovi_"), "{client:?}");
        }
    }
}
