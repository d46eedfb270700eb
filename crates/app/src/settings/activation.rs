//! What `serve` serves, and where integrations activate namespaces.

use super::{address, rate};
use crate::failure::Failure;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use vault_http::{Rate, UnixSocket};

/// What `serve` serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The HTTP interface, and activations where they are on
    All,
    /// The HTTP interface alone, without the part that opens credentials
    Api,
    /// Activations alone
    Activation,
}

impl Role {
    /// Whether the HTTP interface is served.
    pub(crate) fn serves_api(self) -> bool {
        self != Self::Activation
    }
}

/// Where integrations activate namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ActivationListen {
    /// At a socket in the file system.
    Unix(UnixSocket),
    /// At an address.
    Tcp(SocketAddr),
}

/// The activation listener.
#[derive(Clone, Debug)]
pub(crate) struct Activation {
    /// Where.
    pub(crate) listen: ActivationListen,
    /// Whose certificates integrations must have, if they must.
    pub(crate) client_ca_file: Option<PathBuf>,
    /// How often one integration may ask.
    pub(crate) rate: Option<Rate>,
    /// The most live activations of one integration.
    pub(crate) limit: i64,
}

/// The settings that say so, as they were given.
pub(super) struct Given<'a> {
    pub(super) role: Role,
    pub(super) listen: &'a str,
    pub(super) socket_mode: &'a str,
    pub(super) client_ca_file: Option<PathBuf>,
    pub(super) rate: u32,
    pub(super) burst: u32,
    pub(super) limit: i64,
    /// Whether there is a certificate to serve TLS with.
    pub(super) tls: bool,
}

impl Given<'_> {
    /// The activation listener; none where it is off, or where this process is not to have it.
    pub(super) fn check(self) -> Result<Option<Activation>, Failure> {
        let rate = rate("--activation-rate", "--activation-burst", self.rate, self.burst)?;
        if self.limit < 1 {
            return Err(Failure::usage("--max-activations: must be at least 1"));
        }
        let Some(listen) = self.listen()? else {
            if self.role == Role::Activation {
                return Err(Failure::usage(
                    "--role activation serves nothing without --activation-listen: give it unix:/PATH or an address",
                ));
            }
            return Ok(None);
        };
        let over_tls = self.tls && matches!(listen, ActivationListen::Tcp(_));
        if self.client_ca_file.is_some() && !over_tls {
            return Err(Failure::usage(
                "--activation-client-ca-file asks for certificates, which only TLS has: give --activation-listen an \
                 address, and --tls-cert-file and --tls-key-file",
            ));
        }
        if let ActivationListen::Tcp(address) = listen
            && !address.ip().is_loopback()
            && !self.tls
        {
            return Err(Failure::usage(
                "--activation-listen: an address beyond loopback would carry tokens and credentials in clear; give \
                 --tls-cert-file and --tls-key-file, or use unix:/PATH",
            ));
        }
        let here = self.role != Role::Api;
        Ok(here.then_some(Activation { listen, client_ca_file: self.client_ca_file, rate, limit: self.limit }))
    }

    fn listen(&self) -> Result<Option<ActivationListen>, Failure> {
        let mode = u32::from_str_radix(self.socket_mode, 8).ok().filter(|mode| *mode <= 0o777);
        let mode = mode.ok_or_else(|| {
            Failure::usage("--activation-socket-mode: must be permission bits in octal, 0000 to 0777, as 0660")
        })?;
        match (self.listen, self.listen.strip_prefix("unix:")) {
            ("", _) => Ok(None),
            (_, Some("")) => {
                Err(Failure::usage("--activation-listen: unix: needs a path, as unix:/run/orgvault/activation"))
            }
            (_, Some(path)) => {
                let path = std::path::absolute(Path::new(path))
                    .map_err(|error| Failure::usage(format!("--activation-listen: {path} is no path: {error}")))?;
                Ok(Some(ActivationListen::Unix(UnixSocket { path, mode })))
            }
            (text, None) => Ok(Some(ActivationListen::Tcp(address("--activation-listen", text)?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(role: Role, listen: &str, tls: bool) -> Given<'_> {
        Given { role, listen, socket_mode: "0660", client_ca_file: None, rate: 20, burst: 200, limit: 1_000, tls }
    }

    fn refusal(given: Given<'_>) -> Option<String> {
        given.check().err().map(|failure| failure.to_string())
    }

    #[test]
    fn it_is_off_unless_asked_for_and_not_in_a_process_for_the_interface() {
        assert!(matches!(given(Role::All, "", false).check(), Ok(None)));
        assert!(matches!(given(Role::Api, "unix:/run/orgvault", false).check(), Ok(None)));
        let found = given(Role::Activation, "unix:/run/orgvault", false).check().ok().flatten();
        let socket = UnixSocket { path: "/run/orgvault".into(), mode: 0o660 };
        assert_eq!(found.map(|found| found.listen), Some(ActivationListen::Unix(socket)));
        assert!(refusal(given(Role::Activation, "", false)).is_some_and(|text| text.contains("--activation-listen")));
    }

    #[test]
    fn nothing_travels_in_clear_beyond_this_machine() {
        for (listen, tls, allowed) in [
            ("127.0.0.1:8443", false, true),
            ("[::1]:8443", false, true),
            ("localhost:8443", false, true),
            ("0.0.0.0:8443", false, false),
            ("192.0.2.1:8443", false, false),
            ("192.0.2.1:8443", true, true),
            ("unix:/run/orgvault", true, true),
        ] {
            assert_eq!(given(Role::All, listen, tls).check().is_ok(), allowed, "{listen}");
        }
    }

    #[test]
    fn certificates_of_clients_need_tls() {
        for (listen, tls, allowed) in
            [("127.0.0.1:1", true, true), ("127.0.0.1:1", false, false), ("unix:/a", true, false)]
        {
            let given = Given { client_ca_file: Some("ca.pem".into()), ..given(Role::All, listen, tls) };
            assert_eq!(given.check().is_ok(), allowed, "{listen} {tls}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (listen, mode, flag) in [
            ("unix:", "0660", "--activation-listen"),
            ("example.org:1", "0660", "--activation-listen"),
            ("unix:/a", "0o660", "--activation-socket-mode"),
            ("unix:/a", "1777", "--activation-socket-mode"),
            ("unix:/a", "rw", "--activation-socket-mode"),
        ] {
            let text = refusal(Given { socket_mode: mode, ..given(Role::All, listen, false) }).unwrap_or_default();
            assert!(text.starts_with(flag), "{listen} {mode}: {text}");
        }
        let none = Given { limit: 0, ..given(Role::All, "", false) };
        assert!(refusal(none).is_some_and(|text| text.starts_with("--max-activations")));
        let none = Given { burst: 0, ..given(Role::All, "", false) };
        assert!(refusal(none).is_some_and(|text| text.starts_with("--activation-burst")));
    }
}
