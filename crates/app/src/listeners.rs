//! The listeners of a server: the HTTP interface, the integrations' door and the operators', as far as the settings have
//! them.

use crate::failure::Failure;
use crate::parts;
use crate::settings::{Activation, ActivationListen, Settings};
use crate::tls::LoadedTls;
use futures_util::future::{join_all, try_join_all};
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::credential::DataPolicy;
use vault_core::port::Opener;
use vault_embed::OpenVault;
use vault_http::{
    ActivationSettings, AdminParts, AdminSettings, BoundServer, ListenerSettings, ListeningServer, MetricsText,
    Readiness, ServerSettings, activation_server, admin_server, server,
};
use vault_storage::Storage;

/// What listeners need beside the vault.
pub(crate) struct ListenerParts {
    pub(crate) storage: Option<Arc<Storage>>,
    pub(crate) readiness: Readiness,
    pub(crate) metrics: MetricsText,
}

/// Listeners that are bound, and answer once they are served.
pub(crate) struct Listeners {
    servers: Vec<ListeningServer>,
    certificates: Vec<LoadedTls>,
    public: Vec<SocketAddr>,
    activation: Vec<String>,
    admin: Vec<SocketAddr>,
}

/// An address, named by `flag`, that cannot be listened on.
pub(crate) fn cannot_listen(flag: &str, place: impl Display, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::AddrInUse => "address in use".to_owned(),
        _ => error.to_string(),
    };
    Failure::new(format!("cannot listen on {place}: {reason}. Choose another with {flag}"))
}

impl Listeners {
    /// Listens wherever the settings say. The opener goes to the activation listener, and is dropped where there is none.
    pub(crate) fn bind(
        settings: &Settings,
        vault: &OpenVault,
        opener: Arc<dyn Opener>,
        parts: ListenerParts,
    ) -> Result<Self, Failure> {
        let mut listeners = Self {
            servers: Vec::new(),
            certificates: Vec::new(),
            public: Vec::new(),
            activation: Vec::new(),
            admin: Vec::new(),
        };
        if settings.role.serves_api() {
            listeners.bind_public(settings, vault, &parts)?;
        }
        if let Some(activation) = &settings.activation {
            listeners.bind_activation(settings, activation, vault, opener, &parts)?;
        }
        if let Some(address) = settings.admin_listen {
            let parts = AdminParts {
                runtime: Handle::current(),
                metrics: parts.metrics,
                readiness: parts.readiness,
                ids: vault.ports().ambient.ids.clone(),
            };
            let settings = AdminSettings { listener: ListenerSettings::new(vec![address]) };
            let bound =
                admin_server(&settings, parts).map_err(|error| cannot_listen("--admin-listen", address, &error))?;
            listeners.admin = listeners.keep(bound);
        }
        Ok(listeners)
    }

    fn bind_public(&mut self, settings: &Settings, vault: &OpenVault, parts: &ListenerParts) -> Result<(), Failure> {
        let mut listener = ListenerSettings::new(vec![settings.listen]);
        if let Some(files) = &settings.tls {
            let loaded = files.load(&settings.files)?;
            listener.tls = Some(loaded.tls.clone());
            self.certificates.push(loaded);
        }
        listener.trusted_proxies.clone_from(&settings.trusted_proxies);
        listener.proxies_only = settings.tls.is_none() && !settings.listen.ip().is_loopback();
        let server_settings = ServerSettings {
            listener,
            base_path: settings.base_path.clone(),
            data_policy: DataPolicy { allow_http_links: settings.allow_http_links },
            rate: settings.login_rate,
        };
        let parts = parts::public(settings, vault, parts.storage.as_ref(), &parts.readiness);
        let bound =
            server(&server_settings, parts).map_err(|error| cannot_listen("--listen", settings.listen, &error))?;
        self.public = self.keep(bound);
        Ok(())
    }

    fn bind_activation(
        &mut self,
        settings: &Settings,
        activation: &Activation,
        vault: &OpenVault,
        opener: Arc<dyn Opener>,
        parts: &ListenerParts,
    ) -> Result<(), Failure> {
        let (mut listener, unix) = match &activation.listen {
            ActivationListen::Tcp(address) => (ListenerSettings::new(vec![*address]), None),
            ActivationListen::Unix(socket) => (ListenerSettings::new(Vec::new()), Some(socket.clone())),
        };
        if let (Some(files), ActivationListen::Tcp(_)) = (&settings.tls, &activation.listen) {
            let loaded = match &activation.client_ca_file {
                Some(authority) => files.load_for_clients_of(&settings.files, authority)?,
                None => files.load(&settings.files)?,
            };
            listener.tls = Some(loaded.tls.clone());
            self.certificates.push(loaded);
        }
        let scheme = if listener.tls.is_some() { "https" } else { "http" };
        let place = unix.as_ref().map(|socket| format!("unix:{}", socket.path.display()));
        let activation_settings =
            ActivationSettings { listener, unix, base_path: settings.base_path.clone(), rate: activation.rate };
        let storage = parts.storage.as_ref();
        let parts = parts::activation(activation, vault, opener, storage, &parts.readiness);
        let bound = activation_server(&activation_settings, parts).map_err(|error| match &activation.listen {
            ActivationListen::Tcp(address) => cannot_listen("--activation-listen", address, &error),
            // Its text names the socket.
            ActivationListen::Unix(_) => {
                Failure::new(format!("cannot listen on {error}. Choose another with --activation-listen"))
            }
        })?;
        let addresses = self.keep(bound);
        let addresses = addresses.iter().map(|address| format!("{scheme}://{address}{}", settings.base_path));
        self.activation = addresses.chain(place).collect();
        Ok(())
    }

    fn keep(&mut self, bound: BoundServer) -> Vec<SocketAddr> {
        self.servers.push(bound.server);
        bound.addresses
    }

    /// Says what is served where.
    pub(crate) fn announce(&self, settings: &Settings) {
        for address in &self.public {
            tracing::info!(%address, url = settings.base_url(*address), "serving the interface");
        }
        for url in &self.activation {
            tracing::info!(%url, "serving activations to integrations");
        }
        for address in &self.admin {
            tracing::info!(%address, "serving /metrics, /livez and /readyz to operators");
        }
        if self.public.is_empty() {
            return;
        }
        match (&settings.tls, settings.listen.ip().is_loopback()) {
            (None, false) => tracing::warn!(
                "without TLS: between the proxy and this service, passwords and tokens travel in clear; only trusted proxies \
                 and this machine are served"
            ),
            (None, true) if settings.trusted_proxies.is_empty() => {
                tracing::warn!("without TLS: only programs on this machine can reach the interface");
            }
            _ => {}
        }
    }

    /// Serves until `ended` comes to something, and finishes what is under way. What `ended` came to.
    pub(crate) async fn serve_until<T: Send + 'static>(
        self,
        ended: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let following: Vec<_> = self.certificates.into_iter().map(|loaded| tokio::spawn(loaded.follow())).collect();
        let handles: Vec<_> = self.servers.iter().map(ListeningServer::handle).collect();
        let stopping = tokio::spawn(async move {
            let outcome = ended.await;
            tracing::info!("stopping: no new requests; those under way are finished");
            join_all(handles.iter().map(|handle| handle.stop(true))).await;
            outcome
        });
        try_join_all(self.servers).await?;
        let outcome = stopping.await?;
        for task in following {
            task.abort();
        }
        outcome
    }
}
