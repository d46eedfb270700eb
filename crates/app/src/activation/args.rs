//! The flags of `orgvault activate` and `orgvault exec`. What the rules of the interface refuse is wrong usage here.

use super::choice::Naming;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::ffi::OsString;
use std::path::PathBuf;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vault_client::{ActivateRequest, ActivationAddress};
use vault_core::activation::{ActivationTtl, Form, Purpose, VendMode};
use vault_core::check::StorageOperation;
use vault_core::credential::CredentialType;
use vault_core::field::FieldError;
use vault_core::id::CredentialId;
use vault_core::namespace::Namespace;

/// The variables that lead to what activates: no business of the command that is started.
pub(crate) const DOOR_VARIABLES: [&str; 5] = [
    "ORGVAULT_ACTIVATION_URL",
    "ORGVAULT_INTEGRATION_TOKEN_FILE",
    "ORGVAULT_ACTIVATION_CA_FILE",
    "ORGVAULT_ACTIVATION_CLIENT_CERT_FILE",
    "ORGVAULT_ACTIVATION_CLIENT_KEY_FILE",
];

/// Where and as whom to activate.
#[derive(Args)]
#[command(next_help_heading = "Activation")]
pub(crate) struct DoorArgs {
    /// Where activations are: unix:/path/to/socket, or https://host:port/v1
    #[arg(long, env = "ORGVAULT_ACTIVATION_URL", value_name = "ADDRESS")]
    pub(crate) activation_url: ActivationAddress,
    /// File of the integration token, closed to others
    #[arg(long, env = "ORGVAULT_INTEGRATION_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// Certificates that may vouch for the server, PEM, beside those the operating system trusts
    #[arg(long, env = "ORGVAULT_ACTIVATION_CA_FILE", value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Certificate to show the server, then those that vouch for it, PEM
    #[arg(long, env = "ORGVAULT_ACTIVATION_CLIENT_CERT_FILE", value_name = "FILE", requires = "client_key_file")]
    pub(crate) client_cert_file: Option<PathBuf>,
    /// Key of that certificate, PEM without a passphrase, closed to others
    #[arg(long, env = "ORGVAULT_ACTIVATION_CLIENT_KEY_FILE", value_name = "FILE", requires = "client_cert_file")]
    pub(crate) client_key_file: Option<PathBuf>,
}

/// What to activate.
#[derive(Args)]
pub(crate) struct WantedArgs {
    /// The namespace
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub(crate) namespace: Namespace,
    /// What for, to 200 characters: stands in the vault's audit
    #[arg(long, value_name = "TEXT", value_parser = purpose)]
    purpose: Option<Purpose>,
    /// How long the activation lasts, 60 to 43200 seconds [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = ttl)]
    ttl: Option<ActivationTtl>,
    /// Hand out what was saved, something short-lived in its place, or that where it is to be had [default: raw]
    #[arg(long, value_parser = named(VendMode::ALL.map(VendMode::as_str), VendMode::parse))]
    vend: Option<VendMode>,
}

impl WantedArgs {
    /// As the interface is asked.
    pub(crate) fn request(&self) -> ActivateRequest {
        ActivateRequest {
            namespace: self.namespace.to_string(),
            purpose: self.purpose.as_ref().map(|purpose| purpose.as_str().to_owned()),
            ttl: self.ttl.map(|ttl| ttl.as_seconds().into()),
            vend: self.vend.map(|vend| vend.as_str().to_owned()),
        }
    }
}

/// Which of a namespace's credentials.
#[derive(Args)]
pub(crate) struct ChoiceArgs {
    /// Only the credential of this id
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<CredentialId>,
    /// Only credentials of this type
    #[arg(long = "type", value_parser = named(CredentialType::ALL.map(CredentialType::as_str), CredentialType::parse))]
    pub(crate) kind: Option<CredentialType>,
    /// What its variables begin with, and its profile or remote is called; NAME=ID or NAME=TYPE, repeatable, for several
    #[arg(long = "name", value_name = "NAME[=ID|TYPE]")]
    pub(crate) names: Vec<Naming>,
}

#[derive(Args)]
pub(crate) struct ActivateArgs {
    #[command(flatten)]
    pub(crate) door: DoorArgs,
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// What to print; must be given where standard output is a terminal [default: json]
    #[arg(long, value_parser = named(Form::ALL.map(Form::as_str), Form::parse))]
    pub(crate) format: Option<Form>,
    /// Try the credentials on their stores and print what is wrong; activate nothing
    #[arg(long, conflicts_with_all = ["format", "purpose", "ttl", "vend", "id", "kind", "names"])]
    pub(crate) check: bool,
    /// What the job will do; repeatable [default: only whether the store knows the credential is tried]
    #[arg(
        long = "operation",
        requires = "check",
        value_parser = named(StorageOperation::ALL.map(StorageOperation::as_str), StorageOperation::parse)
    )]
    pub(crate) operations: Vec<StorageOperation>,
    /// When the job will be done, RFC 3339, such as 2026-11-21T06:00:00Z
    #[arg(long, requires = "check", value_name = "TIME", value_parser = moment)]
    pub(crate) until: Option<String>,
}

#[derive(Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    pub(crate) door: DoorArgs,
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// One of `names`, which `parse` reads.
fn named<T, const N: usize>(names: [&'static str; N], parse: fn(&str) -> Option<T>) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(move |text| parse(&text).ok_or("is none of the names"))
}

fn detail(flaw: FieldError) -> String {
    flaw.detail.into_owned()
}

fn namespace(text: &str) -> Result<Namespace, String> {
    Namespace::parse(text, "").map_err(detail)
}

fn purpose(text: &str) -> Result<Purpose, String> {
    Purpose::parse(text, "").map_err(detail)
}

fn ttl(text: &str) -> Result<ActivationTtl, String> {
    let seconds = text.parse().map_err(|_| "must be a whole number of seconds".to_owned())?;
    ActivationTtl::parse(Some(seconds)).map_err(detail)
}

fn moment(text: &str) -> Result<String, String> {
    match OffsetDateTime::parse(text, &Rfc3339) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("must be a time as RFC 3339 spells it, such as 2026-11-21T06:00:00Z".to_owned()),
    }
}
