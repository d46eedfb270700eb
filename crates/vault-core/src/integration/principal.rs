//! Principal of an activation.

use super::{IntegrationRefusal, NamespacePatterns, TokenSlot};
use crate::digest::Digest;
use crate::id::{IntegrationId, OrganizationId};
use crate::identity::Workload;
use crate::network::Network;
use crate::sealed::Blob;
use crate::time::Timestamp;
use std::sync::Arc;

/// An integration, authenticated by a token or a trust, with the contents of its opened document.
///
/// A store compares [`IntegrationPrincipal::seen`] with the document in the row. If the row was changed in the meantime, by
/// this service or outside it, the principal is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrationPrincipal {
    /// ID of the organization.
    pub organization: OrganizationId,
    /// ID of the integration.
    pub integration: IntegrationId,
    /// Digest of the presented token.
    pub token: Digest,
    /// Which of the integration's tokens was presented.
    pub slot: TokenSlot,
    /// Namespaces that the integration may activate.
    pub patterns: NamespacePatterns,
    /// Time from which the integration is expired, if it expires. No activation lasts longer.
    pub expires_at: Option<Timestamp>,
    /// Time from which a previous token is no longer valid.
    pub token_until: Option<Timestamp>,
    /// Sealed document that was opened.
    pub seen: Blob,
    /// Network of the request, if any, for the audit log.
    pub network: Option<Network>,
    /// Authenticated workload, if no token of the integration was presented.
    pub workload: Option<Arc<Workload>>,
}

impl IntegrationPrincipal {
    /// Returns the subject of the workload, if one was authenticated.
    pub fn subject(&self) -> Option<&str> {
        self.workload.as_ref().map(|workload| workload.subject.as_str())
    }
}

/// State of an integration principal's rows, for [`check_integration`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrationFacts {
    /// Sealed document of the integration, if it exists in the principal's organization.
    pub sealed: Option<Blob>,
    /// Whether the organization exists and is active.
    pub organization_active: bool,
}

/// Authorizes an integration principal, based on the rows read in the same transaction.
///
/// # Errors
/// The reason for the refusal. [`IntegrationRefusal::Changed`] requires that the token is verified again.
pub fn check_integration(
    principal: &IntegrationPrincipal,
    facts: &IntegrationFacts,
    now: Timestamp,
) -> Result<(), IntegrationRefusal> {
    let over = |end: Option<Timestamp>| end.is_some_and(|end| now >= end);
    if !facts.organization_active {
        return Err(IntegrationRefusal::OrganizationDisabled);
    }
    if over(principal.expires_at) {
        return Err(IntegrationRefusal::Expired);
    }
    if over(principal.token_until) {
        return Err(IntegrationRefusal::Replaced);
    }
    match &facts.sealed {
        None => Err(IntegrationRefusal::Unknown),
        Some(sealed) if *sealed == principal.seen => Ok(()),
        Some(_) => Err(IntegrationRefusal::Changed),
    }
}
