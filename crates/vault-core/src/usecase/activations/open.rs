//! Open a namespace's credentials for an integration: what activations, renewals and checks have in common.

use super::Activations;
use crate::activation::{HandedOut, MAX_CREDENTIALS, Purpose, VendRule};
use crate::audit::{AuditAction, AuditNote, Subject};
use crate::credential::CredentialData;
use crate::error::{Error, Refusal};
use crate::id::{ActivationId, CredentialId, OrganizationId};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::port::{
    AbortActivation, CredentialContext, Event, NewActivation, SealError, StoreError, TakeCredentials, TakenCredential,
};
use crate::time::Timestamp;
use crate::usecase::sound_under_known_keys;

/// What is to be opened, and why.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) namespace: Namespace,
    pub(super) purpose: Option<Purpose>,
    pub(super) occasion: Occasion,
}

/// The operation that credentials are opened for.
#[derive(Clone, Debug)]
pub(super) enum Occasion {
    /// An activation begins.
    Begin(NewActivation),
    /// A live activation is renewed.
    Renewal(ActivationId),
    /// Their storages are to be asked.
    Check,
}

impl Occasion {
    /// The action that is recorded when nothing is handed out.
    pub(super) const fn failure(&self) -> AuditAction {
        match self {
            Self::Begin(_) | Self::Check => AuditAction::ActivationFailed,
            Self::Renewal(_) => AuditAction::ActivationRenewalFailed,
        }
    }
}

/// A credential, open.
pub(super) struct Opened {
    pub(super) id: CredentialId,
    pub(super) version: i64,
    pub(super) data: CredentialData,
    /// Forms in which the credential may be issued.
    pub(super) vend: VendRule,
    /// Time of the last activation, truncated to the minute.
    pub(super) last_activated_at: Option<Timestamp>,
}

impl Activations {
    /// Opens the credentials. What is opened stays in memory; that it was begun is recorded before. An error of the
    /// store is returned as it is: the integration may have to be verified again. So is [`SealError::UnknownKey`] before
    /// the first restart.
    pub(super) async fn open(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        restarts: usize,
    ) -> Result<Result<Vec<Opened>, Error>, StoreError> {
        if !principal.patterns.allow(&opening.namespace) {
            // Before anything is looked up that could tell whether the namespace exists.
            self.record_refusal(principal, opening, AuditAction::ActivationRefusedOutside).await?;
            return Ok(Err(Refusal::NamespaceNotAllowed.into()));
        }
        let taken = match self.take(principal, opening).await {
            Ok(taken) => taken,
            Err(StoreError::Refused(refusal)) => {
                let frozen = refusal == Refusal::Frozen;
                let action = if frozen { AuditAction::ActivationRefusedFrozen } else { AuditAction::ActivationRefused };
                self.record_refusal(principal, opening, action).await?;
                return Ok(Err(refusal.into()));
            }
            Err(error) => return Err(error),
        };
        let mut opened = Vec::with_capacity(taken.len());
        for row in taken {
            let id = row.id;
            match self.open_one(principal.organization, &opening.namespace, row).await {
                Ok(one) => opened.push(one),
                // A rotation ended between reading the row and reading the keys: this is begun again.
                Err(error @ SealError::UnknownKey { .. }) if restarts == 0 => {
                    self.abort(principal, opening, id, Vec::new()).await?;
                    return Ok(Err(error.into()));
                }
                Err(error) => {
                    // The record names the credential; the log says what is wrong with it.
                    self.environment.report(&error);
                    self.abort(principal, opening, id, Vec::new()).await?;
                    return Ok(Err(error.into()));
                }
            }
        }
        Ok(Ok(opened))
    }

    /// Opens one credential, if its row says what was signed.
    pub(super) async fn open_one(
        &self,
        organization: OrganizationId,
        namespace: &Namespace,
        row: TakenCredential,
    ) -> Result<Opened, SealError> {
        let is_sound = || row.is_sound(&*self.digester, organization, namespace);
        if !sound_under_known_keys(&*self.digester, is_sound).await? {
            return Err(SealError::unsound_credential(row.id));
        }
        let TakenCredential { id, kind, version, sealed, vend, last_activated_at, .. } = row;
        let context = CredentialContext { organization, credential: id, version };
        let data = self.opener.open(context, namespace, kind, &sealed).await?;
        Ok(Opened { id, version, data, vend, last_activated_at })
    }

    /// Removes an activation in which the credential `failed`, and records it with `left`: the short-lived credentials
    /// that were requested already and cannot be revoked.
    pub(super) async fn abort(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        failed: CredentialId,
        left: Vec<HandedOut>,
    ) -> Result<(), StoreError> {
        let note = opening.note(principal, left);
        let audit = self.record(principal, opening.occasion.failure(), Subject::Credential(failed), note);
        let recorded = Event::recorded(&audit);
        match &opening.occasion {
            Occasion::Begin(activation) => {
                let (organization, activation) = (principal.organization, activation.id);
                self.store.abort_activation(AbortActivation { organization, activation, audit }).await?;
            }
            Occasion::Renewal(_) | Occasion::Check => self.store.append(vec![audit]).await?,
        }
        self.environment.emit(recorded);
        Ok(())
    }

    async fn take(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
    ) -> Result<Vec<TakenCredential>, StoreError> {
        let (action, subject, activation) = match &opening.occasion {
            Occasion::Begin(new) => (AuditAction::ActivationBegun, Subject::Activation(new.id), Some(new.clone())),
            Occasion::Renewal(id) => (AuditAction::ActivationRenewalBegun, Subject::Activation(*id), None),
            Occasion::Check => (AuditAction::NamespaceChecked, Subject::Vault, None),
        };
        let namespace = opening.namespace.clone();
        let act = TakeCredentials { namespace, activation, most: MAX_CREDENTIALS };
        let note = opening.note(principal, Vec::new());
        let command = self.command(principal, action, subject, note, act);
        let checked = matches!(opening.occasion, Occasion::Check).then(|| Event::recorded(&command.audit));
        let taken = self.store.take_credentials(command).await?;
        // An activation is told of when it has ended, well or not.
        if let Some(checked) = checked {
            self.environment.emit(checked);
        }
        Ok(taken)
    }

    /// Records that an integration was refused.
    pub(super) async fn record_refusal(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        action: AuditAction,
    ) -> Result<(), StoreError> {
        let subject = Subject::Integration(principal.integration);
        let audit = self.record(principal, action, subject, opening.note(principal, Vec::new()));
        let refused = Event::recorded(&audit);
        self.store.append(vec![audit]).await?;
        self.environment.emit(refused);
        Ok(())
    }
}

impl Opening {
    /// Entry in the audit log.
    pub(super) fn note(&self, principal: &IntegrationPrincipal, credentials: Vec<HandedOut>) -> AuditNote {
        let (namespace, purpose) = (self.namespace.clone(), self.purpose.clone());
        AuditNote { namespace, purpose, network: principal.network, credentials }
    }
}
