//! `orgvault account …`

use super::invitation;
use super::organization::{Organizations, organization_id};
use super::target::{Remote, Target};
use crate::cli::{AccountCommand as Asked, AccountOrInvitation, ByEmail, PasswordFile, RoleArg, StateArg, StateFlag};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use vault_cli::failure::{Doing, Failure, NO_ACCOUNT, refused};
use vault_cli::output::{Output, table};
use vault_cli::secret_file;
use vault_cli::text::{passcode_sheet, quoted, rfc3339};
use vault_client::{AccountItem, ChangeAccountRequest, ClientError, ProblemCode};
use vault_core::account::{AccountState, ListedAccount};
use vault_core::cursor::PageRequest;
use vault_core::email::EmailAddress;
use vault_core::lockout::WRONG_PASSCODES;
use vault_core::passcode::PasscodeSecret;
use vault_core::password::MAX_BYTES;
use vault_core::principal::{Principal, Scope};
use vault_core::role::Role;
use vault_core::usecase::{AccountCommand, AccountRef, CreateAccountRequest, CreatedAccount};
use vault_core::{Error, Refusal};
use vault_embed::OpenVault;
use vault_http::items;

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
    role: String,
    state: String,
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
    /// Set if time-based passcodes are rejected until the account enrols again.
    passcode_disabled: bool,
}

impl From<&AccountItem> for ShownLock {
    fn from(account: &AccountItem) -> Self {
        Self {
            locked: account.locked,
            attempts: account.failed_logins,
            locked_since: account.locked_since.clone(),
            locked_until: account.locked_until.clone(),
            closed: account.login_closed,
            wrong_passcodes: account.wrong_passcodes,
            passcode_disabled: account.passcode_disabled,
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

/// An account or invitation with the name of its organization.
pub(super) struct Found {
    pub(super) organization: String,
    pub(super) account: AccountItem,
}

impl Found {
    pub(super) fn is(&self, state: AccountState) -> bool {
        self.account.state == state.as_str()
    }

    pub(super) fn is_active_admin(&self) -> bool {
        self.is(AccountState::Active) && self.account.role == Role::Admin.as_str()
    }
}

/// The result of a change.
pub(super) struct Changed {
    /// The account after the change, or before its deletion. The results of logins are from before the change.
    pub(super) found: Found,
    /// Enrolment code and its expiry.
    pub(super) enrolment: Option<(SecretString, String)>,
}

/// The texts of a change: the operation for errors, and the success line.
struct Texts<F: FnOnce(&Found) -> String> {
    doing: &'static str,
    done: F,
}

pub(crate) async fn run(target: &Target<'_>, command: Asked, output: Output) -> Result<(), Failure> {
    match command {
        Asked::Invite { org, account, role } => {
            invitation::run(target, org.as_deref(), &account.email, role.into(), output).await
        }
        Asked::List { org } => list(target, org.as_deref(), output).await,
        Asked::Show(account) => show(target, &account, output).await,
        Asked::Set { account, set: StateFlag { state: StateArg::Disabled } } => {
            let done = |found: &Found| format!("Disabled {} and ended its sessions.", found.account.email);
            let texts = Texts { doing: "disable", done };
            print_changed(target, &account.into(), AccountCommand::Disable, texts, output).await
        }
        Asked::Set { account, set: StateFlag { state: StateArg::Enabled } } => {
            let done = |found: &Found| match found.is(AccountState::ReEnrolling) {
                true => format!("Enabled {}. The user must enrol again first.", found.account.email),
                false => format!("Enabled {}.", found.account.email),
            };
            let texts = Texts { doing: "enable", done };
            print_changed(target, &account.into(), AccountCommand::Enable, texts, output).await
        }
        Asked::Delete { account, yes } => {
            if !yes {
                let email = &account.address.email;
                output.confirm(&format!("This deletes account {email}."), email)?;
            }
            let done = |found: &Found| match found.is(AccountState::Invited) {
                true => format!("Withdrew the invitation of {}.", found.account.email),
                false => format!("Deleted account {}.", found.account.email),
            };
            let texts = Texts { doing: "delete", done };
            print_changed(target, &account, AccountCommand::Delete, texts, output).await
        }
        Asked::SetRole { account, role } => {
            let done = |Found { account, .. }: &Found| match account.state == AccountState::Invited.as_str() {
                true => format!("Changed the role of the invitation of {} to {}.", account.email, account.role),
                false => format!("Changed the role of {} to {} and ended its sessions.", account.email, account.role),
            };
            let texts = Texts { doing: "change the role of", done };
            print_changed(target, &account, AccountCommand::SetRole(role.into()), texts, output).await
        }
        Asked::ReEnrol(account) => invitation::re_enrol(target, &account.into(), output).await,
        Asked::Unlock(account) => unlock(target, &account.into(), output).await,
        Asked::Create { org, account, role, password } => {
            let (_, vault) = target.database("account create")?;
            let password = password.read()?;
            let created = create(vault, org, account.email, role.into(), password).await?;
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

/// Changes an account and prints the result.
async fn print_changed(
    target: &Target<'_>,
    address: &AccountOrInvitation,
    command: AccountCommand,
    texts: Texts<impl FnOnce(&Found) -> String>,
    output: Output,
) -> Result<(), Failure> {
    let what = || format!("{} {}", texts.doing, address.address.email);
    let changed = change(target, address, command).await.doing(what)?;
    let text = (texts.done)(&changed.found);
    output.print(&shown(changed.found), &text)
}

/// Changes an account or invitation.
pub(super) async fn change(
    target: &Target<'_>,
    address: &AccountOrInvitation,
    command: AccountCommand,
) -> Result<Changed, Failure> {
    match target {
        Target::Database(_, vault) => {
            let account = reference(vault, address).await?;
            let changed = vault.accounts().change(&Principal::Operator, account, command).await;
            let changed = changed.map_err(|error| refused(error, NO_ACCOUNT))?;
            let enrolment = changed.enrolment.map(|(code, until)| (code.text().clone(), rfc3339(until)));
            Ok(Changed { found: found(vault, &changed.account).await?, enrolment })
        }
        Target::Server(remote) => {
            let before = find_remote(target, remote, address)?;
            let state = before.state.clone();
            let (account, enrolment) = change_remote(remote, before, command).or_else(|error| {
                let is_invited = state == AccountState::Invited.as_str();
                match error.code() == Some(ProblemCode::Conflict) && is_invited {
                    true => Err(refused(Error::Refused(Refusal::OnlyInvited), NO_ACCOUNT)),
                    false => remote.done(Err(error), NO_ACCOUNT),
                }
            })?;
            Ok(Changed { found: found_remote(remote, account), enrolment })
        }
    }
}

/// Requests the change of the account `before`. Returns the account after the change, or before its deletion, and its
/// enrolment code.
fn change_remote(
    remote: &Remote,
    before: AccountItem,
    command: AccountCommand,
) -> Result<(AccountItem, Option<(SecretString, String)>), ClientError> {
    let (session, id) = (&remote.session, before.id.clone());
    let set_state = |state: AccountState| {
        let state = Some(state.as_str().to_owned());
        session.change_account(&id, &ChangeAccountRequest { state, ..ChangeAccountRequest::default() })
    };
    let account = match command {
        AccountCommand::Disable => set_state(AccountState::Disabled)?,
        AccountCommand::Enable => set_state(AccountState::Active)?,
        AccountCommand::SetRole(role) => {
            let role = Some(role.as_str().to_owned());
            session.change_account(&id, &ChangeAccountRequest { role, ..ChangeAccountRequest::default() })?
        }
        AccountCommand::Unlock => session.unlock_account(&id).map(|()| before)?,
        AccountCommand::Delete => session.delete_account(&id).map(|()| before)?,
        AccountCommand::ReEnrol => {
            let enrolment = session.re_enrol_account(&id)?;
            // A disabled account stays disabled.
            let state = match before.state == AccountState::Disabled.as_str() {
                true => before.state,
                false => AccountState::ReEnrolling.as_str().to_owned(),
            };
            let enrolment = (enrolment.enrolment_code.into_secret(), enrolment.expires_at);
            return Ok((AccountItem { state, ..before }, Some(enrolment)));
        }
    };
    Ok((account, None))
}

/// Unlocks an account. Prints the lockout that was removed, so that the operator notices if there was none.
async fn unlock(target: &Target<'_>, address: &AccountOrInvitation, output: Output) -> Result<(), Failure> {
    let changed = change(target, address, AccountCommand::Unlock).await;
    let account = changed.doing(|| format!("unlock {}", address.address.email))?.found;
    let found = ShownLock::from(&account.account);
    let email = account.account.email.clone();
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
        text += &passcode_disabled(&found, &email);
    }
    output.print(&ShownAccount { found: Some(found), ..shown(account) }, &text)
}

fn passcode_disabled(lock: &ShownLock, email: &str) -> String {
    format!(
        "Time-based passcodes are disabled after {} wrong ones. Recovery codes work; else run `orgvault account \
         re-enrol --email {email}`.\n",
        lock.wrong_passcodes
    )
}

async fn show(target: &Target<'_>, address: &AccountOrInvitation, output: Output) -> Result<(), Failure> {
    let account = find(target, address).await.doing(|| format!("show {}", address.address.email))?;
    let is_invited = account.is(AccountState::Invited);
    let lock = ShownLock::from(&account.account);
    let row = listed(account);
    let never = || "never".to_owned();
    let mut lines = vec![
        ("e-mail", row.email.clone()),
        ("account id", row.id.clone()),
        ("organization", row.organization.clone()),
        ("role", row.role.clone()),
        ("state", row.state.clone()),
        ("created", row.created_at.clone().unwrap_or_default()),
    ];
    if let Some(expires) = &row.invitation_expires_at {
        let name = if is_invited { "invitation until" } else { "code until" };
        lines.push((name, expires.clone()));
    }
    if !is_invited {
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
        text += &format!(
            "\nTo clear the lockout, run `{}`.\n",
            target.command_line(&format!("account unlock --email {}", quoted(&row.email)))
        );
    }
    if lock.passcode_disabled {
        text += &format!("\n{}", passcode_disabled(&lock, &row.email));
    }
    output.print(&row, &text)
}

/// Returns the fields of an account in lists.
fn listed(found: Found) -> ShownAccount {
    let account = &found.account;
    ShownAccount {
        created_at: Some(account.created_at.clone()),
        last_login_at: account.last_login_at.clone(),
        last_refused_at: account.last_failed_login_at.clone(),
        lock: Some(ShownLock::from(account)),
        invitation_expires_at: account.invitation_expires_at.clone(),
        ..shown(found)
    }
}

async fn list(target: &Target<'_>, org: Option<&str>, output: Output) -> Result<(), Failure> {
    let shown: Vec<ShownAccount> = accounts(target, org).await?.into_iter().map(listed).collect();
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            let last = row.last_login_at.clone().unwrap_or_else(|| "never".to_owned());
            let state = match &row.invitation_expires_at {
                Some(expires) if row.state == AccountState::Disabled.as_str() => {
                    format!("{}, enrolment code until {expires}", row.state)
                }
                Some(expires) => format!("{} until {expires}", row.state),
                None => row.state.clone(),
            };
            let (locked, attempts) = row
                .lock
                .as_ref()
                .map_or_else(Default::default, |lock| (lock.all().join(", "), lock.attempts.to_string()));
            let locked = if locked.is_empty() { "no".to_owned() } else { locked };
            vec![row.email.clone(), row.organization.clone(), row.role.clone(), state, locked, attempts, last]
        })
        .collect();
    output.print(
        &shown,
        &table(&["E-MAIL", "ORGANIZATION", "ROLE", "STATE", "LOCKED", "FAILED LOGINS", "LAST LOGIN"], &rows),
    )
}

/// Returns the accounts and invitations of one organization, or of all, ordered by organization and address.
pub(super) async fn accounts(target: &Target<'_>, org: Option<&str>) -> Result<Vec<Found>, Failure> {
    match target {
        Target::Database(_, vault) => {
            let organizations = Organizations::of(vault).await?;
            let scope = match org {
                None => Scope::All,
                Some(name) => Scope::One(organization_id(vault, name).await?),
            };
            let found = |account: &ListedAccount| Found {
                organization: organizations.name_of(account.grant.organization),
                account: items::account(account),
            };
            Ok(all(vault, scope).await?.iter().map(found).collect())
        }
        Target::Server(remote) => {
            target.organization(org)?;
            let mut accounts = remote.done(remote.session.accounts(), NO_ACCOUNT)?;
            accounts.sort_by(|a, b| a.email.cmp(&b.email));
            Ok(accounts.into_iter().map(|account| found_remote(remote, account)).collect())
        }
    }
}

/// Returns all accounts of a scope, ordered by organization and address.
async fn all(vault: &OpenVault, scope: Scope) -> Result<Vec<ListedAccount>, Failure> {
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

async fn find(target: &Target<'_>, address: &AccountOrInvitation) -> Result<Found, Failure> {
    match target {
        Target::Database(_, vault) => {
            let account = vault.accounts().account(&Principal::Operator, reference(vault, address).await?).await;
            found(vault, &account.map_err(|error| refused(error, NO_ACCOUNT))?).await
        }
        Target::Server(remote) => Ok(found_remote(remote, find_remote(target, remote, address)?)),
    }
}

fn find_remote(target: &Target<'_>, remote: &Remote, address: &AccountOrInvitation) -> Result<AccountItem, Failure> {
    target.organization(address.org.as_deref())?;
    let email = EmailAddress::parse(&address.address.email)
        .map_err(|error| refused(Error::Invalid(vec![error.at("/email")]), NO_ACCOUNT))?;
    let mut accounts = remote.done(remote.session.accounts(), NO_ACCOUNT)?.into_iter();
    let found = accounts.find(|account| account.email == email.as_str());
    found.ok_or_else(|| Failure::new(NO_ACCOUNT))
}

fn found_remote(remote: &Remote, account: AccountItem) -> Found {
    Found { organization: remote.account.organization.clone(), account }
}

async fn found(vault: &OpenVault, account: &ListedAccount) -> Result<Found, Failure> {
    let organization = vault.ports().store.organizations.organization(account.grant.organization).await?;
    let organization = organization.map_or_else(String::new, |organization| organization.name.to_string());
    Ok(Found { organization, account: items::account(account) })
}

async fn reference<'a>(vault: &OpenVault, address: &'a AccountOrInvitation) -> Result<AccountRef<'a>, Failure> {
    let organization = match &address.org {
        Some(name) => Some(organization_id(vault, name).await?),
        None => None,
    };
    Ok(AccountRef::Email { email: &address.address.email, organization })
}

fn shown(found: Found) -> ShownAccount {
    ShownAccount {
        id: found.account.id,
        email: found.account.email,
        organization: found.organization,
        role: found.account.role,
        state: found.account.state,
        created_at: None,
        last_login_at: None,
        last_refused_at: None,
        lock: None,
        found: None,
        invitation_expires_at: None,
    }
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
