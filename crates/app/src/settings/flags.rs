//! The flags that every command takes, the settings file's keys, and the defaults.

use super::activation::Role;
use crate::run_as::Named;
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use vault_core::activation::DEFAULT_LIVE_LIMIT;
use vault_core::time::Ttl;

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

/// Where the vault is unless a flag says otherwise.
const DEFAULT_DATA_DIR: &str = "./orgvault-data";

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
    pub(super) data_dir: Option<PathBuf>,

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

    /// Where integrations activate namespaces: unix:/PATH, or an address, beyond loopback only with TLS [default: off]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_ACTIVATION_LISTEN",
        value_name = "unix:/PATH|HOST:PORT",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_listen: Option<String>,

    /// Who may connect to that socket: its permission bits in octal [default: 0660]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_ACTIVATION_SOCKET_MODE",
        value_name = "MODE",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_socket_mode: Option<String>,

    /// Certificates (PEM) of the authority that integrations must have theirs from, over TLS [default: none needed]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_ACTIVATION_CLIENT_CA_FILE",
        value_name = "FILE",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_client_ca_file: Option<PathBuf>,

    /// Activations and checks a second that one integration may ask for; 0: any number [default: 20]
    #[arg(long, global = true, env = "ORGVAULT_ACTIVATION_RATE", value_name = "COUNT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_rate: Option<u32>,

    /// Activations and checks that it may ask for at once [default: 200]
    #[arg(long, global = true, env = "ORGVAULT_ACTIVATION_BURST", value_name = "COUNT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    activation_burst: Option<u32>,

    /// Most live activations of one integration [default: 1000]
    #[arg(long, global = true, env = "ORGVAULT_MAX_ACTIVATIONS", value_name = "COUNT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_activations: Option<i64>,

    /// Network whose stores may be connected to, beside public addresses; repeatable [default: none]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_ALLOW_EGRESS",
        value_delimiter = ',',
        value_name = "CIDR",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_egress: Option<Vec<IpNet>>,

    /// Certificates (PEM) of authorities that stores may have theirs from, beside the system's [default: none]
    #[arg(long, global = true, env = "ORGVAULT_STORAGE_CA_FILE", value_name = "FILE", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_ca_file: Option<PathBuf>,

    /// Let clients ask for a credential to be tried on its store before it is saved (?verify=true) [default: off]
    #[arg(
        long,
        global = true,
        env = "ORGVAULT_VERIFY_ON_SAVE",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Settings"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    verify_on_save: Option<bool>,

    /// How log lines are written [default: text on a terminal, else json]
    #[arg(long, global = true, env = "ORGVAULT_LOG_FORMAT", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    log_format: Option<LogFormat>,

    /// How much is logged [default: info]
    #[arg(long, global = true, env = "ORGVAULT_LOG_LEVEL", help_heading = "Settings")]
    #[serde(skip_serializing_if = "Option::is_none")]
    log_level: Option<LogLevel>,
}

impl Flags {
    /// The paths that these flags, or their environment variables, name; and `secrets`, which a command's own flags name.
    pub(crate) fn named(&self, mut secrets: Vec<PathBuf>) -> Named {
        let database = self.database_url.as_deref().and_then(|url| url.strip_prefix("sqlite://"));
        secrets.extend([&self.root_key_file, &self.tls_key_file].into_iter().flatten().cloned());
        let texts = [&self.config, &self.tls_cert_file, &self.activation_client_ca_file]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        Named {
            data_dir: self.data_dir.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_DATA_DIR)),
            database: database.map(PathBuf::from),
            secrets,
            texts,
        }
    }
}

/// The settings file with the flags and the environment laid over it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Layers {
    pub(super) data_dir: PathBuf,
    pub(super) database_url: Option<String>,
    pub(super) root_key_file: Option<PathBuf>,
    pub(super) listen: String,
    pub(super) tls_cert_file: Option<PathBuf>,
    pub(super) tls_key_file: Option<PathBuf>,
    pub(super) trusted_proxy: Vec<IpNet>,
    pub(super) login_rate: u32,
    pub(super) login_burst: u32,
    pub(super) max_ttl: u32,
    pub(super) allow_http_links: bool,
    pub(super) max_credentials: i64,
    pub(super) base_path: String,
    pub(super) admin_listen: String,
    pub(super) role: Role,
    pub(super) activation_listen: String,
    pub(super) activation_socket_mode: String,
    pub(super) activation_client_ca_file: Option<PathBuf>,
    pub(super) activation_rate: u32,
    pub(super) activation_burst: u32,
    pub(super) max_activations: i64,
    pub(super) allow_egress: Vec<IpNet>,
    pub(super) storage_ca_file: Option<PathBuf>,
    pub(super) verify_on_save: bool,
    pub(super) log_format: Option<LogFormat>,
    pub(super) log_level: LogLevel,
}

/// The defaults.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Defaults {
    listen: &'static str,
    trusted_proxy: [IpNet; 0],
    login_rate: u32,
    login_burst: u32,
    max_ttl: u32,
    allow_http_links: bool,
    max_credentials: i64,
    base_path: &'static str,
    admin_listen: &'static str,
    role: Role,
    activation_listen: &'static str,
    activation_socket_mode: &'static str,
    activation_rate: u32,
    activation_burst: u32,
    max_activations: i64,
    allow_egress: [IpNet; 0],
    verify_on_save: bool,
    log_level: LogLevel,
}

pub(super) const DEFAULTS: Defaults = Defaults {
    listen: "127.0.0.1:8080",
    trusted_proxy: [],
    login_rate: 100,
    login_burst: 1_000,
    max_ttl: Ttl::MAX,
    allow_http_links: false,
    max_credentials: 1_000_000,
    base_path: "/v1",
    admin_listen: "127.0.0.1:9090",
    role: Role::All,
    activation_listen: "",
    activation_socket_mode: "0660",
    activation_rate: 20,
    activation_burst: 200,
    max_activations: DEFAULT_LIVE_LIMIT,
    allow_egress: [],
    verify_on_save: false,
    log_level: LogLevel::Info,
};
