//! The operations, one per file. Each is made of the ports it needs and reads top-down.

mod activate;
mod administrator;
mod ambient;
mod audit_tally;
mod authenticate;
mod authenticate_integration;
mod change_account;
mod change_integration;
mod change_password;
mod check_namespace;
mod confirm_enrolment;
mod create_account;
mod create_integration;
mod enrol;
mod freeze_namespace;
mod invite;
mod list_accounts;
mod list_integrations;
mod log_in;
mod log_out;
mod lookup;
mod open_namespace;
pub mod operator;
mod own_account;
mod own_activations;
mod own_sessions;
mod prove_owner;
mod read_passcode;
mod replace_passcode;
mod replace_recovery_codes;
mod together;
pub mod vault;

pub use activate::{Activate, ActivateError, ActivationRequest};
pub use administrator::{Administrator, AdministratorError};
pub use ambient::{Ambient, Damage};
pub use audit_tally::AuditTally;
pub use authenticate::Authenticate;
pub use authenticate_integration::{AuthenticateIntegration, AuthenticateIntegrationError};
pub use change_account::{AccountCommand, ChangeAccountError, ChangeAccountUseCase, ChangedAccount};
pub use change_integration::{
    ChangeIntegrationError, ChangeIntegrationUseCase, ChangedIntegration, IntegrationCommand, IntegrationRef,
};
pub use change_password::{ChangePassword, ChangePasswordError};
pub use check_namespace::{CheckNamespace, CheckNamespaceRequest, CheckedCredential, CheckedNamespace};
pub use confirm_enrolment::{ConfirmEnrolmentError, ConfirmEnrolmentUseCase};
pub use create_account::{CreateAccountError, CreateAccountRequest, CreateAccountUseCase, CreatedAccount};
pub use create_integration::{
    CreateIntegrationError, CreateIntegrationRequest, CreateIntegrationUseCase, CreatedIntegration,
};
pub use enrol::{DraftedEnrolment, Enrol, EnrolError};
pub use freeze_namespace::{FreezeNamespaceError, FreezeNamespaceUseCase};
pub use invite::{Invite, InviteError, Invited, Inviter};
pub use list_accounts::{ListAccountsError, ListAccountsUseCase};
pub use list_integrations::{ListIntegrationsError, ListIntegrationsUseCase};
pub use log_in::{LogIn, LogInError, LogInRequest, LoggedIn};
pub use log_out::{LogOut, LogOutError};
pub use open_namespace::{OpenNamespace, OpenNamespaceError};
pub use operator::{Operator, OrganizationCommand, Tidied};
pub use own_account::{OwnAccountError, ShowOwnAccount, ShownOwnAccount};
pub use own_activations::{OwnActivations, OwnActivationsError};
pub use own_sessions::{ListedSession, OwnSessions};
pub use prove_owner::{OwnerProof, ProofError, ProveOwner};
pub use read_passcode::{CurrentPasscode, ReadPasscode, ReadPasscodeError};
pub use replace_passcode::{ConfirmPasscodeError, ConfirmPasscodeUseCase, ReplacePasscode};
pub use replace_recovery_codes::ReplaceRecoveryCodes;
pub use vault::{
    CountedSealer, CredentialPage, IdempotencyKey, InvalidIdempotencyKey, ListRequest, ListedCredential, SaveRequest,
    Vault,
};
