//! Flags of `orgvault activate` and `orgvault exec`. A value that the HTTP API would reject is a usage error.

#![expect(missing_docs, reason = "clap would print a doc comment as the description of the command")]

use super::choice::ChoiceArgs;
use super::identity::{INTEGRATION, TokenSource};
use super::names::named;
use crate::client::args::{ProfileArg, variable_path};
use crate::client::login::{Login, Profile};
use crate::failure::Failure;
use crate::form::Form;
use crate::text::Moment;
use crate::text::seconds;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use vault_client::{ActivateRequest, ActivationAddress};
use vault_core::activation::{ActivationTtl, Purpose, VendMode};
use vault_core::check::StorageOperation;
use vault_core::field::FieldError;
use vault_core::namespace::Namespace;

/// Variables with the paths of the client certificate and its key.
pub(crate) const CLIENT_CERT: &str = "ORGVAULT_ACTIVATION_CLIENT_CERT_FILE";
pub(crate) const CLIENT_KEY: &str = "ORGVAULT_ACTIVATION_CLIENT_KEY_FILE";

/// Environment variables of `ListenerArgs`. The started command does not inherit them, because it does not use the
/// listener.
pub const LISTENER_VARIABLES: [&str; 8] = [
    "ORGVAULT_ACTIVATION_URL",
    "ORGVAULT_INTEGRATION_TOKEN_FILE",
    "ORGVAULT_IDENTITY_TOKEN_FILE",
    "ORGVAULT_IDENTITY_TOKEN",
    INTEGRATION,
    "ORGVAULT_ACTIVATION_CA_FILE",
    CLIENT_CERT,
    CLIENT_KEY,
];

/// The activation listener and the token for it.
#[derive(Args, Clone)]
#[command(next_help_heading = "Activation")]
pub(crate) struct ListenerArgs {
    /// Activation listener: unix:/path/to/socket, or https://host:port/v1 [default: with neither this nor a token, the
    /// listener and token that `orgvault quickstart` stored in your profile]. For TLS, ORGVAULT_ACTIVATION_CA_FILE,
    /// ORGVAULT_ACTIVATION_CLIENT_CERT_FILE and ORGVAULT_ACTIVATION_CLIENT_KEY_FILE name PEM files
    #[arg(long, env = "ORGVAULT_ACTIVATION_URL", value_name = "ADDRESS")]
    pub(crate) activation_url: Option<ActivationAddress>,
    /// Integration token file (mode 0600). Without one, the job authenticates with the identity token in
    /// ORGVAULT_IDENTITY_TOKEN_FILE or ORGVAULT_IDENTITY_TOKEN, or with that of GitHub Actions for the
    /// integration in ORGVAULT_INTEGRATION_ID
    #[arg(long, env = "ORGVAULT_INTEGRATION_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Additional CA certificates (PEM) for connections to the listener
    #[arg(skip = variable_path("ORGVAULT_ACTIVATION_CA_FILE"))]
    pub(crate) ca_file: Option<PathBuf>,
    /// Client certificate chain (PEM, client certificate first)
    #[arg(skip = variable_path(CLIENT_CERT))]
    pub(crate) client_cert_file: Option<PathBuf>,
    /// Key of the client certificate (PEM without a passphrase, mode 0600)
    #[arg(skip = variable_path(CLIENT_KEY))]
    pub(crate) client_key_file: Option<PathBuf>,
    /// Maximum time to retry the first activation while the listener is unreachable, or responds with status 503, or with
    /// status 429 and `Retry-After` [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = seconds(0_u32, 86_400))]
    wait: Option<u32>,
    #[command(flatten)]
    profile: ProfileArg,
    /// User of the stored listener's server.
    #[arg(skip)]
    pub(crate) server_user: Option<u32>,
}

impl ListenerArgs {
    /// Sets listener and token file from the user's profile, unless the command line or the environment contains one of
    /// them. A stored token is sent only to the listener that it was stored with.
    pub(crate) fn complete(&mut self) -> Result<(), Failure> {
        let is_named =
            self.activation_url.is_some() || self.token_file.is_some() || std::env::var_os(INTEGRATION).is_some();
        // A service without a home directory has no profiles.
        if is_named || TokenSource::from_environment().is_some() || !Profile::can_exist() {
            return Ok(());
        }
        if let Some(stored) = Login::find(&self.profile.profile)?.and_then(|login| login.activation) {
            self.activation_url = Some(stored.url.parse()?);
            self.token_file = Some(stored.token_file);
            self.server_user = Some(stored.server_user);
        }
        Ok(())
    }

    /// Returns the listener's address.
    pub(crate) fn address(&self) -> Result<&ActivationAddress, Failure> {
        self.activation_url.as_ref().ok_or_else(|| {
            Failure::usage(
                "--activation-url is missing: set it or ORGVAULT_ACTIVATION_URL to the activation listener, unix:/path/to/socket \
                 or https://host:port/v1",
            )
        })
    }

    /// Returns the maximum time to retry the first activation.
    pub(crate) fn wait(&self) -> Duration {
        self.wait.map_or(Self::WAIT, |seconds| Duration::from_secs(seconds.into()))
    }

    /// Longer than a restart of the service takes.
    const WAIT: Duration = Duration::from_secs(30);
}

/// The activation to request.
#[derive(Args)]
#[command(next_help_heading = None::<&'static str>)]
pub(crate) struct WantedArgs {
    /// Namespace to activate
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub(crate) namespace: Namespace,
    /// Reason to record in the audit log, up to 200 characters
    #[arg(long, value_name = "TEXT", value_parser = purpose)]
    purpose: Option<Purpose>,
    /// Lifetime of the activation, 1 minute to 12 hours [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = ttl)]
    ttl: Option<ActivationTtl>,
    /// raw: the saved credential; short: a short-lived credential, or fail; prefer-short: short-lived if possible, else
    /// the saved one [default: raw]
    #[arg(long, value_parser = named(VendMode::ALL.map(VendMode::as_str), VendMode::parse))]
    pub(crate) vend: Option<VendMode>,
}

impl WantedArgs {
    /// Returns the request for the HTTP API.
    pub(crate) fn request(&self) -> ActivateRequest {
        ActivateRequest {
            namespace: self.namespace.to_string(),
            purpose: self.purpose.as_ref().map(|purpose| purpose.as_str().to_owned()),
            ttl: self.ttl.map(|ttl| ttl.as_seconds().into()),
            vend: self.vend.map(|vend| vend.as_str().to_owned()),
        }
    }
}

/// Accepts the formats. A removed one is refused with what replaces it.
fn format_parser() -> impl TypedValueParser<Value = Form> {
    const REMOVED: [(&str, &str); 4] = [
        ("azure-env", "use env, which contains the same variables"),
        ("fsspec", "use storage_options of the Python package orgvault"),
        ("iceberg", "run the job with orgvault exec, in Python with py-io-impl pyiceberg.io.fsspec.FsspecFileIO"),
        (
            "object-store",
            "use obstore_store or polars_options of the Python package orgvault, or run the job with orgvault exec",
        ),
    ];
    let names = Form::ALL.map(|form| PossibleValue::new(form.as_str())).into_iter();
    let removed = REMOVED.map(|(name, _)| PossibleValue::new(name).hide(true));
    PossibleValuesParser::new(names.chain(removed)).try_map(|text| {
        let replacement = || REMOVED.iter().find(|(name, _)| *name == text).map(|(_, replacement)| *replacement);
        Form::parse(&text).ok_or_else(|| format!("the format was removed: {}", replacement().unwrap_or_default()))
    })
}

#[derive(Args)]
pub struct ActivateArgs {
    #[command(flatten)]
    pub(crate) listener: ListenerArgs,
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// Output format; required if standard output is a terminal [default: json]
    #[arg(long, value_parser = format_parser())]
    pub(crate) format: Option<Form>,
    /// Check the credentials at their storage providers without activating them
    #[arg(long, conflicts_with_all = ["format", "purpose", "ttl", "id", "kind", "bucket", "names"])]
    pub(crate) check: bool,
    /// Operation that the job needs; repeatable [default: check only authentication]
    #[arg(
        long = "operation",
        requires = "check",
        value_parser = named(StorageOperation::ALL.map(StorageOperation::as_str), StorageOperation::parse)
    )]
    pub(crate) operations: Vec<StorageOperation>,
    /// Expected end of the job: a date and time (2026-11-21T06:00:00Z), a date, or a duration from now (8h)
    #[arg(long, requires = "check", value_name = "TIME")]
    pub(crate) until: Option<Moment>,
}

#[derive(Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub(crate) listener: ListenerArgs,
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// Do not renew the activation while the command runs
    #[arg(long)]
    pub(crate) no_refresh: bool,
    /// Pass an s3 credential in variables, for tools without support for AWS_CONTAINER_CREDENTIALS_FULL_URI. The
    /// command keeps the first credential and gets no renewed one
    #[arg(long = "static")]
    pub(crate) is_static: bool,
    /// Command to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn detail(violation: FieldError) -> String {
    violation.detail.into_owned()
}

fn namespace(text: &str) -> Result<Namespace, String> {
    Namespace::parse(text, "").map_err(detail)
}

fn purpose(text: &str) -> Result<Purpose, String> {
    Purpose::parse(text, "").map_err(detail)
}

fn ttl(text: &str) -> Result<ActivationTtl, String> {
    let seconds = seconds(ActivationTtl::MIN, ActivationTtl::MAX)(text)?;
    ActivationTtl::parse(Some(seconds.into())).map_err(detail)
}

#[derive(Subcommand)]
pub enum IdentityCommand {
    /// Print issuer, subject, audience, times and claims of the available identity token, and a trust that matches it.
    /// The token itself is not printed
    Inspect(InspectIdentity),
}

#[derive(Args)]
pub struct InspectIdentity {
    /// File with the token [default: ORGVAULT_IDENTITY_TOKEN_FILE, ORGVAULT_IDENTITY_TOKEN, or that of GitHub Actions
    /// for the integration in ORGVAULT_INTEGRATION_ID]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
