//! The order of the checks that refuse an activation, at its begin and before it issues credentials.

use super::{VendRule, VendedForm};
use crate::error::Refusal;
use crate::id::CredentialId;
use crate::integration::IntegrationRefusal;
use crate::time::Timestamp;

/// What a store found of a namespace and an integration, for [`judge_taking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakingFacts {
    /// Whether the namespace is frozen.
    pub frozen: bool,
    /// How many credentials it has; a store may stop counting at one more than the most.
    pub credentials: usize,
    /// How many live activations the integration has, and how many it may have; `None` for a check.
    pub live: Option<(i64, i64)>,
}

/// Decides whether a namespace's credentials, of which there may be `most`, are taken.
///
/// # Errors
/// The first of these: [`Refusal::Frozen`], [`Refusal::NamespaceEmpty`], [`Refusal::NamespaceTooLarge`],
/// [`Refusal::TooManyLive`].
pub fn judge_taking(facts: TakingFacts, most: usize) -> Result<(), Refusal> {
    let reasons = [
        (facts.frozen, Refusal::Frozen),
        (facts.credentials == 0, Refusal::NamespaceEmpty),
        (facts.credentials > most, Refusal::NamespaceTooLarge),
        (facts.live.is_some_and(|(live, limit)| live >= limit), Refusal::TooManyLive),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map_or(Ok(()), |(_, reason)| Err(reason))
}

/// A credential that is to leave, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOut {
    /// The credential.
    pub credential: CredentialId,
    /// The version that it was made from.
    pub version: i64,
    /// The form.
    pub form: VendedForm,
    /// The first moment at which it no longer works, where it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// Why nothing leaves, although an activation had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandOutRefusal {
    /// The integration may not act, or its row has changed ([`IntegrationRefusal::Changed`]).
    Denied(IntegrationRefusal),
    /// The namespace is frozen.
    Frozen,
    /// The integration ended the activation meanwhile.
    Ended,
    /// A credential was deleted, has another version or may no longer be handed out in this form: begin again with what the namespace holds now.
    Changed,
    /// The activation or something short-lived has expired meanwhile: begin again.
    Expired,
}

/// What a store found at the end of an activation, for [`judge_hand_out`].
#[derive(Clone, Debug)]
pub struct HandOutFacts<'a> {
    /// Whether the integration may act.
    pub integration: Result<(), IntegrationRefusal>,
    /// Whether the namespace is frozen.
    pub frozen: bool,
    /// Whether the activation's row exists; of one that is renewed, whether it lives.
    pub begun: bool,
    /// The first moment at which the activation is over.
    pub expires_at: Timestamp,
    /// The namespace's credentials among those that are to leave, with their current versions and rules.
    pub current: &'a [(CredentialId, i64, VendRule)],
}

/// Decides, at `now`, whether `credentials` leave.
///
/// # Errors
/// The first of the reasons, in the order of [`HandOutRefusal`].
pub fn judge_hand_out(
    facts: &HandOutFacts<'_>,
    credentials: &[HandedOut],
    now: Timestamp,
) -> Result<(), HandOutRefusal> {
    facts.integration.map_err(HandOutRefusal::Denied)?;
    if facts.frozen {
        return Err(HandOutRefusal::Frozen);
    }
    if !facts.begun {
        return Err(HandOutRefusal::Ended);
    }
    let stands = |one: &HandedOut| {
        facts.current.iter().any(|(credential, version, vend)| {
            (*credential, *version) == (one.credential, one.version) && vend.permits(one.form)
        })
    };
    if !credentials.iter().all(stands) {
        return Err(HandOutRefusal::Changed);
    }
    let mut ends = credentials.iter().filter_map(|one| one.expires_at).chain([facts.expires_at]);
    if ends.any(|end| end <= now) { Err(HandOutRefusal::Expired) } else { Ok(()) }
}
