//! `orgvault account invite` and `orgvault account re-enrol`: enrolment codes.

use super::account::{change, is};
use super::target::{Of, Target};
use crate::cli::AccountOrInvitation;
use crate::served;
use crate::settings::{PublicUrl, ServerSettings};
use secrecy::ExposeSecret;
use serde::Serialize;
use std::io::{self, IsTerminal as _};
use url::Url;
use vault_cli::client::prompt;
use vault_cli::failure::{Doing, Failure, NO_ACCOUNT};
use vault_cli::output::{Output, warn};
use vault_cli::text::quoted;
use vault_client::{AccountItem, InviteRequest, ReEnrolment, WireSecret};
use vault_core::account::AccountState;
use vault_core::email::EmailAddress;
use vault_core::role::Role;

/// Invites a user.
pub(super) fn run(
    target: &Target<'_>,
    org: Option<&str>,
    email: &str,
    role: Role,
    output: Output,
) -> Result<(), Failure> {
    let org = target.organization(org)?;
    let links = Links::of(target, output)?;
    let what = || format!("invite {email} to {org}");
    let place = target.place(Some(org)).doing(what)?;
    let request = InviteRequest { email: email.to_owned(), role: role.as_str().to_owned() };
    let object = target.done(place.session.invite(&request), NO_ACCOUNT).doing(what)?;
    let email = EmailAddress::parse(email).map_or_else(|_| email.to_owned(), |email| email.to_string());
    let done = format!("Invited {email} to {} ({role}).", place.organization);
    let invited = Of { organization: place.organization, object };
    let code = (&invited.object.enrolment_code, &*invited.object.expires_at);
    links.print(&done, (&invited.object.id, &email), code, &invited, output)
}

/// Requires the owner of an account to enrol again.
pub(super) fn re_enrol(target: &Target<'_>, address: &AccountOrInvitation, output: Output) -> Result<(), Failure> {
    let links = Links::of(target, output)?;
    let re_enrolled = change(target, address, "re-enrol", |session, found| {
        session.re_enrol_account(&found.id).map(|enrolment| (found, enrolment))
    })?;
    let Of { organization, object: (account, enrolment) } = re_enrolled;
    let email = &account.email;
    let done = format!(
        "Destroyed the password, passcode and recovery codes of {email} ({organization}, {}) and ended its sessions.",
        account.role
    );
    let ReEnrolment { enrolment_code, expires_at } = &enrolment;
    let shown = Of { organization: organization.clone(), object: &enrolment };
    links.print(&done, (&account.id, email), (enrolment_code, expires_at), &shown, output)?;
    if is(&account, AccountState::Disabled) {
        let enable = target.command_line(&format!("account set --email {} --state enabled", quoted(email)));
        warn(&format!("{email} is disabled. Enable it with `{enable}`"));
    }
    let is_admin = |one: &AccountItem| is(one, AccountState::Active) && one.role == Role::Admin.as_str();
    if account.role == Role::Admin.as_str()
        && !target.done(target.place(Some(&organization))?.session.accounts(), NO_ACCOUNT)?.iter().any(is_admin)
    {
        warn(&format!("{organization} has no active admin until {email} has enrolled"));
    }
    Ok(())
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
            Target::Operator(settings, ..) => {
                let server = &settings.server;
                let last = served::last(settings).filter(|_| !server.names_address());
                let origin = match last.or_else(|| server.public_url.clone()) {
                    Some(origin) => origin,
                    None => ask(server, output)?,
                };
                (origin, "Set --public-url to the URL that other hosts use")
            }
            Target::Login(login) => {
                let origin = Url::parse(&login.url)?.origin().ascii_serialization();
                (origin.parse().map_err(Failure::new)?, "Log in with the URL that other hosts use")
            }
        };
        let remedy = origin.is_local().then_some(remedy);
        Ok(Self { origin, remedy })
    }

    /// Prints an enrolment code after the success line `done`.
    fn print(
        &self,
        done: &str,
        (id, email): (&str, &str),
        (code, until): (&WireSecret, &str),
        document: &impl Serialize,
        output: Output,
    ) -> Result<(), Failure> {
        let code = code.secret().expose_secret(); // printed once, for the owner of the account
        // The code is in the fragment, which browsers do not send to servers.
        let link = format!("{}/#/enrol/{code}", self.origin);
        let text = format!(
            r#"{done} Send the user this enrolment link. It is shown only once:

  {link}

  e-mail         {email}
  enrolment code {code}
  valid until    {until}
  account id     {id}

Without a browser, the user runs `orgvault enrol` and pastes the link.
"#
        );
        output.print(document, &text)?;
        if let Some(remedy) = self.remedy.filter(|_| !output.is_json()) {
            warn(&format!("{} can be reached only from this host. {remedy}", self.origin));
        }
        Ok(())
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
