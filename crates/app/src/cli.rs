//! The command line: commands, flags and help texts.

use crate::command::target::server_only;
use crate::command::trust;
use crate::settings::{self, RootKeySource};
use crate::usage;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::{ArgValueCandidates, Shell};
use std::path::PathBuf;
use vault_cli::activation::args::{ActivateArgs, ExecArgs, IdentityCommand, LISTENER_VARIABLES};
use vault_cli::client::args::{CredentialArgs, EnrolArgs, LoginArgs, ProfileArg, SERVER_CA_FILE};
use vault_cli::client::login::Profile;
use vault_cli::command::import::ImportArgs;
use vault_cli::command::manifest::{ApplyArgs, ExportArgs};
use vault_cli::completion;
use vault_cli::failure::Failure;
use vault_cli::form::JOB_VARIABLES;
use vault_cli::text::{Moment, seconds};
use vault_core::audit::AuditAction;
use vault_core::id::ReceiverId;
use vault_core::receiver::EventKinds;
use vault_embed::Database;

/// A self-hosted vault for the storage credentials of batch jobs.
#[derive(Parser)]
#[command(
    name = "orgvault",
    version,
    about = "A self-hosted vault for the storage credentials of batch jobs",
    max_term_width = 110,
    after_help = AFTER_HELP
)]
pub(crate) struct Cli {
    /// Print one JSON document on standard output, for scripts
    // After the flags of the command, and before --help.
    #[arg(long, global = true, display_order = 998)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
`orgvault help settings` lists the settings: --data-dir, --database-url and all others.
Exit status: 0 done, 1 refused or failed, 2 wrong usage.";

/// Hint after the help of each command that opens the vault.
const SETTINGS_HINT: &str =
    "This command also supports --data-dir, --database-url and others: see `orgvault help settings`.";

const ABOUT_SETTINGS: &str = "\
Each setting is a flag (--max-ttl 12h), an environment variable (ORGVAULT_MAX_TTL=12h) and a key of the settings file \
(max-ttl = \"12h\"). Precedence: flag, environment, file, default. The value can also be in a private file that ORGVAULT_MAX_TTL_FILE names. Secrets, such \
as --smtp-password, are not accepted as flags. Relative paths in the file are relative to the file. \
Durations have units: 90s, 15m, 12h, 30d; a number without a unit is in seconds.";

const CREATE_EXAMPLE: &str =
    "Example: orgvault integration create --org Acme --name nightly --namespace 'imports/*' --expires 90d";

const ISSUER_EXAMPLE: &str = "Example: orgvault issuer add github --issuer https://token.actions.githubusercontent.com \
                              --require-claim /repository_owner_id";

const EXEC_EXAMPLE: &str = "Example: orgvault exec --namespace imports/nightly -- rclone copy orgvault:bucket/in ./in";

/// Returns the command line with the settings that each command accepts.
pub(crate) fn command() -> clap::Command {
    let server = settings::server_flags;
    let only = |ids: &'static [&str]| server().into_iter().filter(|flag| ids.contains(&flag.get_id().as_str()));
    let hidden = |flag: Arg| flag.global(true).hide(true);
    let quickstart = server().into_iter().filter(|flag| flag.get_long() != Some("role"));
    Cli::command()
        .args(settings::vault_flags().into_iter().map(hidden))
        .mut_subcommand("quickstart", |command| command.args(quickstart))
        .mut_subcommand("serve", |command| command.args(server()))
        .mut_subcommand("account", |account| {
            let printing = |command: clap::Command| command.args(only(&["public_url", "base_path"]));
            account.mut_subcommand("invite", printing).mut_subcommand("re-enrol", printing)
        })
        .mut_subcommand("settings", |command| {
            command.args(settings::vault_flags().into_iter().chain(server()).map(|setting| setting.hide(false)))
        })
        .mut_subcommands(hint)
        .help_template(help_template())
}

/// Commands by purpose, for the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Use the vault", &["login", "logout", "profiles", "enrol", "credential", "import"]),
    ("Run jobs", &["exec", "activate", "identity"]),
    (
        "Manage an organization",
        &["org", "account", "integration", "namespace", "receiver", "audit", "export", "apply", "issuer", "federation"],
    ),
    (
        "Operate a server",
        &[
            "quickstart",
            "init",
            "serve",
            "doctor",
            "backup",
            "restore",
            "key",
            "migrate",
            "migrate-to",
            "completions",
            "help",
        ],
    ),
];

/// Returns the template of the program's help, with the commands in groups.
fn help_template() -> String {
    let mut all = Cli::command();
    all.build();
    let mut text = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        text += &format!("\n{heading}:\n");
        for name in names {
            let about = all.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_default();
            // The first sentence; the command's own help has the others.
            let about = about.split_inclusive(". ").next().unwrap_or_default().trim_end_matches([' ', '.']);
            text += &format!("  {name:<12} {about}\n");
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// Commands that open no vault.
const WITHOUT_VAULT: [&str; 13] = [
    "login",
    "enrol",
    "logout",
    "profiles",
    "credential",
    "import",
    "export",
    "apply",
    "activate",
    "exec",
    "identity",
    "completions",
    "settings",
];

/// Adds a hint about the settings to the help of commands that open the vault.
fn hint(command: clap::Command) -> clap::Command {
    if WITHOUT_VAULT.contains(&command.get_name()) {
        return command;
    }
    if command.has_subcommands() {
        return command.mut_subcommands(hint);
    }
    let own = command.get_after_help().map(|own| format!("{own}\n\n")).unwrap_or_default();
    command.after_help(own + SETTINGS_HINT)
}

/// Returns the environment variables of flags that are not settings.
pub(crate) fn other_variables() -> Vec<String> {
    let command = Cli::command();
    let variables = command.get_subcommands().flat_map(clap::Command::get_arguments).filter_map(Arg::get_env);
    let of_jobs = LISTENER_VARIABLES.into_iter().chain(JOB_VARIABLES);
    let others = of_jobs.chain([SERVER_CA_FILE, settings::ADMIN]).map(str::to_owned);
    variables.map(|name| name.to_string_lossy().into_owned()).chain(others).collect()
}

/// Prints the help of the settings and exits.
pub(crate) fn print_settings() -> ! {
    match command().try_get_matches_from(["orgvault", "help", "settings"]) {
        Ok(_) => std::process::exit(0),
        Err(help) => help.exit(),
    }
}

/// Parses the command line of this process. Prints help on request and exits.
pub(crate) fn parse() -> Result<(Cli, ArgMatches), Failure> {
    let parsed = command().try_get_matches().and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    match parsed {
        Ok((cli, matches)) => usage::check_patterns(settings::innermost(&matches)).map(|()| (cli, matches)),
        Err(error) => Err(usage::failure(&error, &WITHOUT_VAULT).unwrap_or_else(|| error.exit())),
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a vault with an organization and an admin account, print how to log in, and serve it. Later runs serve
    /// the same vault. With --root-key, the root key is stored apart from the database
    Quickstart(QuickstartArgs),
    /// Create a vault without organizations: data directory, root key and database schema. Fails if a vault exists.
    /// With --root-key, the root key is stored apart from the database
    Init,
    /// Serve the HTTP API and, with --activation-listen, activations
    Serve(ServeArgs),
    /// Apply pending database migrations. With --spread, distribute the tables over the nodes of a Citus cluster
    Migrate(MigrateArgs),
    /// Move the vault from the embedded database to an empty PostgreSQL database
    ///
    /// Stop the server first. The command locks the embedded database, so that no acknowledged change can be lost. It
    /// copies all rows in one transaction, reads them back and compares them. If it is interrupted, the target is
    /// either empty or complete: run the command again. Afterwards, commands reject the embedded database, which stays
    /// unchanged, and the next steps are printed. With --dry-run, the server may keep running. Rows that it writes
    /// after the start are not copied, and the target stays empty.
    MigrateTo(MigrateToArgs),
    /// Check the vault's environment: root key, file modes, clock, backups and key usage. With --deep, also check all
    /// stored data
    ///
    /// Changes nothing, and may run while the server runs. Exits with status 1 if a check fails. Warnings do not count.
    Doctor(DoctorArgs),
    /// Back up the embedded database to a file while servers use it
    ///
    /// The file contains the encrypted database at one moment after the start, and its wrapped key, but never the root
    /// key. The command verifies the file with the root key before it renames it to the target, and never overwrites an
    /// existing file. In a directory, the file is named orgvault-TIME.backup.
    Backup(BackupArgs),
    /// Restore the embedded database from a backup
    ///
    /// Stop the server first. The restored database gets a new key. If the data directory contains a vault, pass
    /// --replace: its files are moved to a directory next to it and not deleted. Older access tokens, sessions,
    /// recovery codes and passcodes are then invalid, and activations have ended. Organizations, accounts,
    /// integrations, frozen namespaces and invitations keep the state that they have in the replaced database. The
    /// command lists changes that are lost.
    Restore(RestoreArgs),
    /// Manage organizations, the tenants of the vault
    #[command(subcommand)]
    Org(OrgCommand),
    /// Manage accounts: users who log in to an organization with a role
    Account(Managed<AccountCommand>),
    /// Manage integrations: programs that get the credentials of their namespaces with a token
    Integration(Managed<IntegrationCommand>),
    /// Inspect the identity token of this job
    #[command(subcommand)]
    Identity(IdentityCommand),
    /// Manage issuers of identity tokens, whose workloads integrations can trust instead of a token
    #[command(subcommand)]
    Issuer(IssuerCommand),
    /// Manage the signing keys of keyless storage access
    #[command(subcommand)]
    Federation(FederationCommand),
    /// Manage receivers, which get notifications by webhook or e-mail. Without --profile, those of the instance
    Receiver(Managed<ReceiverCommand>),
    /// Freeze a namespace, so that its credentials are not issued, or thaw it
    Namespace(Managed<NamespaceCommand>),
    /// Read, export and verify the audit log
    Audit(Managed<AuditCommand>),
    /// Show the vault's keys, or rotate them while the server runs
    #[command(subcommand)]
    Key(KeyCommand),
    /// Log in to a server's HTTP API, for `orgvault credential` and other commands with --profile
    ///
    /// Prompts for password and passcode. The access token is stored in your state directory ($XDG_STATE_HOME/orgvault,
    /// else ~/.local/state/orgvault) until it expires or you log out. With --profile, you can be logged in to several
    /// servers and accounts.
    Login(LoginArgs),
    /// Enrol an account with the link of an invitation: set a password and an authenticator
    ///
    /// Asks for the link and a new password, shows the authenticator's QR code and the recovery codes once, and asks for the
    /// passcode that the authenticator then shows.
    Enrol(EnrolArgs),
    /// Log out: revoke the access token and remove it from this host
    Logout(ProfileArg),
    /// List your logins on this host: profile, account, server and expiry time
    Profiles,
    /// Save, list, replace and delete credentials with the login of an account
    Credential(CredentialArgs),
    /// Import storage credentials from files of rclone, the AWS tools, Airflow, OpenBao or Vault
    ///
    /// Shows which credentials would be saved, and errors with line, field and reason, and asks for confirmation. Each
    /// credential gets the label name, with which a second run finds existing credentials. Exits with status 1 if an
    /// entry was not saved.
    Import(ImportArgs),
    /// Print an organization as a document: users, integrations, receivers, and credentials with a label name
    ///
    /// The document does not contain secrets, which the vault never returns. It refers to files for them. `orgvault
    /// apply` creates the same objects in another organization.
    Export(ExportArgs),
    /// Apply configuration documents to the organization. With --dry-run, only show the changes
    ///
    /// Documents describe users, integrations, receivers and credentials (docs/operate/documents.md). Other objects are
    /// not changed. The command validates all documents first, reports errors with file, line and field, shows the
    /// changes, and makes them one after the other, after confirmation. If it is interrupted, run it again. The data of a
    /// credential is sent when the credential is new, and when its data_version increases.
    Apply(ApplyArgs),
    /// Activate a namespace and print its credentials in a tool's format
    ///
    /// Connects to the activation listener with an integration token, so this host needs no vault. The audit log
    /// records every activation. With --check, nothing is activated: the server checks the credentials at their storage
    /// providers, and the exit status is 1 if one of them cannot be used.
    Activate(ActivateArgs),
    /// Run a command with a namespace's credentials in its environment
    ///
    /// Sets the variables that the tools of the credential's type read, and writes private files if a tool needs them.
    /// Forwards signals to the command. Afterwards, removes the files and ends the activation. Exit status: that of the
    /// command, 128 plus the signal number if a signal stopped it, 127 if it was not found, 126 if it cannot be
    /// started, and 125 if orgvault itself failed, for example because the activation was rejected.
    #[command(after_help = EXEC_EXAMPLE)]
    Exec(ExecArgs),
    /// Print the completion script of a shell
    ///
    /// The script runs this program to complete commands and flags, and your profiles and credentials if you are logged
    /// in.
    Completions {
        /// Shell to complete
        shell: Shell,
    },
    /// Settings: flags, environment variables and keys of the settings file
    #[command(hide = true, about = ABOUT_SETTINGS, override_usage = "orgvault <COMMAND> [SETTINGS]")]
    Settings,
}

/// A command of admins, which runs on the database or, with a login, at a server.
#[derive(Args)]
pub(crate) struct Managed<C: Subcommand> {
    /// Run the command at the server of this login, for your organization, instead of on the database
    #[arg(long, value_name = "NAME", global = true, add = ArgValueCandidates::new(completion::profiles))]
    pub(crate) profile: Option<Profile>,
    #[command(subcommand)]
    pub(crate) command: C,
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Also check that all stored data can be decrypted, that no row was modified, moved or rolled back, and that the
    /// audit log is unchanged
    #[arg(long)]
    pub(crate) deep: bool,
}

#[derive(Args)]
pub(crate) struct BackupArgs {
    /// New file, or an existing directory for it
    #[arg(value_name = "FILE|DIRECTORY")]
    pub(crate) target: PathBuf,
}

#[derive(Args)]
pub(crate) struct RestoreArgs {
    /// Backup file, or a directory whose newest backup is restored
    #[arg(required_unless_present = "after_external", conflicts_with = "after_external")]
    pub(crate) backup: Option<PathBuf>,
    /// Replace the vault in the data directory, also if it is newer than the backup. Its files are moved to another
    /// directory
    #[arg(long, conflicts_with = "after_external")]
    pub(crate) replace: bool,
    /// Do not restore files. After another tool (pg_restore, a disk snapshot) has restored the database, revoke older
    /// tokens, sessions, recovery codes, passcodes, activations and enrolment codes
    #[arg(long)]
    pub(crate) after_external: bool,
}

impl Command {
    /// Returns whether the command listens on the addresses of the settings.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Quickstart(_))
    }

    /// Returns whether the command opens no vault, so that settings do not apply to it.
    pub(crate) fn is_without_vault(&self) -> bool {
        matches!(
            self,
            Self::Login(_)
                | Self::Enrol(_)
                | Self::Logout(_)
                | Self::Profiles
                | Self::Credential(_)
                | Self::Import(_)
                | Self::Export(_)
                | Self::Apply(_)
                | Self::Activate(_)
                | Self::Exec(_)
                | Self::Identity(_)
                | Self::Completions { .. }
        )
    }

    /// Returns the profile of the login to use, if the command runs at a server.
    pub(crate) fn profile(&self) -> Option<&Profile> {
        self.profile_flag()?.as_ref()
    }

    /// Returns whether the command accepts a profile.
    pub(crate) fn can_run_at_server(&self) -> bool {
        self.profile_flag().is_some() && self.require_api().is_ok()
    }

    /// Returns the flag `--profile` of a command of admins.
    fn profile_flag(&self) -> Option<&Option<Profile>> {
        match self {
            Self::Account(Managed { profile, .. }) => Some(profile),
            Self::Integration(Managed { profile, .. }) => Some(profile),
            Self::Receiver(Managed { profile, .. }) => Some(profile),
            Self::Namespace(Managed { profile, .. }) => Some(profile),
            Self::Audit(Managed { profile, .. }) => Some(profile),
            _ => None,
        }
    }

    /// Refuses a command that the HTTP API does not offer: it discloses secrets of an account, or reads more than one
    /// organization.
    pub(crate) fn require_api(&self) -> Result<(), Failure> {
        let (command, instead) = match self {
            Self::Account(Managed { command: AccountCommand::Create { .. }, .. }) => {
                ("account create", ". An admin can run `orgvault account invite` instead")
            }
            Self::Audit(Managed { command: AuditCommand::Verify, .. }) => ("audit verify", ""),
            _ => return Ok(()),
        };
        Err(Failure::usage(server_only(command, instead)))
    }
}

#[allow(rustdoc::broken_intra_doc_links, reason = "these comments are the help text")]
#[derive(Args)]
pub(crate) struct QuickstartArgs {
    /// Name of the organization to create [default: Example]
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// E-mail address of the admin account to create [default: admin@example.com]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: Option<String>,
    /// Also print the authenticator's QR code
    #[arg(long)]
    pub(crate) qr: bool,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Apply pending database migrations before serving
    #[arg(long)]
    pub(crate) migrate: bool,
    /// Accept the current database if this data directory has no anchor of it (orgvault.anchor), for a new replica on
    /// PostgreSQL
    #[arg(long)]
    pub(crate) adopt_anchor: bool,
    /// Print each setting with its value and source, without secrets, and exit
    #[arg(long)]
    pub(crate) print_settings: bool,
}

#[derive(Args)]
pub(crate) struct MigrateArgs {
    /// Distribute the tables over the nodes of the database, which needs the extension Citus. Stop the servers first.
    /// The command runs in one transaction: if it is interrupted, nothing is changed
    #[arg(long)]
    pub(crate) spread: bool,
}

#[derive(Args)]
pub(crate) struct MigrateToArgs {
    /// Copy and compare the data, then roll back. Shows whether the move will succeed and how long it takes. The server
    /// may run
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// URL of the PostgreSQL database, for a role that may create tables. Pass a URL with a password in the environment
    /// variable, because other users can read arguments
    #[arg(value_name = "URL", env = "ORGVAULT_MIGRATE_TO", hide_env_values = true)]
    pub(crate) url: Database,
}

#[derive(Subcommand)]
pub(crate) enum OrgCommand {
    /// Create an organization with its own keys
    Create(Named),
    /// List organizations
    List,
    /// Enable or disable an organization
    ///
    /// Accounts of a disabled organization cannot log in, and its sessions and integration tokens are rejected.
    Set {
        #[command(flatten)]
        org: Named,
        #[command(flatten)]
        set: StateFlag,
    },
    /// Delete an organization permanently, with its accounts, credentials and keys
    Delete {
        #[command(flatten)]
        org: Named,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct Named {
    /// Name of the organization
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Args)]
pub(crate) struct StateFlag {
    /// New state
    #[arg(long)]
    pub(crate) state: StateArg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    // Lists show the state as `active`.
    #[value(alias = "active")]
    Enabled,
    Disabled,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RoleArg {
    /// Manage accounts, integrations and credentials
    Admin,
    /// Save, list and delete credentials
    Editor,
    /// List credentials
    Viewer,
}

#[derive(Args)]
pub(crate) struct ByEmail {
    /// E-mail address of the account
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: String,
}

/// An account or an invitation.
#[derive(Args)]
pub(crate) struct AccountOrInvitation {
    #[command(flatten)]
    pub(crate) address: ByEmail,
    /// Name of the organization, for an address that several organizations have invited
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
}

#[derive(Args)]
pub(crate) struct PasswordFile {
    /// Read the password from FILE (a trailing newline is ignored); - reads standard input [default: generate one]
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account and print its login details once
    Create {
        /// Name of the organization
        #[arg(long, value_name = "NAME")]
        org: String,
        #[command(flatten)]
        account: ByEmail,
        /// Role of the account
        #[arg(long)]
        role: RoleArg,
        #[command(flatten)]
        password: PasswordFile,
    },
    /// Invite a user: print an enrolment code once, valid for 72 hours
    ///
    /// The user opens the printed link, or runs `orgvault enrol`, and chooses a password.
    Invite {
        /// Name of the organization, required without --profile
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
        #[command(flatten)]
        account: ByEmail,
        /// Role of the account
        #[arg(long)]
        role: RoleArg,
    },
    /// List accounts and open invitations
    List {
        /// Only accounts and invitations of this organization
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
    },
    /// Show an account or invitation: state, lockout, failed logins, last login
    Show(AccountOrInvitation),
    /// Enable an account, or disable it: end its sessions and reject its logins
    Set {
        #[command(flatten)]
        account: ByEmail,
        #[command(flatten)]
        set: StateFlag,
    },
    /// Delete an account, or withdraw an invitation
    Delete {
        #[command(flatten)]
        account: AccountOrInvitation,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Change the role of an account, which ends its sessions, or of an invitation
    SetRole {
        #[command(flatten)]
        account: AccountOrInvitation,
        /// New role
        #[arg(long)]
        role: RoleArg,
    },
    /// Remove the lockout after failed logins
    Unlock(ByEmail),
    /// Require the owner of an account to enrol again: print an enrolment code once, valid for 72 hours
    ///
    /// Use it for an owner who lost the authenticator and the recovery codes. Immediately ends the account's sessions
    /// and destroys its password, passcode and recovery codes. Role, e-mail address and history stay unchanged. A
    /// second run prints another code and invalidates the previous one.
    ReEnrol(ByEmail),
}

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify that no audit entry was removed, modified, reordered or added outside OrgVault
    ///
    /// Prints the findings. Exits with status 0 if all entries are unchanged, else 1. Checkpoints may not yet contain
    /// entries of the last second, or entries of commands without a running server. Among these, only modified entries
    /// are detected.
    Verify,
    /// List entries, newest first, or write them as JSON Lines, oldest first
    List {
        #[command(flatten)]
        filter: Box<AuditFilterArgs>,
        /// Maximum number of entries [default: 50; all with --json-lines]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Write entries as JSON Lines, oldest first
        #[arg(long)]
        json_lines: bool,
        /// Write to FILE (mode 0600), which must not exist; - is standard output
        #[arg(long, value_name = "FILE", default_value = "-", requires = "json_lines")]
        output: PathBuf,
    },
}

/// Returns a parser for the names of actions.
fn actions() -> PossibleValuesParser {
    PossibleValuesParser::new(AuditAction::ALL.iter().map(|action| action.as_str()))
}

/// Filter of audit entries.
#[derive(Args)]
pub(crate) struct AuditFilterArgs {
    /// Only entries of this organization
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// Only entries since a date, a date and time (2027-01-31T12:00:00Z), or a duration before now (24h)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Moment>,
    /// Only entries before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,
    /// Only entries of this action, for example credential.saved; repeatable
    #[arg(long, value_name = "ACTION", value_parser = actions(), hide_possible_values = true)]
    pub(crate) action: Vec<String>,
    /// Only denied requests, and credentials that could not be issued
    #[arg(long)]
    pub(crate) denied: bool,
    /// Omit entries about reads of credentials' information and of the audit log
    #[arg(long)]
    pub(crate) no_reads: bool,
    /// Only entries about this object: KIND:ID, an ID, an account's e-mail address, or an integration's name or short ID
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
    /// Only entries of this actor: account, integration, operator, system, an ID, an account's e-mail address, or an integration's name or short ID
    #[arg(long, value_name = "ACTOR")]
    pub(crate) actor: Option<String>,
    /// Only entries about this namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum FederationCommand {
    /// Show issuer, signing keys and the next step, after a check of the publication; exit status 1 if providers cannot read the keys
    Status,
    /// Add, promote or remove signing keys
    #[command(subcommand)]
    Key(FederationKeyCommand),
    /// Write the discovery document and the key set, for a bucket or CDN at the issuer
    Documents {
        /// Directory for the files .well-known/openid-configuration and federation/jwks.json
        #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
        directory: PathBuf,
    },
}

#[derive(Subcommand)]
pub(crate) enum FederationKeyCommand {
    /// Add a signing key, which becomes current when the issuer publishes it
    ///
    /// Create the file with `openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out signing.pem`. The vault encrypts
    /// the key, and does not need the file afterwards.
    Add {
        /// Unencrypted RSA private key (PKCS #8 in PEM, 2,048 to 4,096 bits, mode 0600). `-` reads standard input
        #[arg(long, value_name = "PEM")]
        file: PathBuf,
    },
    /// Sign with the next signing key. The replaced key stays published until it is removed or another key is added
    ///
    /// The server does this 24 hours after a publication check found the key. Refused if providers may not have read it.
    Promote {
        /// Promote the key even if providers may not have read it; exchanges fail until they have
        #[arg(long)]
        now: bool,
    },
    /// Remove a signing key that is not current
    Remove {
        /// Key ID of the signing key
        kid: String,
    },
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Show the keys: IDs, age, usage of organization keys, and rows that still need retiring keys
    Status,
    /// Rotate keys while the server runs
    ///
    /// With --organization or --all, organizations get new keys. The command rewraps the data keys of their credentials
    /// and re-encrypts everything else about them. It does not decrypt the data of credentials. It destroys the old key once
    /// nothing is encrypted with it. If it is interrupted, run it again: it continues. Several may run concurrently.
    ///
    /// With --instance, a new instance key wraps the keys of organizations. Password hashes, TOTP secrets, invitations,
    /// integrations, receivers and issuers are re-encrypted, and the MACs of accounts are recomputed. Access tokens, the
    /// audit log and receivers also get new keys. Logins, tokens and sessions stay valid. Keys that an earlier run replaced
    /// and that nothing needs any more are destroyed first; `key status` shows what still needs the others.
    ///
    /// With --root, only the new root key then decrypts the vault. Running servers continue, and
    /// need the new root key at their next start. Existing backups need the old one.
    Rotate(RotateArgs),
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["organization", "all", "instance", "root"]))]
pub(crate) struct RotateArgs {
    /// Rotate the key of this organization
    #[arg(long, value_name = "NAME")]
    pub(crate) organization: Option<String>,
    /// Rotate the keys of all organizations
    #[arg(long)]
    pub(crate) all: bool,
    /// Rotate the instance key, and the keys of tokens, the audit log and receivers
    #[arg(long)]
    pub(crate) instance: bool,
    /// Replace the root key in --root-key by the one in --new-root-key
    #[arg(long, requires = "new_root_key")]
    pub(crate) root: bool,
    /// New root key, in the format of --root-key; a missing file is created
    #[arg(long, value_name = "LOCATION", requires = "root", conflicts_with_all = ["organization", "all", "instance"])]
    pub(crate) new_root_key: Option<RootKeySource>,
}

#[derive(Args)]
pub(crate) struct NamedIntegration {
    /// Name of the organization, required without --profile
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// Name of the integration
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Args)]
pub(crate) struct TokenOutput {
    /// Write the token to FILE (mode 0600), which must not exist. `-` prints only the token
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum IntegrationCommand {
    /// Create an integration and print its token once
    #[command(after_help = CREATE_EXAMPLE)]
    Create {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Namespace that the integration may activate, or 'PREFIX/*' for all namespaces below a prefix; repeatable.
        /// Quote patterns, or the shell replaces them by file names
        #[arg(long, value_name = "PATTERN", required = true, num_args = 1..)]
        namespace: Vec<String>,
        /// Expiry time of the tokens: a date, a date and time (2027-01-31T12:00:00Z), or a duration from now (90d)
        /// [default: never]
        #[arg(long, value_name = "TIME")]
        expires: Option<Moment>,
        /// Workload that may use the integration with its identity token: JSON,
        /// github:OWNER@OWNER_ID/REPO@REPO_ID@BRANCH,environment=NAME (no IDs for repositories from before July 2026),
        /// gitlab:GROUP/PROJECT@BRANCH or kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT. Branch and environment are
        /// optional; repeatable
        #[arg(long, value_name = "TRUST", value_parser = trust::parse)]
        trust: Vec<serde_json::Value>,
        /// Create no token. Only trusted workloads can use the integration
        #[arg(long, requires = "trust")]
        no_token: bool,
        #[command(flatten)]
        token: TokenOutput,
    },
    /// Show an integration with the audience of its identity tokens and its trusts
    Show(NamedIntegration),
    /// Allow a workload to use an integration with its identity token
    Trust {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Workload: JSON, github:OWNER@OWNER_ID/REPO@REPO_ID@BRANCH,environment=NAME (no IDs for repositories from
        /// before July 2026), gitlab:GROUP/PROJECT@BRANCH or kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT. Branch and
        /// environment are optional
        #[arg(long, value_name = "TRUST", value_parser = trust::parse)]
        trust: serde_json::Value,
    },
    /// Remove a trust from an integration. Its workloads are then rejected
    Distrust {
        #[command(flatten)]
        integration: NamedIntegration,
        /// ID of the trust, as printed by `orgvault integration show`
        #[arg(long, value_name = "ID")]
        trust: String,
    },
    /// List integrations without their tokens
    List {
        /// Only integrations of this organization
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
    },
    /// Issue a new token and print it once. The old one stays valid for 24 hours (--overlap)
    Rotate {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Remaining validity of the old token, up to 7 days; 0 revokes it immediately [default: 24h]
        #[arg(long, value_name = "DURATION", value_parser = seconds(0_i64, 604_800))]
        overlap: Option<i64>,
        #[command(flatten)]
        token: TokenOutput,
    },
    /// Enable an integration, or disable it: its tokens are rejected
    Set {
        #[command(flatten)]
        integration: NamedIntegration,
        #[command(flatten)]
        set: StateFlag,
    },
    /// Delete an integration with its activations
    Delete {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct AddIssuer {
    /// Name of the issuer in trusts
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Issuer URL exactly as in the iss claim, including any trailing slash, or spiffe://DOMAIN
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: String,
    /// URL of the issuer's keys [default: from OpenID discovery]
    #[arg(long, value_name = "URL")]
    pub(crate) jwks_url: Option<String>,
    /// File with the issuer's keys (JSON Web Key Set), for an issuer that is not reachable; the server never fetches
    /// them
    #[arg(long, value_name = "FILE", conflicts_with = "jwks_url")]
    pub(crate) jwks_file: Option<PathBuf>,
    /// Additional CA certificates (PEM) for connections to the issuer
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Claim that every trust must match exactly, as a JSON pointer such as /repository_owner_id; repeatable. For
    /// issuers that serve several owners
    #[arg(long, value_name = "POINTER")]
    pub(crate) require_claim: Vec<String>,
    /// Organization that may trust the issuer; repeatable [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum IssuerCommand {
    /// Add an issuer and its keys
    #[command(after_help = ISSUER_EXAMPLE)]
    Add(AddIssuer),
    /// List issuers, or show one: its keys, their fetch time and the last error
    List {
        /// Only this issuer, in detail
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Remove an issuer: its tokens are then rejected
    Remove {
        /// Name of the issuer
        #[arg(value_name = "NAME")]
        name: String,
        /// Also remove the trusts in this issuer
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args)]
#[group(id = "receiver_address", required = true, multiple = false)]
pub(crate) struct ReceiverAddress {
    /// URL of a webhook: https, or http on this host
    #[arg(long, value_name = "URL", group = "receiver_address")]
    pub(crate) url: Option<String>,
    /// File with the URL, for a URL with a secret path
    #[arg(long, value_name = "FILE", group = "receiver_address")]
    pub(crate) url_file: Option<PathBuf>,
    /// E-mail address; the server needs --smtp-url
    #[arg(long, value_name = "ADDRESS", group = "receiver_address")]
    pub(crate) email: Option<String>,
}

/// Lists the events, for the help.
fn events() -> String {
    let [instance, organization] = [false, true].map(EventKinds::all);
    format!("Events of the instance: {instance}.\n\nEvents of an organization, with --profile: {organization}.")
}

#[derive(Subcommand)]
pub(crate) enum ReceiverCommand {
    /// Add a receiver. The signing secret of a webhook is printed once
    #[command(after_help = events())]
    Add {
        #[command(flatten)]
        address: ReceiverAddress,
        /// Event to send to the receiver; repeatable [default: all]
        #[arg(long, value_name = "EVENT", value_delimiter = ',')]
        event: Vec<String>,
    },
    /// List receivers: state, last delivery and last error
    List,
    /// Change a receiver's events, or enable or disable it
    #[command(after_help = events())]
    Change {
        /// ID of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
        /// New state of the receiver
        #[arg(long, value_name = "STATE", value_parser = ["active", "disabled"])]
        state: Option<String>,
        /// Event to send from now on, replacing the previous selection; repeatable
        #[arg(long, value_name = "EVENT", value_delimiter = ',')]
        event: Vec<String>,
    },
    /// Remove a receiver and its pending events
    Remove {
        /// ID of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
    },
    /// Replace the signing secret of a webhook and print the new one once. For a day, messages are also signed with the
    /// old one
    RotateSecret {
        /// ID of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
    },
    /// Send a test event. The server with --activation-listen delivers it within seconds
    Test {
        /// ID of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
    },
    /// List past and pending deliveries to a receiver, newest first
    Deliveries {
        /// ID of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
        /// Maximum number of deliveries
        #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = settings::whole(1_usize, 1_000))]
        limit: usize,
    },
}

#[derive(Args)]
pub(crate) struct NamedNamespace {
    /// Exact name of the namespace
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Name of the organization, required without --profile
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum NamespaceCommand {
    /// Reject all activations of a namespace until it is thawed, even if it has no credentials yet
    Freeze(NamedNamespace),
    /// Allow activations of a frozen namespace again
    Thaw(NamedNamespace),
    /// List frozen namespaces
    List,
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_testkit::page::assert_table;

    /// Commands and settings distinguish their flags by ID, so the IDs must not overlap.
    #[test]
    fn command_flags_are_not_settings() {
        fn ids(command: &clap::Command) -> Vec<String> {
            let own = command.get_arguments().map(|flag| flag.get_id().to_string());
            own.chain(command.get_subcommands().flat_map(ids)).collect()
        }
        let of_commands = ids(&Cli::command());
        for setting in settings::vault_flags().into_iter().chain(settings::server_flags()) {
            assert!(!of_commands.contains(&setting.get_id().to_string()), "{}", setting.get_id());
        }
    }

    /// Returns the row of each command in `docs/operate/commands.md`.
    fn documented(command: &mut clap::Command, rows: &mut Vec<String>) {
        if command.has_subcommands() {
            for name in command.get_subcommands().map(|one| one.get_name().to_owned()).collect::<Vec<_>>() {
                let one =
                    command.find_subcommand_mut(&name).filter(|one| one.get_name() != "help" && !one.is_hide_set());
                one.into_iter().for_each(|one| documented(one, rows));
            }
            return;
        }
        let usage = command.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").replace('|', "\\|");
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let about = about.lines().next().unwrap_or_default().replace('|', "\\|");
        assert!(!about.is_empty(), "{usage} has no description");
        rows.push(format!("| `{usage}` | {about} |"));
    }

    /// `ORGVAULT_UPDATE=1` regenerates the page.
    #[test]
    fn command_reference_matches_declarations() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/commands.md");
        let mut rows = Vec::new();
        let mut all = command();
        all.build();
        documented(&mut all, &mut rows);
        let rest = assert_table(&path, "| Command | What it does |\n|---|---|\n", &(rows.join("\n") + "\n"));
        assert_eq!(rest, "");
    }

    /// Returns the commands in the code blocks and inline code of a page. Skips incomplete ones (`…`).
    fn commands_of(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let joined = text.replace("\\\n", " ").replace("\\|", "|");
        let mut block = false;
        for line in joined.lines() {
            let line = line.trim_start();
            if line.starts_with("```") {
                block = !block;
            } else if block {
                let line = line.trim_start_matches("- run: ").trim_start_matches("$ ").trim_start_matches("sudo ");
                let parts = line
                    .split(['|', ';', '>', '#'])
                    .flat_map(|part| part.split("&&"))
                    .map(|part| part.split('<').next());
                found.extend(parts.flatten().map(|part| part.trim().to_owned()));
            } else {
                let code = line.split('`').skip(1).step_by(2).filter_map(|code| code.split('|').next());
                found.extend(code.map(|code| code.trim().to_owned()));
            }
        }
        found.retain(|command| ["orgvault ", "orgvault-admin "].iter().any(|name| command.starts_with(name)));
        found.retain(|command| !command.contains(['…', '$']) && !command.contains("COMMAND"));
        found
    }

    /// All command lines in the pages must parse, so that a renamed flag fails here.
    #[test]
    fn commands_on_pages_are_parsed() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let directories = ["", "operate", "jobs", "embed", "why"].map(|name| docs.join(name));
        let files = directories.iter().flat_map(|directory| std::fs::read_dir(directory).expect("pages"));
        let pages = files.filter_map(Result::ok).map(|file| file.path());
        let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        let (mut count, mut wrong) = (0, Vec::new());
        for path in pages.filter(|path| !path.ends_with("operate/commands.md")) {
            let text = std::fs::read_to_string(&path).expect("a page");
            for line in commands_of(&text) {
                let Some(mut words) = shlex::split(&line) else { continue };
                for word in &mut words {
                    match word.as_str() {
                        "ID" => "0193a5c0-0000-7000-8000-000000000001".clone_into(word),
                        "N" => "2".clone_into(word),
                        _ => {}
                    }
                }
                // Jobs set a variable instead of this flag.
                if words.len() > 2
                    && ["activate", "exec"].contains(&words[1].as_str())
                    && !line.contains("--activation-url")
                {
                    words
                        .splice(2..2, ["--activation-url".to_owned(), "unix:/run/orgvault/activation.sock".to_owned()]);
                }
                // The name of a command group in the text is not a complete command line.
                let named = words.iter().skip(1).all(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
                count += 1;
                use clap::error::ErrorKind;
                match command().try_get_matches_from(words.iter().map(String::as_str)) {
                    Ok(_) => {}
                    Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {}
                    Err(error)
                        if named
                            && error.kind() != ErrorKind::InvalidSubcommand
                            && error.kind() != ErrorKind::UnknownArgument => {}
                    Err(error) => wrong.push(format!("{}: {line}\n{error}", path.display())),
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(count > 100, "{count}");
    }

    #[test]
    fn every_command_is_in_one_group() {
        let all = Cli::command();
        let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
        let grouped = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
        let sorted = |mut names: Vec<&str>| {
            names.sort_unstable();
            names.join(" ")
        };
        assert_eq!(sorted(grouped.collect()), sorted(shown.chain(["help"]).collect()));
    }

    #[test]
    fn command_line_definition_is_valid() {
        command().debug_assert();
    }

    /// A command's own flags come first, and its help fits a screen, except for commands with the server settings.
    #[test]
    fn help_is_short() {
        let help = |words: &[&str]| {
            let words = ["orgvault"].iter().chain(words).chain(&["--help"]);
            command().try_get_matches_from(words).map(|_| String::new()).unwrap_or_else(|help| help.to_string())
        };
        for words in [&["org", "list"][..], &["migrate"], &["account", "set"], &["integration", "rotate"]] {
            let help = help(words);
            assert!(help.lines().count() <= 24 && !help.contains("--listen"), "{help}");
            assert!(help.contains("orgvault help settings"), "{help}");
        }
        let serve = help(&["serve"]);
        assert!(serve.find("--migrate") < serve.find("--listen"), "{serve}");
        let settings = help(&["settings"]);
        for setting in settings::vault_flags().into_iter().chain(settings::server_flags()) {
            let flag = format!("--{}", setting.get_long().unwrap_or_default());
            assert!(settings.contains(&flag), "{flag}");
        }
    }
}
