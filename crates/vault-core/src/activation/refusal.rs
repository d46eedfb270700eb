//! Order of the checks that refuse an activation, at its start and before it issues credentials.

use super::{VendRule, VendedForm};
use crate::error::Refusal;
use crate::id::CredentialId;
use crate::integration::IntegrationRefusal;
use crate::time::Timestamp;

/// State of a namespace and an integration, for [`check_activation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivationFacts {
    /// Whether the namespace is frozen.
    pub frozen: bool,
    /// Number of its credentials. A store may stop counting at one more than the maximum.
    pub credentials: usize,
    /// Number of active activations of the integration, and its limit. `None` for a check.
    pub live: Option<(i64, i64)>,
}

/// Decides whether the credentials of a namespace, at most `most`, may be fetched.
///
/// # Errors
/// The first of [`Refusal::Frozen`], [`Refusal::NamespaceEmpty`], [`Refusal::NamespaceTooLarge`] and
/// [`Refusal::TooManyLive`].
pub fn check_activation(facts: ActivationFacts, most: usize) -> Result<(), Refusal> {
    let reasons = [
        (facts.frozen, Refusal::Frozen),
        (facts.credentials == 0, Refusal::NamespaceEmpty),
        (facts.credentials > most, Refusal::NamespaceTooLarge),
        (facts.live.is_some_and(|(live, limit)| live >= limit), Refusal::TooManyLive),
    ];
    reasons.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, reason)| Err(reason))
}

/// A credential to issue, with its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuedCredential {
    /// ID of the credential.
    pub credential: CredentialId,
    /// Version from which it is issued.
    pub version: i64,
    /// Issued form.
    pub form: VendedForm,
    /// Time from which it is expired, if it expires automatically.
    pub expires_at: Option<Timestamp>,
}

/// Reason why a started activation issues nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IssuanceRefusal {
    /// The integration is not authorized, or its row has changed ([`IntegrationRefusal::Changed`]).
    Denied(IntegrationRefusal),
    /// The namespace is frozen.
    Frozen,
    /// The integration ended the activation in the meantime.
    Ended,
    /// A credential was deleted, has another version or may no longer be issued in this form. Restart with the current
    /// credentials of the namespace.
    Changed,
    /// The activation or a short-lived credential has expired in the meantime. Restart.
    Expired,
}

/// State in the store at the end of an activation, for [`check_issuance`].
#[derive(Clone, Debug)]
pub struct IssuanceFacts<'a> {
    /// Authorization of the integration.
    pub integration: Result<(), IntegrationRefusal>,
    /// Whether the namespace is frozen.
    pub frozen: bool,
    /// Whether the activation's row exists. For a renewal, whether the activation is active.
    pub started: bool,
    /// Time at which the activation expires (exclusive end).
    pub expires_at: Timestamp,
    /// Credentials of the namespace among those to issue, with their current versions and vend rules.
    pub current: &'a [(CredentialId, i64, VendRule)],
}

/// Decides at `now` whether `credentials` are issued.
///
/// # Errors
/// The first reason, in the order of [`IssuanceRefusal`].
pub fn check_issuance(
    facts: &IssuanceFacts<'_>,
    credentials: &[IssuedCredential],
    now: Timestamp,
) -> Result<(), IssuanceRefusal> {
    facts.integration.map_err(IssuanceRefusal::Denied)?;
    if facts.frozen {
        return Err(IssuanceRefusal::Frozen);
    }
    if !facts.started {
        return Err(IssuanceRefusal::Ended);
    }
    let stands = |one: &IssuedCredential| {
        facts.current.iter().any(|(credential, version, vend)| {
            (*credential, *version) == (one.credential, one.version) && vend.permits(one.form)
        })
    };
    if !credentials.iter().all(stands) {
        return Err(IssuanceRefusal::Changed);
    }
    let mut ends = credentials.iter().filter_map(|one| one.expires_at).chain([facts.expires_at]);
    if ends.any(|end| end <= now) { Err(IssuanceRefusal::Expired) } else { Ok(()) }
}
