//! Changes of a credential's metadata: labels, description, expiry and vend rule.

use super::change::{Change, ChangedVersion, no_short_form};
use super::provider_trust::no_secret_to_issue;
use super::{CredentialRef, Vault};
use crate::activation::VendRule;
use crate::audit::AuditAction;
use crate::credential::{Card, Description, LabelPatch};
use crate::error::Error;
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

/// A merge patch (RFC 7396). `None` leaves a field unchanged, `Some(None)` removes it.
#[derive(Clone, Debug, Default)]
pub struct CredentialPatch {
    /// Labels to set and to remove.
    pub labels: Option<LabelPatch>,
    /// Description of its use.
    pub description: Option<Option<Description>>,
    /// Declared expiry of the current version.
    pub expires_at: Option<Option<Timestamp>>,
    /// Forms in which the credential may be issued.
    pub vend: Option<VendRule>,
}

impl Vault {
    /// Changes the metadata of a credential. A patch without changes writes nothing.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound), also for a credential of another organization.
    /// - [`Refusal::Changed`](crate::Refusal::Changed) or [`Refusal::Contended`](crate::Refusal::Contended).
    /// - [`Error::Invalid`]: too many labels, the data has no short-lived form, or a keyless credential gets another
    ///   vend rule.
    /// - [`Error::Denied`]: a principal that is not an admin changes `short` to `any`.
    pub async fn describe(
        &self,
        principal: &Principal,
        credential: CredentialRef,
        request: CredentialPatch,
    ) -> Result<ChangedVersion, Error> {
        let organization = principal.member(Action::Save)?;
        let decide = |card: &Card, _: Timestamp| {
            let mut after = card.clone();
            if card.kind.is_keyless() && request.vend == Some(VendRule::Any) {
                return Err(no_secret_to_issue());
            }
            if let Some(labels) = &request.labels {
                after.metadata.labels = after.metadata.labels.patched(labels, "/labels")?;
            }
            if let Some(description) = &request.description {
                after.metadata.description.clone_from(description);
            }
            if let Some(expires_at) = request.expires_at {
                after.metadata.set_expires_at(card.current.number, expires_at);
            }
            after.vend = request.vend.unwrap_or(card.vend);
            match (card.vend, after.vend) {
                (VendRule::Short, VendRule::Any) => _ = principal.member(Action::LiftVendRule)?,
                (VendRule::Any, VendRule::Short) => {
                    let has_short_form = card.current.information.allows_short(card.kind);
                    has_short_form.map_err(|reason| no_short_form(card.kind, reason))?;
                }
                (VendRule::Any, VendRule::Any) | (VendRule::Short, VendRule::Short) => {}
            }
            Ok((card.current.number, after))
        };
        let change = Change { credential, action: AuditAction::CredentialDescribed, new: None };
        self.change(principal, organization, change, decide).await
    }
}
