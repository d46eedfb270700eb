//! Settings: flags over environment over a TOML file.

mod activation;
mod flags;

pub(crate) use activation::{Activation, ActivationListen, Role};
pub(crate) use flags::{Flags, LogFormat, LogLevel};

use crate::failure::Failure;
use crate::run_as::{NamedFiles, RunAs};
use crate::tls::TlsFiles;
use activation::Given;
use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
use flags::{DEFAULTS, Layers};
use ipnet::IpNet;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use vault_core::time::Ttl;
use vault_http::{BasePath, InvalidBasePath, Rate};

/// The highest rate and burst that mean anything.
const MAX_RATE: u32 = 1_000_000;

/// The most bytes of a settings file.
const MAX_FILE: u64 = 1 << 20;

/// Where the rows lie.
#[derive(Clone)]
pub(crate) enum Database {
    /// The embedded file.
    Sqlite(PathBuf),
    /// A server. The address may hold a password and is never shown.
    Postgres(String),
}

impl fmt::Display for Database {
    /// Never a user name, password or parameter: only where the rows lie.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Self::Postgres(url) => {
                let place = url.split_once("://").map_or("", |(_, place)| place);
                let place = place.split(['?', '#']).next().unwrap_or("");
                write!(f, "postgres://{}", place.rsplit_once('@').map_or(place, |(_, place)| place))
            }
        }
    }
}

/// Settings, checked.
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) database: Database,
    pub(crate) root_key_file: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) login_rate: Option<Rate>,
    pub(crate) max_ttl: u32,
    pub(crate) allow_http_links: bool,
    pub(crate) max_credentials: i64,
    pub(crate) base_path: BasePath,
    pub(crate) admin_listen: Option<SocketAddr>,
    pub(crate) role: Role,
    pub(crate) activation: Option<Activation>,
    pub(crate) allow_egress: Vec<IpNet>,
    pub(crate) storage_ca_file: Option<PathBuf>,
    pub(crate) verify_on_save: bool,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) log_level: LogLevel,
    /// Files that flags and the environment name.
    pub(crate) files: NamedFiles,
}

impl Settings {
    /// Where the interface is reached at `address`.
    pub(crate) fn base_url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}{}", self.base_path)
    }

    /// The flags with which another command finds the same vault from any directory. A database server's address
    /// is not among them, since it may hold a password.
    pub(crate) fn location_flags(&self) -> Vec<String> {
        let absolute =
            |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let mut flags = vec![format!("--data-dir={}", absolute(&self.data_dir))];
        if self.root_key_file != self.data_dir.join("root.key") {
            flags.push(format!("--root-key-file={}", absolute(&self.root_key_file)));
        }
        match &self.database {
            Database::Sqlite(path) if *path != self.data_dir.join("orgvault.db") => {
                flags.push(format!("--database-url=sqlite://{}", absolute(path)));
            }
            Database::Sqlite(_) | Database::Postgres(_) => {}
        }
        flags
    }

    /// Reads the settings file, if any, and lays the flags over it; and `role`, which one command alone has.
    pub(crate) fn read(flags: &Flags, role: Option<Role>, run_as: RunAs) -> Result<Self, Failure> {
        let data_dir = run_as.data_dir.clone();
        let implied = data_dir.join("orgvault.toml");
        let file = match &flags.config {
            Some(file) => Some(file.as_path()),
            None => exists(&implied)?.then_some(implied.as_path()),
        };
        let mut figment =
            Figment::from(Serialized::defaults(DEFAULTS)).merge(Serialized::default("data-dir", &data_dir));
        if let Some(file) = file {
            let text = run_as.files.read_text(file, MAX_FILE).map(|text| String::from_utf8_lossy(&text).into_owned());
            let text = text.map_err(|error| {
                Failure::usage(format!("cannot read the settings file {}: {error}", file.display()))
            })?;
            figment = figment.merge(Toml::string(&text));
        }
        figment = figment.merge(Serialized::defaults(flags)).merge(Serialized::default("data-dir", &data_dir));
        if let Some(role) = role {
            figment = figment.merge(Serialized::default("role", role));
        }
        let layers: Layers = figment.extract().map_err(|error| bad_file(file, &error))?;
        let mut settings = layers.check()?;
        settings.files = run_as.files;
        Ok(settings)
    }
}

/// Whether there is a settings file in the data directory.
fn exists(implied: &Path) -> Result<bool, Failure> {
    match implied.metadata() {
        Ok(found) => Ok(found.is_file()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::usage(format!("cannot read the settings file {}: {error}", implied.display()))),
    }
}

fn bad_file(file: Option<&Path>, error: &figment::Error) -> Failure {
    // Only the kind and the key: figment's own text repeats values.
    let key = error.path.join(".");
    let flaw = match &error.kind {
        figment::error::Kind::UnknownField(field, known) => {
            format!("unknown key \"{field}\"; known are {}", known.join(", "))
        }
        figment::error::Kind::InvalidType(_, expected) | figment::error::Kind::InvalidValue(_, expected) => {
            format!("key \"{key}\" must be {}", in_words(expected))
        }
        figment::error::Kind::Message(_) if key.is_empty() => "not a TOML document".to_owned(),
        _ => format!("key \"{key}\" cannot be used"),
    };
    let place = file.map_or_else(|| "settings".to_owned(), |file| file.display().to_string());
    Failure::usage(format!("{place}: {flaw}"))
}

/// A type as whoever writes the file knows it.
fn in_words(expected: &str) -> &str {
    match expected {
        "u32" | "i64" => "a whole number",
        "a boolean" => "true or false",
        other => other,
    }
}

impl Layers {
    fn check(self) -> Result<Settings, Failure> {
        let listen = address("--listen", &self.listen)?;
        let tls = TlsFiles::of(self.tls_cert_file, self.tls_key_file)?;
        if !listen.ip().is_loopback() && tls.is_none() && self.trusted_proxy.is_empty() {
            return Err(Failure::usage(
                "--listen: an address beyond loopback would carry passwords and tokens in clear; give --tls-cert-file and \
                 --tls-key-file, or put a TLS proxy before it and name its network with --trusted-proxy, or listen on \
                 127.0.0.1",
            ));
        }
        let login_rate = rate("--login-rate", "--login-burst", self.login_rate, self.login_burst)?;
        let activation = Given {
            role: self.role,
            listen: &self.activation_listen,
            socket_mode: &self.activation_socket_mode,
            client_ca_file: self.activation_client_ca_file,
            rate: self.activation_rate,
            burst: self.activation_burst,
            limit: self.max_activations,
            tls: tls.is_some(),
        };
        let activation = activation.check()?;
        let admin_listen = match self.admin_listen.as_str() {
            "" => None,
            text => Some(address("--admin-listen", text)?),
        };
        if !(Ttl::MIN..=Ttl::MAX).contains(&self.max_ttl) {
            return Err(Failure::usage(format!("--max-ttl: must be {} to {} seconds", Ttl::MIN, Ttl::MAX)));
        }
        if self.max_credentials < 1 {
            return Err(Failure::usage("--max-credentials: must be at least 1"));
        }
        let base_path =
            self.base_path.parse().map_err(|error: InvalidBasePath| Failure::usage(format!("--base-path: {error}")))?;
        let database = match self.database_url.as_deref() {
            None => Database::Sqlite(self.data_dir.join("orgvault.db")),
            Some(url) => match url.split_once("://") {
                Some(("sqlite", path)) if !path.is_empty() => Database::Sqlite(PathBuf::from(path)),
                Some(("postgres" | "postgresql", _)) => Database::Postgres(url.to_owned()),
                _ => return Err(Failure::usage("--database-url: must begin with sqlite:// or postgres://")),
            },
        };
        Ok(Settings {
            root_key_file: self.root_key_file.unwrap_or_else(|| self.data_dir.join("root.key")),
            data_dir: self.data_dir,
            database,
            listen,
            tls,
            trusted_proxies: self.trusted_proxy,
            login_rate,
            max_ttl: self.max_ttl,
            allow_http_links: self.allow_http_links,
            max_credentials: self.max_credentials,
            base_path,
            admin_listen,
            role: self.role,
            activation,
            allow_egress: self.allow_egress,
            storage_ca_file: self.storage_ca_file,
            verify_on_save: self.verify_on_save,
            log_format: self.log_format,
            log_level: self.log_level,
            files: NamedFiles::default(),
        })
    }
}

/// Requests a second, and at once; none if any number may come.
fn rate(rate_flag: &str, burst_flag: &str, per_second: u32, burst: u32) -> Result<Option<Rate>, Failure> {
    if per_second > MAX_RATE {
        return Err(Failure::usage(format!("{rate_flag}: must be 0 to {MAX_RATE}")));
    }
    match NonZeroU32::new(burst) {
        Some(burst) if burst.get() <= MAX_RATE => {
            Ok(NonZeroU32::new(per_second).map(|per_second| Rate { per_second, burst }))
        }
        _ => Err(Failure::usage(format!("{burst_flag}: must be 1 to {MAX_RATE}"))),
    }
}

fn address(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse()
        .or_else(|_| text.replacen("localhost:", "127.0.0.1:", 1).parse())
        .map_err(|_| Failure::usage(format!("{flag}: must be an IP address and a port, as 127.0.0.1:8080")))
}
