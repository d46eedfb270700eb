//! What the public listener is made of.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;
use vault_core::usecase::{
    Authenticate, ChangeAccountUseCase, ChangeIntegrationUseCase, ChangePassword, ConfirmEnrolmentUseCase,
    ConfirmPasscodeUseCase, CreateIntegrationUseCase, DeleteCredentialUseCase, Enrol, Invite, ListAccountsUseCase,
    ListCredentialsUseCase, ListIntegrationsUseCase, LogIn, LogOut, OwnSessions, ReplacePasscode, ReplaceRecoveryCodes,
    SaveCredentialUseCase, ShowCredentialUseCase, ShowOwnAccount,
};

/// Tells whether everything that requests need is there.
pub type Readiness = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// The use cases behind the public listener. None of them can open a credential.
#[derive(Clone)]
pub struct ServerParts {
    /// The runtime on which use cases run: one that goes on when a client goes away.
    pub runtime: Handle,
    /// Tells whose token a request carries.
    pub authenticate: Arc<Authenticate>,
    /// Logs in.
    pub log_in: Arc<LogIn>,
    /// Logs out.
    pub log_out: Arc<LogOut>,
    /// Saves a credential.
    pub save: Arc<SaveCredentialUseCase>,
    /// Lists credentials.
    pub list: Arc<ListCredentialsUseCase>,
    /// Shows a credential.
    pub show: Arc<ShowCredentialUseCase>,
    /// Deletes a credential.
    pub delete: Arc<DeleteCredentialUseCase>,
    /// What admins do with accounts, and those they invite.
    pub accounts: AccountParts,
    /// What everybody does with one's own account.
    pub own_account: OwnAccountParts,
    /// What admins do with integrations.
    pub integrations: IntegrationParts,
    /// Request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// For `/readyz`.
    pub readiness: Readiness,
}

/// The use cases behind `{base_url}/accounts` and `{base_url}/enrol`.
#[derive(Clone)]
pub struct AccountParts {
    /// Lists accounts.
    pub list: Arc<ListAccountsUseCase>,
    /// Invites.
    pub invite: Arc<Invite>,
    /// Changes and deletes accounts.
    pub change: Arc<ChangeAccountUseCase>,
    /// Drafts an enrolment.
    pub enrol: Arc<Enrol>,
    /// Confirms an enrolment.
    pub confirm_enrolment: Arc<ConfirmEnrolmentUseCase>,
}

/// The use cases behind `{base_url}/integrations`. What integrations themselves ask for is not among them: that has a
/// listener of its own.
#[derive(Clone)]
pub struct IntegrationParts {
    /// Makes integrations.
    pub create: Arc<CreateIntegrationUseCase>,
    /// Rotates their tokens and deletes them.
    pub change: Arc<ChangeIntegrationUseCase>,
    /// Lists them.
    pub list: Arc<ListIntegrationsUseCase>,
}

/// The use cases behind `{base_url}/account`.
#[derive(Clone)]
pub struct OwnAccountParts {
    /// Shows it.
    pub show: Arc<ShowOwnAccount>,
    /// Lists and ends its sessions.
    pub sessions: Arc<OwnSessions>,
    /// Changes its password.
    pub change_password: Arc<ChangePassword>,
    /// Drafts a new passcode seed.
    pub replace_passcode: Arc<ReplacePasscode>,
    /// Confirms a new passcode seed.
    pub confirm_passcode: Arc<ConfirmPasscodeUseCase>,
    /// Replaces its recovery codes.
    pub replace_recovery_codes: Arc<ReplaceRecoveryCodes>,
}
