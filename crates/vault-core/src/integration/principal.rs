//! The caller of an activation.

use super::{IntegrationRefusal, NamespacePatterns, TokenSlot};
use crate::digest::Digest;
use crate::id::{IntegrationId, OrganizationId};
use crate::identity::Workload;
use crate::network::Network;
use crate::time::Timestamp;
use std::sync::Arc;

/// The holder of an integration token, with the contents of its verified row.
///
/// A store compares [`IntegrationPrincipal::seen`] with the row's digest, which covers state, tokens, patterns, expiry
/// and version. If the row was changed in the meantime, by this service or outside it, the principal is refused.
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
    /// Namespaces that the integration may activate.
    pub patterns: NamespacePatterns,
    /// The first moment at which the integration no longer works, if it expires. No activation outlives it.
    pub expires_at: Option<Timestamp>,
    /// The first moment at which a previous token no longer works.
    pub token_until: Option<Timestamp>,
    /// The digest that the row carried, and fitted.
    pub seen: Digest,
    /// The network that the token came from, where it came over one. For the audit.
    pub network: Option<Network>,
    /// The workload that acts, where none of the integration's own tokens was shown.
    pub workload: Option<Arc<Workload>>,
}

impl IntegrationPrincipal {
    /// The subject of the workload that acts, where one does.
    pub fn subject(&self) -> Option<&str> {
        self.workload.as_ref().map(|workload| workload.subject.as_str())
    }
}

/// What the store read of an integration principal's rows, for [`judge_integration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegrationFacts {
    /// The digest that the integration's row carries, if the row exists in the principal's organization.
    pub digest: Option<Digest>,
    /// Whether the organization exists and is active.
    pub organization_active: bool,
}

/// Decides whether an integration principal may still act, on the facts read in the same transaction.
///
/// # Errors
/// Why it may not. [`IntegrationRefusal::Changed`]: the token has to be verified again.
pub fn judge_integration(
    principal: &IntegrationPrincipal,
    facts: IntegrationFacts,
    now: Timestamp,
) -> Result<(), IntegrationRefusal> {
    let over = |end: Option<Timestamp>| end.is_some_and(|end| now >= end);
    if !facts.organization_active {
        return Err(IntegrationRefusal::OrganizationClosed);
    }
    if over(principal.expires_at) {
        return Err(IntegrationRefusal::Expired);
    }
    if over(principal.token_until) {
        return Err(IntegrationRefusal::Replaced);
    }
    match facts.digest {
        None => Err(IntegrationRefusal::Unknown),
        Some(digest) if digest == principal.seen => Ok(()),
        Some(_) => Err(IntegrationRefusal::Changed),
    }
}
