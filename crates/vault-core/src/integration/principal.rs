//! For whom an activation acts.

use super::{NamespacePatterns, TokenSlot};
use crate::digest::Digest;
use crate::id::{IntegrationId, OrganizationId};
use crate::time::Timestamp;

/// The holder of an integration token, as its row said when its code was verified.
///
/// A store holds the principal to that very row: it compares [`IntegrationPrincipal::seen`] with the row's digest,
/// which covers state, tokens, patterns and expiry. So nothing of them has to be judged twice, and nothing that was
/// changed meanwhile, by us or behind our back, is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrationPrincipal {
    /// The organization.
    pub organization: OrganizationId,
    /// The integration.
    pub integration: IntegrationId,
    /// The digest of the token that was shown.
    pub token: Digest,
    /// Which of the integration's tokens it is.
    pub slot: TokenSlot,
    /// The namespaces that it may activate.
    pub patterns: NamespacePatterns,
    /// When the integration expires, if it does. No activation outlives it.
    pub expires_at: Option<Timestamp>,
    /// The first moment at which the token no longer works: the integration's end or, of an earlier token, its own.
    pub works_until: Option<Timestamp>,
    /// The digest that the row carried, and fitted.
    pub seen: Digest,
}

/// Why the store does not act for an integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalStale {
    /// The row has changed since it was verified: verify it again.
    Changed,
    /// The integration is gone.
    Gone,
    /// The token has come to its end.
    Over,
    /// The organization is gone or disabled.
    OrganizationClosed,
}

/// What the store read of an integration principal's rows, for [`judge_integration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegrationFacts {
    /// The digest that the integration's row carries, if the row is there, in the principal's organization.
    pub digest: Option<Digest>,
    /// Whether the organization is there and active.
    pub organization_active: bool,
}

/// Decides whether an integration principal may still act, on the facts read in the same transaction.
///
/// # Errors
/// Why it may not.
pub fn judge_integration(
    principal: &IntegrationPrincipal,
    facts: IntegrationFacts,
    now: Timestamp,
) -> Result<(), PrincipalStale> {
    if !facts.organization_active {
        return Err(PrincipalStale::OrganizationClosed);
    }
    if principal.works_until.is_some_and(|end| now >= end) {
        return Err(PrincipalStale::Over);
    }
    match facts.digest {
        None => Err(PrincipalStale::Gone),
        Some(digest) if digest == principal.seen => Ok(()),
        Some(_) => Err(PrincipalStale::Changed),
    }
}
