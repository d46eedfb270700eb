//! Keyless storage access: the server signs a short-lived token, exchanges it at the storage provider, and issues the
//! narrowed result.
//!
//! The token's [subject](FederationSubject) names one credential of one organization. Its
//! [audience](FederationAudience) follows from the address that receives it. Providers read the public keys below the
//! [issuer](FederationIssuer).

mod audience;
mod claims;
mod issuer;
mod steps;
mod subject;
mod trust;

pub use audience::FederationAudience;
pub(crate) use audience::is_aws_region;
pub use claims::{ActivationClaims, FederationClaims};
pub use issuer::FederationIssuer;
pub use steps::{FederationSettings, TrustInstructions, TrustStep};
pub use subject::FederationSubject;
pub use trust::{ClosedTrusts, TrustTarget};
