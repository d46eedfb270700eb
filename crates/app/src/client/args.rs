//! The flags of `orgvault login` and `orgvault credential`.

use crate::text::Moment;
use clap::{Args, Subcommand};
use std::path::PathBuf;

const REPLACE_EXAMPLE: &str = "\
Example: orgvault credential replace 0193… --data-file new.json --stage
The file holds the `data` of the credential's type, as docs/API.md lists it:
  {\"access_key_id\": \"…\", \"secret_access_key\": \"…\", \"bucket\": \"nightly-imports\"}";

const PROMOTE_EXAMPLE: &str = "Example, the way back: orgvault credential promote 0193… --version 1";

const DESTROY_EXAMPLE: &str = "Example: orgvault credential destroy-version 0193… 1";

#[derive(Args)]
pub(crate) struct LoginArgs {
    /// URL of the server's HTTP interface
    #[arg(long, env = "ORGVAULT_URL", value_name = "URL", default_value = "http://127.0.0.1:8080/v1")]
    pub(crate) url: String,
    /// Additional CA certificates (PEM) for connections to the server; kept with the login
    #[arg(long = "server-ca-file", env = "ORGVAULT_SERVER_CA_FILE", value_name = "FILE")]
    pub(crate) server_ca_file: Option<PathBuf>,
    /// E-mail address of your account
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: String,
    /// Read the password from FILE (mode 0600; a trailing newline is ignored); - reads standard input [default: ask]
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Read the passcode from FILE, likewise [default: ask]
    #[arg(long, value_name = "FILE")]
    pub(crate) passcode_file: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CredentialArg {
    /// Id of the credential
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Args)]
pub(crate) struct DataArgs {
    /// Read the data, a JSON object, from FILE (mode 0600); - reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) data_file: PathBuf,
    /// Check the data at its storage provider first, and keep it only if that accepts it (needs --verify-on-save on the
    /// server)
    #[arg(long)]
    pub(crate) verify: bool,
    /// Name of this request: repeating it under the same name within 24 hours has no further effect
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum CredentialCommand {
    /// Save a new credential and print its id
    Save {
        /// Namespace
        #[arg(long, value_name = "NAME")]
        namespace: String,
        /// Type: s3, azure_identity, gcs or direct-link
        #[arg(long = "type", value_name = "TYPE")]
        kind: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// List credentials, newest first
    List {
        /// Only those of this namespace
        #[arg(long, value_name = "NAME")]
        namespace: Option<String>,
        /// Only those of this type
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
    },
    /// Show a credential: everything but its secrets
    Show(CredentialArg),
    /// Replace the data of a credential. Its id and namespace stay, so jobs notice nothing
    ///
    /// The data is replaced as a whole by data of the same type. The new version is issued from now on; the old one is
    /// kept for a while (--keep-versions and --keep-previous of the server), and `credential promote` goes back to it.
    #[command(after_help = REPLACE_EXAMPLE)]
    Replace {
        #[command(flatten)]
        credential: CredentialArg,
        #[command(flatten)]
        data: DataArgs,
        /// Only stage the new version: it is issued once it is promoted
        #[arg(long)]
        stage: bool,
        /// With --verify: stage the new version and promote it once its storage provider has accepted it, unless
        /// somebody else changed the credential in between
        #[arg(long, requires = "verify", conflicts_with = "stage")]
        promote: bool,
        /// When the data expires: a date, a date and time (2027-01-31T12:00:00Z), or a duration from now (90d)
        #[arg(long, value_name = "TIME")]
        expires_at: Option<Moment>,
    },
    /// List the versions of a credential, the current one first
    Versions(CredentialArg),
    /// Issue the staged version of a credential from now on, or another one
    #[command(after_help = PROMOTE_EXAMPLE)]
    Promote {
        #[command(flatten)]
        credential: CredentialArg,
        /// Number of the version; a previous one is the way back [default: the staged version]
        #[arg(id = "number", long = "version", value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
        number: Option<i64>,
    },
    /// Destroy a staged or previous version of a credential permanently
    #[command(after_help = DESTROY_EXAMPLE)]
    DestroyVersion {
        #[command(flatten)]
        credential: CredentialArg,
        /// Number of the version
        #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
        number: i64,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Delete a credential permanently, with all of its versions
    Delete {
        #[command(flatten)]
        credential: CredentialArg,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}
