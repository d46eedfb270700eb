//! Workload identity: a job authenticates with a JSON Web Token of its environment (RFC 7519) instead of a stored
//! token.
//!
//! An [`Issuer`] is configured by the operator: it determines which tokens are accepted, and the keys that verify them.
//! A [`Trust`] belongs to an integration: it determines which workloads of an issuer may use it. The token's audience
//! names the integration, so a token for another service or integration is not accepted.

mod claims;
mod issuer;
mod issuers;
mod trust;
mod verify;

pub use claims::{ClaimPattern, ClaimPointer, MAX_VALUE_LENGTH};
pub use issuer::{Issuer, IssuerKeySet, IssuerName, KeySource, MAX_KEY_AGE_SECONDS, StoredIssuer, issuer_of_subject};
pub use issuers::{AddIssuer, FindIssuers, ListIssuers, RecordKeys, RemoveIssuer};
pub use trust::{
    DEFAULT_LIFETIME_SECONDS, MAX_CLAIMS, MAX_LIFETIME_SECONDS, MAX_TRUSTS, Trust, TrustId, TrustRequest, Trusts,
};
pub(crate) use verify::reported;
pub use verify::{Mismatch, TOKEN_LEEWAY_SECONDS, TokenTimes, Workload, WorkloadRefusal, match_trusts, verify_times};

use crate::digest::Digest;
use crate::id::IntegrationId;

/// Prefix of a token's audience, before the integration's ID.
const AUDIENCE: &str = "urn:orgvault:integration:";

/// Returns the audience of tokens for an integration.
pub fn audience(integration: IntegrationId) -> String {
    format!("{AUDIENCE}{integration}")
}

/// Returns the integration that an audience names.
pub fn integration_of(audience: &str) -> Option<IntegrationId> {
    audience.strip_prefix(AUDIENCE)?.parse().ok()
}

/// Returns the lookup value of an integration that a token's audience names. It is looked up among the digests of
/// tokens, and no token has such a digest.
pub fn audience_look_up(integration: IntegrationId) -> Digest {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(integration.as_bytes());
    Digest::from_bytes(bytes)
}
