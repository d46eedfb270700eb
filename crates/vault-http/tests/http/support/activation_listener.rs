//! The activation listener over the same store as a world's public one.

use super::{Response, Wire, World, request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tokio::task::JoinHandle;
use vault_core::namespace::Namespace;
use vault_core::principal::Principal;
use vault_http::{ActivationParts, ActivationSettings, ListenerSettings, UnixSocket, activation_server};

/// A running activation listener.
pub(crate) struct ActivationListener {
    /// Its TCP address, if it has one.
    pub(crate) address: Option<SocketAddr>,
    handle: actix_web::dev::ServerHandle,
    running: JoinHandle<std::io::Result<()>>,
}

impl World {
    pub(crate) fn activation_listener(&self) -> ActivationListener {
        self.activation_listener_with(|_, _| {})
    }

    /// Starts an activation listener with other settings, on a free port of this host.
    pub(crate) fn activation_listener_with(
        &self,
        change: impl FnOnce(&mut ActivationSettings, &mut ActivationParts),
    ) -> ActivationListener {
        let listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        self.try_activation_listener(listen, None, change).expect("a free port")
    }

    /// Starts one on a socket in the file system.
    pub(crate) fn socket_listener(&self, path: impl Into<PathBuf>, mode: u32) -> std::io::Result<ActivationListener> {
        self.try_activation_listener(Vec::new(), Some(UnixSocket { path: path.into(), mode }), |_, _| {})
    }

    /// Starts one on a socket for its owner, with other settings.
    pub(crate) fn socket_listener_with(
        &self,
        path: impl Into<PathBuf>,
        change: impl FnOnce(&mut ActivationSettings),
    ) -> ActivationListener {
        let unix = Some(UnixSocket { path: path.into(), mode: 0o600 });
        self.try_activation_listener(Vec::new(), unix, |settings, _| change(settings)).expect("a socket")
    }

    fn try_activation_listener(
        &self,
        listen: Vec<SocketAddr>,
        unix: Option<UnixSocket>,
        change: impl FnOnce(&mut ActivationSettings, &mut ActivationParts),
    ) -> std::io::Result<ActivationListener> {
        let listener = ListenerSettings::new(listen);
        let mut settings = ActivationSettings { listener, unix, base_path: Default::default(), rate: None };
        settings.listener.workers = NonZeroUsize::new(1);
        let mut parts = self.activation_parts();
        change(&mut settings, &mut parts);
        let bound = self.runtime().block_on(async { activation_server(&settings, parts) })?;
        let address = bound.addresses.first().copied();
        let handle = bound.server.handle();
        Ok(ActivationListener { address, handle, running: self.runtime().spawn(bound.server) })
    }

    /// Creates an integration of Acme. Returns its ID and `Authorization: Bearer …` with its token.
    pub(crate) fn integration(&self, admin: &str, name: &str, namespaces: &[&str]) -> (String, String) {
        let body = json!({ "name": name, "namespaces": namespaces });
        let response = self.send_json("POST /v1/integrations", admin, body);
        assert_eq!(response.status, 201, "{}", response.text());
        let created = response.json();
        let text = |member: &str| created[member].as_str().expect("a string").to_owned();
        (text("id"), format!("Authorization: Bearer {}", text("token")))
    }

    /// Saves a credential with a role to assume. Returns its ID.
    pub(crate) fn save_role(&self, token: &str, namespace: &str, bucket: &str) -> String {
        let mut body: Value = serde_json::from_str(&super::s3(namespace, bucket)).expect("an object");
        body["data"]["role_arn"] = json!("arn:aws:iam::123456789012:role/batch");
        let response = self.send_json("PATCH /v1/organization-vault", token, body);
        assert_eq!(response.status, 201, "{}", response.text());
        response.json()["id"].as_str().expect("an id").to_owned()
    }

    /// Freezes a namespace of Acme.
    pub(crate) fn freeze(&self, namespace: &str) {
        let integrations = self.integrations();
        let namespace = Namespace::parse(namespace, "").expect("a namespace");
        let freezing = self.runtime().block_on(async {
            let acme = self.operator().organization("Acme").await.expect("an organization");
            integrations.freeze(&Principal::Operator, acme.id, namespace).await
        });
        assert!(freezing.expect("frozen").changed);
    }
}

impl ActivationListener {
    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.address.expect("a port"))
    }

    /// Sends one request on a separate connection.
    pub(crate) fn send(&self, line: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Response {
        let mut wire = self.wire();
        wire.try_send(request(line, headers, body));
        wire.receive_for(line.split(' ').next().unwrap_or_default())
    }

    /// Sends one request with a JSON body and the header `token`.
    pub(crate) fn send_json(&self, line: &str, token: &str, body: impl ToString) -> Response {
        self.send(line, &["Content-Type: application/json", token], body.to_string())
    }

    /// Activates a namespace.
    pub(crate) fn activate(&self, token: &str, namespace: &str) -> Response {
        self.send_json("POST /v1/activations", token, json!({ "namespace": namespace }))
    }

    /// Returns the active activations.
    pub(crate) fn live(&self, token: &str) -> Vec<Value> {
        let response = self.send("GET /v1/activations", &[token], "");
        assert_eq!(response.status, 200, "{}", response.text());
        response.json().as_array().expect("an array").clone()
    }

    /// Stops, and waits for the end.
    pub(crate) fn stop(self, world: &World) {
        world.runtime().block_on(async {
            self.handle.stop(true).await;
            self.running.await.expect("ends").expect("ends well");
        });
    }
}
