//! Where a command of admins runs: on the database, as the operator, or at a server, with a stored login.

use crate::parts;
use crate::settings::Settings;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use vault_cli::client::data::printable;
use vault_cli::client::login::{Login, Profile};
use vault_cli::failure::{Failure, flag_of, rejected};
use vault_cli::text::program;
use vault_client::{Client, ClientError, OwnAccount, ProblemCode, Session};
use vault_core::id::OrganizationId;
use vault_core::port::Clock as _;
use vault_core::time::Timestamp;
use vault_embed::{OpenVault, SystemClock};
use vault_http::OperatorApi;

/// Where a command of admins runs.
pub(crate) enum Target<'a> {
    /// The database of these settings, as the operator of all organizations.
    Database(&'a Settings, &'a OpenVault),
    /// A server's HTTP API, in the organization of the account that is logged in.
    Server(&'a Remote),
}

/// A login to a server.
pub(crate) struct Remote {
    pub(super) session: Session,
    /// The account that is logged in.
    pub(super) account: OwnAccount,
    /// URL of the HTTP API.
    pub(super) url: String,
    profile: Profile,
}

impl Remote {
    /// Reads the login of a profile, and requests its account.
    pub(crate) fn open(profile: &Profile) -> Result<Self, Failure> {
        let (login, stored) = Login::read(profile)?;
        let (url, log_in) = (login.url.clone(), profile.login_command());
        let session = login.client(None)?.resume(stored.access_token.into_secret());
        let account = session.account().map_err(|error| refused(error, &log_in, "the server has no such path"))?;
        Ok(Self { session, account, url, profile: profile.clone() })
    }

    /// Converts the result of a request. `object` is the message for an object that does not exist.
    pub(super) fn done<T>(&self, result: Result<T, ClientError>, object: &str) -> Result<T, Failure> {
        result.map_err(|error| refused(error, &self.profile.login_command(), object))
    }
}

/// Converts an error of the HTTP API to that of the same operation on the database.
fn refused(error: ClientError, log_in: &str, object: &str) -> Failure {
    match (&error, error.code()) {
        (_, Some(ProblemCode::NotFound)) => Failure::new(object),
        (_, Some(ProblemCode::InvalidToken)) => {
            Failure::new(format!("your login has expired or was revoked. Run `{log_in}`"))
        }
        (ClientError::Problem { problem, .. }, _) if !problem.errors.is_empty() => {
            let errors = problem.errors.iter().map(|error| (flag_of(&error.pointer), &*error.detail));
            Failure::new(printable(&rejected(errors)))
        }
        (ClientError::Problem { problem, .. }, Some(ProblemCode::Conflict)) => {
            let detail = printable(problem.detail.trim_end_matches('.'));
            let mut rest = detail.chars();
            let first = rest.next().map(|first| first.to_ascii_lowercase());
            Failure::new(first.into_iter().chain(rest).collect::<String>())
        }
        _ => error.into(),
    }
}

impl Target<'_> {
    /// Returns a session: that of the login, or one of the operator in this process. `organization` is the one that the
    /// command names. On the database, call it on the runtime of the vault.
    pub(super) fn session(&self, organization: Option<OrganizationId>) -> Session {
        match self {
            Self::Database(_, vault) => {
                let (api, runtime) = (OperatorApi::new(parts::operator(vault), organization), Handle::current());
                let answer = move |request| block_in_place(|| runtime.block_on(api.answer(request)));
                Client::in_process(answer).resume(String::new().into())
            }
            Self::Server(remote) => remote.session.clone(),
        }
    }

    /// Converts the result of a request. `object` is the message for an object that does not exist.
    pub(super) fn done<T>(&self, result: Result<T, ClientError>, object: &str) -> Result<T, Failure> {
        let log_in = match self {
            Self::Database(..) => String::new(), // the operator needs no login
            Self::Server(remote) => remote.profile.login_command(),
        };
        result.map_err(|error| refused(error, &log_in, object))
    }

    /// Returns the name of the organization that `--org` names. Without it, that of the login.
    pub(super) fn organization<'t>(&'t self, org: Option<&'t str>) -> Result<&'t str, Failure> {
        match (self, org) {
            (Self::Database(..), Some(org)) => Ok(org),
            (Self::Database(..), None) => {
                Err(Failure::usage("--org is required. Only with --profile, the organization is that of the login"))
            }
            (Self::Server(remote), Some(org)) if !org.eq_ignore_ascii_case(&remote.account.organization) => {
                Err(Failure::new(format!(
                    "--org: the login belongs to organization {}. Leave out --org, or log in to {org} with another profile",
                    remote.account.organization
                )))
            }
            (Self::Server(remote), _) => Ok(&remote.account.organization),
        }
    }

    /// Returns settings and database, for a command that the HTTP API does not offer.
    pub(super) fn database(&self, command: &str) -> Result<(&Settings, &OpenVault), Failure> {
        match self {
            Self::Database(settings, vault) => Ok((settings, vault)),
            Self::Server(_) => Err(Failure::usage(server_only(command, ""))),
        }
    }

    /// Returns a shell command that runs `words` at the same place.
    pub(super) fn command_line(&self, words: &str) -> String {
        match self {
            Self::Database(settings, _) => settings.command_line(words),
            Self::Server(remote) => format!("{} {words} --profile {}", program(), remote.profile.as_str()),
        }
    }

    /// Returns the address of the server's activation listener, if the settings contain one.
    pub(super) fn activation_url(&self) -> Option<String> {
        match self {
            Self::Database(settings, _) => settings.server.activation_url(),
            Self::Server(remote) => remote.account.server.activation_url.clone(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Database(_, vault) => vault.ports().environment.now(),
            Self::Server(_) => SystemClock.now(),
        }
    }
}

/// Creates the error of a command that the HTTP API does not offer. `instead` is the next step.
pub(crate) fn server_only(command: &str, instead: &str) -> String {
    format!("`orgvault {command}` runs on the server only, without --profile{instead}")
}
