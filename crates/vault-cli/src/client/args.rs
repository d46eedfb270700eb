//! Flags of `orgvault login` and `orgvault credential`.

#![expect(missing_docs, reason = "clap would print a doc comment as the description of the command")]

use crate::client::login::Profile;
use crate::completion;
use crate::text::Moment;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use std::path::PathBuf;

const REPLACE_EXAMPLE: &str = "\
Example: orgvault credential replace 0193… --data-file new.json --stage
The file contains the `data` of the credential's type (see docs/credential-types.md):
  {\"access_key_id\": \"…\", \"secret_access_key\": \"…\", \"bucket\": \"nightly-imports\"}";

const PROMOTE_EXAMPLE: &str = "Example, the way back: orgvault credential promote 0193… --version 1";

const DESTROY_EXAMPLE: &str = "Example: orgvault credential destroy-version 0193… 1";

const SET_EXAMPLE: &str = "Example: orgvault credential set 0193… --label team=data --label env- --expires-at 90d";

/// Variable with the path of additional CA certificates for connections to the server.
pub const SERVER_CA_FILE: &str = "ORGVAULT_SERVER_CA_FILE";

/// Returns the path in an environment variable.
pub(crate) fn variable_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

#[derive(Args, Clone)]
pub struct ProfileArg {
    /// Profile that stores the login, for users of several servers or accounts
    #[arg(long, env = "ORGVAULT_PROFILE", value_name = "NAME", default_value = Profile::DEFAULT, global = true,
        add = ArgValueCandidates::new(completion::profiles))]
    pub(crate) profile: Profile,
}

#[derive(Args)]
pub struct LoginArgs {
    #[command(flatten)]
    pub(crate) profile: ProfileArg,
    /// URL of the HTTP API [default: that of the profile's last login, else http://127.0.0.1:8080/v1].
    /// ORGVAULT_SERVER_CA_FILE names additional CA certificates (PEM)
    #[arg(long, env = "ORGVAULT_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Allow an http URL of another host, which sends password and passcode unencrypted
    #[arg(long)]
    pub(crate) allow_http: bool,
    /// Additional CA certificates (PEM) for connections to the server; stored in the profile
    #[arg(skip = variable_path(SERVER_CA_FILE))]
    pub(crate) server_ca_file: Option<PathBuf>,
    /// E-mail address of your account [default: that of the profile's last login, else prompt]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: Option<String>,
    /// Read the password from FILE (mode 0600; a trailing newline is ignored); - reads standard input [default: prompt]
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Read the passcode from FILE (mode 0600); - reads standard input [default: prompt]
    #[arg(long, value_name = "FILE")]
    pub(crate) passcode_file: Option<PathBuf>,
}

#[derive(Args)]
pub struct EnrolArgs {
    /// The enrolment link. Other users of this host can read arguments while the command runs: leave it out to be asked
    #[arg(value_name = "LINK")]
    pub(crate) link: Option<String>,
    /// Send password and passcode unencrypted to an http URL of another host
    #[arg(long)]
    pub(crate) allow_http: bool,
    /// Additional CA certificates (PEM) for connections to the server
    #[arg(skip = variable_path(SERVER_CA_FILE))]
    pub(crate) server_ca_file: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CredentialArg {
    /// ID of the credential
    #[arg(value_name = "ID", add = ArgValueCandidates::new(completion::credentials))]
    pub(crate) id: String,
}

#[derive(Args)]
pub(crate) struct DataArgs {
    /// Read the data, a JSON object, from FILE (mode 0600); - reads standard input [default: prompt for each field]
    #[arg(long, value_name = "FILE")]
    pub(crate) data_file: Option<PathBuf>,
    /// Check the data at the storage provider first, and save it only if the check passes
    #[arg(long)]
    pub(crate) verify: bool,
}

#[derive(Args)]
pub struct CredentialArgs {
    #[command(flatten)]
    pub(crate) profile: ProfileArg,
    #[command(subcommand)]
    pub(crate) command: CredentialCommand,
}

#[derive(Subcommand)]
pub(crate) enum CredentialCommand {
    /// Save a new credential and print its ID
    Save {
        /// Namespace of the credential
        #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(completion::namespaces))]
        namespace: String,
        /// Type: s3, azure_identity, gcs, direct-link, or without a secret s3-federated, azure-federated, gcs-federated
        #[arg(long = "type", value_name = "TYPE", add = ArgValueCandidates::new(completion::types))]
        kind: String,
        #[command(flatten)]
        data: DataArgs,
        /// Label to set, such as team=data; repeatable
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
        /// Save it although the namespace already has a credential, so that jobs have to choose one
        #[arg(long)]
        allow_several: bool,
        #[command(flatten)]
        metadata: MetadataArgs,
    },
    /// List credentials, newest first; with --expires-before, the soonest first
    List {
        /// Only credentials of this namespace
        #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(completion::namespaces))]
        namespace: Option<String>,
        /// Only credentials of this type
        #[arg(long = "type", value_name = "TYPE", add = ArgValueCandidates::new(completion::types))]
        kind: Option<String>,
        /// Only credentials with this label; repeatable: all must match
        #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
        /// Only credentials in this state: unchecked, healthy, failing, expiring or expired
        #[arg(long, value_name = "STATE", add = ArgValueCandidates::new(completion::health))]
        health: Option<String>,
        /// Only credentials that expire before a date, a date and time, or within a duration (30d)
        #[arg(long, value_name = "TIME")]
        expires_before: Option<Moment>,
    },
    /// Show a credential without its secrets, or its versions, uses, holders or provider trust
    Show {
        #[command(flatten)]
        credential: CredentialArg,
        #[command(flatten)]
        part: PartArgs,
    },
    /// Replace the data of a credential. Its ID and namespace stay the same, so jobs need no change
    ///
    /// The new data must have the same type. Locations that it omits, such as endpoint, bucket and region, keep their
    /// value, and null removes one. The command shows the differences first. Jobs get the new version at their next
    /// activation. The server keeps the previous version for a limited time (--keep-versions and --keep-previous), and
    /// `credential promote` restores it.
    #[command(after_help = REPLACE_EXAMPLE)]
    Replace {
        #[command(flatten)]
        credential: CredentialArg,
        #[command(flatten)]
        data: DataArgs,
        /// Only stage the new version. Jobs get it after `credential promote`
        #[arg(long)]
        stage: bool,
        /// With --verify: stage the new version, and promote it after the check passed, unless another user changed the
        /// credential in the meantime
        #[arg(long, requires = "verify", conflicts_with = "stage")]
        promote: bool,
        /// Expiry time of the data: a date, a date and time (2027-01-31T12:00:00Z), or a duration from now (90d)
        #[arg(long, value_name = "TIME")]
        expires_at: Option<Moment>,
        #[command(flatten)]
        asking: AskingArgs,
    },
    /// Change labels, description, expiry time or allowed forms of a credential
    #[command(after_help = SET_EXAMPLE)]
    Set {
        #[command(flatten)]
        credential: CredentialArg,
        /// NAME=VALUE sets a label, NAME- removes it; repeatable
        #[arg(long = "label", value_name = "LABEL", value_parser = label_change)]
        labels: Vec<(String, Option<String>)>,
        #[command(flatten)]
        metadata: MetadataArgs,
        /// Remove the description
        #[arg(long, conflicts_with = "description")]
        no_description: bool,
        /// Remove the declared expiry time
        #[arg(long, conflicts_with = "expires_at")]
        no_expires_at: bool,
    },
    /// Find the versions that contain a key, for example one that leaked
    ///
    /// Searches all versions that are kept. The server compares the key, and neither stores nor logs it.
    Find {
        /// Key ID, or its last four or more characters, or the fingerprint of a version
        #[arg(value_name = "TEXT", required_unless_present = "file", conflicts_with = "file")]
        text: Option<String>,
        /// Read a text with the whole key, such as a profile or variables, from FILE (mode 0600); - reads standard input
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Check a version at its storage provider. Exits with status 1 if the check fails
    ///
    /// The server process with the activation listener runs the check.
    Check {
        #[command(flatten)]
        credential: CredentialArg,
        /// Number of the version [default: the staged version, else the current one]
        #[arg(id = "number", long = "version", value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
        number: Option<i64>,
        /// Do not wait for the result; `credential show --versions` shows it
        #[arg(long)]
        no_wait: bool,
    },
    /// Promote a version of a credential: jobs get it at their next activation
    ///
    /// Asks for confirmation if the last check of this version failed.
    #[command(after_help = PROMOTE_EXAMPLE)]
    Promote {
        #[command(flatten)]
        credential: CredentialArg,
        /// Number of the version, for example a previous one to roll back [default: the staged version]
        #[arg(id = "number", long = "version", value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
        number: Option<i64>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
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
        #[command(flatten)]
        asking: AskingArgs,
    },
}

/// What to show of a credential.
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct PartArgs {
    /// List the versions, the current one first
    #[arg(long)]
    pub(crate) versions: bool,
    /// List the activations of the last 30 days that issued the credential, newest first
    #[arg(long)]
    pub(crate) uses: bool,
    /// List the integrations that may still use another version than the current one, and until when
    #[arg(long)]
    pub(crate) holders: bool,
    /// Print what the provider of a keyless credential must trust, and how to configure it
    #[arg(long)]
    pub(crate) trust: bool,
}

/// The metadata of a credential.
#[derive(Args)]
pub(crate) struct MetadataArgs {
    /// Purpose of the credential, up to 500 characters
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Expiry time of the data: a date, a date and time (2027-01-31T12:00:00Z), or a duration from now (90d)
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<Moment>,
    /// any: issue it in every form; short: issue only short-lived credentials derived from it
    #[arg(long, value_name = "RULE", add = ArgValueCandidates::new(completion::vend))]
    pub(crate) vend: Option<String>,
}

/// Flags of commands that change or remove the data that jobs get.
#[derive(Args)]
pub(crate) struct AskingArgs {
    /// Only validate the data and print the differences and the integrations that activated the credential in the last
    /// 30 days; change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
}

fn label(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE, such as team=data")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn label_change(text: &str) -> Result<(String, Option<String>), &'static str> {
    if let Some((name, value)) = text.split_once('=') {
        return Ok((name.to_owned(), Some(value.to_owned())));
    }
    let name = text.strip_suffix('-').ok_or("must be NAME=VALUE, or NAME- to remove a label")?;
    Ok((name.to_owned(), None))
}
