//! `orgvault account invite`

use super::organization::Organizations;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::Settings;
use crate::text::rfc3339;
use secrecy::ExposeSecret;
use serde::Serialize;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::Invited;
use vault_embed::OpenVault;

/// An invitation, as scripts read it.
#[derive(Serialize)]
struct ShownInvitation<'a> {
    account_id: String,
    email: String,
    organization: &'a str,
    role: &'static str,
    enrolment_code: &'a str,
    expires_at: String,
}

/// Carries the command out.
pub(super) async fn run(
    settings: &Settings,
    vault: &OpenVault,
    organization: String,
    email: &str,
    role: Role,
    output: Output,
) -> Result<(), Failure> {
    let organization = Organizations::of(vault).await?.id_of(&organization)?;
    let accounts = vault.accounts();
    let invited = accounts.invite(&Principal::Operator, organization, email, role).await?;
    let organization = vault.ports().store.organizations.organization(invited.grant.organization).await?;
    let organization = organization.map_or_else(String::new, |organization| organization.name.to_string());
    let shown = ShownInvitation {
        account_id: invited.grant.account.to_string(),
        email: invited.grant.email.to_string(),
        organization: &organization,
        role: invited.grant.role.as_str(),
        enrolment_code: invited.code.text().expose_secret(), // printed for its owner, once
        expires_at: rfc3339(invited.expires_at),
    };
    output.print(&shown, &text(&invited, &organization, &settings.base_url(settings.listen)))
}

/// The invitation for people. Code and password go through standard input, because other users of a machine can read
/// a process's arguments.
fn text(invited: &Invited, organization: &str, base_url: &str) -> String {
    let (grant, code) = (&invited.grant, invited.code.text().expose_secret()); // printed for its owner, once
    format!(
        r#"Account {} of {organization} ({}) is invited. Its owner needs the code; it is shown this once:

  e-mail         {}
  enrolment code {code}
  valid until    {}

First choose a password; the answer has the address for an authenticator and the recovery codes, shown once:

curl -sS {base_url}/enrol -H 'Content-Type: application/json' --data-binary @- <<'JSON'; echo
{{"enrolment_code": "{code}", "password": "YOUR PASSWORD"}}
JSON

Then confirm with the six digits that the authenticator shows; after that, log in with the next ones:

curl -sS {base_url}/enrol/confirm -H 'Content-Type: application/json' --data-binary @- <<'JSON' -w '%{{http_code}}\n'
{{"enrolment_code": "{code}", "passcode": "SIX DIGITS"}}
JSON
"#,
        grant.account,
        grant.role,
        grant.email,
        rfc3339(invited.expires_at),
    )
}
