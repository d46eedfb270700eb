//! The listeners of a server: HTTP API, activations, and metrics and health, as enabled by the settings.

use crate::checks;
use crate::parts::{self, ListenerParts};
use crate::served;
use crate::settings::{Activation, ActivationListen, Settings};
use crate::tls::LoadedTls;
use futures_util::future::{join_all, try_join_all};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use vault_cli::failure::Failure;
use vault_core::port::Opener;
use vault_core::usecase::Activations;
use vault_embed::OpenVault;
use vault_http::{
    ActivationSettings, AdminParts, AdminSettings, BoundServer, ListenerSettings, ListeningServer, ServerSettings,
    UnixSocket, activation_server, admin_server, server,
};

/// Permission bits of the API's socket: only its user may connect.
const PRIVATE_SOCKET: u32 = 0o600;

/// Bound listeners, which respond once they are served.
pub(crate) struct Listeners {
    servers: Vec<ListeningServer>,
    certificates: Vec<LoadedTls>,
    public: Vec<SocketAddr>,
    activation: Vec<String>,
    admin: Vec<SocketAddr>,
    checks: Option<JoinHandle<()>>,
    /// Runs these checks.
    checker: Option<Activations>,
}

fn public_failure(settings: &Settings, error: &io::Error) -> Failure {
    match &settings.server.listen_socket {
        // The error text contains the socket's path.
        Some(path) if error.to_string().contains(&*path.to_string_lossy()) => {
            Failure::new(format!("cannot listen on {error}. Choose another with --listen-socket"))
        }
        _ => Failure::cannot_listen("--listen", settings.server.listen, error),
    }
}

fn activation_failure(activation: &Activation, error: &io::Error) -> Failure {
    match &activation.listen {
        ActivationListen::Tcp(address) => Failure::cannot_listen("--activation-listen", address, error),
        // The error text contains the socket's path.
        ActivationListen::Unix(_) => {
            Failure::new(format!("cannot listen on {error}. Choose another with --activation-listen"))
        }
    }
}

fn listener_at(settings: &Settings, address: SocketAddr) -> ListenerSettings {
    let mut listener = ListenerSettings::new(vec![address]);
    listener.allowed_hosts = settings.server.host_names();
    listener
}

impl Listeners {
    /// Binds the listeners of the settings. Only the activation listener gets the opener.
    pub(crate) fn bind(
        settings: &Settings,
        vault: &OpenVault,
        opener: Arc<dyn Opener>,
        parts: ListenerParts,
    ) -> Result<Self, Failure> {
        let mut listeners = Self::none();
        if settings.server.role.serves_api() {
            listeners.bind_public(settings, vault, &parts)?;
        }
        if let Some(activation) = settings.server.activation() {
            listeners.bind_activation(settings, &activation, vault, opener, &parts)?;
        }
        if let Some(address) = settings.server.admin_listen {
            let parts = AdminParts {
                runtime: Handle::current(),
                metrics: parts.metrics,
                readiness: parts.readiness,
                ids: vault.ports().environment.ids.clone(),
            };
            let settings = AdminSettings { listener: listener_at(settings, address) };
            let bound = admin_server(&settings, parts)
                .map_err(|error| Failure::cannot_listen("--admin-listen", address, &error))?;
            listeners.admin = listeners.keep(bound);
        }
        Ok(listeners)
    }

    fn none() -> Self {
        Self {
            servers: Vec::new(),
            certificates: Vec::new(),
            public: Vec::new(),
            activation: Vec::new(),
            admin: Vec::new(),
            checks: None,
            checker: None,
        }
    }

    fn public_settings(&mut self, settings: &Settings) -> Result<ServerSettings, Failure> {
        let mut listener = listener_at(settings, settings.server.listen);
        if let Some(files) = settings.server.tls() {
            let loaded = files.load()?;
            listener.tls = Some(loaded.tls.clone());
            self.certificates.push(loaded);
        }
        listener.trusted_proxies.clone_from(&settings.server.trusted_proxy);
        listener.proxies_only = listener.tls.is_none() && !settings.server.listen.ip().is_loopback();
        Ok(ServerSettings {
            listener,
            unix: settings.server.listen_socket.clone().map(|path| UnixSocket { path, mode: PRIVATE_SOCKET }),
            base_path: settings.server.base_path.clone(),
            example_keys: settings.server.example_keys,
            activation_url: settings.server.activation_url(),
            rate: settings.server.login_rate(),
            requests_per_account: settings.server.account_requests,
            requests_per_organization: settings.server.organization_requests,
        })
    }

    fn bind_public(&mut self, settings: &Settings, vault: &OpenVault, parts: &ListenerParts) -> Result<(), Failure> {
        let server_settings = self.public_settings(settings)?;
        let parts = parts::public(settings, vault, parts);
        let bound = server(&server_settings, parts).map_err(|error| public_failure(settings, &error))?;
        self.public = self.keep(bound);
        Ok(())
    }

    fn activation_settings(
        &mut self,
        settings: &Settings,
        activation: &Activation,
    ) -> Result<ActivationSettings, Failure> {
        let (mut listener, unix) = match &activation.listen {
            ActivationListen::Tcp(address) => (listener_at(settings, *address), None),
            ActivationListen::Unix(socket) => (ListenerSettings::new(Vec::new()), Some(socket.clone())),
        };
        if let (Some(files), ActivationListen::Tcp(_)) = (settings.server.tls(), &activation.listen) {
            let loaded = match &activation.client_ca_file {
                Some(authority) => files.load_for_clients_of(authority)?,
                None => files.load()?,
            };
            listener.tls = Some(loaded.tls.clone());
            self.certificates.push(loaded);
        }
        Ok(ActivationSettings { listener, unix, base_path: settings.server.base_path.clone(), rate: activation.rate })
    }

    fn bind_activation(
        &mut self,
        settings: &Settings,
        activation: &Activation,
        vault: &OpenVault,
        opener: Arc<dyn Opener>,
        parts: &ListenerParts,
    ) -> Result<(), Failure> {
        let activation_settings = self.activation_settings(settings, activation)?;
        let scheme = if activation_settings.listener.tls.is_some() { "https" } else { "http" };
        let place = activation_settings.unix.as_ref().map(|socket| format!("unix:{}", socket.path.display()));
        let parts = parts::activation(settings, activation, vault, opener, parts)?;
        let activations = parts.activations.clone();
        let bound = activation_server(&activation_settings, parts);
        let bound = bound.map_err(|error| activation_failure(activation, &error))?;
        self.checks = Some(checks::start(&settings.server, activations.clone()));
        self.checker = Some(activations);
        let addresses = self.keep(bound);
        let addresses = addresses.iter().map(|address| format!("{scheme}://{address}{}", settings.server.base_path));
        self.activation = addresses.chain(place).collect();
        Ok(())
    }

    fn keep(&mut self, bound: BoundServer) -> Vec<SocketAddr> {
        self.servers.push(bound.server);
        bound.addresses
    }

    /// Records that this process runs checks.
    pub(crate) async fn announce_checks(&self) {
        let Some(checker) = &self.checker else { return };
        if let Err(error) = checker.announce_checks().await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "requested checks are refused until the database can be written");
        }
    }

    /// Logs the addresses of the listeners.
    pub(crate) fn announce(&self, settings: &Settings) {
        for address in &self.public {
            tracing::info!(%address, url = settings.server.base_url(*address), "serving the HTTP API");
        }
        if let Some(path) = settings.server.listen_socket.as_ref().filter(|_| !self.public.is_empty()) {
            tracing::info!(socket = %path.display(), "serving the HTTP API");
        }
        for url in &self.activation {
            tracing::info!(%url, "serving activations");
        }
        for address in &self.admin {
            tracing::info!(%address, "serving /metrics, /livez and /readyz");
        }
        let Some(first) = self.public.first() else { return };
        served::note(settings, *first);
        match (settings.server.tls(), settings.server.listen.ip().is_loopback()) {
            (None, false) => tracing::warn!(
                "TLS is off: passwords and tokens travel unencrypted between the proxy and this server. Only trusted proxies \
                 and this host can connect"
            ),
            (None, true) if settings.server.trusted_proxy.is_empty() => {
                tracing::warn!("TLS is off: only programs on this host can connect");
            }
            _ => {}
        }
    }

    /// Serves until `ended` completes, then finishes requests in progress. Returns the result of `ended`.
    pub(crate) async fn serve_until<T: Send + 'static>(
        self,
        ended: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let following: Vec<_> = self.certificates.into_iter().map(|loaded| tokio::spawn(loaded.follow())).collect();
        let handles: Vec<_> = self.servers.iter().map(ListeningServer::handle).collect();
        let stopping = tokio::spawn(async move {
            let outcome = ended.await;
            tracing::info!("stopping: new requests are rejected, and pending ones are completed");
            join_all(handles.iter().map(|handle| handle.stop(true))).await;
            outcome
        });
        try_join_all(self.servers).await?;
        let outcome = stopping.await?;
        for task in following.into_iter().chain(self.checks) {
            task.abort();
        }
        outcome
    }
}
