//! Settings. Flags take precedence over the environment, the TOML file and defaults, in this order.

mod activation;
mod file;
mod flags;
mod root_key;
mod sources;
mod value;

pub(crate) use activation::{Activation, ActivationListen};
pub(crate) use flags::{LogFormat, LogLevel, ServerSettings};
pub(crate) use root_key::RootKeySource;
pub(crate) use sources::innermost;
pub(crate) use value::{PublicUrl, Role, SinkTarget, whole};

use crate::compose::open_mode;
use crate::owner;
use crate::tls::TlsFiles;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use file::SettingsFile;
use flags::VaultFlags;
use ipnet::IpNet;
use serde::Serialize;
use sources::Given;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use value::rate;
use vault_cli::failure::Failure;
use vault_cli::text::{program, quoted};
use vault_client::BaseUrl;
use vault_core::credential::VersionLimits;
use vault_embed::Database;
use vault_http::{BasePath, Rate};
use vault_storage::{Destination, Egress, HostPattern};

/// Name of the settings file in the data directory.
pub(crate) const SETTINGS_FILE: &str = "orgvault.toml";
/// Variable that `orgvault-admin` sets, so that printed commands name it and the service.
pub(crate) const ADMIN: &str = "ORGVAULT_ADMIN";

/// Validated settings. Paths are absolute.
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) database: Database,
    pub(crate) root_key: RootKeySource,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) log_level: LogLevel,
    pub(crate) server: ServerSettings,
    /// Environment variables with the prefix `ORGVAULT_` that are not settings.
    pub(crate) unknown_variables: Vec<String>,
    /// Set if a flag contains the database password, which every user of the host can then read.
    pub(crate) shows_password: bool,
    /// Set if a settings file was read.
    pub(crate) has_file: bool,
    /// Every setting, for users.
    pub(crate) shown: Vec<ShownSetting>,
    /// Outgoing proxy of the process, after its first use.
    pub(crate) egress: OnceLock<Egress>,
}

/// A setting with its value and source. A secret is not contained.
#[derive(Serialize)]
pub(crate) struct ShownSetting {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) source: String,
}

impl ShownSetting {
    fn of(setting: &Arg, given: &Given, found: &ArgMatches) -> Self {
        let name = sources::name(setting).to_owned();
        let database = || found.get_one::<Database>("database_url").filter(|url| url.file().is_none());
        let value = match given.source(&name) {
            None => default_of(setting),
            Some(_) if sources::is_secret(setting) => "(secret)".to_owned(),
            Some(_) => match database().filter(|_| name == "database-url") {
                Some(url) => url.url_without_password().unwrap_or("(contains a password)").to_owned(),
                None => {
                    let values = found.get_raw(setting.get_id().as_str()).into_iter().flatten();
                    values.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(",")
                }
            },
        };
        Self { value, source: given.source(&name).unwrap_or("default").to_owned(), name }
    }
}

/// Returns the default of a setting: its value, or what its help states.
fn default_of(setting: &Arg) -> String {
    let help = setting.get_help().map(ToString::to_string).unwrap_or_default();
    let stated = help.strip_suffix(']').and_then(|help| help.rsplit_once(" [default: "));
    let values =
        || setting.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
    stated.map_or_else(values, |(_, default)| default.to_owned())
}

/// Returns the flags of all commands that open the vault.
pub(crate) fn vault_flags() -> Vec<Arg> {
    arguments(VaultFlags::augment_args)
}

pub(crate) fn server_flags() -> Vec<Arg> {
    arguments(ServerSettings::augment_args)
}

fn arguments(augment: impl Fn(Command) -> Command) -> Vec<Arg> {
    augment(Command::new("settings")).get_arguments().cloned().collect()
}

/// Returns the environment variables of a setting.
fn variables(setting: &Arg) -> [String; 2] {
    let name = sources::name(setting);
    [sources::variable(name), sources::file_variable(name)]
}

/// Returns the base path for a client command, from the environment.
pub(crate) fn client_base_path(flags: &ArgMatches) -> Result<BasePath, Failure> {
    let setting: Vec<Arg> = server_flags().into_iter().filter(|setting| setting.get_id() == "base_path").collect();
    let found = Given::find(&setting, innermost(flags), None)?.parse(&setting)?;
    Ok(found.get_one::<BasePath>("base_path").cloned().unwrap_or_default())
}

/// Rejects the flags of commands that open the vault, because `command` would ignore them.
pub(crate) fn refuse_vault_flags(command: &str, flags: &ArgMatches) -> Result<(), Failure> {
    let flags = innermost(flags);
    match vault_flags().iter().find(|setting| sources::is_flag(setting, flags)) {
        Some(setting) => Err(Failure::usage(format!("`orgvault {command}` does not use --{}", sources::name(setting)))),
        None => Ok(()),
    }
}

/// Refuses settings on the command line of a command that uses a login instead.
pub(crate) fn refuse_all_flags(flags: &ArgMatches) -> Result<(), Failure> {
    let flags = innermost(flags);
    let all = vault_flags().into_iter().chain(server_flags());
    match all.into_iter().find(|setting| sources::is_flag(setting, flags)) {
        Some(setting) => Err(Failure::usage(format!(
            "--{} is a setting of the server, which a command with --profile does not use",
            sources::name(&setting)
        ))),
        None => Ok(()),
    }
}

impl Settings {
    /// Reads the flags in `matches`, the environment and the settings file. `also_known` are environment variables of the program that are not settings.
    pub(crate) fn read(matches: &ArgMatches, also_known: &[String]) -> Result<Self, Failure> {
        root_key::refuse_replaced_variable()?;
        let flags = innermost(matches);
        let all: Vec<Arg> = vault_flags().into_iter().chain(server_flags()).collect();
        let given = Given::find(&all, flags, None)?;
        let named = VaultFlags::from_arg_matches(&given.parse(&vault_flags())?).map_err(unreadable)?;
        let path = match &named.config {
            Some(path) => Some(absolute(path)?),
            None => implied_file(&named.data_dir, given.source("data-dir").is_none())?,
        };
        let file = path.map(|path| SettingsFile::read(&path, &keys(&all))).transpose()?;
        let given = file.as_ref().map_or(Ok(given), |file| Given::find(&all, flags, Some(file)))?;
        let found = given.parse(&all)?;
        let vault = VaultFlags::from_arg_matches(&found).map_err(unreadable)?;
        let mut server = ServerSettings::from_arg_matches(&found).map_err(unreadable)?;
        server.has_listen = given.source("listen").is_some();
        server.check()?;
        server.public_url = server.public_url.take().or_else(|| server.certified_url());

        let data_dir = owner::directory(&vault.data_dir)?;
        let known: Vec<String> = all.iter().flat_map(variables).chain(also_known.iter().cloned()).collect();
        let shows_password = flag_shows_password(&all, flags, vault.database_url.as_ref());
        let shown = all.iter().map(|setting| ShownSetting::of(setting, &given, &found)).collect();
        let database = vault.database_url.unwrap_or_else(|| Database::sqlite(data_dir.join("orgvault.db")));
        if let Some(path) = database.file() {
            owner::check_database(path)?;
        }
        Ok(Self {
            shown,
            shows_password,
            database,
            has_file: file.is_some(),
            root_key: vault.root_key.unwrap_or_else(|| RootKeySource::File(data_dir.join("root.key"))),
            data_dir,
            log_format: vault.log_format,
            log_level: vault.log_level,
            server,
            unknown_variables: sources::unknown_variables(&known)?,
            egress: OnceLock::new(),
        })
    }

    /// Returns a shell command that runs `words` of this program on this vault, from any directory.
    pub(crate) fn command_line(&self, words: &str) -> String {
        command_line(words, self.location_flags())
    }

    /// Returns the same command without the database, which its user names.
    pub(crate) fn command_line_without_database(&self, words: &str) -> String {
        command_line(words, self.location_flags().into_iter().filter(|flag| !flag.starts_with("--database-url")))
    }

    /// Returns the flags that select the same vault from any directory. A URL with a password is omitted.
    fn location_flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--data-dir={}", self.data_dir.display())];
        if self.root_key != RootKeySource::File(self.data_dir.join("root.key")) {
            flags.push(format!("--root-key={}", self.root_key));
        }
        let default = self.data_dir.join("orgvault.db");
        if let Some(path) = self.database.file().filter(|path| *path != default) {
            flags.push(format!("--database-url=sqlite://{}", path.display()));
        }
        flags.extend(self.database.url_without_password().map(|url| format!("--database-url={url}")));
        flags
    }
}

fn command_line(words: &str, flags: impl IntoIterator<Item = String>) -> String {
    match (std::env::var_os(ADMIN), words) {
        (Some(_), "serve") => "systemctl start orgvault".to_owned(),
        (Some(_), _) => format!("orgvault-admin {words}"),
        (None, _) => {
            let flags: Vec<String> = flags.into_iter().map(|flag| quoted(&flag)).collect();
            format!("{} {words} {}", program(), flags.join(" "))
        }
    }
}

/// Returns whether a flag contains a database URL with a password, which every user of the host can read.
fn flag_shows_password(all: &[Arg], flags: &ArgMatches, url: Option<&Database>) -> bool {
    let is_flag = all.iter().any(|setting| setting.get_id() == "database_url" && sources::is_flag(setting, flags));
    is_flag && url.is_some_and(|url| url.file().is_none() && url.url_without_password().is_none())
}

/// Returns the keys that a settings file may contain.
fn keys(all: &[Arg]) -> Vec<&str> {
    all.iter().map(sources::name).filter(|name| *name != "config").collect()
}

fn unreadable(error: clap::Error) -> Failure {
    Failure::usage(error.to_string())
}

/// Returns the settings file of the data directory, if it has one. In the working directory (`is_default`), the data
/// directory must have the mode with which this program creates it, because it may be part of a cloned repository.
fn implied_file(data_dir: &Path, is_default: bool) -> Result<Option<PathBuf>, Failure> {
    let directory = owner::directory(data_dir)?;
    let implied = directory.join(SETTINGS_FILE);
    match implied.metadata() {
        Ok(found) if !found.is_file() => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::usage(format!("cannot read the settings file {}: {error}", implied.display())));
        }
    }
    match open_mode(&directory) {
        Some(mode) if is_default => Err(Failure::new(format!(
            "{} is not used, because its directory has mode {mode:04o}, so `orgvault` did not create it. If you trust the \
             file, run `chmod 700 {}`, or name the file with --config",
            implied.display(),
            quoted(&directory.to_string_lossy())
        ))),
        _ => Ok(Some(implied)),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{} is not a usable path: {error}", path.display())))
}

impl ServerSettings {
    /// Returns the paths of certificate and key, if TLS is enabled.
    pub(crate) fn tls(&self) -> Option<TlsFiles> {
        Some(TlsFiles { certificate: self.tls_cert_file.clone()?, key: self.tls_key_file.clone()? })
    }

    /// Returns every address to listen on, with its flag.
    pub(crate) fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let activation = self.activation().and_then(|activation| match activation.listen {
            ActivationListen::Tcp(address) => Some(address),
            ActivationListen::Unix(_) => None,
        });
        let places = [
            ("--listen", self.role.serves_api().then_some(self.listen)),
            ("--admin-listen", self.admin_listen),
            ("--activation-listen", activation),
        ];
        places.into_iter().filter_map(|(flag, address)| Some((flag, address?))).collect()
    }

    /// Returns the limits on number and age of a credential's versions.
    pub(crate) fn version_limits(&self) -> VersionLimits {
        VersionLimits { versions: self.keep_versions, previous_seconds: self.keep_previous }
    }

    /// Returns the networks to which users may let the server connect.
    pub(crate) fn permitted_networks(&self) -> Vec<IpNet> {
        let network = |permitted: &Destination| match permitted {
            Destination::Network(network) => Some(*network),
            Destination::Name(_) => None,
        };
        self.allow_egress.iter().filter_map(network).collect()
    }

    /// Returns the host names that users may name behind the outgoing proxy.
    pub(crate) fn permitted_names(&self) -> Vec<HostPattern> {
        let name = |permitted: &Destination| match permitted {
            Destination::Network(_) => None,
            Destination::Name(name) => Some(name.clone()),
        };
        self.allow_egress.iter().filter_map(name).collect()
    }

    /// Returns the rate limit of logins per network, or `None` for no limit.
    pub(crate) fn login_rate(&self) -> Option<Rate> {
        rate(self.login_rate)
    }

    /// Returns the URL of the HTTP API: below the public URL, else at `address`.
    pub(crate) fn base_url(&self, address: SocketAddr) -> String {
        match &self.public_url {
            Some(url) => format!("{url}{}", self.base_path),
            None => format!("{}://{}{}", self.scheme(), connectable(address), self.base_path),
        }
    }

    /// Returns the URL of the console: the public URL, else at `address`.
    pub(crate) fn console_url(&self, address: SocketAddr) -> String {
        match &self.public_url {
            Some(url) => format!("{url}/"),
            None => format!("{}://{}/", self.scheme(), connectable(address)),
        }
    }

    /// Returns the origin (scheme, host and port) of the public URL, else of `address`.
    pub(crate) fn origin_url(&self, address: SocketAddr) -> String {
        match &self.public_url {
            Some(url) => url.to_string(),
            None => format!("{}://{}", self.scheme(), connectable(address)),
        }
    }

    /// Returns the additional host names that the listeners accept.
    pub(crate) fn host_names(&self) -> Vec<String> {
        let public = self.public_url.iter().map(|url| url.host().to_owned());
        let issuer = self.federation_issuer.iter().map(|issuer| issuer.host().to_owned());
        self.allowed_host.iter().cloned().chain(public).chain(issuer).collect()
    }

    /// Returns whether the settings contain the server's address. If not, commands use the address at which it was last
    /// served.
    pub(crate) fn names_address(&self) -> bool {
        self.public_url.is_some() || self.has_listen || self.tls_cert_file.is_some()
    }

    /// Returns the URL scheme of listeners.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls_cert_file.is_some() { "https" } else { "http" }
    }

    /// Returns the URL with the name in the certificate, if other hosts can connect.
    fn certified_url(&self) -> Option<PublicUrl> {
        let name = self.tls().filter(|_| !self.listen.ip().is_loopback())?.name()?;
        format!("https://{name}:{}", self.listen.port()).parse().ok().filter(|url: &PublicUrl| !url.is_local())
    }

    /// Returns the URL of the activation listener for integrations, or `None` if it is disabled.
    pub(crate) fn activation_url(&self) -> Option<String> {
        match self.activation_listen()? {
            ActivationListen::Unix(socket) => Some(format!("unix:{}", socket.path.display())),
            ActivationListen::Tcp(address) => {
                let public = self.public_url.as_ref().filter(|_| !address.ip().is_loopback());
                let place = match public {
                    Some(url) => format!("{}:{}", url.host(), address.port()),
                    None => connectable(address).to_string(),
                };
                Some(format!("{}://{place}{}", self.scheme(), self.base_path))
            }
        }
    }

    /// Rejects contradictory settings.
    fn check(&self) -> Result<(), Failure> {
        match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(_), None) => return Err(Failure::usage("--tls-cert-file needs --tls-key-file")),
            (None, Some(_)) => return Err(Failure::usage("--tls-key-file needs --tls-cert-file")),
            _ => {}
        }
        match (&self.backup_every, &self.backup_to) {
            (Some(_), None) => return Err(Failure::usage("--backup-every needs --backup-to")),
            (None, Some(_)) => return Err(Failure::usage("--backup-to needs --backup-every")),
            _ => {}
        }
        if self.audit_sink_token.is_some() && !matches!(self.audit_sink, Some(SinkTarget::Http(_))) {
            return Err(Failure::usage("audit-sink-token needs an --audit-sink that is a URL"));
        }
        match (&self.smtp_url, &self.smtp_from) {
            (Some(_), None) => return Err(Failure::usage("--smtp-url needs --smtp-from")),
            (None, Some(_)) => return Err(Failure::usage("--smtp-from needs --smtp-url")),
            _ => {}
        }
        if self.smtp_password.is_some() && self.smtp_url.as_ref().is_none_or(|url| url.user.is_none()) {
            return Err(Failure::usage("smtp-password needs an --smtp-url that names a user"));
        }
        self.check_exports()?;
        self.check_egress_proxy()?;
        if self.otlp_headers.is_some() && self.otlp_endpoint.is_none() {
            return Err(Failure::usage("otlp-headers needs --otlp-endpoint"));
        }
        if !self.listen.ip().is_loopback() && self.tls_cert_file.is_none() && self.trusted_proxy.is_empty() {
            return Err(Failure::usage(
                "--listen: a non-loopback address without TLS would send passwords and tokens unencrypted. Set \
                 --tls-cert-file and --tls-key-file, or --trusted-proxy if a TLS proxy is in front, or listen on 127.0.0.1",
            ));
        }
        self.check_activation()
    }

    /// Rejects settings of an outgoing proxy without a proxy.
    fn check_egress_proxy(&self) -> Result<(), Failure> {
        let set = [
            ("egress-proxy-credentials", self.egress_proxy_credentials.is_some()),
            ("--egress-direct", !self.egress_direct.is_empty()),
            ("--allow-egress with a host name", !self.permitted_names().is_empty()),
        ];
        match set.iter().find(|(_, is_set)| *is_set && self.egress_proxy.is_none()) {
            Some((flag, _)) => Err(Failure::usage(format!("{flag} needs --egress-proxy"))),
            None => Ok(()),
        }
    }

    /// Rejects unencrypted export of audit entries or traces over a network.
    fn check_exports(&self) -> Result<(), Failure> {
        let sink =
            self.audit_sink.as_ref().filter(|sink| matches!(sink, SinkTarget::Http(_))).map(SinkTarget::to_string);
        let collector = self.otlp_endpoint.as_ref().map(ToString::to_string);
        for (flag, url) in [("--audit-sink", sink), ("--otlp-endpoint", collector)] {
            let is_private = |url: &String| url.parse::<BaseUrl>().is_ok_and(|base| base.is_private());
            if let Some(url) = url.filter(|url| !is_private(url)) {
                return Err(Failure::usage(format!(
                    "{flag}: {url} would be sent to unencrypted over the network. Use an https URL"
                )));
            }
        }
        Ok(())
    }
}

/// Returns the address with which a client on this host connects to a listener at `address`.
pub(crate) fn connectable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests;
