//! Integrations and the activation listener.

use crate::answer::Answer;
use crate::binary::{self, Run};
use crate::client::Client;
use crate::database::Database;
use crate::process::free_address;
use crate::vault::Vault;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The activation listener of a vault's server.
#[derive(Clone, Copy)]
pub struct ActivationListener {
    /// Address of the listener.
    pub address: SocketAddr,
}

impl ActivationListener {
    /// Creates a vault with an activation listener.
    #[track_caller]
    pub fn open(database: Database) -> (Vault, Self) {
        Self::open_with(database, &[])
    }

    /// Creates a vault with an activation listener and these flags.
    #[track_caller]
    pub fn open_with(database: Database, flags: &[&str]) -> (Vault, Self) {
        let address = free_address();
        let listen = format!("--activation-listen={address}");
        (Vault::start_with(database, &[&[listen.as_str()], flags].concat()), Self { address })
    }

    /// Returns a client of the listener with new connections.
    pub fn client(self) -> Client {
        Client::new(self.address)
    }

    /// Returns the listener's URL for commands.
    pub fn url(self) -> String {
        format!("http://{}/v1", self.address)
    }
}

/// An integration and its token file.
pub struct Integration {
    /// Integration ID.
    pub id: String,
    /// Name of the integration.
    pub name: String,
    /// Integration token.
    pub token: String,
    /// Path of the token file.
    pub file: PathBuf,
}

impl Integration {
    /// Creates an integration in organization `Acme` for these namespaces.
    #[track_caller]
    pub fn make(vault: &Vault, name: &str, namespaces: &[&str]) -> Self {
        vault.organization("Acme");
        let create = ["integration", "create", "--org", "Acme", "--name", name, "--namespace"];
        Self::of(vault, name, &vault.json(&[&create[..], namespaces].concat()))
    }

    /// Creates the value from the output of the command that created or rotated the integration.
    #[track_caller]
    pub fn of(vault: &Vault, name: &str, printed: &Value) -> Self {
        let text = |member: &str| printed[member].as_str().expect(member).to_owned();
        let (id, token) = (text("id"), text("token"));
        let file = vault.scratch(&format!("token-{id}-{}", &token[token.len() - 6..]));
        write_private(&file, &token);
        Self { id, name: name.to_owned(), token, file }
    }

    /// Runs a command of `orgvault integration` on this integration.
    #[track_caller]
    pub fn administer(&self, vault: &Vault, command: &str, flags: &[&str]) -> Run {
        let named = ["integration", command, "--org", "Acme", "--name", &self.name];
        vault.run(&[&named[..], flags].concat())
    }

    /// Requests an activation of `namespace` with the default lifetime.
    #[track_caller]
    pub fn activate(&self, client: &Client, namespace: &str) -> Answer {
        self.activate_with(client, &json!({"namespace": namespace}))
    }

    /// Requests an activation with this body.
    #[track_caller]
    pub fn activate_with(&self, client: &Client, body: &Value) -> Answer {
        client.request("POST", "/v1/activations").bearer(&self.token).json(body).send()
    }

    /// Returns its active activations.
    #[track_caller]
    pub fn live(&self, client: &Client) -> Vec<Value> {
        let answer = client.get("/v1/activations").bearer(&self.token).send().expect(200);
        answer.json().as_array().expect("an array").clone()
    }

    /// Requests a check of `namespace`.
    #[track_caller]
    pub fn check(&self, client: &Client, namespace: &str, operations: &[&str]) -> Answer {
        let body = json!({"namespace": namespace, "operations": operations});
        client.request("POST", "/v1/activations/check").bearer(&self.token).json(&body).send()
    }

    /// Returns a command for the job's host, which has only the token and the listener's URL: no data directory and no
    /// database.
    pub fn command(&self, activation_listener: ActivationListener, arguments: &[&str]) -> Command {
        let mut command = binary::command();
        command
            .env("ORGVAULT_ACTIVATION_URL", activation_listener.url())
            .env("ORGVAULT_INTEGRATION_TOKEN_FILE", &self.file);
        command.args(arguments);
        command
    }

    /// Runs such a command.
    #[track_caller]
    pub fn run(&self, activation_listener: ActivationListener, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(activation_listener, arguments))
    }
}

/// Writes `content` to a file that only its owner can read.
pub fn write_private(file: &Path, content: &str) {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(file).unwrap();
    file.write_all(content.as_bytes()).unwrap();
}
