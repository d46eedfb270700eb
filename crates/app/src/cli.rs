//! The command line: every command, flag and help text.

use crate::activation::args::{ActivateArgs, ExecArgs};
use crate::client::args::{CredentialArgs, EnrolArgs, LoginArgs, ProfileArg};
use crate::command::import::ImportArgs;
use crate::command::manifest::{ApplyArgs, ExportArgs, PlanArgs};
use crate::command::trust;
use crate::failure::Failure;
use crate::settings::{self, RootKeySource, seconds};
use crate::text::Moment;
use crate::usage;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::num::NonZero;
use std::path::PathBuf;
use vault_core::audit::AuditAction;
use vault_core::id::{EventId, IntegrationId, ReceiverId};
use vault_embed::Database;

/// A self-hosted vault for the storage credentials of batch integrations.
#[derive(Parser)]
#[command(
    name = "orgvault",
    version,
    about = "A self-hosted vault for the storage credentials of batch integrations",
    max_term_width = 110,
    after_help = AFTER_HELP
)]
pub(crate) struct Cli {
    /// Print one JSON document on standard output, for scripts
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
`orgvault help settings` lists the settings: --data-dir, --database-url and all others.
Exit status: 0 done, 1 refused or failed, 2 wrong usage.";

/// Under the help of each command that opens the vault.
const SETTINGS_HINT: &str =
    "This command also takes --data-dir, --database-url and others: see `orgvault help settings`.";

const ABOUT_SETTINGS: &str = "\
Each setting is a flag (--max-ttl 12h), an environment variable (ORGVAULT_MAX_TTL=12h) and a key of the settings file \
(max-ttl = \"12h\"). Precedence: flag, environment, file, default. Relative paths in the file are relative to the file. \
Durations have units: 90s, 15m, 12h, 30d; a number alone counts seconds.";

const CREATE_EXAMPLE: &str =
    "Example: orgvault integration create --org Acme --name nightly --namespace 'imports/*' --expires 90d";

const ISSUER_EXAMPLE: &str = "Example: orgvault issuer add github --issuer https://token.actions.githubusercontent.com \
                              --require-claim /repository_owner_id";

const EXEC_EXAMPLE: &str = "Example: orgvault exec --namespace imports/nightly -- rclone copy orgvault:bucket/in ./in";

/// The command line, with the settings that each command takes.
pub(crate) fn command() -> clap::Command {
    let server = settings::server_flags;
    let only = |ids: &'static [&str]| server().into_iter().filter(|flag| ids.contains(&flag.get_id().as_str()));
    let base_path = || only(&["base_path"]).map(|flag| flag.help_heading("Activation"));
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
        .mut_subcommand("enrol", |command| command.args(base_path()))
        .mut_subcommand("activate", |command| command.args(base_path()))
        .mut_subcommand("exec", |command| command.args(base_path()))
        .mut_subcommand("settings", |command| command.args(settings::vault_flags().into_iter().chain(server())))
        .mut_subcommands(hint)
}

/// Points from the help of commands that open the vault to the settings.
fn hint(command: clap::Command) -> clap::Command {
    const WITHOUT_VAULT: [&str; 15] = [
        "login",
        "enrol",
        "logout",
        "profiles",
        "credential",
        "import",
        "export",
        "plan",
        "apply",
        "activate",
        "exec",
        "identity",
        "completions",
        "man-pages",
        "settings",
    ];
    if WITHOUT_VAULT.contains(&command.get_name()) {
        return command;
    }
    if command.has_subcommands() {
        return command.mut_subcommands(hint);
    }
    let own = command.get_after_help().map(|own| format!("{own}\n\n")).unwrap_or_default();
    command.after_help(own + SETTINGS_HINT)
}

/// The environment variables that flags other than settings have.
pub(crate) fn other_variables() -> Vec<String> {
    let command = Cli::command();
    let variables = command.get_subcommands().flat_map(clap::Command::get_arguments).filter_map(Arg::get_env);
    let identity = ["ORGVAULT_IDENTITY_TOKEN_FILE", "ORGVAULT_IDENTITY_TOKEN"].map(str::to_owned);
    variables.map(|name| name.to_string_lossy().into_owned()).chain(identity).collect()
}

/// Prints the help of the settings, and ends the process.
pub(crate) fn print_settings() -> ! {
    match command().try_get_matches_from(["orgvault", "help", "settings"]) {
        Ok(_) => std::process::exit(0),
        Err(help) => help.exit(),
    }
}

/// Reads this process's command line. Prints help where it is asked for, and ends the process then.
pub(crate) fn parse() -> Result<(Cli, ArgMatches), Failure> {
    let parsed = command().try_get_matches().and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    match parsed {
        Ok((cli, matches)) => usage::check_patterns(settings::innermost(&matches)).map(|()| (cli, matches)),
        Err(error) => Err(usage::failure(&error).unwrap_or_else(|| error.exit())),
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a vault with an organization and an admin account, print how to log in, and serve it. Later runs serve that
    /// vault. With --root-key-file the root key is kept apart from the database
    Quickstart(QuickstartArgs),
    /// Create a vault without organizations: data directory, root key and database schema. Refuses if a vault exists. With
    /// --root-key-file the root key is kept apart from the database
    Init,
    /// Serve the HTTP interface and, with --activation-listen, activations
    Serve(ServeArgs),
    /// Apply pending database migrations; with --spread, spread the tables over machines by the PostgreSQL extension Citus
    Migrate(MigrateArgs),
    /// Move the vault from its embedded database file to an empty PostgreSQL database
    ///
    /// Stop the server first: while it copies, nothing can be written to the file, so nothing that was acknowledged is
    /// lost. It copies every row in one transaction, reads all of them back and compares. Interrupted, it leaves the
    /// target empty or complete; run it again. Afterwards commands refuse the file, which is not changed, and the next
    /// steps are printed. With --dry-run the server may run: rows written after the copy has begun are not in it, and
    /// the target is left empty.
    MigrateTo(MigrateToArgs),
    /// Check the vault's surroundings: root key, file modes, disk encryption, swap, clock, use of keys; with --deep, all that is
    /// stored
    ///
    /// Changes nothing, and works while the server runs. Exit status 1 if a check fails; warnings do not count.
    Doctor(DoctorArgs),
    /// Back up the embedded vault to a file, while it is in use
    ///
    /// The file has the encrypted database and its wrapped key as they are at one moment after the command began, and
    /// never the root key. Before it gets its name it is opened with the root key and checked; an existing file is never
    /// overwritten. In a directory the file is called orgvault-TIME.backup.
    Backup(BackupArgs),
    /// Restore the embedded vault from a backup
    ///
    /// Stop the server first. The restored database gets a new key. If the data directory holds a vault, pass
    /// --replace: its files are moved into a directory beside, never deleted. Afterwards older access tokens, sessions,
    /// recovery codes and passcodes do not work, and activations have ended. The state of organizations, accounts,
    /// integrations, frozen namespaces and invitations is taken over from the replaced database; what is lost is printed.
    Restore(RestoreArgs),
    /// Manage organizations, the tenants of the vault
    #[command(subcommand)]
    Org(OrgCommand),
    /// Manage accounts: people who log in to an organization with a role
    #[command(subcommand)]
    Account(AccountCommand),
    /// Manage integrations: programs that get the credentials of their namespaces with a token
    #[command(subcommand)]
    Integration(IntegrationCommand),
    /// Show what the identity token of this job says
    #[command(subcommand)]
    Identity(IdentityCommand),
    /// Manage issuers of identity tokens: whose workloads integrations may trust in place of a token
    #[command(subcommand)]
    Issuer(IssuerCommand),
    /// Manage the receivers of the instance: who is told by webhook or mail what happens to the vault itself
    #[command(subcommand)]
    Receiver(ReceiverCommand),
    /// Freeze a namespace, so that no credentials of it are issued, or thaw it
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Read, export and verify the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Show the vault's keys, and rotate them while the server runs
    #[command(subcommand)]
    Key(KeyCommand),
    /// Manage the embedded database file
    #[command(subcommand)]
    Database(DatabaseCommand),
    /// Log in to a server's HTTP interface, for `orgvault credential`
    ///
    /// Asks for password and passcode. The access token is kept in your state directory ($XDG_STATE_HOME/orgvault, else
    /// ~/.local/state/orgvault) until it expires or you log out. With --profile you can be logged in to several servers
    /// and accounts at once.
    Login(LoginArgs),
    /// Enrol an account with the link of an invitation: set a password and an authenticator
    ///
    /// Asks for the link and a new password, shows the authenticator's QR code and the recovery codes once, and asks for the
    /// passcode that the authenticator then shows.
    Enrol(EnrolArgs),
    /// Log out: revoke the access token and remove it from this machine
    Logout(ProfileArg),
    /// List your logins on this machine: profile, account, server and expiry
    Profiles,
    /// Save, list, replace and delete credentials, as an account that is logged in
    Credential(CredentialArgs),
    /// Save the storage credentials that a file of rclone, the AWS tools, Airflow, OpenBao or Vault holds
    ///
    /// Shows what it would save and what not, with line, field and reason, and asks first. Each credential gets the label
    /// name, by which a second run finds what is there already. Exit status 1 if an entry was not saved.
    Import(ImportArgs),
    /// Print an organization as a document: its people, integrations and the credentials that have a label name
    ///
    /// Secrets are not in it, and the vault does not give them back: the document names files for them. What this command prints,
    /// `orgvault apply` makes elsewhere.
    Export(ExportArgs),
    /// Show what documents would change in the organization. Exit status 3 if something
    ///
    /// Documents describe people, integrations and credentials (docs/operate/documents.md). What they do not name is left as it is. All
    /// documents are checked first; flaws are told with file, line and field.
    Plan(PlanArgs),
    /// Change the organization so that it is as documents describe it
    ///
    /// Makes what `orgvault plan` shows, change after change, after asking. Interrupted, run it again. Data of a credential
    /// is sent when the credential is new, and when its data_version rises.
    Apply(ApplyArgs),
    /// Print a namespace's credentials in a tool's format, as an integration
    ///
    /// Connects to the activation listener with an integration token; no vault is needed on this machine. Every activation
    /// is recorded in the audit log. With --check nothing is activated: the credentials are checked at their storage
    /// providers, and the exit status is 1 if one of them cannot be used.
    Activate(ActivateArgs),
    /// Run a command with a namespace's credentials in its environment, as an integration
    ///
    /// Sets the variables that the tools of the credential's type read, and writes private files where a tool needs one;
    /// passes signals on to the command; afterwards removes the files and ends the activation. Exit status: the
    /// command's; 128 plus the signal's number if a signal ended it; 127 if it was not found; 126 if it cannot be started;
    /// 125 if orgvault failed itself, for example because the activation was refused.
    #[command(after_help = EXEC_EXAMPLE)]
    Exec(ExecArgs),
    /// Print the completion script of a shell
    ///
    /// The script asks this program for completions: of commands and flags, and of your profiles and credentials where
    /// you are logged in.
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of all commands into a directory, for packages
    #[command(hide = true)]
    ManPages {
        /// The directory; made if it does not exist
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
    /// The settings: flags, environment variables and keys of the settings file
    #[command(hide = true, about = ABOUT_SETTINGS, override_usage = "orgvault <COMMAND> [SETTINGS]")]
    Settings,
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Also check that all stored data can be decrypted, that no row was changed, moved or put back in an earlier state, and
    /// that the audit is unchanged
    #[arg(long)]
    pub(crate) deep: bool,
}

#[derive(Args)]
pub(crate) struct BackupArgs {
    /// The new file, or an existing directory for it
    #[arg(value_name = "FILE|DIRECTORY")]
    pub(crate) target: PathBuf,
}

#[derive(Args)]
pub(crate) struct RestoreArgs {
    /// The backup, or a directory of backups for the newest in it
    #[arg(required_unless_present = "after_external", conflicts_with = "after_external")]
    pub(crate) backup: Option<PathBuf>,
    /// Replace the vault in the data directory; its files are moved aside
    #[arg(long, conflicts_with = "after_external")]
    pub(crate) replace: bool,
    /// Accept a backup that is older than the anchor's checkpoint: later changes are lost
    #[arg(long, conflicts_with = "after_external")]
    pub(crate) older: bool,
    /// Restore no files: after another tool (pg_restore, a snapshot of the disk) has restored the database, end older tokens,
    /// sessions, recovery codes, passcodes, activations and enrolment codes
    #[arg(long)]
    pub(crate) after_external: bool,
}

impl Command {
    /// Whether the command listens on the addresses of the settings.
    pub(crate) fn serves(&self) -> bool {
        matches!(self, Self::Serve(_) | Self::Quickstart(_))
    }

    /// Whether the command opens no vault: its settings mean nothing to it.
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
                | Self::Plan(_)
                | Self::Apply(_)
                | Self::Activate(_)
                | Self::Exec(_)
                | Self::Identity(_)
                | Self::Completions { .. }
                | Self::ManPages { .. }
        )
    }

    /// The files with secrets that the command's own flags name.
    pub(crate) fn secret_files(&self) -> Vec<PathBuf> {
        match self {
            Self::Account(AccountCommand::Create { password, .. } | AccountCommand::SetPassword { password, .. }) => {
                password.password_file.iter().filter(|path| path.as_os_str() != "-").cloned().collect()
            }
            Self::Key(KeyCommand::Rotate(args)) => {
                let file = args.new_root_key_file.iter().filter_map(|path| std::path::absolute(path).ok());
                file.chain(args.new_root_key_source.iter().flat_map(RootKeySource::secret_files)).collect()
            }
            _ => Vec::new(),
        }
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
    /// Accept the database as it is if this data directory has no anchor of it (orgvault.anchor): for a new replica on
    /// PostgreSQL
    #[arg(long)]
    pub(crate) adopt_anchor: bool,
}

#[derive(Args)]
pub(crate) struct MigrateArgs {
    /// Spread the tables of this vault over the nodes of its database, which has the extension Citus. Stop the servers first.
    /// It is one transaction: interrupted, it changes nothing; run it again
    #[arg(long)]
    pub(crate) spread: bool,
}

#[derive(Args)]
pub(crate) struct MigrateToArgs {
    /// Copy and compare, then roll back: shows whether the move will work and how long it takes; the server may run
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// URL of the PostgreSQL database, for a role that may create tables. Put a URL with a password into the environment
    /// variable, because other users can see arguments
    #[arg(value_name = "URL", env = "ORGVAULT_MIGRATE_TO", hide_env_values = true)]
    pub(crate) url: Database,
}

#[derive(Subcommand)]
pub(crate) enum OrgCommand {
    /// Create an organization with its own keys
    Create(Named),
    /// List organizations
    List,
    /// Disable an organization: its accounts cannot log in, and its sessions and integration tokens stop working
    Disable(Named),
    /// Enable a disabled organization: accounts can log in, and integration tokens work again
    Enable(Named),
    /// Delete an organization permanently, with its accounts, credentials and keys
    Delete {
        #[command(flatten)]
        org: Named,
        /// Do not ask for confirmation
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
    /// Name of its organization, for an address that several organizations have invited
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
        /// What the account may do
        #[arg(long)]
        role: RoleArg,
        #[command(flatten)]
        password: PasswordFile,
    },
    /// Invite a person: print an enrolment code once, valid for 72 hours
    ///
    /// The person opens the printed link or runs the printed commands, and chooses a password.
    Invite {
        /// Name of the organization
        #[arg(long, value_name = "NAME")]
        org: String,
        #[command(flatten)]
        account: ByEmail,
        /// What the account may do
        #[arg(long)]
        role: RoleArg,
    },
    /// List accounts and open invitations
    List {
        /// Only those of this organization
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
    },
    /// Show an account or invitation: state, lockout, failed logins, last login
    Show(AccountOrInvitation),
    /// Disable an account: end its sessions and refuse its logins
    Disable(ByEmail),
    /// Enable a disabled account
    Enable(ByEmail),
    /// Delete an account, or withdraw an invitation
    Delete {
        #[command(flatten)]
        account: AccountOrInvitation,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Replace the passcode secret and recovery codes of an account, and end its sessions
    ResetPasscode(ByEmail),
    /// Replace the password of an account, and end its sessions
    SetPassword {
        #[command(flatten)]
        account: ByEmail,
        #[command(flatten)]
        password: PasswordFile,
    },
    /// Change the role of an account, which ends its sessions, or of an invitation
    SetRole {
        #[command(flatten)]
        account: AccountOrInvitation,
        /// The new role
        #[arg(long)]
        role: RoleArg,
    },
    /// Clear the lockout after failed logins
    Unlock(ByEmail),
    /// Have the owner of an account enrol again: print an enrolment code once, valid for 72 hours
    ///
    /// For an owner who lost authenticator and recovery codes. Ends the account's sessions and destroys its password, passcode
    /// and recovery codes at once. Role, e-mail address and history stay. Run it again for another code; the earlier one
    /// stops working.
    ReEnrol(ByEmail),
    /// Print the current passcode of an account; waits for the next one if the current one is used up
    ///
    /// For machines with access to the data directory and root key. Recorded in the audit log.
    Passcode(ByEmail),
}

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify that no entry was removed, changed, reordered or added outside the service
    ///
    /// Prints what was found. Exit status: 0 if all entries are unchanged, else 1. Entries of the last second, and those
    /// that commands wrote without a running server, may be in no checkpoint yet: of these, only changed ones are found.
    Verify,
    /// List entries, newest first
    List {
        #[command(flatten)]
        filter: AuditFilterArgs,
        /// How many at most
        #[arg(long, value_name = "N", default_value = "50")]
        limit: usize,
    },
    /// Write entries as JSON Lines, oldest first
    Export {
        #[command(flatten)]
        filter: AuditFilterArgs,
        /// How many at most [default: all]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Write to FILE, which must not exist; only its owner can read it [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The names of actions.
fn actions() -> PossibleValuesParser {
    PossibleValuesParser::new(AuditAction::ALL.iter().map(|action| action.as_str()))
}

/// Which entries of the audit.
#[derive(Args)]
pub(crate) struct AuditFilterArgs {
    /// Only those of this organization
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// Only those since: a date, a date and time (2027-01-31T12:00:00Z), or a duration before now (24h)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<Moment>,
    /// Only those before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,
    /// Only those of this action, for example credential.saved
    #[arg(long, value_name = "ACTION", value_parser = actions(), hide_possible_values = true)]
    pub(crate) action: Option<String>,
    /// Only those in which this object had a part: KIND:ID, an id, or an account's e-mail address
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
    /// Only those of this actor: account, integration, operator, system, an id, or an account's e-mail address
    #[arg(long, value_name = "ACTOR")]
    pub(crate) actor: Option<String>,
    /// Only those about this namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Show the keys: ids, age, uses of organization keys, and what is left under retiring keys
    Status,
    /// Destroy replaced keys of tokens, the audit log and receivers that nothing needs any more
    ///
    /// `key rotate --instance` replaces these keys too. The old ones stay while something needs them: an access token, until its
    /// session has ended; an audit key, until --keep-audit has removed all that it signed; a receiver key, for a minute.
    /// `key status` shows what is left. `key rotate --instance` does the same before it replaces keys.
    Prune,
    /// Replace keys and seal again what they seal, while the server runs
    ///
    /// Each organization gets a new key. The data keys of its credentials are wrapped again, and their information is sealed
    /// again; no credential's data is decrypted. The old key is destroyed once nothing is sealed under it. Interrupted,
    /// run it again: it continues where it ended. Several may run at once.
    ///
    /// With --instance a new instance key wraps the keys of organizations, and passwords, passcode seeds and the codes of
    /// accounts, invitations and integrations are sealed and made again. New access tokens, audit entries and receivers get new
    /// keys, too; `key prune` destroys the ones before. Logins, tokens and sessions stay valid.
    ///
    /// With --root, only the root key in --new-root-key-file opens the vault afterwards. Running servers keep serving, and
    /// need the new root key at their next start. Backups made before need the old one.
    Rotate(RotateArgs),
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["organization", "all", "instance", "root"]))]
#[command(group = clap::ArgGroup::new("new-root").args(["new_root_key_file", "new_root_key_source"]))]
pub(crate) struct RotateArgs {
    /// The key of this organization
    #[arg(long, value_name = "NAME")]
    pub(crate) organization: Option<String>,
    /// The keys of all organizations
    #[arg(long)]
    pub(crate) all: bool,
    /// The instance key, and the keys of tokens, the audit log and receivers
    #[arg(long)]
    pub(crate) instance: bool,
    /// The root key: replace the one in --root-key-file by the one in --new-root-key-file
    #[arg(long, requires = "new-root", conflicts_with = "workers")]
    pub(crate) root: bool,
    /// File of the new root key (32 bytes, mode 0600); made if it does not exist
    #[arg(long, value_name = "FILE", requires = "root", conflicts_with_all = ["organization", "all", "instance"])]
    pub(crate) new_root_key_file: Option<PathBuf>,
    /// The new root key in another place, written as for --root-key-source
    #[arg(long, value_name = "SOURCE", requires = "root", conflicts_with_all = ["organization", "all", "instance"])]
    pub(crate) new_root_key_source: Option<RootKeySource>,
    /// How many workers seal at once [default: one for each processor]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) workers: Option<NonZero<usize>>,
}

#[derive(Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Print the key of the embedded database as SQLCipher takes it, for forensic work and repair
    ///
    /// This key decrypts the whole database file. Recorded in the audit log.
    Key {
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct NamedIntegration {
    /// Name of the organization
    #[arg(long, value_name = "NAME")]
    pub(crate) org: String,
    /// Name of the integration
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Args)]
pub(crate) struct TokenOutput {
    /// Write the token to FILE, which is created with mode 0600 and must not exist, instead of printing it
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
        /// Namespace that it may activate, or 'PREFIX/*' for all namespaces below a prefix; repeatable. Quote patterns, or
        /// the shell replaces them by file names
        #[arg(long, value_name = "PATTERN", required = true, num_args = 1..)]
        namespace: Vec<String>,
        /// When its tokens expire: a date, a date and time (2027-01-31T12:00:00Z), or a duration from now (90d)
        /// [default: never]
        #[arg(long, value_name = "TIME")]
        expires: Option<Moment>,
        /// Workload that may use the integration by its identity token: JSON,
        /// github:OWNER@OWNER_ID/REPO@REPO_ID@BRANCH,environment=NAME (no ids for repositories from before July 2026),
        /// gitlab:GROUP/PROJECT@BRANCH or kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT. Branch and environment are optional;
        /// repeatable
        #[arg(long, value_name = "TRUST", value_parser = trust::parse)]
        trust: Vec<serde_json::Value>,
        /// Give it no token: only workloads that it trusts act for it
        #[arg(long, requires = "trust")]
        no_token: bool,
        #[command(flatten)]
        token: TokenOutput,
    },
    /// Show an integration with the audience of its identity tokens and its trusts
    Show(NamedIntegration),
    /// Have a workload act for an integration without a token
    Trust {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Workload: JSON, github:OWNER@OWNER_ID/REPO@REPO_ID@BRANCH,environment=NAME (no ids for repositories from before July
        /// 2026), gitlab:GROUP/PROJECT@BRANCH or kubernetes:ISSUER:NAMESPACE/SERVICEACCOUNT. Branch and environment are optional
        #[arg(long, value_name = "TRUST", value_parser = trust::parse)]
        trust: serde_json::Value,
    },
    /// End a trust of an integration: its workloads act no more
    Distrust {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Id of the trust, as `orgvault integration show` prints it
        #[arg(long, value_name = "ID")]
        trust: String,
    },
    /// List integrations, without their tokens
    List {
        /// Only those of this organization
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
    },
    /// Issue a new token and print it once. The old one stays valid for 24 hours (--overlap)
    Rotate {
        #[command(flatten)]
        integration: NamedIntegration,
        /// How long the old token stays valid, up to 7 days; 0 revokes it at once [default: 24h]
        #[arg(long, value_name = "DURATION", value_parser = seconds(0_i64, 604_800))]
        overlap: Option<i64>,
        #[command(flatten)]
        token: TokenOutput,
    },
    /// Disable an integration: its tokens stop working
    Disable(NamedIntegration),
    /// Enable a disabled integration: its tokens work again
    Enable(NamedIntegration),
    /// Delete an integration with its activations
    Delete {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum IdentityCommand {
    /// Print issuer, subject, audience, times and claims of the identity token at hand, and the trust that would fit it. The
    /// token itself is not printed
    Inspect(InspectIdentity),
}

#[derive(Args)]
pub(crate) struct InspectIdentity {
    /// File with the token [default: ORGVAULT_IDENTITY_TOKEN_FILE, ORGVAULT_IDENTITY_TOKEN, or that of GitHub Actions]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Id of the integration, for a token that is made on request (GitHub Actions)
    #[arg(long, env = "ORGVAULT_INTEGRATION_ID", value_name = "ID")]
    pub(crate) integration_id: Option<IntegrationId>,
}

#[derive(Args)]
pub(crate) struct AddIssuer {
    /// Name by which trusts name it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What its tokens have as iss: an https URL, to the last slash, or spiffe://DOMAIN
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: String,
    /// Where its keys are [default: as its OpenID discovery says]
    #[arg(long, value_name = "URL")]
    pub(crate) jwks_url: Option<String>,
    /// File with its keys (JSON Web Key Set), for an issuer that cannot be reached; they are never fetched
    #[arg(long, value_name = "FILE", conflicts_with = "jwks_url")]
    pub(crate) jwks_file: Option<PathBuf>,
    /// Certificates (PEM) that vouch for it, beside those that the system trusts
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Claim that every trust must say exactly, as a JSON pointer such as /repository_owner_id; repeatable. For issuers that
    /// others share
    #[arg(long, value_name = "POINTER")]
    pub(crate) require_claim: Vec<String>,
    /// Organization that may trust it; repeatable [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum IssuerCommand {
    /// Add an issuer, with its keys
    #[command(after_help = ISSUER_EXAMPLE)]
    Add(AddIssuer),
    /// List issuers
    List,
    /// Show an issuer: its keys, when they were fetched and the last error
    Show {
        /// Name of the issuer
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove an issuer: its tokens open nothing any more
    Remove {
        /// Name of the issuer
        #[arg(value_name = "NAME")]
        name: String,
        /// Also remove the trusts that name it
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args)]
#[group(id = "receiver_address", required = true, multiple = false)]
pub(crate) struct ReceiverAddress {
    /// URL of a webhook: https, or http on this machine
    #[arg(long, value_name = "URL", group = "receiver_address")]
    pub(crate) url: Option<String>,
    /// File with the URL, if its path is a secret
    #[arg(long, value_name = "FILE", group = "receiver_address")]
    pub(crate) url_file: Option<PathBuf>,
    /// E-mail address; the server needs --smtp-url
    #[arg(long, value_name = "ADDRESS", group = "receiver_address")]
    pub(crate) email: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum ReceiverCommand {
    /// Add a receiver. The signing secret of a webhook is printed once
    Add {
        #[command(flatten)]
        address: ReceiverAddress,
        /// Event that it is told; repeatable [default: all]
        #[arg(long, value_name = "EVENT", value_delimiter = ',')]
        event: Vec<String>,
    },
    /// List receivers: state, last delivery and last error
    List,
    /// List the events that receivers of the instance are told
    Events,
    /// Change what a receiver is told, or whether it is told anything
    Change {
        /// Id of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
        /// Whether it is told anything
        #[arg(long, value_name = "STATE", value_parser = ["active", "disabled"])]
        state: Option<String>,
        /// Event that it is told from now on; repeatable
        #[arg(long, value_name = "EVENT", value_delimiter = ',')]
        event: Vec<String>,
    },
    /// Remove a receiver, with what waits for it
    Remove {
        /// Id of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
    },
    /// Give a webhook another signing secret, which is printed once. For a day, messages are signed with the old one too
    RotateSecret {
        /// Id of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
    },
    /// Send a test. The server with --activation-listen delivers it within seconds
    Test {
        /// Id of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
    },
    /// List what was and is to be delivered to a receiver, the newest first
    Deliveries {
        /// Id of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
        /// How many to list at most
        #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = settings::whole(1_usize, 1_000))]
        limit: usize,
    },
    /// Send an event to a receiver again
    Resend {
        /// Id of the receiver
        #[arg(value_name = "ID")]
        id: ReceiverId,
        /// Id of the event
        #[arg(value_name = "EVENT_ID")]
        event: EventId,
    },
}

#[derive(Args)]
pub(crate) struct NamedNamespace {
    /// The exact name of the namespace
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Name of the organization
    #[arg(long, value_name = "NAME")]
    pub(crate) org: String,
}

#[derive(Subcommand)]
pub(crate) enum NamespaceCommand {
    /// Refuse all activations of a namespace until it is thawed, even if it has no credentials yet
    Freeze(NamedNamespace),
    /// Allow activations of a frozen namespace again
    Thaw(NamedNamespace),
    /// List frozen namespaces
    List,
}

#[cfg(test)]
mod tests {
    use super::*;
    use vault_testkit::page::hold_table;

    /// The flags of commands and of settings are told apart by their ids.
    #[test]
    fn no_flag_of_a_command_is_taken_for_a_setting() {
        fn ids(command: &clap::Command) -> Vec<String> {
            let own = command.get_arguments().map(|flag| flag.get_id().to_string());
            own.chain(command.get_subcommands().flat_map(ids)).collect()
        }
        let of_commands = ids(&Cli::command());
        for setting in settings::vault_flags().into_iter().chain(settings::server_flags()) {
            assert!(!of_commands.contains(&setting.get_id().to_string()), "{}", setting.get_id());
        }
    }

    /// One row for each command, as `docs/operate/commands.md` has it.
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
        rows.push(format!("| `{usage}` | {about} |"));
    }

    /// `ORGVAULT_UPDATE=1` writes the page anew.
    #[test]
    fn the_commands_are_documented_as_they_are_declared() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/commands.md");
        let mut rows = Vec::new();
        let mut all = command();
        all.build();
        documented(&mut all, &mut rows);
        let rest = hold_table(&path, "| Command | What it does |\n|---|---|\n", &(rows.join("\n") + "\n"));
        assert_eq!(rest, "");
    }

    /// The commands in `text`, a page: those of its blocks and those in code within a line. Those that leave something out (`…`)
    /// are not whole.
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
                    .map(|part| part.split("<<").next());
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

    /// The command lines in the pages are ones that the program takes: a flag that was renamed shows here.
    #[test]
    fn the_commands_of_the_pages_are_taken() {
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
                // The variable that jobs have, or the flag.
                if words.len() > 2
                    && ["activate", "exec"].contains(&words[1].as_str())
                    && !line.contains("--activation-url")
                {
                    words
                        .splice(2..2, ["--activation-url".to_owned(), "unix:/run/orgvault/activation.sock".to_owned()]);
                }
                // A name in prose, such as of a group of commands, is no line to type.
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
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    /// A command's own flags come first, and its help fits a screen unless it takes the settings of the server.
    #[test]
    fn help_is_short() {
        let help = |words: &[&str]| {
            let words = ["orgvault"].iter().chain(words).chain(&["--help"]);
            command().try_get_matches_from(words).map(|_| String::new()).unwrap_or_else(|help| help.to_string())
        };
        for words in [&["org", "list"][..], &["migrate"], &["account", "disable"], &["integration", "rotate"]] {
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
