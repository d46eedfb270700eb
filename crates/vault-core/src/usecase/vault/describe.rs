//! Changes of a credential's metadata: labels, description, expiry and vend rule.

use super::change::{ChangedVersion, Decided, Read, no_short_form};
use super::provider_trust::no_secret_to_issue;
use super::{CredentialRef, Vault};
use crate::activation::VendRule;
use crate::audit::AuditAction;
use crate::credential::{CredentialChange, Description, LabelPatch};
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
        let request = &request;
        let decide = |read: Read| async move {
            let (current, mut metadata) = (&read.versions.current, read.metadata.clone());
            if current.kind.is_keyless() && request.vend == Some(VendRule::Any) {
                return Err(no_secret_to_issue());
            }
            if let Some(labels) = &request.labels {
                metadata.labels = metadata.labels.patched(labels, "/labels")?;
            }
            if let Some(description) = &request.description {
                metadata.description.clone_from(description);
            }
            if let Some(expires_at) = request.expires_at {
                metadata.set_expires_at(current.version, expires_at);
            }
            let (before, vend) = (current.vend, request.vend.unwrap_or(current.vend));
            match (before, vend) {
                (VendRule::Short, VendRule::Any) => _ = principal.member(Action::LiftVendRule)?,
                (VendRule::Any, VendRule::Short) => {
                    let information = self.information(organization, current, read.reading).await?;
                    information.allows_short(current.kind).map_err(|reason| no_short_form(current.kind, reason))?;
                }
                (VendRule::Any, VendRule::Any) | (VendRule::Short, VendRule::Short) => {}
            }
            let data_expires_at = self.data_expires_at(organization, current, read.reading).await?;
            Ok(Decided { change: CredentialChange::Describe, metadata, vend, data_expires_at })
        };
        self.change(principal, organization, credential, AuditAction::CredentialDescribed, decide).await
    }
}
