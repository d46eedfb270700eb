//! The caller of a command of admins: the operator, whose requests stay in this process, or an account that is logged in.

use super::organization;
use crate::cli::AccountOrInvitation;
use crate::parts;
use crate::settings::Settings;
use serde::Serialize;
use std::future::Future;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use vault_cli::client::login::{self, Login, Profile};
use vault_cli::failure::{Failure, NO_ACCOUNT, refused};
use vault_cli::text::program;
use vault_client::{Client, ClientError, OwnAccount, Session};
use vault_core::id::OrganizationId;
use vault_core::organization::Organization;
use vault_core::port::Clock as _;
use vault_core::principal::Principal;
use vault_core::time::Timestamp;
use vault_core::usecase::AccountRef;
use vault_embed::{OpenVault, SystemClock};
use vault_http::OperatorApi;

/// The caller of a command of admins.
pub(crate) enum Target<'a> {
    /// The operator of all organizations, on the database of these settings.
    Operator(&'a Settings, &'a OpenVault, OperatorApi),
    /// An account that is logged in to a server, in its organization.
    Login(Box<LoggedIn>),
}

/// A login to a server.
pub(crate) struct LoggedIn {
    session: Session,
    account: OwnAccount,
    /// URL of the HTTP API.
    pub(super) url: String,
    profile: Profile,
}

/// A session whose requests concern one organization.
pub(super) struct Place {
    /// Name of the organization.
    pub(super) organization: String,
    pub(super) session: Session,
}

/// An object of the API in JSON output, with its organization.
#[derive(Serialize)]
pub(super) struct Of<T> {
    pub(super) organization: String,
    #[serde(flatten)]
    pub(super) object: T,
}

impl<'a> Target<'a> {
    /// Creates the operator of an opened vault.
    pub(crate) fn operator(settings: &'a Settings, vault: &'a OpenVault) -> Self {
        Self::Operator(settings, vault, OperatorApi::new(parts::operator(vault)))
    }

    /// Reads the login of a profile, and requests its account.
    pub(crate) fn login(profile: &Profile) -> Result<Self, Failure> {
        let (login, stored) = Login::read(profile)?;
        let session = login.client(None)?.resume(stored.access_token.into_secret());
        let account = session.account();
        let account = account.map_err(|error| login::refused(&error, profile, Some("the server has no such path")))?;
        Ok(Self::Login(Box::new(LoggedIn { session, account, url: login.url, profile: profile.clone() })))
    }

    /// Returns the session of the login, or one of the operator in this process. Without an organization, the requests of
    /// the operator concern the instance.
    pub(super) fn session(&self, organization: Option<OrganizationId>) -> Session {
        match self {
            Self::Operator(_, _, api) => {
                let (api, runtime) = (api.clone(), Handle::current());
                let answer = move |request| block_in_place(|| runtime.block_on(api.answer(organization, request)));
                Client::in_process(answer).resume(String::new().into())
            }
            Self::Login(login) => login.session.clone(),
        }
    }

    /// Returns the place of the organization that `--org` names. Without it, that of the login.
    pub(super) fn place(&self, org: Option<&str>) -> Result<Place, Failure> {
        let name = self.organization(org)?;
        let Self::Operator(_, vault, _) = self else {
            return Ok(Place { session: self.session(None), organization: name.to_owned() });
        };
        Ok(self.at(&wait(organization::named(vault, name))?))
    }

    /// Returns the place of one organization. Without `org`, those of all that the caller administers.
    pub(super) fn places(&self, org: Option<&str>) -> Result<Vec<Place>, Failure> {
        match (self, org) {
            (Self::Operator(_, vault, _), None) => {
                Ok(wait(vault.operator().organizations())?.iter().map(|one| self.at(one)).collect())
            }
            _ => Ok(vec![self.place(org)?]),
        }
    }

    /// Returns the place of an account or invitation. The operator finds it without its organization.
    pub(super) fn place_of(&self, address: &AccountOrInvitation) -> Result<Place, Failure> {
        match (self, &address.org) {
            (Self::Operator(_, vault, _), None) => {
                let account = AccountRef::email(&address.address.email);
                let found = wait(vault.accounts().account(&Principal::Operator, account));
                let id = found.map_err(|error| refused(error, NO_ACCOUNT))?.grant.organization;
                let organization = wait(vault.operator().organization_with_id(id));
                Ok(self.at(&organization.map_err(|error| refused(error, NO_ACCOUNT))?))
            }
            (_, org) => self.place(org.as_deref()),
        }
    }

    /// Returns the operator's place of an organization.
    fn at(&self, organization: &Organization) -> Place {
        Place { session: self.session(Some(organization.id)), organization: organization.name.to_string() }
    }

    /// Returns the name of the organization that `--org` names. Without it, that of the login.
    pub(super) fn organization<'t>(&'t self, org: Option<&'t str>) -> Result<&'t str, Failure> {
        match (self, org) {
            (Self::Operator(..), Some(org)) => Ok(org),
            (Self::Operator(..), None) => {
                Err(Failure::usage("--org is required. Only with --profile, the organization is that of the login"))
            }
            (Self::Login(login), Some(org)) if !org.eq_ignore_ascii_case(&login.account.organization) => {
                Err(Failure::new(format!(
                    "--org: the login belongs to organization {}. Leave out --org, or log in to {org} with another profile",
                    login.account.organization
                )))
            }
            (Self::Login(login), _) => Ok(&login.account.organization),
        }
    }

    /// Returns the ID of the login's organization. Entries for operators contain theirs.
    pub(super) fn organization_id(&self) -> Option<&str> {
        match self {
            Self::Operator(..) => None,
            Self::Login(login) => Some(&login.account.organization_id),
        }
    }

    /// Seals new audit entries of the operator's database before they are read. Lists of an organization contain only sealed
    /// entries. A server seals them within a second, but none may be running.
    pub(super) fn seal_audit(&self) -> Result<(), Failure> {
        const MILLIS: i64 = 10_000;
        match self {
            Self::Operator(_, vault, _) => Ok(wait(vault.operator().seal_audit(MILLIS)).map(drop)?),
            Self::Login(_) => Ok(()),
        }
    }

    /// Converts the result of a request. `object` is the message for an object that does not exist.
    pub(super) fn done<T>(&self, result: Result<T, ClientError>, object: &str) -> Result<T, Failure> {
        let profile = match self {
            Self::Operator(..) => &Profile::default(), // the operator has no login that ends
            Self::Login(login) => &login.profile,
        };
        result.map_err(|error| login::refused(&error, profile, Some(object)))
    }

    /// Returns settings and database, for a command that the HTTP API does not offer.
    pub(super) fn database(&self, command: &str) -> Result<(&Settings, &OpenVault), Failure> {
        match self {
            Self::Operator(settings, vault, _) => Ok((settings, vault)),
            Self::Login(_) => Err(Failure::usage(server_only(command, ""))),
        }
    }

    /// Returns a shell command that runs `words` at the same place.
    pub(super) fn command_line(&self, words: &str) -> String {
        match self {
            Self::Operator(settings, ..) => settings.command_line(words),
            Self::Login(login) => format!("{} {words} --profile {}", program(), login.profile.as_str()),
        }
    }

    /// Returns the address of the server's activation listener, if the settings contain one.
    pub(super) fn activation_url(&self) -> Option<String> {
        match self {
            Self::Operator(settings, ..) => settings.server.activation_url(),
            Self::Login(login) => login.account.server.activation_url.clone(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Operator(_, vault, _) => vault.ports().environment.now(),
            Self::Login(_) => SystemClock.now(),
        }
    }
}

/// Waits for a use case of the operator, on the runtime of the vault.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    block_in_place(|| Handle::current().block_on(future))
}

/// Creates the error of a command that the HTTP API does not offer. `instead` is the next step.
pub(crate) fn server_only(command: &str, instead: &str) -> String {
    format!("`orgvault {command}` runs on the server only, without --profile{instead}")
}
