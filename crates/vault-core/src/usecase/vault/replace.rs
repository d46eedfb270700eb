//! Replacement of a credential's data. Its ID and namespace are unchanged, so jobs are not affected.

use super::change::{ChangedVersion, Decided, Read, no_short_form};
use super::{CredentialRef, IdempotencyKey, Vault};
use crate::activation::{VendRule, allows_short};
use crate::audit::AuditAction;
use crate::credential::{CredentialChange, CredentialData, FindRequest, NewVersion, SecretBytes, Superseded};
use crate::error::{Error, Refusal};
use crate::id::{OrganizationId, VersionId};
use crate::port::{CredentialContext, Idempotency, StoredVersions};
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
        let action = if request.stage { AuditAction::CredentialStaged } else { AuditAction::CredentialReplaced };
        let (wanted, data, information, idempotency) = (&request, &data, &information, &idempotency);
        let decide = |read: Read| async move {
            let (versions, current) = (&read.versions, &read.versions.current);
            if current.kind != wanted.data.kind() {
                return Err(Refusal::TypeDiffers(current.kind).into());
            }
            let vend = current.vend;
            if vend == VendRule::Short {
                allows_short(&wanted.data).map_err(|reason| no_short_form(current.kind, reason))?;
            }
            let number = versions.current.highest.saturating_add(1);
            let id = VersionId::from_uuid(self.environment.ids.random());
            let context = CredentialContext { organization, credential: current.id, version: number, id: Some(id) };
            let sealed = self.sealer.seal(context, &current.namespace, data, information).await?;
            let now = self.environment.now();
            let superseded = self.version_limits.supersede(now);
            let destroyed = if wanted.stage {
                self.destroyed_by_staging(versions, now)
            } else {
                self.destroyed_by_replacing(versions, superseded, now)
            };
            let mut metadata = read.metadata.clone();
            metadata.forget(&destroyed);
            metadata.set_expires_at(number, wanted.expires_at);
            let version = NewVersion { number, id, sealed, check, idempotency: idempotency.clone(), destroyed };
            Ok(if wanted.stage {
                let data_expires_at = self.data_expires_at(organization, current, read.reading).await?;
                Decided { change: CredentialChange::Stage(version), metadata, vend, data_expires_at }
            } else {
                let change = CredentialChange::Replace { version, destroy_at: superseded.destroy_at };
                Decided { change, metadata, vend, data_expires_at: wanted.data.expires_at() }
            })
        };
        self.change(principal, organization, request.credential, action, decide).await
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

    /// Returns the versions to destroy if another one becomes current.
    pub(super) fn destroyed_by_replacing(
        &self,
        versions: &StoredVersions,
        superseded: Superseded,
        now: Timestamp,
    ) -> Vec<i64> {
        let mut previous = previous(versions);
        previous.push((versions.current.version, superseded));
        self.version_limits.destroyed(1 + usize::from(versions.current.staged.is_some()), &previous, now)
    }

    /// Returns the versions to destroy if another one is staged: the previously staged one, and those that exceed the
    /// limit.
    fn destroyed_by_staging(&self, versions: &StoredVersions, now: Timestamp) -> Vec<i64> {
        let destroyed = self.version_limits.destroyed(2, &previous(versions), now);
        versions.current.staged.into_iter().chain(destroyed).collect()
    }
}

/// Returns the previous versions.
pub(super) fn previous(versions: &StoredVersions) -> Vec<(i64, Superseded)> {
    versions.others.iter().filter_map(|version| Some((version.number, version.superseded?))).collect()
}
