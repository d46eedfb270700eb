//! The operations, one per file. Each is made of the ports it needs and reads top-down.

mod ambient;
mod audit_tally;
mod authenticate;
mod change_account;
mod change_organization;
mod create_account;
mod create_organization;
mod delete_credential;
mod list_credentials;
mod log_in;
mod log_out;
mod read_passcode;
mod save_credential;
mod show_credential;

pub use ambient::{Ambient, Damage};
pub use audit_tally::AuditTally;
pub use authenticate::Authenticate;
pub use change_account::{AccountCommand, ChangeAccountError, ChangeAccountUseCase, ChangedAccount};
pub use change_organization::{ChangeOrganization, ChangeOrganizationError, OrganizationCommand};
pub use create_account::{CreateAccountError, CreateAccountRequest, CreateAccountUseCase, CreatedAccount};
pub use create_organization::{CreateOrganizationError, CreateOrganizationUseCase};
pub use delete_credential::{DeleteCredentialError, DeleteCredentialUseCase};
pub use list_credentials::{CredentialPage, ListCredentialsUseCase, ListRequest, ListedCredential, ReadError};
pub use log_in::{LogIn, LogInError, LogInRequest, LoggedIn};
pub use log_out::{LogOut, LogOutError};
pub use read_passcode::{CurrentPasscode, ReadPasscode, ReadPasscodeError};
pub use save_credential::{
    IdempotencyKey, InvalidIdempotencyKey, SaveCredentialError, SaveCredentialRequest, SaveCredentialUseCase,
};
pub use show_credential::ShowCredentialUseCase;
