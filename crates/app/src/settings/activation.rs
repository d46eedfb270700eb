//! Settings of the process role and of the activation listener.

use super::flags::ServerSettings;
use super::value::{ActivationPlace, Role, rate};
use std::net::SocketAddr;
use std::path::PathBuf;
use vault_cli::failure::Failure;
use vault_http::{Rate, UnixSocket};

/// Permission bits of the activation socket: its group may connect.
const SOCKET_MODE: u32 = 0o660;

/// The address of an activation listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ActivationListen {
    /// A Unix socket.
    Unix(UnixSocket),
    /// A TCP address.
    Tcp(SocketAddr),
}

/// The activation listener.
#[derive(Clone, Debug)]
pub(crate) struct Activation {
    /// Address to listen on.
    pub(crate) listen: ActivationListen,
    /// CA certificates for client certificates. If `None`, clients need no certificate.
    pub(crate) client_ca_file: Option<PathBuf>,
    /// Rate limit of activations and checks per integration. `None` means no limit.
    pub(crate) rate: Option<Rate>,
    /// Maximum number of active activations per integration.
    pub(crate) limit: i64,
}

impl ServerSettings {
    /// Returns the address of the vault's activation listener, whichever process serves it. `None` if it is disabled.
    pub(crate) fn activation_listen(&self) -> Option<ActivationListen> {
        match &self.activation_listen {
            ActivationPlace::Off => None,
            ActivationPlace::Unix(path) => {
                Some(ActivationListen::Unix(UnixSocket { path: path.clone(), mode: SOCKET_MODE }))
            }
            ActivationPlace::Tcp(address) => Some(ActivationListen::Tcp(*address)),
        }
    }

    /// Enables an activation listener at a Unix socket.
    pub(crate) fn add_activation_socket(&mut self, path: PathBuf) {
        self.activation_listen = ActivationPlace::Unix(path);
    }

    /// Returns the activation listener of this process, or `None` if it is disabled or another process serves it.
    pub(crate) fn activation(&self) -> Option<Activation> {
        let listen = self.activation_listen().filter(|_| self.role != Role::Api)?;
        Some(Activation {
            listen,
            client_ca_file: self.activation_client_ca_file.clone(),
            rate: rate(self.activation_rate),
            limit: self.max_activations,
        })
    }

    /// Rejects contradictory activation settings.
    pub(super) fn check_activation(&self) -> Result<(), Failure> {
        let tcp = match &self.activation_listen {
            ActivationPlace::Off if self.role == Role::Activation => {
                return Err(Failure::usage(
                    "--role activation serves nothing without --activation-listen: set it to unix:/PATH or an address",
                ));
            }
            // A client CA is rejected below, because it has no effect without a TCP listener.
            ActivationPlace::Off | ActivationPlace::Unix(_) => None,
            ActivationPlace::Tcp(address) => Some(address),
        };
        let tls = self.tls_cert_file.is_some();
        let on = self.activation_listen != ActivationPlace::Off;
        if on && self.activation_client_ca_file.is_some() && !(tls && tcp.is_some()) {
            return Err(Failure::usage(
                "--activation-client-ca-file needs TLS: set --activation-listen to an address, and --tls-cert-file and \
                 --tls-key-file",
            ));
        }
        if tcp.is_some_and(|address| !address.ip().is_loopback()) && !tls {
            return Err(Failure::usage(
                "--activation-listen: a non-loopback address without TLS would send tokens and credentials unencrypted. \
                 Set --tls-cert-file and --tls-key-file, or use unix:/PATH",
            ));
        }
        Ok(())
    }
}
