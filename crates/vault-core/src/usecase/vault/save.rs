//! Saves of credentials in a namespace.

use super::Vault;
use crate::activation::{VendRule, allows_short};
use crate::credential::{
    CredentialData, Description, FindRequest, Labels, LastCheck, Metadata, NewData, SaveCredential, SecretBytes,
    no_short_form,
};
use crate::digest::DigestPurpose;
use crate::error::{Error, Refusal};
use crate::field::Invalid;
use crate::id::{CredentialId, VersionId};
use crate::namespace::Namespace;
use crate::port::Idempotency;
use crate::principal::Principal;
use crate::role::Action;
use crate::time::Timestamp;
use crate::usecase::activations::authenticates;

/// Version of a new credential.
const FIRST_VERSION: i64 = 1;

/// A client's ID for one request: 1 to 255 visible ASCII characters. Repeated requests with the same key have one
/// effect and one response for 24 h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

const INVALID: Invalid = Invalid("an idempotency key has 1 to 255 visible ASCII characters");

impl IdempotencyKey {
    /// Parses a key.
    ///
    /// # Errors
    /// The text is empty, too long or contains other characters than visible ASCII.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let sound = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if sound { Ok(Self(text.to_owned())) } else { Err(INVALID) }
    }
}

/// A credential to save.
pub struct NewCredential {
    /// Namespace that an activation must name.
    pub namespace: Namespace,
    /// Data to save.
    pub data: CredentialData,
    /// Labels.
    pub labels: Labels,
    /// Description of its use.
    pub description: Option<Description>,
    /// Declared expiry.
    pub expires_at: Option<Timestamp>,
    /// Forms in which the credential may be issued.
    pub vend: VendRule,
    /// Request ID that the client sent.
    pub idempotency: Option<IdempotencyKey>,
    /// Whether to check the credential with its storage first, and save it only if the storage accepts it.
    pub verify: bool,
}

impl NewCredential {
    /// Creates a request without labels, description and declared expiry, and with the default vend rule.
    pub fn new(namespace: Namespace, data: CredentialData) -> Self {
        let vend = VendRule::default_of(data.kind());
        Self {
            namespace,
            data,
            labels: Labels::default(),
            description: None,
            expires_at: None,
            vend,
            idempotency: None,
            verify: false,
        }
    }

    fn metadata(&self) -> Metadata {
        let mut metadata = Metadata::default();
        metadata.labels.clone_from(&self.labels);
        metadata.description.clone_from(&self.description);
        metadata.set_expires_at(FIRST_VERSION, self.expires_at);
        metadata
    }
}

impl Vault {
    /// Saves a credential and returns its ID. A repeated request with the same idempotency key returns the same ID.
    ///
    /// # Errors
    /// [`Refusal::IdempotencyMismatch`], [`Refusal::LimitReached`], [`Refusal::VerifyUnavailable`] or
    /// [`Refusal::NotUsable`], and [`Error::Invalid`] for a keyless credential that cannot be used. Nothing was saved after an error, unless the response of the store was lost.
    pub async fn save(&self, principal: &Principal, request: NewCredential) -> Result<CredentialId, Error> {
        let organization = principal.member(Action::Save)?;
        self.check_keyless_save(request.data.kind(), request.vend, request.verify)?;
        let id = CredentialId::from_uuid(self.environment.ids.ordered(self.environment.now()));
        let json = request.data.to_canonical_json();
        let idempotency = self.idempotency_of_save(principal, &request, &json);
        let mut check = None;
        if request.verify {
            // Skip the check for a repeated request, and authorize the session first, so that an ended session cannot
            // cause outgoing connections.
            let find = FindRequest { organization, idempotency: idempotency.clone() };
            if let Some((earlier, _)) = self.operations.run(&self.environment, principal, find).await? {
                return Ok(earlier);
            }
            check = Some(self.verify(&request.data, self.environment.now()).await?);
        }
        if request.vend == VendRule::Short {
            allows_short(&request.data).map_err(|reason| no_short_form(request.data.kind(), reason))?;
        }
        let metadata = request.metadata();
        let NewCredential { namespace, vend, data, .. } = request;
        let new = NewData { id: VersionId::from_uuid(self.environment.ids.random()), data, json, check, idempotency };
        let save = SaveCredential { organization, id, namespace, vend, metadata, new, limit: self.limit };
        self.operations.run(&self.environment, principal, save).await
    }

    /// Checks with its storage whether `data` is accepted, and returns the result to store with the version.
    pub(super) async fn verify(&self, data: &CredentialData, now: Timestamp) -> Result<LastCheck, Error> {
        let probe = self.probe.as_deref().ok_or(Refusal::VerifyUnavailable)?;
        let report = authenticates(probe, data, now).await;
        if !report.is_usable() {
            return Err(Refusal::NotUsable(report).into());
        }
        Ok(LastCheck::after(None, self.environment.now(), None))
    }

    fn idempotency_of_save(
        &self,
        principal: &Principal,
        request: &NewCredential,
        data: &SecretBytes,
    ) -> Option<Idempotency> {
        let kind = request.data.kind().as_str().as_bytes();
        let verify: &[u8] = if request.verify { b"verify" } else { b"" };
        // Keep the digest of requests without metadata unchanged, because older versions did not have metadata.
        let metadata = request.metadata();
        let said = if metadata == Metadata::default() { String::new() } else { metadata.to_json() };
        let vend = if request.vend == VendRule::Any { "" } else { request.vend.as_str() };
        // Expose the data only to compute a digest.
        let parts =
            [kind, request.namespace.as_str().as_bytes(), data.expose(), verify, said.as_bytes(), vend.as_bytes()];
        let parts = if said.is_empty() && vend.is_empty() { &parts[..4] } else { &parts[..] };
        self.idempotency(principal, request.idempotency.as_ref(), parts)
    }

    /// Returns the idempotency key of a request whose digest covers `parts`. Each operation has a different number of
    /// parts, so a request never matches one of another operation.
    pub(super) fn idempotency(
        &self,
        principal: &Principal,
        key: Option<&IdempotencyKey>,
        parts: &[&[u8]],
    ) -> Option<Idempotency> {
        let (key, account) = key.zip(principal.account())?;
        let body = self.digester.lookup(DigestPurpose::IdempotentBody, parts);
        Some(Idempotency { account, key: key.0.clone(), body })
    }
}
