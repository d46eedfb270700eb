//! Settings: flags over environment over a TOML file.

use crate::failure::Failure;
use crate::tls::TlsFiles;
use clap::{Args, ValueEnum};
use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use vault_core::time::Ttl;
use vault_http::{BasePath, InvalidBasePath, Rate};

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogLevel {
    /// Faults of the service
    Error,
    /// And what may become one
    Warn,
    /// And what happens
    Info,
    /// And every request
    Debug,
}

/// Flags that every command takes. What is not given is taken from the file, then from the default.
#[allow(rustdoc::invalid_html_tags, reason = "these comments are the help text, where <data-dir> is a word")]
#[derive(Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Flags {
    /// Settings file [default: orgvault.toml in the data directory, if there is one]
    #[arg(long, global = true, env = "ORGVAULT_CONFIG", value_name = "FILE", help_heading = "Settings")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,

    /// Print one JSON document on standard output, for scripts
    #[arg(long, global = true)]
    #[serde(skip)]
    pub(crate) json: bool,

    /// Directory of the root key and the embedded database [default: ./orgvault-data]
    #[arg(long, global = true, env = "ORGVAULT_DATA_DIR", value_name = "DIR", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<PathBuf>,

    /// Where the rows lie: sqlite://PATH or postgres://… [default: sqlite://<data-dir>/orgvault.db]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    database_url: Option<String>,

    /// File of the root key, 32 bytes, closed to others [default: <data-dir>/root.key]
    #[arg(long, global = true, env = "ORGVAULT_ROOT_KEY_FILE", value_name = "FILE", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    root_key_file: Option<PathBuf>,

    /// Address of the HTTP interface; beyond loopback only with TLS or --trusted-proxy [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "ORGVAULT_LISTEN", value_name = "HOST:PORT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<String>,

    /// Certificate to serve TLS with, then those that vouch for it, PEM; read again when it changes [default: no TLS]
    #[arg(long, global = true, env = "ORGVAULT_TLS_CERT_FILE", value_name = "FILE", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_cert_file: Option<PathBuf>,

    /// Key of the certificate, PEM without a passphrase, closed to others
    #[arg(long, global = true, env = "ORGVAULT_TLS_KEY_FILE", value_name = "FILE", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_key_file: Option<PathBuf>,

    /// Network of a proxy whose forwarded headers are believed; repeatable [default: none]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_TRUSTED_PROXY",
        value_delimiter = ',',
        value_name = "CIDR",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    trusted_proxy: Option<Vec<IpNet>>,

    /// Logins a second that one network (IPv4 /24, IPv6 /56) may ask for; 0: any number [default: 100]
    #[arg(long, global = true, env = "ORGVAULT_LOGIN_RATE", value_name = "COUNT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    login_rate: Option<u32>,

    /// Logins that it may ask for at once [default: 1000]
    #[arg(long, global = true, env = "ORGVAULT_LOGIN_BURST", value_name = "COUNT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    login_burst: Option<u32>,

    /// Longest lifetime of a token that may be wished for, in seconds [default: 86400]
    #[arg(long, global = true, env = "ORGVAULT_MAX_TTL", value_name = "SECONDS", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ttl: Option<u32>,

    /// Accept direct links with http, without TLS [default: off]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_ALLOW_HTTP_LINKS",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_http_links: Option<bool>,

    /// Most credentials of one organization [default: 1000000]
    #[arg(long, global = true, env = "ORGVAULT_MAX_CREDENTIALS", value_name = "COUNT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_credentials: Option<i64>,

    /// Path under which the interface lies [default: /v1]
    #[arg(long, global = true, env = "ORGVAULT_BASE_PATH", value_name = "PATH", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_path: Option<String>,

    /// Address of /metrics, /livez and /readyz; empty: off [default: 127.0.0.1:9090]
    #[arg(long, global = true, env = "ORGVAULT_ADMIN_LISTEN", value_name = "HOST:PORT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    admin_listen: Option<String>,

    /// How log lines are written [default: text on a terminal, else json]
    #[arg(long, global = true, env = "ORGVAULT_LOG_FORMAT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    log_format: Option<LogFormat>,

    /// How much is logged [default: info]
    #[arg(long, global = true, env = "ORGVAULT_LOG_LEVEL", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    log_level: Option<LogLevel>,
}

/// The settings file with the flags and the environment laid over it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Layers {
    data_dir: PathBuf,
    database_url: Option<String>,
    root_key_file: Option<PathBuf>,
    listen: String,
    tls_cert_file: Option<PathBuf>,
    tls_key_file: Option<PathBuf>,
    trusted_proxy: Vec<IpNet>,
    login_rate: u32,
    login_burst: u32,
    max_ttl: u32,
    allow_http_links: bool,
    max_credentials: i64,
    base_path: String,
    admin_listen: String,
    log_format: Option<LogFormat>,
    log_level: LogLevel,
}

/// The defaults.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Defaults {
    listen: &'static str,
    trusted_proxy: [IpNet; 0],
    login_rate: u32,
    login_burst: u32,
    max_ttl: u32,
    allow_http_links: bool,
    max_credentials: i64,
    base_path: &'static str,
    admin_listen: &'static str,
    log_level: LogLevel,
}

const DEFAULTS: Defaults = Defaults {
    listen: "127.0.0.1:8080",
    trusted_proxy: [],
    login_rate: 100,
    login_burst: 1_000,
    max_ttl: Ttl::MAX,
    allow_http_links: false,
    max_credentials: 1_000_000,
    base_path: "/v1",
    admin_listen: "127.0.0.1:9090",
    log_level: LogLevel::Info,
};

/// The highest rate and burst that mean anything.
const MAX_RATE: u32 = 1_000_000;

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
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) log_level: LogLevel,
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

    /// Reads the settings file, if any, and lays the flags over it.
    pub(crate) fn read(flags: &Flags) -> Result<Self, Failure> {
        let data_dir = flags.data_dir.clone().unwrap_or_else(|| PathBuf::from("./orgvault-data"));
        let implied = data_dir.join("orgvault.toml");
        let file = match &flags.config {
            Some(file) if !file.is_file() => {
                return Err(Failure::usage(format!("--config: there is no file {}", file.display())));
            }
            Some(file) => Some(file.as_path()),
            None if implied.is_file() => Some(implied.as_path()),
            None => None,
        };
        let mut figment =
            Figment::from(Serialized::defaults(DEFAULTS)).merge(Serialized::default("data-dir", &data_dir));
        if let Some(file) = file {
            figment = figment.merge(Toml::file_exact(file));
        }
        let layers: Layers =
            figment.merge(Serialized::defaults(flags)).extract().map_err(|error| bad_file(file, &error))?;
        layers.check()
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
        let login_rate = rate(self.login_rate, self.login_burst)?;
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
            log_format: self.log_format,
            log_level: self.log_level,
        })
    }
}

/// Requests a second, and at once; none if any number may come.
fn rate(per_second: u32, burst: u32) -> Result<Option<Rate>, Failure> {
    if per_second > MAX_RATE {
        return Err(Failure::usage(format!("--login-rate: must be 0 to {MAX_RATE}")));
    }
    match NonZeroU32::new(burst) {
        Some(burst) if burst.get() <= MAX_RATE => {
            Ok(NonZeroU32::new(per_second).map(|per_second| Rate { per_second, burst }))
        }
        _ => Err(Failure::usage(format!("--login-burst: must be 1 to {MAX_RATE}"))),
    }
}

fn address(flag: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse()
        .or_else(|_| text.replacen("localhost:", "127.0.0.1:", 1).parse())
        .map_err(|_| Failure::usage(format!("{flag}: must be an IP address and a port, as 127.0.0.1:8080")))
}
