//! What a change makes of the card of a credential.

use super::{Card, CardVersion, CredentialType, Description, LabelPatch, VersionLimits};
use crate::activation::VendRule;
use crate::audit::{AuditAction, AuditChange, ChangedField};
use crate::check::CheckReason;
use crate::error::Refusal;
use crate::field::{FieldCode, FieldError};
use crate::operation::Failure;
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

/// Patch of a credential's metadata. `None` leaves a value unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialPatch {
    /// Labels to set and to remove.
    pub labels: Option<LabelPatch>,
    /// Description, or `Some(None)` to remove it.
    pub description: Option<Option<Description>>,
    /// Declared expiry of the current version, or `Some(None)` to remove it.
    pub expires_at: Option<Option<Timestamp>>,
    /// Forms in which the credential may be issued.
    pub vend: Option<VendRule>,
}

/// A change of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialEdit {
    /// New data becomes the current version.
    Replace {
        /// Type of the data.
        kind: CredentialType,
        /// Declared expiry of the data.
        expires_at: Option<Timestamp>,
    },
    /// New data becomes the staged version.
    Stage {
        /// Type of the data.
        kind: CredentialType,
        /// Declared expiry of the data.
        expires_at: Option<Timestamp>,
    },
    /// A staged or previous version becomes the current one.
    Promote(i64),
    /// A staged or previous version is destroyed.
    Destroy(i64),
    /// New metadata.
    Describe(CredentialPatch),
}

impl CredentialEdit {
    /// Returns the number of the affected version and the card after the change. `new` is the version of new data, and `allows_short`
    /// states whether a short-lived credential can be derived from it.
    ///
    /// # Errors
    /// The refusal.
    pub fn apply(
        &self,
        card: &Card,
        new: Option<CardVersion>,
        (principal, limits, now): (&Principal, VersionLimits, Timestamp),
    ) -> Result<(i64, Card), Failure> {
        let current = card.current.number;
        match (self, new) {
            (Self::Replace { kind, .. } | Self::Stage { kind, .. }, _) if *kind != card.kind => {
                Err(Refusal::TypeDiffers(card.kind).into())
            }
            (Self::Replace { expires_at, .. } | Self::Stage { expires_at, .. }, Some(new)) => {
                if card.vend == VendRule::Short {
                    new.information.allows_short(card.kind).map_err(|reason| no_short_form(card.kind, reason))?;
                }
                let number = new.number;
                let mut after = match self {
                    Self::Stage { .. } => card.with_staged(new, limits, now),
                    _ => card.replaced(new, limits, now),
                };
                after.metadata.set_expires_at(number, *expires_at);
                Ok((number, after))
            }
            (Self::Promote(number), _) if *number == current => Ok((current, card.clone())),
            (Self::Promote(number), _) => {
                let promoted = card.promoted(*number, limits, now)?;
                if card.vend == VendRule::Short {
                    promoted.current.information.allows_short(card.kind).map_err(Refusal::NoShortForm)?;
                }
                Ok((*number, promoted))
            }
            (Self::Destroy(number), _) => Ok((*number, card.without(*number, now)?)),
            (Self::Describe(patch), _) => Ok((current, patch.apply(card, principal)?)),
            // A replacement always has data.
            (Self::Replace { .. } | Self::Stage { .. }, None) => Ok((current, card.clone())),
        }
    }

    /// Returns the action and the changes of the audit entry.
    pub(super) fn recorded(&self, before: &Card, after: &Card, number: i64) -> (AuditAction, Vec<AuditChange>) {
        let text = |number: i64| Some(number.to_string());
        let version = |from, to| vec![AuditChange::new(ChangedField::Version, from, to)];
        let (current, number) = (text(before.current.number), text(number));
        match self {
            Self::Replace { .. } => (AuditAction::CredentialReplaced, version(current, number)),
            Self::Promote(_) => (AuditAction::CredentialPromoted, version(current, number)),
            Self::Stage { .. } => (AuditAction::CredentialStaged, version(None, number)),
            Self::Destroy(_) => (AuditAction::CredentialVersionDestroyed, version(number, None)),
            Self::Describe(_) => described(before, after),
        }
    }
}

impl CredentialPatch {
    fn apply(&self, card: &Card, principal: &Principal) -> Result<Card, Failure> {
        let mut after = card.clone();
        if card.kind.is_keyless() && self.vend == Some(VendRule::Any) {
            return Err(FieldError::new("/vend", FieldCode::NotAllowed, NO_SECRET_TO_ISSUE).into());
        }
        if let Some(labels) = &self.labels {
            after.metadata.labels = after.metadata.labels.patched(labels, "/labels")?;
        }
        if let Some(description) = &self.description {
            after.metadata.description.clone_from(description);
        }
        if let Some(expires_at) = self.expires_at {
            after.metadata.set_expires_at(card.current.number, expires_at);
        }
        after.vend = self.vend.unwrap_or(card.vend);
        match (card.vend, after.vend) {
            (VendRule::Short, VendRule::Any) => _ = principal.member(Action::LiftVendRule)?,
            (VendRule::Any, VendRule::Short) => {
                let has_short_form = card.current.information.allows_short(card.kind);
                has_short_form.map_err(|reason| no_short_form(card.kind, reason))?;
            }
            (VendRule::Any, VendRule::Any) | (VendRule::Short, VendRule::Short) => {}
        }
        Ok(after)
    }
}

fn described(before: &Card, after: &Card) -> (AuditAction, Vec<AuditChange>) {
    let action = match (before.vend, after.vend) {
        (VendRule::Short, VendRule::Any) => AuditAction::CredentialVendRelaxed,
        (VendRule::Any, VendRule::Short) => AuditAction::CredentialVendRestricted,
        _ => AuditAction::CredentialDescribed,
    };
    let vend = |rule: &VendRule| Some(rule.as_str().to_owned());
    let mut changes = Vec::new();
    changes.extend(AuditChange::between(ChangedField::Vend, &before.vend, &after.vend, vend));
    let (old, new) = (&before.metadata, &after.metadata);
    changes.extend((old.labels != new.labels).then(|| AuditChange::withheld(ChangedField::Labels)));
    changes.extend((old.description != new.description).then(|| AuditChange::withheld(ChangedField::Description)));
    let (from, to) = (old.expires_at(before.current.number), new.expires_at(before.current.number));
    let text = |at: &Option<Timestamp>| at.and_then(Timestamp::to_rfc3339);
    changes.extend(AuditChange::between(ChangedField::ExpiresAt, &from, &to, text));
    (action, changes)
}

/// Violation: a keyless credential would be issued as it is saved.
pub(crate) const NO_SECRET_TO_ISSUE: &str = "a keyless credential has no saved secret to issue. Omit vend";

/// Returns the violation of `vend: short` for data without a short-lived form.
pub(crate) fn no_short_form(kind: CredentialType, reason: CheckReason) -> FieldError {
    // The remedies name values of an activation's `vend`, which differ from those of a credential's rule.
    let wish = reason.remedy().replace("use vend raw or prefer-short", "set vend to any");
    let remedy = wish.replace("use vend prefer-short", "set vend to any");
    let detail = format!("this {} credential has no short-lived form: {remedy}", kind.as_str());
    FieldError::new("/vend", FieldCode::NotAllowed, detail)
}
