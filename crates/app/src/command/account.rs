//! `orgvault account …`

use super::invitation;
use super::organization;
use super::target::{Of, Target, wait};
use crate::cli::{AccountCommand as Asked, AccountOrInvitation, ByEmail, PasswordFile, RoleArg, StateArg, StateFlag};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use vault_cli::failure::{Doing, Failure, NO_ACCOUNT, refused};
use vault_cli::output::{Output, table};
use vault_cli::secret_file;
use vault_cli::text::{passcode_sheet, quoted};
use vault_client::{AccountItem, ChangeAccountRequest, ClientError, ProblemCode, Session, Totp};
use vault_core::account::AccountState;
use vault_core::email::EmailAddress;
use vault_core::lockout::WRONG_PASSCODES;
use vault_core::password::MAX_BYTES;
use vault_core::role::Role;
use vault_core::usecase::{CreateAccountRequest, CreatedAccount};
use vault_core::{Error, Refusal};
use vault_embed::OpenVault;

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Admin => Self::Admin,
            RoleArg::Editor => Self::Editor,
            RoleArg::Viewer => Self::Viewer,
        }
    }
}

/// A new account in JSON output.
#[derive(Serialize)]
pub(crate) struct ShownCreated {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) organization: String,
    pub(crate) role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) password: Option<String>,
    pub(crate) totp: Totp,
    pub(crate) recovery_codes: Vec<String>,
}

impl From<&CreatedAccount> for ShownCreated {
    fn from(created: &CreatedAccount) -> Self {
        Self {
            id: created.grant.account.to_string(),
            email: created.grant.email.to_string(),
            organization: created.organization.name.to_string(),
            role: created.grant.role.as_str(),
            password: created.generated_password.as_ref().map(reveal),
            totp: Totp { secret: created.passcode.secret.clone().into(), uri: created.passcode.uri.clone().into() },
            recovery_codes: created.recovery_codes.iter().map(|code| reveal(&code.0)).collect(),
        }
    }
}

/// Reveals a secret, which is printed once, for the owner of the account.
fn reveal(secret: &SecretString) -> String {
    secret.expose_secret().to_owned()
}

/// Returns the lockouts after failed logins, which `unlock` removes.
fn lockouts(account: &AccountItem) -> Vec<String> {
    let until = account.locked_until.as_ref().map(|until| format!("locked until {until}"));
    until.into_iter().chain(account.login_closed.then(|| "login closed".to_owned())).collect()
}

/// Returns all lockouts, including a disabled passcode, which `unlock` does not enable.
fn all_lockouts(account: &AccountItem) -> String {
    let passcode = account.passcode_disabled.then(|| "passcode disabled".to_owned());
    let all: Vec<String> = lockouts(account).into_iter().chain(passcode).collect();
    if all.is_empty() { "no".to_owned() } else { all.join(", ") }
}

/// Returns whether the account is in this state.
pub(super) fn is(account: &AccountItem, state: AccountState) -> bool {
    account.state == state.as_str()
}

pub(crate) fn run(target: &Target<'_>, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Invite { org, account, role } => {
            invitation::run(target, org.as_deref(), &account.email, role.into(), output)
        }
        Asked::List { org } => list(target, org.as_deref(), output),
        Asked::Show(account) => show(target, &account, output),
        Asked::Set { account, set: StateFlag { state } } => {
            let (doing, state) = match state {
                StateArg::Disabled => ("disable", AccountState::Disabled),
                StateArg::Enabled => ("enable", AccountState::Active),
            };
            let request =
                ChangeAccountRequest { state: Some(state.as_str().to_owned()), ..ChangeAccountRequest::default() };
            let set = |session: &Session, found: AccountItem| session.change_account(&found.id, &request);
            let changed = change(target, &account.into(), doing, set)?;
            let email = &changed.object.email;
            let text = match (state, is(&changed.object, AccountState::ReEnrolling)) {
                (AccountState::Disabled, _) => format!("Disabled {email} and ended its sessions."),
                (_, true) => format!("Enabled {email}. The user must enrol again first."),
                (_, false) => format!("Enabled {email}."),
            };
            output.print(&changed, &text)
        }
        Asked::Delete { account, yes } => {
            let email = &account.address.email;
            if !yes {
                output.confirm(&format!("This deletes account {email}."), email)?;
            }
            let delete = |session: &Session, found: AccountItem| session.delete_account(&found.id).map(|()| found);
            let deleted = change(target, &account, "delete", delete)?;
            let email = &deleted.object.email;
            let text = match is(&deleted.object, AccountState::Invited) {
                true => format!("Withdrew the invitation of {email}."),
                false => format!("Deleted account {email}."),
            };
            output.print(&deleted, &text)
        }
        Asked::SetRole { account, role } => {
            let role = Some(Role::from(role).as_str().to_owned());
            let request = ChangeAccountRequest { role, ..ChangeAccountRequest::default() };
            let set = |session: &Session, found: AccountItem| session.change_account(&found.id, &request);
            let changed = change(target, &account, "change the role of", set)?;
            let AccountItem { email, role, .. } = &changed.object;
            let text = match is(&changed.object, AccountState::Invited) {
                true => format!("Changed the role of the invitation of {email} to {role}."),
                false => format!("Changed the role of {email} to {role} and ended its sessions."),
            };
            output.print(&changed, &text)
        }
        Asked::ReEnrol(account) => invitation::re_enrol(target, &account.into(), output),
        Asked::Unlock(account) => unlock(target, &account.into(), output),
        Asked::Create { org, account, role, password } => {
            let (_, vault) = target.database("account create")?;
            let password = password.read()?;
            let created = wait(create(vault, org, account.email, role.into(), password))?;
            output.print(&ShownCreated::from(&created), &created_text(&created)?)
        }
    }
}

pub(crate) async fn create(
    vault: &OpenVault,
    organization: String,
    email: String,
    role: Role,
    password: Option<SecretString>,
) -> Result<CreatedAccount, Failure> {
    let what = format!("create account {email} in {organization}");
    let organization = organization::named(vault, &organization).await.doing(|| what.clone())?.id;
    let request = CreateAccountRequest { organization, email, role, password };
    vault.accounts().create(request).await.map_err(|error| refused(error, NO_ACCOUNT)).doing(|| what)
}

/// Formats the login details of a new account.
pub(crate) fn created_text(created: &CreatedAccount) -> Result<String, Failure> {
    let grant = &created.grant;
    let password = created.generated_password.as_ref().map_or_else(|| "as given".to_owned(), reveal);
    Ok(format!(
        "Created account {0} ({1}, {2}). Copy these now; they are not shown again:\n\n  e-mail         {0}\n  password       {password}\n{3}",
        grant.email,
        grant.role,
        created.organization.name,
        passcode_sheet(&created.passcode, &created.recovery_codes)?
    ))
}

/// Changes an account or invitation. `doing` names the change in errors.
pub(super) fn change<T>(
    target: &Target<'_>,
    address: &AccountOrInvitation,
    doing: &str,
    change: impl FnOnce(&Session, AccountItem) -> Result<T, ClientError>,
) -> Result<Of<T>, Failure> {
    let what = || format!("{doing} {}", address.address.email);
    let place = target.place_of(address).doing(what)?;
    let found = find(target, &place.session, address).doing(what)?;
    let is_invited = is(&found, AccountState::Invited);
    let changed = change(&place.session, found).or_else(|error| {
        match is_invited && error.code() == Some(ProblemCode::Conflict) {
            true => Err(refused(Error::Refused(Refusal::OnlyInvited), NO_ACCOUNT)),
            false => target.done(Err(error), NO_ACCOUNT),
        }
    });
    Ok(Of { organization: place.organization, object: changed.doing(what)? })
}

/// Unlocks an account. Prints the lockout that was removed, so that the operator notices if there was none.
fn unlock(target: &Target<'_>, address: &AccountOrInvitation, output: Output) -> Result<(), Failure> {
    let unlock = |session: &Session, found: AccountItem| session.unlock_account(&found.id).map(|()| found);
    let shown = change(target, address, "unlock", unlock)?;
    let (account, email) = (&shown.object, &shown.object.email);
    let mut text = match (lockouts(account), account.failed_logins) {
        (lockouts, 0) if lockouts.is_empty() => format!("{email} was not locked.\n"),
        (lockouts, attempts) if lockouts.is_empty() => {
            format!("{email} was not locked. Cleared: {attempts} failed logins in a row.\n")
        }
        (lockouts, attempts) => {
            format!("Unlocked {email}. Cleared: {} ({attempts} failed logins in a row).\n", lockouts.join(", "))
        }
    };
    if account.passcode_disabled {
        text += &passcode_disabled(account);
    }
    output.print(&shown, &text)
}

fn passcode_disabled(account: &AccountItem) -> String {
    format!(
        "Time-based passcodes are disabled after {} wrong ones. Recovery codes work; else run `orgvault account \
         re-enrol --email {}`.\n",
        account.wrong_passcodes, account.email
    )
}

fn show(target: &Target<'_>, address: &AccountOrInvitation, output: Output) -> Result<(), Failure> {
    let shown = change(target, address, "show", |_, found| Ok(found))?;
    let account = &shown.object;
    let is_invited = is(account, AccountState::Invited);
    let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "never".to_owned());
    let mut lines = vec![
        ("e-mail", account.email.clone()),
        ("account id", account.id.clone()),
        ("organization", shown.organization.clone()),
        ("role", account.role.clone()),
        ("state", account.state.clone()),
        ("created", account.created_at.clone()),
    ];
    if let Some(expires) = &account.invitation_expires_at {
        let name = if is_invited { "invitation until" } else { "code until" };
        lines.push((name, expires.clone()));
    }
    if !is_invited {
        lines.extend([
            ("last login", time(&account.last_login_at)),
            ("last refusal", time(&account.last_failed_login_at)),
            ("locked", if account.locked { all_lockouts(account) } else { "no".to_owned() }),
            ("failed logins", format!("{} in a row", account.failed_logins)),
            ("wrong passcodes", format!("{} of {WRONG_PASSCODES}", account.wrong_passcodes)),
        ]);
    }
    let mut text: String = lines.iter().map(|(name, value)| format!("{name:<16}  {value}\n")).collect();
    if !lockouts(account).is_empty() {
        text += &format!(
            "\nTo clear the lockout, run `{}`.\n",
            target.command_line(&format!("account unlock --email {}", quoted(&account.email)))
        );
    }
    if account.passcode_disabled {
        text += &format!("\n{}", passcode_disabled(account));
    }
    output.print(&shown, &text)
}

fn list(target: &Target<'_>, org: Option<&str>, output: Output) -> Result<(), Failure> {
    let mut shown = Vec::new();
    for place in target.places(org)? {
        let mut accounts = target.done(place.session.accounts(), NO_ACCOUNT)?;
        accounts.sort_by(|a, b| a.email.cmp(&b.email));
        shown.extend(accounts.into_iter().map(|object| Of { organization: place.organization.clone(), object }));
    }
    let row = |Of { organization, object: account }: &Of<AccountItem>| {
        let last = account.last_login_at.clone().unwrap_or_else(|| "never".to_owned());
        let state = match &account.invitation_expires_at {
            Some(expires) if is(account, AccountState::Disabled) => {
                format!("{}, enrolment code until {expires}", account.state)
            }
            Some(expires) => format!("{} until {expires}", account.state),
            None => account.state.clone(),
        };
        let (email, role, attempts) = (account.email.clone(), account.role.clone(), account.failed_logins.to_string());
        vec![email, organization.clone(), role, state, all_lockouts(account), attempts, last]
    };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    output.print(
        &shown,
        &table(&["E-MAIL", "ORGANIZATION", "ROLE", "STATE", "LOCKED", "FAILED LOGINS", "LAST LOGIN"], &rows),
    )
}

fn find(target: &Target<'_>, session: &Session, address: &AccountOrInvitation) -> Result<AccountItem, Failure> {
    let email = EmailAddress::parse(&address.address.email)
        .map_err(|error| refused(Error::Invalid(vec![error.at("/email")]), NO_ACCOUNT))?;
    let mut accounts = target.done(session.accounts(), NO_ACCOUNT)?.into_iter();
    let found = accounts.find(|account| account.email == email.as_str());
    found.ok_or_else(|| Failure::new(NO_ACCOUNT))
}

impl From<ByEmail> for AccountOrInvitation {
    fn from(address: ByEmail) -> Self {
        Self { address, org: None }
    }
}

impl PasswordFile {
    /// Reads the password from the file, if one was given, without a trailing newline.
    fn read(&self) -> Result<Option<SecretString>, Failure> {
        let Some(path) = &self.password_file else { return Ok(None) };
        const FLAG: &str = "--password-file";
        let bytes = secret_file::read_or_stdin(FLAG, path, 2 * MAX_BYTES)?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Failure::new("--password-file: the password must be UTF-8 text"))?;
        let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
        Ok(Some(SecretString::from(text)))
    }
}
