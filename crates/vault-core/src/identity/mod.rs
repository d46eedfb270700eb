//! Workload identity: a job proves what it is by a JSON Web Token of its surroundings (RFC 7519), in place of a stored token.
//!
//! An [`Issuer`] is the operator's: whose tokens are looked at, and by which keys. A [`Trust`] is an integration's: which
//! workloads of an issuer may act for it. The token's audience names the integration, so a token that was made for another
//! service or another integration opens nothing.

mod claims;
mod issuer;
mod judge;
mod trust;

pub use claims::{ClaimPattern, ClaimPointer, MAX_VALUE_LENGTH};
pub use issuer::{Issuer, IssuerName, KeySource, MAX_KEY_AGE_SECONDS, StoredIssuer, issuer_of_subject};
pub(crate) use judge::told;
pub use judge::{Mismatch, TOKEN_LEEWAY_SECONDS, TokenTimes, Workload, WorkloadRefusal, judge_times, judge_trusts};
pub use trust::{
    DEFAULT_LIFETIME_SECONDS, MAX_CLAIMS, MAX_LIFETIME_SECONDS, MAX_TRUSTS, Trust, TrustId, TrustRequest, Trusts,
};

use crate::digest::Digest;
use crate::id::IntegrationId;

/// What the audience of a token begins with, before the integration's id.
const AUDIENCE: &str = "urn:orgvault:integration:";

/// The audience of tokens for an integration.
pub fn audience(integration: IntegrationId) -> String {
    format!("{AUDIENCE}{integration}")
}

/// The integration that an audience names.
pub fn integration_of(audience: &str) -> Option<IntegrationId> {
    audience.strip_prefix(AUDIENCE)?.parse().ok()
}

/// By what an integration is looked up for a token whose audience names it. It stands among the digests of tokens; no token
/// has such a digest.
pub fn audience_look_up(integration: IntegrationId) -> Digest {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(integration.as_bytes());
    Digest::from_bytes(bytes)
}
