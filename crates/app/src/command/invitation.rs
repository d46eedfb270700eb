//! `orgvault account invite` and `orgvault account re-enrol`: enrolment codes.

use super::account::{all, organization_name};
use super::organization::organization_id;
use crate::failure::{Doing, Failure, NO_ACCOUNT, refused};
use crate::output::{Output, warn};
use crate::served;
use crate::settings::Settings;
use crate::text::rfc3339;
use secrecy::ExposeSecret;
use serde::Serialize;
use vault_core::account::AccountState;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;
use vault_core::usecase::{AccountCommand, AccountRef, Invited};
use vault_embed::OpenVault;

/// An invitation in JSON output.
#[derive(Serialize)]
struct ShownInvitation<'a> {
    id: String,
    email: String,
    organization: &'a str,
    role: &'static str,
    /// State of the account, for `re-enrol`. A disabled account stays disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    enrolment_code: &'a str,
    expires_at: String,
}

/// Invites a user.
pub(super) async fn run(
    settings: &Settings,
    vault: &OpenVault,
    organization: String,
    email: &str,
    role: Role,
    output: Output,
) -> Result<(), Failure> {
    let what = format!("invite {email} to {organization}");
    let organization = organization_id(vault, &organization).await.doing(|| what.clone())?;
    let accounts = vault.accounts();
    let invited = accounts.invite(&Principal::Operator, organization, email, role).await;
    let invited = invited.map_err(|error| refused(error, NO_ACCOUNT)).doing(|| what)?;
    let organization = vault.ports().store.organizations.organization(invited.grant.organization).await?;
    let organization = organization.map_or_else(String::new, |organization| organization.name.to_string());
    let shown = ShownInvitation {
        id: invited.grant.account.to_string(),
        email: invited.grant.email.to_string(),
        organization: &organization,
        role: invited.grant.role.as_str(),
        state: None,
        enrolment_code: invited.code.text().expose_secret(), // printed once, for the invited user
        expires_at: rfc3339(invited.expires_at),
    };
    let server = Server::of(settings);
    let done = format!("Invited {} to {organization} ({}).", invited.grant.email, invited.grant.role);
    output.print(&shown, &text(&done, &invited, &server.enrolment_url(&invited)))?;
    server.warn_if_local(output);
    Ok(())
}

/// Requires the owner of an account to enrol again.
pub(super) async fn re_enrol(
    settings: &Settings,
    vault: &OpenVault,
    email: &str,
    output: Output,
) -> Result<(), Failure> {
    let what = || format!("re-enrol {email}");
    let account = AccountRef::email(email);
    let changed = vault.accounts().change(&Principal::Operator, account, AccountCommand::ReEnrol).await;
    let changed = changed.map_err(|error| refused(error, NO_ACCOUNT)).doing(what)?;
    let (code, expires_at) =
        changed.enrolment.ok_or_else(|| Failure::new("no enrolment code was created")).doing(what)?;
    let invited = Invited { grant: changed.account.grant, code, expires_at };
    let (grant, organization) = (&invited.grant, organization_name(vault, &invited.grant).await?);
    let server = Server::of(settings);
    let shown = ShownInvitation {
        id: grant.account.to_string(),
        email: grant.email.to_string(),
        organization: &organization,
        role: grant.role.as_str(),
        state: Some(grant.state.as_str()),
        enrolment_code: invited.code.text().expose_secret(), // printed once, for the owner of the account
        expires_at: rfc3339(invited.expires_at),
    };
    let done = format!(
        "Destroyed the password, passcode and recovery codes of {} ({organization}, {}) and ended its sessions.",
        grant.email, grant.role
    );
    output.print(&shown, &text(&done, &invited, &server.enrolment_url(&invited)))?;
    if grant.state == AccountState::Disabled {
        warn(&format!("{0} is disabled. Enable it with `orgvault account enable --email {0}`", grant.email));
    }
    let colleagues = all(vault, Scope::One(grant.organization)).await?;
    if grant.role == Role::Admin && !colleagues.iter().any(|account| account.grant.is_active_admin()) {
        warn(&format!("{organization} has no active admin until {} has enrolled", grant.email));
    }
    server.warn_if_local(output);
    Ok(())
}

/// The URLs of the server for the invited user: from the settings, else the address at which it was last served.
struct Server {
    base_url: String,
    console: String,
    is_local: bool,
}

impl Server {
    fn of(settings: &Settings) -> Self {
        let server = &settings.server;
        match served::last(settings).filter(|_| !server.names_address()) {
            Some(url) => Self {
                base_url: format!("{url}{}", server.base_path),
                console: format!("{url}/"),
                is_local: url.is_local(),
            },
            None => Self {
                base_url: server.base_url(server.listen),
                console: server.console_url(server.listen),
                is_local: server.is_local_url(),
            },
        }
    }

    /// Returns the URL of the console's enrolment page. The code is in the fragment, which browsers do not send to
    /// servers.
    fn enrolment_url(&self, invited: &Invited) -> String {
        format!("{}#/enrol/{}", self.console, invited.code.text().expose_secret()) // printed once, for the invited user
    }

    fn warn_if_local(&self, output: Output) {
        if !output.is_json() && self.is_local {
            warn(&format!(
                "{} can be reached only from this host. Set --public-url to the URL that other hosts use",
                self.base_url
            ));
        }
    }
}

/// Formats an enrolment code after the success line `done`.
fn text(done: &str, invited: &Invited, link: &str) -> String {
    let grant = &invited.grant;
    format!(
        r#"{done} Send the user this enrolment link. It is shown only once:

  {link}

  e-mail         {email}
  enrolment code {code}
  valid until    {until}
  account id     {id}

Without a browser, the user runs `orgvault enrol` and pastes the link.
"#,
        email = grant.email,
        code = invited.code.text().expose_secret(), // printed for its owner, once
        until = rfc3339(invited.expires_at),
        id = grant.account,
    )
}
