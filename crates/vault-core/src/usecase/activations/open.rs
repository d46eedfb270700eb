//! Decryption of a namespace's credentials for an integration, shared by activations, renewals and checks.

use super::Activations;
use crate::activation::{
    AbortActivation, FetchCredentials, FetchedCredential, FetchedNamespace, IssuedCredential, MAX_CREDENTIALS,
    NewActivation, Purpose, VendRule,
};
use crate::audit::{AuditAction, AuditNote, RecordEntry, Subject};
use crate::credential::CredentialData;
use crate::error::{Error, Refusal};
use crate::id::{ActivationId, CredentialId};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::organization::Organization;
use crate::port::{Event, SealError};
use crate::time::Timestamp;

/// Credentials to decrypt, and the reason.
#[derive(Clone, Debug)]
pub(super) struct Decryption {
    pub(super) namespace: Namespace,
    pub(super) purpose: Option<Purpose>,
    pub(super) reason: DecryptionReason,
}

/// Operation for which credentials are decrypted.
#[derive(Clone, Debug)]
pub(super) enum DecryptionReason {
    /// Start of an activation.
    Begin(NewActivation),
    /// Renewal of an active activation.
    Renewal(ActivationId),
    /// Check of the credentials with their storages.
    Check,
}

impl DecryptionReason {
    /// Returns the action to record if nothing is issued.
    pub(super) const fn failure(&self) -> AuditAction {
        match self {
            Self::Begin(_) | Self::Check => AuditAction::ActivationFailed,
            Self::Renewal(_) => AuditAction::ActivationRenewalFailed,
        }
    }
}

pub(super) struct DecryptedCredential {
    pub(super) id: CredentialId,
    pub(super) version: i64,
    pub(super) data: CredentialData,
    /// Forms in which the credential may be issued.
    pub(super) vend: VendRule,
    /// Time of the last activation, truncated to the minute.
    pub(super) last_activated_at: Option<Timestamp>,
}

impl Activations {
    /// Decrypts the credentials into memory, after their activation was recorded. Returns errors of its
    /// operations unchanged, because the integration may have to be verified again. The same applies to [`SealError::UnknownKey`]
    /// before the first restart.
    pub(super) async fn open(
        &self,
        principal: &IntegrationPrincipal,
        decryption: &Decryption,
    ) -> Result<Result<Vec<DecryptedCredential>, Error>, Error> {
        if !principal.patterns.allow(&decryption.namespace) {
            // Check this before any lookup that could disclose whether the namespace exists.
            self.record_refusal(principal, decryption, AuditAction::ActivationRefusedOutside).await?;
            return Ok(Err(Refusal::NamespaceNotAllowed.into()));
        }
        let taken = match self.take(principal, decryption).await {
            Ok(taken) => taken,
            Err(Error::Refused(
                refusal @ (Refusal::Frozen
                | Refusal::NamespaceEmpty
                | Refusal::NamespaceTooLarge
                | Refusal::TooManyLive),
            )) => {
                let frozen = refusal == Refusal::Frozen;
                let action = if frozen { AuditAction::ActivationRefusedFrozen } else { AuditAction::ActivationRefused };
                self.record_refusal(principal, decryption, action).await?;
                return Ok(Err(refusal.into()));
            }
            Err(error) => return Err(error),
        };
        let FetchedNamespace { owner, credentials } = taken;
        let mut opened = Vec::with_capacity(credentials.len());
        for fetched in credentials {
            let id = fetched.row.id;
            match self.open_one(&owner, fetched) {
                Ok(one) => opened.push(one),
                Err(error) => {
                    // The audit log names the credential, and the server log the reason.
                    self.environment.report(&error);
                    self.abort(principal, decryption, id, Vec::new()).await?;
                    return Ok(Err(error.into()));
                }
            }
        }
        Ok(Ok(opened))
    }

    /// Decrypts the data of a credential whose card opens for its row.
    pub(super) fn open_one(
        &self,
        owner: &Organization,
        FetchedCredential { row, version, data }: FetchedCredential,
    ) -> Result<DecryptedCredential, SealError> {
        let card = row.open(&*self.operations.ports.credentials, owner)?;
        let listed = card.version(version).ok_or_else(|| SealError::changed_credential(row.id))?;
        let context = row.data_context(owner.id, listed);
        let data = self.opener.open(&owner.keys, context, &card.namespace, card.kind, &data)?;
        Ok(DecryptedCredential { id: row.id, version, data, vend: card.vend, last_activated_at: row.last_activated_at })
    }

    /// Removes an activation in which the credential `failed`, and records it with `left`: short-lived credentials that
    /// were already requested and cannot be revoked.
    pub(super) async fn abort(
        &self,
        principal: &IntegrationPrincipal,
        decryption: &Decryption,
        failed: CredentialId,
        left: Vec<IssuedCredential>,
    ) -> Result<(), Error> {
        let note = decryption.note(principal, left);
        let audit = self.record(principal, decryption.reason.failure(), Subject::Credential(failed), note);
        match &decryption.reason {
            DecryptionReason::Begin(activation) => {
                let (organization, activation) = (principal.organization, activation.id);
                let recorded = Event::recorded(&audit);
                self.by_system(AbortActivation { organization, activation, audit }).await?;
                self.environment.emit(recorded);
                Ok(())
            }
            DecryptionReason::Renewal(_) | DecryptionReason::Check => self.by_system(RecordEntry(audit)).await,
        }
    }

    async fn take(&self, principal: &IntegrationPrincipal, decryption: &Decryption) -> Result<FetchedNamespace, Error> {
        let (action, subject, activation) = match &decryption.reason {
            DecryptionReason::Begin(new) => {
                (AuditAction::ActivationStarted, Subject::Activation(new.id), Some(new.clone()))
            }
            DecryptionReason::Renewal(id) => (AuditAction::ActivationRenewalStarted, Subject::Activation(*id), None),
            DecryptionReason::Check => (AuditAction::NamespaceChecked, Subject::Vault, None),
        };
        let namespace = decryption.namespace.clone();
        let payload = FetchCredentials { namespace, activation, most: MAX_CREDENTIALS };
        let note = decryption.note(principal, Vec::new());
        let command = self.command(principal, action, subject, note, payload);
        let checked = matches!(decryption.reason, DecryptionReason::Check).then(|| Event::recorded(&command.audit));
        let taken = self.by_system(command).await?;
        // The event of an activation is emitted only at its end, whether it succeeds or not.
        if let Some(checked) = checked {
            self.environment.emit(checked);
        }
        Ok(taken)
    }

    /// Records that an integration was refused.
    pub(super) async fn record_refusal(
        &self,
        principal: &IntegrationPrincipal,
        decryption: &Decryption,
        action: AuditAction,
    ) -> Result<(), Error> {
        let subject = Subject::Integration(principal.integration);
        let audit = self.record(principal, action, subject, decryption.note(principal, Vec::new()));
        self.by_system(RecordEntry(audit)).await
    }
}

impl Decryption {
    /// Creates the audit note.
    pub(super) fn note(&self, principal: &IntegrationPrincipal, credentials: Vec<IssuedCredential>) -> AuditNote {
        let (namespace, purpose) = (self.namespace.clone(), self.purpose.clone());
        AuditNote { namespace, purpose, network: principal.network, credentials }
    }
}
