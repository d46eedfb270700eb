//! `orgvault account …`

use super::invitation;
use super::organization::{Organizations, organization_id};
use crate::cli::{AccountCommand as Asked, AccountOrInvitation, PasswordFile, RoleArg};
use crate::failure::{Doing, Failure, NO_ACCOUNT, refused};
use crate::output::{Output, table};
use crate::run_as::NamedFiles;
use crate::secret_file;
use crate::settings::Settings;
use crate::text::{passcode_sheet, rfc3339};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use std::time::Duration;
use vault_core::account::{AccountGrant, AccountLogins, AccountState, ListedAccount};
use vault_core::cursor::PageRequest;
use vault_core::email::EmailAddress;
use vault_core::lockout::WRONG_PASSCODES;
use vault_core::passcode::{PasscodeSecret, RecoveryCode};
use vault_core::password::{MAX_BYTES, generate_password};
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;
use vault_core::usecase::{AccountCommand, AccountRef, CreateAccountRequest, CreatedAccount, CurrentPasscode};
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

/// An authenticator's secret in JSON output.
#[derive(Serialize)]
pub(crate) struct ShownTotp {
    secret: String,
    uri: String,
}

impl From<&PasscodeSecret> for ShownTotp {
    fn from(passcode: &PasscodeSecret) -> Self {
        // Printed once, for the owner of the account.
        Self { secret: passcode.secret.expose_secret().to_owned(), uri: passcode.uri.expose_secret().to_owned() }
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
    pub(crate) totp: ShownTotp,
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
            totp: ShownTotp::from(&created.passcode),
            recovery_codes: created.recovery_codes.iter().map(|code| reveal(&code.0)).collect(),
        }
    }
}

/// Reveals a secret, which is printed once, for the owner of the account.
fn reveal(secret: &SecretString) -> String {
    secret.expose_secret().to_owned()
}

#[derive(Serialize)]
struct ShownAccount {
    id: String,
    email: String,
    organization: String,
    role: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_login_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_refused_at: Option<String>,
    #[serde(flatten)]
    lock: Option<ShownLock>,
    /// The lockout that `unlock` removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<ShownLock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invitation_expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    totp: Option<ShownTotp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_codes: Option<Vec<String>>,
}

/// The lockouts of an account in JSON output.
#[derive(Clone, Serialize)]
struct ShownLock {
    /// Set if the server may reject a correct login.
    locked: bool,
    /// Highest number of consecutive failed logins from one throttle bucket.
    attempts: u32,
    /// Start of the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked_since: Option<String>,
    /// End of the lockout, if it is temporary.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked_until: Option<String>,
    /// Set if logins are rejected until `account unlock`.
    closed: bool,
    wrong_passcodes: u32,
    /// Set if time-based passcodes are rejected until `account reset-passcode`.
    passcode_disabled: bool,
}

impl From<&AccountLogins> for ShownLock {
    fn from(logins: &AccountLogins) -> Self {
        Self {
            locked: logins.is_locked(),
            attempts: logins.attempts.attempts,
            locked_since: logins.locked_since().map(rfc3339),
            locked_until: logins.attempts.waits_until.map(rfc3339),
            closed: logins.attempts.closed,
            wrong_passcodes: logins.wrong_passcodes,
            passcode_disabled: logins.passcode_disabled(),
        }
    }
}

impl ShownLock {
    /// Returns the lockouts after failed logins, which `unlock` removes.
    fn lockouts(&self) -> Vec<String> {
        let until = self.locked_until.as_ref().map(|until| format!("locked until {until}"));
        until.into_iter().chain(self.closed.then(|| "login closed".to_owned())).collect()
    }

    /// Returns all lockouts, including a disabled passcode, which `unlock` does not enable.
    fn all(&self) -> Vec<String> {
        self.lockouts().into_iter().chain(self.passcode_disabled.then(|| "passcode disabled".to_owned())).collect()
    }
}

pub(crate) async fn run(settings: &Settings, vault: &OpenVault, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Invite { org, account, role } => {
            invitation::run(settings, vault, org, &account.email, role.into(), output).await
        }
        Asked::Create { org, account, role, password } => {
            let password = password.read(&settings.files)?;
            let created = create(vault, org, account.email, role.into(), password).await?;
            output.print(&ShownCreated::from(&created), &created_text(&created)?)
        }
        Asked::List { org } => list(vault, org, output).await,
        Asked::Show(account) => show(vault, account.find(vault).await?, output).await,
        Asked::Disable(account) => {
            let done = |grant: &AccountGrant| format!("Disabled {} and ended its sessions.", grant.email);
            change(vault, AccountRef::email(&account.email), AccountCommand::Disable, "disable", done, output).await
        }
        Asked::Enable(account) => {
            let done = |grant: &AccountGrant| match grant.state {
                AccountState::ReEnrolling => format!("Enabled {}. The user must enrol again first.", grant.email),
                _ => format!("Enabled {}.", grant.email),
            };
            change(vault, AccountRef::email(&account.email), AccountCommand::Enable, "enable", done, output).await
        }
        Asked::Delete { account, yes } => {
            if !yes {
                let email = &account.address.email;
                output.confirm(&format!("This deletes account {email}."), email)?;
            }
            let done = |grant: &AccountGrant| match grant.state {
                AccountState::Invited => format!("Withdrew the invitation of {}.", grant.email),
                _ => format!("Deleted account {}.", grant.email),
            };
            change(vault, account.find(vault).await?, AccountCommand::Delete, "delete", done, output).await
        }
        Asked::ResetPasscode(account) => {
            let done = |grant: &AccountGrant| {
                format!("Replaced the passcode secret and recovery codes of {} and ended its sessions.", grant.email)
            };
            change(
                vault,
                AccountRef::email(&account.email),
                AccountCommand::ResetPasscode,
                "replace the passcode of",
                done,
                output,
            )
            .await
        }
        Asked::SetPassword { account, password } => {
            set_password(settings, vault, &account.email, &password, output).await
        }
        Asked::SetRole { account, role } => {
            let done = |grant: &AccountGrant| match grant.state {
                AccountState::Invited => {
                    format!("Changed the role of the invitation of {} to {}.", grant.email, grant.role)
                }
                _ => format!("Changed the role of {} to {} and ended its sessions.", grant.email, grant.role),
            };
            let command = AccountCommand::SetRole(role.into());
            change(vault, account.find(vault).await?, command, "change the role of", done, output).await
        }
        Asked::ReEnrol(account) => invitation::re_enrol(settings, vault, &account.email, output).await,
        Asked::Unlock(account) => unlock(vault, &account.email, output).await,
        Asked::Passcode(account) => passcode(vault, &account.email, output).await,
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
    let organization = organization_id(vault, &organization).await.doing(|| what.clone())?;
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

/// Changes an account. Errors name the operation `doing`, and `done` formats the success line.
async fn change(
    vault: &OpenVault,
    account: AccountRef<'_>,
    command: AccountCommand,
    doing: &str,
    done: impl FnOnce(&AccountGrant) -> String,
    output: Output,
) -> Result<(), Failure> {
    let (shown, text) = changed(vault, account, command, doing, done).await?;
    output.print(&shown, &text)
}

async fn changed(
    vault: &OpenVault,
    account: AccountRef<'_>,
    command: AccountCommand,
    doing: &str,
    done: impl FnOnce(&AccountGrant) -> String,
) -> Result<(ShownAccount, String), Failure> {
    let accounts = vault.accounts();
    let changed = accounts.change(&Principal::Operator, account, command).await;
    let what = || format!("{doing} {}", address(account));
    let changed = changed.map_err(|error| refused(error, NO_ACCOUNT)).doing(what)?;
    let grant = &changed.account.grant;
    let mut shown = shown(grant, organization_name(vault, grant).await?);
    let mut text = done(grant) + "\n";
    if let Some((passcode, codes)) = &changed.passcode {
        text += &format!("Copy these now; they are not shown again:\n\n{}", passcode_sheet(passcode, codes)?);
        shown.totp = Some(ShownTotp::from(passcode));
        shown.recovery_codes = Some(codes.iter().map(|RecoveryCode(code)| reveal(code)).collect());
    }
    Ok((shown, text))
}

async fn set_password(
    settings: &Settings,
    vault: &OpenVault,
    email: &str,
    file: &PasswordFile,
    output: Output,
) -> Result<(), Failure> {
    let given = file.read(&settings.files)?;
    let generated = match given {
        Some(_) => None,
        None => Some(generate_password(&*vault.ports().entropy)?),
    };
    let Some(password) = given.or_else(|| generated.clone()) else { return Ok(()) };
    let done = |grant: &AccountGrant| format!("Replaced the password of {} and ended its sessions.", grant.email);
    let command = AccountCommand::SetPassword(password);
    let (mut shown, mut text) =
        changed(vault, AccountRef::email(email), command, "replace the password of", done).await?;
    if let Some(password) = &generated {
        text += &format!("Copy it now; it is not shown again:\n\n  password       {}\n", reveal(password));
        shown.password = Some(reveal(password));
    }
    output.print(&shown, &text)
}

/// Unlocks an account. Prints the lockout that was removed, so that the operator notices if there was none.
async fn unlock(vault: &OpenVault, email: &str, output: Output) -> Result<(), Failure> {
    let changed = vault.accounts().change(&Principal::Operator, AccountRef::email(email), AccountCommand::Unlock).await;
    let changed = changed.map_err(|error| refused(error, NO_ACCOUNT));
    let account = changed.doing(|| format!("unlock {email}"))?.account;
    let found = ShownLock::from(&account.logins);
    let email = &account.grant.email;
    let mut text = match (found.lockouts(), found.attempts) {
        (lockouts, 0) if lockouts.is_empty() => format!("{email} was not locked.\n"),
        (lockouts, attempts) if lockouts.is_empty() => {
            format!("{email} was not locked. Cleared: {attempts} failed logins in a row.\n")
        }
        (lockouts, attempts) => {
            format!("Unlocked {email}. Cleared: {} ({attempts} failed logins in a row).\n", lockouts.join(", "))
        }
    };
    if found.passcode_disabled {
        text += &passcode_disabled(&found, email);
    }
    let shown = shown(&account.grant, organization_name(vault, &account.grant).await?);
    output.print(&ShownAccount { found: Some(found), ..shown }, &text)
}

fn passcode_disabled(lock: &ShownLock, email: &EmailAddress) -> String {
    format!(
        "Time-based passcodes are disabled after {} wrong ones. Recovery codes work; else run `orgvault account \
         reset-passcode --email {email}`.\n",
        lock.wrong_passcodes
    )
}

async fn show(vault: &OpenVault, asked: AccountRef<'_>, output: Output) -> Result<(), Failure> {
    let account = vault.accounts().account(&Principal::Operator, asked).await;
    let what = || format!("show {}", address(asked));
    let account = account.map_err(|error| refused(error, NO_ACCOUNT)).doing(what)?;
    let organization = organization_name(vault, &account.grant).await?;
    let row = listed(&account, organization);
    let lock = ShownLock::from(&account.logins);
    let never = || "never".to_owned();
    let mut lines = vec![
        ("e-mail", row.email.clone()),
        ("account id", row.id.clone()),
        ("organization", row.organization.clone()),
        ("role", row.role.to_owned()),
        ("state", row.state.to_owned()),
        ("created", row.created_at.clone().unwrap_or_default()),
    ];
    if let Some(expires) = &row.invitation_expires_at {
        let name = if account.grant.state == AccountState::Invited { "invitation until" } else { "code until" };
        lines.push((name, expires.clone()));
    }
    if account.grant.state != AccountState::Invited {
        lines.extend([
            ("last login", row.last_login_at.clone().unwrap_or_else(never)),
            ("last refusal", row.last_refused_at.clone().unwrap_or_else(never)),
            ("locked", if lock.locked { lock.all().join(", ") } else { "no".to_owned() }),
            ("failed logins", format!("{} in a row", lock.attempts)),
            ("wrong passcodes", format!("{} of {WRONG_PASSCODES}", lock.wrong_passcodes)),
        ]);
    }
    let mut text: String = lines.iter().map(|(name, value)| format!("{name:<16}  {value}\n")).collect();
    if !lock.lockouts().is_empty() {
        text += &format!("\nTo clear the lockout, run `orgvault account unlock --email {}`.\n", account.grant.email);
    }
    if lock.passcode_disabled {
        text += &format!("\n{}", passcode_disabled(&lock, &account.grant.email));
    }
    output.print(&row, &text)
}

/// Returns the fields of an account in lists.
fn listed(account: &ListedAccount, organization: String) -> ShownAccount {
    ShownAccount {
        created_at: Some(rfc3339(account.created_at)),
        last_login_at: account.logins.last_login_at.map(rfc3339),
        last_refused_at: account.logins.last_refused_at.map(rfc3339),
        lock: Some(ShownLock::from(&account.logins)),
        invitation_expires_at: account.invitation_expires_at.map(rfc3339),
        ..shown(&account.grant, organization)
    }
}

async fn list(vault: &OpenVault, org: Option<String>, output: Output) -> Result<(), Failure> {
    let organizations = Organizations::of(vault).await?;
    let scope = match &org {
        None => Scope::All,
        Some(name) => Scope::One(organization_id(vault, name).await?),
    };
    let accounts = all(vault, scope).await?;
    let shown: Vec<ShownAccount> =
        accounts.iter().map(|account| listed(account, organizations.name_of(account.grant.organization))).collect();
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            let last = row.last_login_at.clone().unwrap_or_else(|| "never".to_owned());
            let state = match &row.invitation_expires_at {
                Some(expires) if row.state == AccountState::Disabled.as_str() => {
                    format!("{}, enrolment code until {expires}", row.state)
                }
                Some(expires) => format!("{} until {expires}", row.state),
                None => row.state.to_owned(),
            };
            let (locked, attempts) = row
                .lock
                .as_ref()
                .map_or_else(Default::default, |lock| (lock.all().join(", "), lock.attempts.to_string()));
            let locked = if locked.is_empty() { "no".to_owned() } else { locked };
            vec![row.email.clone(), row.organization.clone(), row.role.to_owned(), state, locked, attempts, last]
        })
        .collect();
    output.print(
        &shown,
        &table(&["E-MAIL", "ORGANIZATION", "ROLE", "STATE", "LOCKED", "FAILED LOGINS", "LAST LOGIN"], &rows),
    )
}

/// Returns all accounts of a scope, ordered by organization and address.
pub(super) async fn all(vault: &OpenVault, scope: Scope) -> Result<Vec<ListedAccount>, Failure> {
    let accounts = vault.accounts();
    let (mut listed, mut request) = (Vec::new(), PageRequest::default());
    loop {
        let page = accounts.list(&Principal::Operator, scope, request).await?;
        listed.extend(page.items);
        let Some(next) = page.next else { break };
        request = PageRequest { cursor: Some(next), ..PageRequest::default() };
    }
    listed.sort_by(|a, b| (a.grant.organization, &a.grant.email).cmp(&(b.grant.organization, &b.grant.email)));
    Ok(listed)
}

fn shown(grant: &AccountGrant, organization: String) -> ShownAccount {
    ShownAccount {
        id: grant.account.to_string(),
        email: grant.email.to_string(),
        organization,
        role: grant.role.as_str(),
        state: grant.state.as_str(),
        created_at: None,
        last_login_at: None,
        last_refused_at: None,
        lock: None,
        found: None,
        invitation_expires_at: None,
        password: None,
        totp: None,
        recovery_codes: None,
    }
}

pub(super) async fn organization_name(vault: &OpenVault, grant: &AccountGrant) -> Result<String, Failure> {
    let organization = vault.ports().store.organizations.organization(grant.organization).await?;
    Ok(organization.map_or_else(String::new, |organization| organization.name.to_string()))
}

#[derive(Serialize)]
struct ShownPasscode<'a> {
    passcode: &'a str,
    expires_at: String,
}

async fn passcode(vault: &OpenVault, email: &str, output: Output) -> Result<(), Failure> {
    let accounts = vault.accounts();
    loop {
        let read = accounts.read_passcode(email).await.map_err(|error| refused(error, NO_ACCOUNT));
        match read.doing(|| format!("show the passcode of {email}"))? {
            CurrentPasscode::Ready(code, until) => {
                let code = code.expose_secret(); // the operator requested it
                return output.print(&ShownPasscode { passcode: code, expires_at: rfc3339(until) }, code);
            }
            CurrentPasscode::SpentUntil(next) => {
                let wait = next.millis_since(vault.ports().environment.now()).max(0);
                tracing::info!(
                    seconds = (wait + 999) / 1000,
                    "the current passcode is used up; waiting for the next one"
                );
                tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())).await;
            }
        }
    }
}

impl AccountOrInvitation {
    async fn find(&self, vault: &OpenVault) -> Result<AccountRef<'_>, Failure> {
        let organization = match &self.org {
            Some(name) => Some(organization_id(vault, name).await?),
            None => None,
        };
        Ok(AccountRef::Email { email: &self.address.email, organization })
    }
}

/// Returns the name of an account for messages.
const fn address(account: AccountRef<'_>) -> &str {
    match account {
        AccountRef::Email { email, .. } => email,
        AccountRef::Id(..) => "an account",
    }
}

impl PasswordFile {
    /// Reads the password from the file, if one was given, without a trailing newline.
    fn read(&self, files: &NamedFiles) -> Result<Option<SecretString>, Failure> {
        let Some(path) = &self.password_file else { return Ok(None) };
        const FLAG: &str = "--password-file";
        let bytes = secret_file::read_or_stdin(files, FLAG, path, 2 * MAX_BYTES)?;
        let text = std::str::from_utf8(&bytes)
            .map_err(|_| Failure::new("--password-file: the password must be UTF-8 text"))?;
        let text = text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text));
        Ok(Some(SecretString::from(text)))
    }
}
