//! Declarations of all settings: flag, help and default.
//!
//! The environment variable and the TOML key follow from the flag's name: `--max-ttl`, `ORGVAULT_MAX_TTL`, `max-ttl`.
//! The table in `docs/operate/settings.md` is generated from these declarations, and a test compares them.

use super::root_key::RootKeySource;
use super::value::{self, ActivationPlace, Collector, PublicUrl, Role, SinkTarget};
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use secrecy::SecretString;
use std::net::SocketAddr;
use std::path::PathBuf;
use vault_cli::text::seconds;
use vault_core::activation::DEFAULT_LIVE_LIMIT;
use vault_core::federation::FederationIssuer;
use vault_core::time::Ttl;
use vault_core::usecase::LEAST_AUDIT_SECONDS;
use vault_embed::Database;
use vault_http::BasePath;
use vault_notify::{Mailbox, SmtpUrl};
use vault_storage::{Destination, ProxyUrl};

/// Maximum rate. Higher values have no practical effect.
const MAX_RATE: u32 = 1_000_000;
const MAX_REQUESTS: usize = 1_000_000;

/// An address to listen on, or `None`. An alias, because clap would treat a literal `Option` as an optional flag.
pub(crate) type MaybeAddress = Option<SocketAddr>;

/// Maximum duration of the settings about credentials, in seconds: ten years.
const TEN_YEARS: i64 = 315_576_000;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// The settings of commands that open the vault.
#[allow(rustdoc::invalid_html_tags, reason = "these comments are the help text, where <data-dir> is a word")]
#[derive(Args)]
#[command(next_help_heading = "Every command that opens the vault")]
pub(super) struct VaultFlags {
    /// Settings file (TOML) [default: <data-dir>/orgvault.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Directory of the root key and the embedded database
    #[arg(long, value_name = "DIR", default_value = "./orgvault-data")]
    pub(super) data_dir: PathBuf,

    /// Database URL: sqlite://PATH or postgres://… [default: sqlite://<data-dir>/orgvault.db]
    #[arg(long, value_name = "URL")]
    pub(super) database_url: Option<Database>,

    /// Root key: file:PATH (32 bytes, mode 0600), credential:NAME (systemd), or command:COMMAND, which prints it [default:
    /// file:<data-dir>/root.key]
    #[arg(long, value_name = "LOCATION")]
    pub(super) root_key: Option<RootKeySource>,

    /// Format of log lines; json writes one object per line [default: text on a terminal and for quickstart, else json]
    #[arg(long, value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,

    /// Minimum level of logged lines; debug logs every request
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(super) log_level: LogLevel,
}

/// The settings of the server. Hidden ones are secrets, which flags would show to other users.
#[derive(Args)]
#[command(next_help_heading = "Server settings")]
pub(crate) struct ServerSettings {
    /// Address of the HTTP API; a non-loopback address needs TLS or --trusted-proxy
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = value::address)]
    pub(crate) listen: SocketAddr,

    /// Unix socket on which the HTTP API is also served, only to the user who runs the server [default: none]
    #[arg(long, value_name = "PATH", value_parser = value::absolute_path)]
    pub(crate) listen_socket: Option<PathBuf>,

    /// Set by `quickstart` for users of this host: the example keys of the AWS documentation are accepted.
    #[arg(skip)]
    pub(crate) example_keys: bool,

    /// Set if the settings contain the address of the API, even if it is the default.
    #[arg(skip)]
    pub(crate) has_listen: bool,

    /// URL (without path) of the server for invitations and printed commands [default: the name in the certificate, else the listener's address]
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<PublicUrl>,

    /// TLS certificate chain (PEM, server certificate first); reloaded on change [default: no TLS]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// Private key of the certificate (PEM without passphrase, mode 0600); reloaded on change [default: no TLS]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key_file: Option<PathBuf>,

    /// Network of a proxy whose X-Forwarded-For is trusted; repeatable [default: none]
    #[arg(long, value_name = "CIDR", value_delimiter = ',', value_parser = value::network)]
    pub(crate) trusted_proxy: Vec<IpNet>,

    /// Additional host name that the listeners accept, besides IP addresses, localhost and the names in the certificate
    /// and the public URL; repeatable [default: none]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = value::host_name)]
    pub(crate) allowed_host: Vec<String>,

    /// Login attempts per second allowed per network (IPv4 /24, IPv6 /48), after a burst of ten times as many; 0 means no
    /// limit
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = value::whole(0, MAX_RATE))]
    pub(crate) login_rate: u32,

    /// Maximum number of concurrent requests of one account; further requests get status 429
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = value::whole(1, MAX_REQUESTS))]
    pub(crate) account_requests: usize,

    /// Maximum number of concurrent requests of one organization; further requests get status 429
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = value::whole(1, MAX_REQUESTS))]
    pub(crate) organization_requests: usize,

    /// Maximum lifetime of an access token: 60 seconds to 24 hours
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = seconds(Ttl::MIN, Ttl::MAX))]
    pub(crate) max_ttl: u32,

    /// Maximum number of credentials per organization
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = value::whole(1, i64::MAX))]
    pub(crate) max_credentials: i64,

    /// Maximum number of versions of a credential, including the current and the staged one
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = value::whole(2_usize, 1_000))]
    pub(crate) keep_versions: usize,

    /// Retention of a previous version after its replacement; 0 destroys it immediately
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = seconds(0_i64, TEN_YEARS))]
    pub(crate) keep_previous: i64,

    /// Interval of checks of saved credentials at their storage, by the process with the activation listener [default:
    /// off]
    #[arg(long, value_name = "DURATION", value_parser = seconds(60_i64, TEN_YEARS))]
    pub(crate) recheck_every: Option<i64>,

    /// Tag sessions that saved keys request at AWS with organization, namespace and integration; the roles must allow sts:TagSession
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) session_tags: bool,

    /// Interval of backups of the embedded database while it is served; needs --backup-to [default: off]
    #[arg(long, value_name = "DURATION", value_parser = seconds(1_i64, TEN_YEARS))]
    pub(crate) backup_every: Option<i64>,

    /// Existing directory for these backups [default: none]
    #[arg(long, value_name = "DIRECTORY", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) backup_to: Option<PathBuf>,

    /// Number of these backups to keep; older ones are deleted
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = value::whole(1_u32, 100_000))]
    pub(crate) backup_keep: u32,

    /// Retention of audit entries; entries that --audit-sink has not accepted are kept longer [default: unlimited]
    #[arg(long, value_name = "DURATION", value_parser = seconds(LEAST_AUDIT_SECONDS, TEN_YEARS))]
    pub(crate) keep_audit: Option<i64>,

    /// Destination of new audit entries, delivered in order and at least once [default: off]
    #[arg(long, value_name = "file:/PATH|syslog|URL")]
    pub(crate) audit_sink: Option<SinkTarget>,

    /// Bearer token for an --audit-sink that is a URL [default: none]
    #[arg(long, value_name = "SECRET", hide = true, value_parser = value::secret)]
    pub(crate) audit_sink_token: Option<SecretString>,

    /// URL of an OpenTelemetry collector for traces, sent as OTLP over HTTP [default: off]
    #[arg(long, value_name = "URL")]
    pub(crate) otlp_endpoint: Option<Collector>,

    /// HTTP headers for --otlp-endpoint, one NAME: VALUE per line [default: none]
    #[arg(long, value_name = "SECRET", hide = true, value_parser = value::secret)]
    pub(crate) otlp_headers: Option<SecretString>,

    /// Path prefix of the HTTP API
    #[arg(long, value_name = "PATH", default_value = "/v1")]
    pub(crate) base_path: BasePath,

    /// Address of /metrics, /livez and /readyz; an empty value disables them
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9464", value_parser = value::address_or_off)]
    pub(crate) admin_listen: MaybeAddress,

    /// Part of the vault that this process serves; api has no code path that decrypts credentials
    #[arg(id = "served_role", long = "role", value_name = "ROLE", default_value = "all")]
    pub(crate) role: Role,

    /// Address for activations by integrations; a non-loopback address needs TLS [default: off]
    #[arg(long, value_name = "unix:/PATH|HOST:PORT", default_value = "", hide_default_value = true)]
    pub(super) activation_listen: ActivationPlace,

    /// CA certificates (PEM) for client certificates; integrations must present one [default: none required]
    #[arg(long, value_name = "FILE")]
    pub(super) activation_client_ca_file: Option<PathBuf>,

    /// Activations and checks per second allowed per integration, after a burst of ten times as many; 0 means no limit
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = value::whole(0, MAX_RATE))]
    pub(super) activation_rate: u32,

    /// Maximum number of active activations per integration
    #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_LIVE_LIMIT, value_parser = value::whole(1, i64::MAX))]
    pub(super) max_activations: i64,

    /// Private network to which users may let the server connect, or with --egress-proxy host name, *.SUFFIX or *; repeatable
    /// [default: public addresses; with --egress-proxy also names of AWS, Azure and Google storage]
    #[arg(long, value_name = "CIDR|HOST", value_delimiter = ',', value_parser = value::permitted)]
    pub(crate) allow_egress: Vec<Destination>,

    /// HTTP proxy for outgoing connections, used with CONNECT: http://HOST:PORT or https://HOST:PORT [default: off]
    #[arg(long, value_name = "URL")]
    pub(crate) egress_proxy: Option<ProxyUrl>,

    /// USER:PASSWORD for --egress-proxy [default: none]
    #[arg(long, value_name = "SECRET", hide = true, value_parser = value::secret)]
    pub(crate) egress_proxy_credentials: Option<SecretString>,

    /// Host name, *.SUFFIX or network (addresses only) to connect to without --egress-proxy; repeatable [default: loopback]
    #[arg(long, value_name = "HOST|CIDR", value_delimiter = ',')]
    pub(crate) egress_direct: Vec<Destination>,

    /// Additional CA certificates (PEM) for all outgoing connections [default: the system's only]
    #[arg(id = "outgoing_ca_file", long = "ca-file", value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Issuer URL of the tokens that storage providers accept for keyless credentials: https, without port, query and trailing
    /// slash, such as https://vault.example.com [default: off]
    #[arg(long, value_name = "URL")]
    pub(crate) federation_issuer: Option<FederationIssuer>,

    /// Mail server for receivers: smtps://USER@HOST (TLS) or smtp://USER@HOST (STARTTLS, optional on loopback); needs --smtp-from
    /// [default: no mail]
    #[arg(long, value_name = "URL")]
    pub(crate) smtp_url: Option<SmtpUrl>,

    /// Password for --smtp-url [default: none]
    #[arg(long, value_name = "SECRET", hide = true, value_parser = value::secret)]
    pub(crate) smtp_password: Option<SecretString>,

    /// Sender address of these mails [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) smtp_from: Option<Mailbox>,
}
