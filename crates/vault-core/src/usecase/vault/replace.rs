//! Replacement of a credential's data. Its ID and namespace are unchanged, so jobs are not affected.

use super::{IdempotencyKey, Vault};
use crate::activation::VendRule;
use crate::credential::{
    ChangeCredential, ChangedVersion, CredentialData, CredentialEdit, FindRequest, NewData, SecretBytes,
};
use crate::error::Error;
use crate::id::{CredentialId, OrganizationId, VersionId};
use crate::port::Idempotency;
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;

/// A credential as a client has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CredentialRef {
    /// ID of the credential.
    pub id: CredentialId,
    /// Revision that it must still have. `None` overwrites concurrent changes.
    pub revision: Option<i64>,
}

impl From<CredentialId> for CredentialRef {
    /// References the credential in any revision.
    fn from(id: CredentialId) -> Self {
        Self { id, revision: None }
    }
}

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
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound): the credential does not exist, or belongs to another organization.
    /// - `Refusal::Changed` or `Refusal::TypeDiffers`.
    /// - Those of [`Vault::save`].
    pub async fn replace(
        &self,
        principal: &Principal,
        request: CredentialReplacement,
    ) -> Result<ChangedVersion, Error> {
        let organization = principal.member(Action::Save)?;
        self.check_keyless_save(request.data.kind(), VendRule::Short, request.verify)?;
        let json = request.data.to_canonical_json();
        let idempotency = self.idempotency_of_replace(principal, &request, &json);
        if request.verify {
            // A repeated request gets its original response, whatever has changed since.
            if let Some(number) = self.earlier_version(principal, organization, idempotency.clone()).await? {
                return Ok(ChangedVersion { version: number, revision: None });
            }
        }
        let check = match request.verify {
            true => Some(self.verify(&request.data, self.environment.now()).await?),
            false => None,
        };
        let CredentialReplacement { credential, data, expires_at, stage, .. } = request;
        let kind = data.kind();
        let edit = match stage {
            true => CredentialEdit::Stage { kind, expires_at },
            false => CredentialEdit::Replace { kind, expires_at },
        };
        let id = VersionId::from_uuid(self.environment.ids.random());
        self.change(principal, credential, edit, Some(NewData { id, data, json, check, idempotency })).await
    }

    /// Changes a credential.
    pub(super) async fn change(
        &self,
        principal: &Principal,
        CredentialRef { id, revision }: CredentialRef,
        edit: CredentialEdit,
        new: Option<NewData>,
    ) -> Result<ChangedVersion, Error> {
        let organization = principal.member(Action::Save)?;
        let change = ChangeCredential { organization, id, revision, edit, new, limits: self.version_limits };
        self.operations.run(&self.environment, principal, change).await
    }

    /// Returns the number that an earlier request with the same idempotency key returned, or `None` if there was none.
    /// The credential may have been deleted since.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyMismatch`](crate::Refusal::IdempotencyMismatch) if the key was used for another request.
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
