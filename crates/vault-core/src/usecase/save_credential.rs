//! Save a credential under a namespace.

use super::Ambient;
use super::check_namespace::check;
use crate::audit::{Actor, AuditAction, Subject};
use crate::check::CheckReport;
use crate::credential::{CredentialData, SecretBytes};
use crate::digest::DigestPurpose;
use crate::id::CredentialId;
use crate::namespace::Namespace;
use crate::port::{
    CredentialContext, CredentialRepository, Event, Idempotency, KeyedDigester, ProbeRequest, SaveCredential,
    SaveOutcome, SealError, Sealer, ShowCredential, StorageProbe, StoreError,
};
use crate::principal::{Principal, PrincipalRefusal};
use crate::role::Action;
use std::sync::Arc;

/// How often a save is sealed anew because the organization's key was replaced under it.
const SEAL_ATTEMPTS: usize = 3;
/// The version of a credential that has just been made.
const FIRST_VERSION: i64 = 1;

/// A client's name for one request: 1 to 255 visible ASCII characters. The same name with the same request
/// has one effect and one answer for 24 h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// The text cannot be an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key has 1 to 255 visible ASCII characters")]
pub struct InvalidIdempotencyKey;

impl IdempotencyKey {
    /// The key spelt `text`.
    ///
    /// # Errors
    /// The text is empty, too long or holds anything but visible ASCII.
    pub fn parse(text: &str) -> Result<Self, InvalidIdempotencyKey> {
        let sound = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if sound { Ok(Self(text.to_owned())) } else { Err(InvalidIdempotencyKey) }
    }
}

/// A credential to save.
pub struct SaveCredentialRequest {
    /// The namespace that activation must name again.
    pub namespace: Namespace,
    /// What to save.
    pub data: CredentialData,
    /// The client's name for this request.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether to try it out on its store first, and save it only if that knows it.
    pub verify: bool,
}

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveCredentialError {
    /// The role does not permit it.
    #[error("the role does not permit saving")]
    InsufficientRole,
    /// The principal may no longer act.
    #[error("the principal may no longer act")]
    Principal(PrincipalRefusal),
    /// Nothing here may reach stores.
    #[error("credentials are not tried out here before they are saved")]
    VerifyUnavailable,
    /// It was tried out, and cannot be used.
    #[error("the credential was tried out and cannot be used")]
    NotUsable(CheckReport),
    /// The idempotency key stands for another request.
    #[error("the idempotency key was used for another request")]
    IdempotencyMismatch,
    /// The organization has as many credentials as it may.
    #[error("the organization has as many credentials as it may")]
    LimitReached,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Sealing failed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// The ports of saving.
pub struct SaveCredentialUseCase {
    /// The most credentials an organization may have.
    pub limit: i64,
    /// Surroundings.
    pub ambient: Ambient,
    /// Seals; cannot open.
    pub sealer: Arc<dyn Sealer>,
    /// Digests for idempotency.
    pub digester: Arc<dyn KeyedDigester>,
    /// The store.
    pub credentials: Arc<dyn CredentialRepository>,
    /// Reaches stores, where the configuration turns that on.
    pub probe: Option<Arc<dyn StorageProbe>>,
}

impl SaveCredentialUseCase {
    /// Saves a credential; the same request under the same idempotency key gives the same id.
    ///
    /// # Errors
    /// See [`SaveCredentialError`]. On any of them nothing was saved, save that a store whose answer was
    /// lost may have saved it.
    pub async fn run(
        &self,
        principal: &Principal,
        request: SaveCredentialRequest,
    ) -> Result<CredentialId, SaveCredentialError> {
        if !principal.role().permits(Action::Save) {
            return Err(SaveCredentialError::InsufficientRole);
        }
        let organization = principal.organization();
        let now = self.ambient.now();
        let id = CredentialId::from_uuid(self.ambient.ids.ordered(now));
        if request.verify {
            self.verify(principal, id, &request.data).await?;
        }
        let data = request.data.to_canonical_json();
        let fingerprint = self.sealer.fingerprint(organization, &data).await?;
        let information = request.data.information(fingerprint);
        let idempotency = request.idempotency.as_ref().map(|key| self.idempotency(key, &request, &data));
        let context = CredentialContext { organization, credential: id, version: FIRST_VERSION };
        let actor = Actor::from(principal);

        for _ in 0..SEAL_ATTEMPTS {
            let sealed = self.sealer.seal(context, &request.namespace, &data, &information).await?;
            let subject = Subject::Credential(id);
            let command = SaveCredential {
                principal: principal.clone(),
                now,
                id,
                kind: request.data.kind(),
                namespace: request.namespace.clone(),
                sealed,
                idempotency: idempotency.clone(),
                limit: self.limit,
                audit: self.ambient.record(now, Some(organization), actor, AuditAction::CredentialSaved, subject),
            };
            match self.credentials.save_credential(command).await? {
                SaveOutcome::Saved => {
                    self.ambient.emit(Event::CredentialSaved);
                    return Ok(id);
                }
                SaveOutcome::Replayed(earlier) => return Ok(earlier),
                SaveOutcome::IdempotencyMismatch => return Err(SaveCredentialError::IdempotencyMismatch),
                SaveOutcome::LimitReached => return Err(SaveCredentialError::LimitReached),
                SaveOutcome::Refused(refusal) => return Err(SaveCredentialError::Principal(refusal)),
                // Replaced between sealing and saving: what is remembered of the key is out of date.
                SaveOutcome::KeyInactive => self.sealer.forget(organization),
            }
        }
        let cause = "the organization's key was replaced again and again";
        Err(StoreError::Unavailable(cause.into()).into())
    }

    /// Tries `data` out on its store: whether that is there and knows it.
    async fn verify(
        &self,
        principal: &Principal,
        id: CredentialId,
        data: &CredentialData,
    ) -> Result<(), SaveCredentialError> {
        let probe = self.probe.as_deref().ok_or(SaveCredentialError::VerifyUnavailable)?;
        // Nobody whose session is over makes this service reach out. There is no credential of the new id to be shown.
        let now = self.ambient.now();
        let query = ShowCredential { principal: principal.clone(), now, id };
        self.credentials.show_credential(query).await?.map_err(SaveCredentialError::Principal)?;
        let report = check(Some(probe), data, &ProbeRequest { operations: Vec::new(), until: None, now }).await;
        if report.is_usable() { Ok(()) } else { Err(SaveCredentialError::NotUsable(report)) }
    }

    fn idempotency(&self, key: &IdempotencyKey, request: &SaveCredentialRequest, data: &SecretBytes) -> Idempotency {
        let kind = request.data.kind().as_str().as_bytes();
        // The data's bytes are only digested.
        let parts: [&[u8]; 3] = [kind, request.namespace.as_str().as_bytes(), data.expose()];
        let body = self.digester.digest(DigestPurpose::IdempotentBody, &parts);
        Idempotency { key: key.0.clone(), body }
    }
}
