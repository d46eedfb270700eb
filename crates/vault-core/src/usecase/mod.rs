//! The operations, one per file. Each is made of the ports it needs and reads top-down.

pub mod accounts;
mod activate;
mod administrator;
mod ambient;
mod audit_tally;
mod authenticate_integration;
mod change_integration;
mod check_namespace;
mod create_integration;
mod freeze_namespace;
mod list_integrations;
mod open_namespace;
pub mod operator;
mod own_activations;
mod together;
pub mod vault;

pub use accounts::{
    AccountCommand, AccountPage, AccountPorts, AccountRef, Accounts, AccountsRequest, ChangedAccount,
    CreateAccountRequest, CreatedAccount, CurrentPasscode, DraftedEnrolment, Invited, ListedSession, LogInRequest,
    LoggedIn, OwnerProof, ShownOwnAccount,
};
pub use activate::{Activate, ActivateError, ActivationRequest};
pub use administrator::{Administrator, AdministratorError};
pub use ambient::{Ambient, Damage};
pub use audit_tally::AuditTally;
pub use authenticate_integration::{AuthenticateIntegration, AuthenticateIntegrationError};
pub use change_integration::{
    ChangeIntegrationError, ChangeIntegrationUseCase, ChangedIntegration, IntegrationCommand, IntegrationRef,
};
pub use check_namespace::{CheckNamespace, CheckNamespaceRequest, CheckedCredential, CheckedNamespace};
pub use create_integration::{
    CreateIntegrationError, CreateIntegrationRequest, CreateIntegrationUseCase, CreatedIntegration,
};
pub use freeze_namespace::{FreezeNamespaceError, FreezeNamespaceUseCase};
pub use list_integrations::{ListIntegrationsError, ListIntegrationsUseCase};
pub use open_namespace::{OpenNamespace, OpenNamespaceError};
pub use operator::{Operator, OrganizationCommand, Tidied};
pub use own_activations::{OwnActivations, OwnActivationsError};
pub use vault::{
    CountedSealer, CredentialPage, IdempotencyKey, InvalidIdempotencyKey, ListRequest, ListedCredential, SaveRequest,
    Vault,
};
