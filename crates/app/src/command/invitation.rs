//! `orgvault account invite` and `orgvault account re-enrol`: enrolment codes.

use super::account::{Changed, accounts, change};
use super::organization::organization_id;
use super::target::Target;
use crate::cli::AccountOrInvitation;
use crate::served;
use crate::settings::{PublicUrl, ServerSettings};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use std::io::{self, IsTerminal as _};
use url::Url;
use vault_cli::client::prompt;
use vault_cli::failure::{Doing, Failure, NO_ACCOUNT, refused};
use vault_cli::output::{Output, warn};
use vault_cli::text::{quoted, rfc3339};
use vault_client::InviteRequest;
use vault_core::account::AccountState;
use vault_core::email::EmailAddress;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::AccountCommand;

/// An enrolment code and its account.
struct Enrolment {
    id: String,
    email: String,
    organization: String,
    role: String,
    /// State of the account, for `re-enrol`. A disabled account stays disabled.
    state: Option<String>,
    code: SecretString,
    expires_at: String,
}

/// An enrolment code in JSON output.
#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    email: &'a str,
    organization: &'a str,
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    enrolment_code: &'a str,
    expires_at: &'a str,
}

/// Invites a user.
pub(super) async fn run(
    target: &Target<'_>,
    org: Option<&str>,
    email: &str,
    role: Role,
    output: Output,
) -> Result<(), Failure> {
    let org = target.organization(org)?;
    let links = Links::of(target, output)?;
    let invited = invite(target, org, email, role).await.doing(|| format!("invite {email} to {org}"))?;
    let done = format!("Invited {} to {} ({}).", invited.email, invited.organization, invited.role);
    invited.print(&done, &links, output)
}

async fn invite(target: &Target<'_>, org: &str, email: &str, role: Role) -> Result<Enrolment, Failure> {
    match target {
        Target::Database(_, vault) => {
            let organization = organization_id(vault, org).await?;
            let invited = vault.accounts().invite(&Principal::Operator, organization, email, role).await;
            let invited = invited.map_err(|error| refused(error, NO_ACCOUNT))?;
            let organization = vault.ports().store.organizations.organization(organization).await?;
            Ok(Enrolment {
                id: invited.grant.account.to_string(),
                email: invited.grant.email.to_string(),
                organization: organization.map_or_else(String::new, |organization| organization.name.to_string()),
                role: invited.grant.role.as_str().to_owned(),
                state: None,
                code: invited.code.text().clone(),
                expires_at: rfc3339(invited.expires_at),
            })
        }
        Target::Server(remote) => {
            let role = role.as_str().to_owned();
            let request = InviteRequest { email: email.to_owned(), role: role.clone() };
            let invited = remote.done(remote.session.invite(&request), NO_ACCOUNT)?;
            Ok(Enrolment {
                id: invited.id,
                email: EmailAddress::parse(email).map_or_else(|_| email.to_owned(), |email| email.to_string()),
                organization: remote.account.organization.clone(),
                role,
                state: None,
                code: invited.enrolment_code.into_secret(),
                expires_at: invited.expires_at,
            })
        }
    }
}

/// Requires the owner of an account to enrol again.
pub(super) async fn re_enrol(
    target: &Target<'_>,
    address: &AccountOrInvitation,
    output: Output,
) -> Result<(), Failure> {
    let what = || format!("re-enrol {}", address.address.email);
    let links = Links::of(target, output)?;
    let Changed { found, enrolment, .. } = change(target, address, AccountCommand::ReEnrol).await.doing(what)?;
    let (code, expires_at) = enrolment.ok_or_else(|| Failure::new("no enrolment code was created")).doing(what)?;
    let is_disabled = found.is(AccountState::Disabled);
    let enrolment = Enrolment {
        id: found.account.id,
        email: found.account.email,
        organization: found.organization,
        role: found.account.role,
        state: Some(found.account.state),
        code,
        expires_at,
    };
    let (email, organization) = (&enrolment.email, &enrolment.organization);
    let done = format!(
        "Destroyed the password, passcode and recovery codes of {email} ({organization}, {}) and ended its sessions.",
        enrolment.role
    );
    enrolment.print(&done, &links, output)?;
    if is_disabled {
        let enable = target.command_line(&format!("account set --email {} --state enabled", quoted(email)));
        warn(&format!("{email} is disabled. Enable it with `{enable}`"));
    }
    if enrolment.role == Role::Admin.as_str()
        && !accounts(target, Some(organization)).await?.iter().any(|account| account.is_active_admin())
    {
        warn(&format!("{organization} has no active admin until {email} has enrolled"));
    }
    Ok(())
}

impl Enrolment {
    /// Prints the code after the success line `done`.
    fn print(&self, done: &str, links: &Links, output: Output) -> Result<(), Failure> {
        let code = self.code.expose_secret(); // printed once, for the owner of the account
        let shown = Shown {
            id: &self.id,
            email: &self.email,
            organization: &self.organization,
            role: &self.role,
            state: self.state.as_deref(),
            enrolment_code: code,
            expires_at: &self.expires_at,
        };
        // The code is in the fragment, which browsers do not send to servers.
        let link = format!("{}/#/enrol/{code}", links.origin);
        let text = format!(
            r#"{done} Send the user this enrolment link. It is shown only once:

  {link}

  e-mail         {email}
  enrolment code {code}
  valid until    {until}
  account id     {id}

Without a browser, the user runs `orgvault enrol` and pastes the link.
"#,
            email = self.email,
            until = self.expires_at,
            id = self.id,
        );
        output.print(&shown, &text)?;
        if let Some(remedy) = links.remedy.filter(|_| !output.is_json()) {
            warn(&format!("{} can be reached only from this host. {remedy}", links.origin));
        }
        Ok(())
    }
}

/// The URL of the server for the invited user: from the settings, else the address at which it was last served. With a
/// login, that of the login.
struct Links {
    origin: PublicUrl,
    /// Next step if only this host can reach the server.
    remedy: Option<&'static str>,
}

impl Links {
    fn of(target: &Target<'_>, output: Output) -> Result<Self, Failure> {
        let (origin, remedy) = match target {
            Target::Database(settings, _) => {
                let server = &settings.server;
                let last = served::last(settings).filter(|_| !server.names_address());
                let origin = match last.or_else(|| server.public_url.clone()) {
                    Some(origin) => origin,
                    None => ask(server, output)?,
                };
                (origin, "Set --public-url to the URL that other hosts use")
            }
            Target::Server(remote) => {
                let origin = Url::parse(&remote.url)?.origin().ascii_serialization();
                (origin.parse().map_err(Failure::new)?, "Log in with the URL that other hosts use")
            }
        };
        let remedy = origin.is_local().then_some(remedy);
        Ok(Self { origin, remedy })
    }
}

/// Asks for the URL of a server that listens on all addresses and that no setting names. Scripts get the URL for this host.
fn ask(server: &ServerSettings, output: Output) -> Result<PublicUrl, Failure> {
    let local = server.origin_url(server.listen);
    if server.listen.ip().is_unspecified() && io::stdin().is_terminal() && !output.is_json() {
        let question = format!("URL of this server for other hosts (--public-url) [{local}]");
        let typed = prompt::line("--public-url", &question)?;
        if !typed.is_empty() {
            return typed.parse().map_err(|flawed| Failure::usage(format!("--public-url: {flawed}")));
        }
    }
    local.parse().map_err(Failure::new)
}
