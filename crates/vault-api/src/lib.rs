//! Requests, responses and problem documents of OrgVault's HTTP API, shared by server and client. This crate contains
//! no behaviour and no I/O.
//!
//! ```
//! use secrecy::SecretString;
//! use vault_api::{Problem, ProblemCode, SaveRequest, WireJson};
//!
//! # fn main() -> Result<(), serde_json::Error> {
//! let data = WireJson::from(SecretString::from(r#"{"url":"https://files.example/nightly.bin"}"#));
//! let request: SaveRequest = SaveRequest::new("direct-link", "imports/nightly", data);
//! assert!(serde_json::to_string(&request)?.starts_with(r#"{"type":"direct-link","namespace":"imports/nightly","data":{"url""#));
//! assert!(!format!("{request:?}").contains("files.example")); // secrets are sent, never shown
//!
//! let problem = Problem::new(ProblemCode::NotFound, "no such credential", "b7c0");
//! assert!(serde_json::to_string(&problem)?.contains(r#""status":404"#));
//! # Ok(())
//! # }
//! ```
//!
//! `vault-client` sends these types, and `vault-http` returns them. `docs/API.md` in the repository describes the API.
//! With the feature `schema`, each type has a JSON schema.

mod account;
mod activation;
mod audit;
mod check;
mod credential;
mod enrolment;
mod integration;
mod list;
mod login;
mod member;
mod own_account;
mod probe;
mod problem;
mod receiver;
mod secret;

pub use account::{AccountItem, ChangeAccountRequest, InviteRequest, InvitedAccount, ReEnrolment};
pub use activation::{
    ActivateRequest, ActivationItem, BegunActivation, CheckRequest, CheckedCredential, CheckedNamespace, RenewRequest,
    VendedCredential,
};
pub use audit::{AuditItem, AuditedChange, AuditedCredential};
pub use check::CheckItem;
pub use credential::{
    CheckCredentialRequest, CredentialHolder, CredentialItem, CredentialUse, DescribeRequest, FindKeyRequest, FoundKey,
    HealthItem, MatchRequest, MatchedCredential, PromoteRequest, ProviderTrust, ProviderTrustStep, ReadEntry,
    ReadRequest, ReadViolation, ReplaceRequest, ReplacedCredential, SaveRequest, SavedCredential, VersionItem,
};
pub use enrolment::{ConfirmEnrolmentRequest, EnrolRequest, EnrolResponse, InvitationItem, InvitationRequest, Totp};
pub use integration::{
    ChangeIntegrationRequest, CreateIntegrationRequest, FrozenNamespace, IntegrationItem, IntegrationUsageItem,
    IssuedIntegration, IssuerItem, NamespaceDenialItem, NamespaceItem, NamespaceRequest, NamespaceUsage,
    NamespaceUseItem, RotateIntegrationRequest, TrustItem, TrustRequest,
};
pub use list::{AuditFilter, ListFilter};
pub use login::{LoginRequest, LoginResponse, TOKEN_TYPE};
pub use own_account::{
    AccountNotice, ChangePasswordRequest, ConfirmPasscodeRequest, NewPasscode, NewRecoveryCodes, OwnAccount,
    ProofRequest, ServerAbilities, SessionItem, SetAsideItem, SetAsideRequest,
};
pub use probe::ProbeStatus;
pub use problem::{FieldProblem, Problem, ProblemCode};
pub use receiver::{AddReceiverRequest, ChangeReceiverRequest, DeliveryItem, IssuedReceiver, ReceiverItem};
pub use secret::{WireJson, WireSecret};
