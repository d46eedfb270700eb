//! Comparison of data with that of a credential by fingerprint, without decryption.

use super::Vault;
use super::reading::Reading;
use crate::credential::{CredentialData, MatchCredential, ShowCredential};
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
        let row = self.operations.run(&self.environment, principal, MatchCredential(organization, id)).await?;
        if row.kind != data.kind() {
            return Err(Refusal::TypeDiffers(row.kind).into());
        }
        let fingerprint = self.sealer.fingerprint(organization, &data.to_canonical_json()).await?;
        let card = match self.card(organization, &row, Reading::First).await {
            Err(error) if error.is_unknown_key() => {
                let row = self.operations.run(&self.environment, principal, ShowCredential(organization, id)).await?;
                self.card(organization, &row, Reading::Again).await?
            }
            opened => opened?,
        };
        Ok(card.current.information.fingerprint().is_some_and(|stored| stored == fingerprint.to_string()))
    }
}
