//! Keyless storage access: the server signs a short-lived token, exchanges it at the storage provider, and issues the
//! narrowed result.
//!
//! The token's [subject](FederationSubject) names one credential of one organization. Its
//! [audience](FederationAudience) follows from the address that receives it. Providers read the public keys below the
//! [issuer](FederationIssuer).

mod audience;
mod checks;
mod claims;
mod closed_trusts;
mod issuer;
mod jwk;
mod key;
mod key_set;
mod manage;
mod publication;
mod steps;
mod subject;

pub use audience::FederationAudience;
pub(crate) use audience::is_aws_region;
pub use checks::{CheckedKey, PublicationChecks};
pub use claims::FederationClaims;
pub use closed_trusts::{ClosedTrusts, TrustTarget};
pub use issuer::FederationIssuer;
pub use jwk::{Jwk, key_set_document};
pub use key::{FederationKey, FederationKeyState};
pub use key_set::{FederationKeyError, KeyActions, SETTLED_SECONDS, SigningKeyChange, SigningKeys};
pub use manage::{ChangeSigningKeys, ListSigningKeys, RecordPublication, StoredSigningKeys};
pub use publication::{PublicationFailure, PublicationFinding, PublishedDocuments, check_publication};
pub use steps::{TrustInstructions, TrustStep};
pub use subject::FederationSubject;
