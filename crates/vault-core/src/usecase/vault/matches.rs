//! Comparison of data with that of a credential by fingerprint, without decryption.

use super::Vault;
use crate::credential::{CredentialData, MatchCredential};
use crate::error::{Error, Refusal};
use crate::id::CredentialId;
use crate::principal::Principal;
use crate::role::Action;

impl Vault {
    /// Returns whether the credential's current data equals `data`. Comparisons are counted, limited and recorded.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`], also for a credential of another organization.
    /// - [`Refusal::TypeDiffers`] or [`Refusal::TooOften`].
    pub async fn matches(&self, principal: &Principal, id: CredentialId, data: &CredentialData) -> Result<bool, Error> {
        let organization = principal.member(Action::Save)?;
        let (kind, data) = (data.kind(), data.to_canonical_json());
        let compared = MatchCredential { organization, id, kind, data };
        let matched = self.operations.run(&self.environment, principal, compared).await?;
        Ok(matched.map_err(Refusal::TypeDiffers)?)
    }
}
