//! Replacement of a credential's data. Its ID and namespace are unchanged, so jobs are not affected.

use super::change::{Change, ChangedVersion, NewData, no_short_form};
use super::{CredentialRef, IdempotencyKey, Vault};
use crate::activation::{VendRule, allows_short};
use crate::audit::AuditAction;
use crate::credential::{Card, CredentialData, FindRequest, SecretBytes};
use crate::error::{Error, Refusal};
use crate::id::{OrganizationId, VersionId};
use crate::port::Idempotency;
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

/// New data for a credential. It must be complete, so that a secret is never combined with another destination.
pub struct CredentialReplacement {
    /// ID and revision of the credential.
    pub credential: CredentialRef,
    /// New data, of the same type.
    pub data: CredentialData,
    /// Declared expiry of the data.
    pub expires_at: Option<Timestamp>,
    /// Whether the new version is staged instead of becoming current.
    pub stage: bool,
    /// Request ID that the client sent.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether to check the data with its storage first, and save it only if the storage accepts it.
    pub verify: bool,
}

impl Vault {
    /// Creates a new version of the credential's data and returns its number, the highest so far plus one. A repeated
    /// request with the same idempotency key returns the same number.
    ///
    /// # Errors
    /// - [`Refusal::NotFound`]: the credential does not exist, or belongs to another organization.
    /// - [`Refusal::Changed`], [`Refusal::TypeDiffers`] or [`Refusal::Contended`].
    /// - Those of [`Vault::save`].
    pub async fn replace(
        &self,
        principal: &Principal,
        request: CredentialReplacement,
    ) -> Result<ChangedVersion, Error> {
        let organization = principal.member(Action::Save)?;
        self.check_keyless_save(request.data.kind(), VendRule::Short, request.verify)?;
        let data = request.data.to_canonical_json();
        let idempotency = self.idempotency_of_replace(principal, &request, &data);
        if request.verify || idempotency.is_some() {
            // A repeated request gets its original response, whatever has changed since.
            if let Some(number) = self.earlier_version(principal, organization, idempotency.clone()).await? {
                return Ok(ChangedVersion { version: number, revision: None });
            }
        }
        let check = match request.verify {
            true => Some(self.verify(&request.data, self.environment.now()).await?),
            false => None,
        };
        let fingerprint = self.sealer.fingerprint(organization, &data).await?;
        let information = request.data.information(fingerprint);
        let new = NewData { data, information, expires_at: request.data.expires_at(), check, idempotency };
        let id = VersionId::from_uuid(self.environment.ids.random());
        let limits = self.version_limits;
        let decide = |card: &Card, now: Timestamp| {
            if card.kind != request.data.kind() {
                return Err(Refusal::TypeDiffers(card.kind).into());
            }
            if card.vend == VendRule::Short {
                allows_short(&request.data).map_err(|reason| no_short_form(card.kind, reason))?;
            }
            let number = card.highest.saturating_add(1);
            let version = new.version(number, id, now);
            let mut after = match request.stage {
                true => card.with_staged(version, limits, now),
                false => card.replaced(version, limits, now),
            };
            after.metadata.set_expires_at(number, request.expires_at);
            Ok((number, after))
        };
        let action = if request.stage { AuditAction::CredentialStaged } else { AuditAction::CredentialReplaced };
        let change = Change { credential: request.credential, action, new: Some(&new) };
        self.change(principal, organization, change, decide).await
    }

    /// Returns the number that an earlier request with the same idempotency key returned, or `None` if there was none.
    /// The credential may have been deleted since.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyMismatch`] if the key was used for another request.
    pub async fn find_replacement(
        &self,
        principal: &Principal,
        request: &CredentialReplacement,
    ) -> Result<Option<i64>, Error> {
        let organization = principal.member(Action::Save)?;
        let data = request.data.to_canonical_json();
        let idempotency = self.idempotency_of_replace(principal, request, &data);
        self.earlier_version(principal, organization, idempotency).await
    }

    async fn earlier_version(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        idempotency: Option<Idempotency>,
    ) -> Result<Option<i64>, Error> {
        let request = FindRequest { organization, idempotency };
        Ok(self.operations.run(&self.environment, principal, request).await?.map(|(_, number)| number))
    }

    fn idempotency_of_replace(
        &self,
        principal: &Principal,
        request: &CredentialReplacement,
        data: &SecretBytes,
    ) -> Option<Idempotency> {
        let flags = [u8::from(request.stage), u8::from(request.verify)];
        let expires_at = request.expires_at.map(|at| at.as_millis().to_be_bytes());
        let parts = [
            request.credential.id.as_bytes().as_slice(),
            request.data.kind().as_str().as_bytes(),
            data.expose(), // only digested
            &flags,
            expires_at.as_ref().map_or(&[], |bytes| bytes.as_slice()),
        ];
        self.idempotency(principal, request.idempotency.as_ref(), &parts)
    }
}
