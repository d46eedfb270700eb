//! What travels over the HTTP interface: requests, answers and problem documents, as server and client share
//! them. No behaviour, no I/O.

mod account;
mod activation;
mod audit;
mod check;
mod credential;
mod enrolment;
mod integration;
mod login;
mod own_account;
mod probe;
mod problem;
mod secret;

pub use account::{AccountItem, ChangeAccountRequest, InviteRequest, InvitedAccount, ReEnrolment};
pub use activation::{
    ActivateRequest, ActivationItem, BegunActivation, CheckRequest, CheckedCredential, CheckedNamespace,
    VendedCredential,
};
pub use audit::{AuditItem, AuditedCredential};
pub use check::CheckItem;
pub use credential::{
    CheckCredentialRequest, CredentialItem, CredentialUse, DescribeRequest, HealthItem, MatchRequest,
    MatchedCredential, PromoteRequest, ReplaceRequest, ReplacedCredential, SaveRequest, SavedCredential, VersionItem,
};
pub use enrolment::{ConfirmEnrolmentRequest, EnrolRequest, EnrolResponse, Totp};
pub use integration::{
    ChangeIntegrationRequest, CreateIntegrationRequest, FrozenNamespace, IntegrationItem, IssuedIntegration,
    NamespaceItem, NamespaceRequest, RotateIntegrationRequest,
};
pub use login::{LoginRequest, LoginResponse, TOKEN_TYPE};
pub use own_account::{
    AccountNotice, ChangePasswordRequest, ConfirmPasscodeRequest, NewPasscode, NewRecoveryCodes, OwnAccount,
    ProofRequest, SessionItem,
};
pub use probe::ProbeStatus;
pub use problem::{FieldProblem, Problem, ProblemCode};
pub use secret::{WireJson, WireSecret};
