//! Operations, as methods of contexts that contain their ports.

pub mod accounts;
pub mod activations;
mod audit_reader;
mod audit_tally;
mod environment;
pub mod federation;
pub mod integrations;
pub mod keys;
mod notifier;
pub mod operator;
pub mod receivers;
pub mod vault;

pub use crate::inspect::{InspectionRound, Inspector, RowFinding, Violation};
pub use accounts::{
    AccountCommand, AccountPorts, AccountRef, Accounts, ChangedAccount, CreateAccountRequest, CreatedAccount,
    DraftedEnrolment, Invited, LogInRequest, LoggedIn, OwnerProof, ShownOwnAccount,
};
pub use activations::Activations;
pub use audit_reader::{AuditFilter, AuditReader};
pub use audit_tally::AuditTally;
pub use environment::Environment;
pub use federation::Federation;
pub use integrations::Integrations;
pub use keys::{
    InstanceRotation, KeyOverview, Keys, LookUpMoves, OrganizationKeyOverview, OrganizationRotation,
    PurposeKeyOverview, RetiringInstance, RotationEnd,
};
pub use notifier::{Notifier, ReadEvents};
pub use operator::{
    DeliveredAudit, DeliveryError, DeliveryProgress, KeyUsage, LEAST_AUDIT_SECONDS, MAX_SKEW, MaintenanceReport,
    Operator, OrganizationCommand, RemovedAudit, SealedAudit,
};
pub use receivers::Receivers;
pub use vault::{
    CredentialRef, CredentialReplacement, FoundKey, IdempotencyKey, KEY_ID_END, KeyMatch, ListedCredential,
    ListedVersion, NewCredential, PreviousVersion, Vault, WantedKey,
};
