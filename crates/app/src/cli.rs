//! The command line: every command, flag and help text.

use crate::activation::args::{ActivateArgs, ExecArgs};
use crate::settings::{Flags, Role};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// A self-hosted vault for the storage credentials of batch integrations.
#[derive(Parser)]
#[command(name = "orgvault", version, about = "A self-hosted vault for the storage credentials of batch integrations", max_term_width = 110, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) flags: Flags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "Settings come from flags, then the environment, then a TOML file whose keys are the flags' \
names without the dashes. Exit status: 0 done, 1 refused or failed, 2 wrong usage.";

const EXEC_EXAMPLE: &str = "Example: orgvault exec --namespace imports/nightly -- rclone copy orgvault:bucket/in ./in";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Set up a vault with an organization and an admin account, print how to sign in, and serve it
    ///
    /// Makes the data directory, root key, embedded database, an organization and an admin account; prints the
    /// sign-in details and ready-to-paste curl lines; then serves. Run again, it serves what is there and changes
    /// nothing.
    Quickstart(QuickstartArgs),
    /// Make the data directory, root key and schema, nothing else
    ///
    /// Refuses to touch a vault that is already there.
    Init,
    /// Serve the HTTP interface
    Serve(ServeArgs),
    /// Bring the database's schema up to date
    Migrate,
    /// Organizations: the tenants, each with a vault of its own
    #[command(subcommand)]
    Org(OrgCommand),
    /// Accounts: who may log in, to which organization, in which role
    #[command(subcommand)]
    Account(AccountCommand),
    /// Integrations: the programs that activate namespaces
    #[command(subcommand)]
    Integration(IntegrationCommand),
    /// Namespaces: stop their activation at once, and allow it again
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// The embedded database file
    #[command(subcommand)]
    Database(DatabaseCommand),
    /// Print a namespace's credentials in a tool's format, as an integration
    ///
    /// Needs no vault on this machine: it asks the activation listener, with an integration token. Every activation is
    /// audited. With --check nothing is activated: the credentials are checked at their storage providers, and the exit
    /// status is 1 if one of them cannot be used.
    Activate(ActivateArgs),
    /// Run a command with a namespace's credentials in its environment, as an integration
    ///
    /// Sets the variables that the tools of the credential's type read, and writes private files where a tool needs one;
    /// passes signals on to the command; afterwards removes the files and ends the activation. Exit status: the
    /// command's; 128 plus the signal's number if a signal ended it; 127 if it was not found; 126 if it cannot be started;
    /// 125 if orgvault failed itself, for example because the activation was refused.
    #[command(after_help = EXEC_EXAMPLE)]
    Exec(ExecArgs),
    /// Print a shell's completion script
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl Command {
    /// The files with secrets that the command's own flags name.
    pub(crate) fn secret_files(&self) -> Vec<PathBuf> {
        match self {
            Self::Account(AccountCommand::Create { password, .. } | AccountCommand::SetPassword { password, .. }) => {
                password.password_file.iter().filter(|path| path.as_os_str() != "-").cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}

#[derive(Args)]
pub(crate) struct QuickstartArgs {
    /// Organization to create [default: Example]
    #[arg(long, value_name = "NAME")]
    pub(crate) org: Option<String>,
    /// E-mail address of the admin account to create [default: admin@example.com]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: Option<String>,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// What this process serves [default: all]
    #[arg(long, env = "ORGVAULT_ROLE")]
    pub(crate) role: Option<Role>,
    /// Apply pending migrations first
    #[arg(long)]
    pub(crate) migrate: bool,
}

#[derive(Subcommand)]
pub(crate) enum OrgCommand {
    /// Make an organization with keys of its own
    Create(Named),
    /// List organizations
    List,
    /// Close an organization for now: nobody logs in, no token works
    Disable(Named),
    /// Open a disabled organization again
    Enable(Named),
    /// Delete an organization with its accounts, credentials and keys, for good
    Delete {
        #[command(flatten)]
        org: Named,
        /// Do not ask for the name again
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct Named {
    /// The organization's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RoleArg {
    /// Everything
    Admin,
    /// Save, list and delete credentials
    Editor,
    /// List credentials
    Viewer,
}

#[derive(Args)]
pub(crate) struct ByEmail {
    /// The account's address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: String,
}

#[derive(Args)]
pub(crate) struct PasswordFile {
    /// File with the password (one line end at its end is left out); `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum AccountCommand {
    /// Make an account and print its sign-in details once
    Create {
        /// The organization's name
        #[arg(long, value_name = "NAME")]
        org: String,
        #[command(flatten)]
        account: ByEmail,
        /// What it may do
        #[arg(long)]
        role: RoleArg,
        #[command(flatten)]
        password: PasswordFile,
    },
    /// Invite somebody to make an account: print an enrolment code once, valid for 72 hours
    ///
    /// Its owner enrols with it over HTTP, and chooses a password that nobody else knows.
    Invite {
        /// The organization's name
        #[arg(long, value_name = "NAME")]
        org: String,
        #[command(flatten)]
        account: ByEmail,
        /// What it may do
        #[arg(long)]
        role: RoleArg,
    },
    /// List accounts and open invitations
    List {
        /// Only those of this organization
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
    },
    /// Keep an account from logging in and end its sessions
    Disable(ByEmail),
    /// Let a disabled account log in again
    Enable(ByEmail),
    /// Delete an account, or withdraw an invitation
    Delete {
        #[command(flatten)]
        account: ByEmail,
        /// Do not ask for the address again
        #[arg(long)]
        yes: bool,
    },
    /// Replace an account's passcode seed and recovery codes and end its sessions
    ResetPasscode(ByEmail),
    /// Replace an account's password and end its sessions; without a file a strong one is made
    SetPassword {
        #[command(flatten)]
        account: ByEmail,
        #[command(flatten)]
        password: PasswordFile,
    },
    /// Change the role of an account, which ends its sessions, or of an invitation
    SetRole {
        #[command(flatten)]
        account: ByEmail,
        /// What it may do from now on
        #[arg(long)]
        role: RoleArg,
    },
    /// End the waits that failed logins have caused
    Unlock(ByEmail),
    /// Print an account's current passcode; waits for the next one when the current one is spent
    ///
    /// For machines with access to the data directory and root key. Recorded in the audit.
    Passcode(ByEmail),
}

#[derive(Subcommand)]
pub(crate) enum DatabaseCommand {
    /// Print the embedded file's key as SQLCipher takes it, for forensic work and repair
    ///
    /// Whoever has it can read the whole file. Recorded in the audit.
    Key {
        /// Do not ask first
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct NamedIntegration {
    /// The organization's name
    #[arg(long, value_name = "NAME")]
    pub(crate) org: String,
    /// The integration's name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Subcommand)]
pub(crate) enum IntegrationCommand {
    /// Make an integration and print its token once
    Create {
        #[command(flatten)]
        integration: NamedIntegration,
        /// A namespace that it may activate, or a prefix and /* for all below it, later ones too; repeatable
        #[arg(long, value_name = "PATTERN", required = true, num_args = 1..)]
        namespace: Vec<String>,
        /// When its tokens stop working, as 2027-01-31T00:00:00Z [default: never]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List integrations, never their tokens
    List {
        /// Only those of this organization
        #[arg(long, value_name = "NAME")]
        org: Option<String>,
    },
    /// Replace an integration's token and print the new one once; the one before works on for a while
    Rotate {
        #[command(flatten)]
        integration: NamedIntegration,
        /// For how long the token before works on, 0 to 604800; 0 ends it at once [default: 86400]
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<i64>,
    },
    /// Stop an integration's tokens from working
    Disable(NamedIntegration),
    /// Let a disabled integration's tokens work again
    Enable(NamedIntegration),
    /// Delete an integration with its activations
    Delete {
        #[command(flatten)]
        integration: NamedIntegration,
        /// Do not ask for the name again
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct NamedNamespace {
    /// The namespace, exactly
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The organization's name
    #[arg(long, value_name = "NAME")]
    pub(crate) org: String,
}

#[derive(Subcommand)]
pub(crate) enum NamespaceCommand {
    /// Refuse every activation of a namespace from this moment on, whether it holds anything yet or not
    Freeze(NamedNamespace),
    /// Allow activations of a frozen namespace again
    Thaw(NamedNamespace),
    /// List frozen namespaces
    List,
}
