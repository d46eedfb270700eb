//! A small blocking client of the HTTP API for command lines and tests, and of the activation listener
//! ([`ActivationClient`]).
//!
//! ```no_run
//! use secrecy::SecretString;
//! use vault_client::{Client, ClientError, ListFilter, LoginRequest};
//!
//! # fn main() -> Result<(), ClientError> {
//! let client = Client::new("http://127.0.0.1:8080/v1")?;
//! let session = client.log_in(&LoginRequest {
//!     email: "ada@example.org".to_owned(),
//!     password: SecretString::from("correct horse battery").into(),
//!     passcode: SecretString::from("123456").into(),
//!     ttl: None,
//! })?;
//! for credential in session.list(ListFilter::default()) {
//!     let credential = credential?;
//!     println!("{} {}", credential.id, credential.namespace);
//! }
//! session.log_out()
//! # }
//! ```

mod account;
mod activation;
mod base;
mod client;
mod error;
mod identity;
mod integration;
mod list;
mod receiver;
mod session;
mod trust;
mod unix;

pub use activation::{ActivationAddress, ActivationClient, ActivationSettings, DatedActivation};
pub use base::BaseUrl;
pub use client::{Client, ClientSettings, ServerSocket};
pub use error::ClientError;
pub use identity::github_identity_token;
pub use list::{Credentials, Page};
pub use session::{RequestOptions, Session};
pub use trust::ClientIdentity;
pub use vault_api::{
    AccountItem, AccountNotice, ActivateRequest, ActivationItem, AddReceiverRequest, AuditFilter, AuditItem,
    AuditedChange, AuditedCredential, BegunActivation, ChangeAccountRequest, ChangeIntegrationRequest,
    ChangePasswordRequest, ChangeReceiverRequest, CheckItem, CheckRequest, CheckedCredential, CheckedNamespace,
    ConfirmEnrolmentRequest, CreateIntegrationRequest, CredentialHolder, CredentialItem, CredentialUse, DeliveryItem,
    DescribeRequest, EnrolRequest, EnrolResponse, FieldProblem, FoundKey, FrozenNamespace, HealthItem, IntegrationItem,
    IntegrationUsageItem, InvitationItem, InvitationRequest, InviteRequest, InvitedAccount, IssuedIntegration,
    IssuedReceiver, IssuerItem, ListFilter, LoginRequest, NamespaceDenialItem, NamespaceItem, NamespaceUsage,
    NamespaceUseItem, OwnAccount, Problem, ProblemCode, PromoteRequest, ProofRequest, ProviderTrust, ProviderTrustStep,
    ReEnrolment, ReceiverItem, RenewRequest, ReplaceRequest, ReplacedCredential, SaveRequest, SavedCredential,
    ServerAbilities, SessionItem, Totp, TrustItem, TrustRequest, VendedCredential, VersionItem, WireJson, WireSecret,
};
