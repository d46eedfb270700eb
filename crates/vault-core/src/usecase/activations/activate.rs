//! Activation of a namespace: issues its decrypted credentials to an integration for a limited time, in the requested
//! form. A renewal issues them again with a new expiry.

use super::open::{DecryptedCredential, Decryption, DecryptionReason};
use super::{Activations, CONCURRENT, RESTARTS, contended};
use crate::activation::{
    Activated, ActivatedCredential, ActivationTtl, FindActivation, IssuanceRefusal, IssueCredentials, IssuedCredential,
    NewActivation, Purpose, VendMode, Vended, VendedForm, allows_short,
};
use crate::audit::{AuditAction, Subject};
use crate::check::CheckReason;
use crate::credential::{CredentialData, RecordActivated};
use crate::error::{Error, Refusal};
use crate::id::{ActivationId, CredentialId};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::port::{Event, ShortLived, VendOrder};
use crate::time::Timestamp;
use futures_util::future::join_all;

/// Request for an activation.
#[derive(Clone, Debug)]
pub struct ActivationRequest {
    /// The namespace, returned to the caller.
    pub namespace: Namespace,
    /// Purpose that the integration states.
    pub purpose: Option<Purpose>,
    /// Requested lifetime.
    pub ttl: ActivationTtl,
    /// Requested form.
    pub vend: VendMode,
}

/// Request for the renewal of an active activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalRequest {
    /// ID of the activation.
    pub activation: ActivationId,
    /// Requested lifetime from now.
    pub ttl: ActivationTtl,
}

/// Kind of issuance.
enum Wanted<'a> {
    Begin(&'a ActivationRequest),
    Renewal(RenewalRequest),
}

/// Outcome of one attempt to activate.
enum Attempt {
    /// Credentials were issued.
    Done(Activated),
    /// Nothing was issued, and a retry would not help.
    Failed(Error),
    /// Nothing was issued because of a concurrent change. Contains the integration in its current state.
    Again(IntegrationPrincipal),
}

/// Activation and expiry for which a short-lived credential is issued.
#[derive(Clone, Copy)]
pub(super) struct Until<'a> {
    pub(super) principal: &'a IntegrationPrincipal,
    pub(super) namespace: &'a Namespace,
    /// `None` for a check.
    pub(super) activation: Option<ActivationId>,
    pub(super) now: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl Until<'_> {
    pub(super) fn order(self, credential: CredentialId) -> VendOrder {
        let Self { principal, namespace, activation, now, expires_at } = self;
        let (organization, integration) = (principal.organization, Some(principal.integration));
        VendOrder { organization, integration, namespace: namespace.clone(), activation, credential, now, expires_at }
    }
}

/// Replacement of saved data.
pub(super) enum Issued {
    /// A short-lived credential.
    Short(Box<ShortLived>),
    /// None: the saved data is issued. A reason means that a short-lived credential was preferred but not available.
    Nothing(Option<CheckReason>),
}

impl Activations {
    /// Activates a namespace: issues all of its credentials or none. The activation expires no later than its
    /// integration.
    ///
    /// The first transaction records the start. A second one, immediately before the response, repeats all checks and
    /// records the issued credentials. Nothing is therefore issued after a revocation of the token, the integration, the
    /// organization, the namespace or a credential has returned. If a credential or the integration changed in between,
    /// the activation is restarted, at most three times.
    ///
    /// # Errors
    /// - [`Refusal::NamespaceNotAllowed`], [`Refusal::Frozen`], [`Refusal::NamespaceEmpty`],
    ///   [`Refusal::NamespaceTooLarge`], [`Refusal::TooManyLive`] or [`Refusal::NotVended`]: the activation is refused.
    /// - [`Refusal::NotFound`]: the integration itself ended the activation in the meantime.
    /// - [`StoreError::Unavailable`](crate::port::StoreError::Unavailable): the store is unavailable, or three restarts failed.
    pub async fn activate(
        &self,
        principal: &IntegrationPrincipal,
        request: ActivationRequest,
    ) -> Result<Activated, Error> {
        self.settle(principal, &Wanted::Begin(&request)).await
    }

    /// Renews an active activation of the integration: issues the current credentials of its namespace in its original
    /// form, and sets a new expiry. The checks are those of a new activation, but it does not count as another one.
    /// After a refusal, the activation stays active until it expires.
    ///
    /// # Errors
    /// Those of [`Activations::activate`], without [`Refusal::TooManyLive`]. [`Refusal::NotFound`] if the integration
    /// has no active activation with this ID.
    pub async fn renew(&self, principal: &IntegrationPrincipal, request: RenewalRequest) -> Result<Activated, Error> {
        self.settle(principal, &Wanted::Renewal(request)).await
    }

    async fn settle(&self, principal: &IntegrationPrincipal, wanted: &Wanted<'_>) -> Result<Activated, Error> {
        let mut principal = principal.clone();
        for _ in 0..=RESTARTS {
            let attempt = match self.attempt(&principal, wanted).await {
                Ok(attempt) => attempt,
                Err(error) => Attempt::Again(self.after(&principal, error).await?),
            };
            match attempt {
                Attempt::Done(activated) => return Ok(activated),
                Attempt::Failed(error) => return Err(error),
                Attempt::Again(renewed) => principal = renewed,
            }
        }
        Err(contended())
    }

    async fn attempt(&self, principal: &IntegrationPrincipal, wanted: &Wanted<'_>) -> Result<Attempt, Error> {
        let now = self.environment.now();
        let ends = |ttl: ActivationTtl| {
            let end = now.plus_seconds(ttl.as_seconds().into());
            principal.expires_at.map_or(end, |last| end.min(last))
        };
        let (decryption, activation, expires_at, vend) = match wanted {
            Wanted::Begin(request) => {
                let id = ActivationId::from_uuid(self.environment.ids.ordered(now));
                let (expires_at, vend, limit) = (ends(request.ttl), request.vend, self.live_limit);
                let reason = DecryptionReason::Begin(NewActivation { id, expires_at, vend, limit });
                let (namespace, purpose) = (request.namespace.clone(), request.purpose.clone());
                (Decryption { namespace, purpose, reason }, id, expires_at, vend)
            }
            Wanted::Renewal(RenewalRequest { activation, ttl }) => {
                let (principal, activation) = (principal.clone(), *activation);
                let found = self.by_system(FindActivation { principal, activation, now }).await?;
                let Some(found) = found else { return Ok(Attempt::Failed(Refusal::NotFound.into())) };
                let reason = DecryptionReason::Renewal(activation);
                let decryption = Decryption { namespace: found.namespace, purpose: None, reason };
                (decryption, activation, ends(*ttl), found.vend)
            }
        };
        let opened = match self.open(principal, &decryption).await? {
            Ok(opened) => opened,
            Err(error) => return Ok(Attempt::Failed(error)),
        };
        let minute = now.floor_to_minute();
        let unnoted = opened.iter().filter(|one| one.last_activated_at.is_none_or(|last| last < minute));
        let unnoted: Vec<_> = unnoted.map(|one| one.id).collect();
        let until =
            Until { principal, namespace: &decryption.namespace, activation: Some(activation), now, expires_at };
        let (credentials, failed) = self.vend_all(opened, until, vend).await;
        if let Some((credential, reason)) = failed {
            self.abort(principal, &decryption, credential, left(&credentials)).await?;
            return Ok(Attempt::Failed(Refusal::NotVended { credential, reason }.into()));
        }
        match self.issue_credentials(principal, &decryption, (activation, expires_at), &credentials).await? {
            None => {
                if !unnoted.is_empty() {
                    let organization = principal.organization;
                    // The credentials are issued and the use is recorded. The time in lists may be late, so ignore an
                    // error.
                    let recorded = RecordActivated { organization, credentials: unnoted, minute };
                    let _ = self.by_system(recorded).await;
                }
                Ok(Attempt::Done(Activated {
                    id: activation,
                    namespace: decryption.namespace,
                    expires_at,
                    credentials,
                }))
            }
            Some(refusal) => self.refused(principal, &decryption, refusal).await,
        }
    }

    /// Runs the last transaction before the response.
    async fn issue_credentials(
        &self,
        principal: &IntegrationPrincipal,
        decryption: &Decryption,
        (activation, expires_at): (ActivationId, Timestamp),
        credentials: &[ActivatedCredential],
    ) -> Result<Option<IssuanceRefusal>, Error> {
        let issued_credentials: Vec<_> = credentials.iter().map(ActivatedCredential::issued_credentials).collect();
        let subject = Subject::Activation(activation);
        let failed = decryption.note(principal, left(credentials));
        let renewal = matches!(decryption.reason, DecryptionReason::Renewal(_));
        let payload = IssueCredentials {
            activation,
            renewal,
            expires_at,
            namespace: decryption.namespace.clone(),
            credentials: issued_credentials.clone(),
            purpose: decryption.purpose.clone(),
            refused: self.record(principal, decryption.reason.failure(), subject, failed),
        };
        let note = decryption.note(principal, issued_credentials);
        let action = if renewal { AuditAction::ActivationRenewed } else { AuditAction::NamespaceActivated };
        let command = self.command(principal, action, subject, note, payload);
        let (activated, failed) = (Event::recorded(&command.audit), Event::recorded(&command.payload.refused));
        let outcome = self.by_system(command).await?;
        self.environment.emit(if outcome.is_none() { activated } else { failed });
        Ok(outcome)
    }

    /// Returns the outcome after the last transaction refused and recorded the refusal.
    async fn refused(
        &self,
        principal: &IntegrationPrincipal,
        decryption: &Decryption,
        refusal: IssuanceRefusal,
    ) -> Result<Attempt, Error> {
        Ok(match refusal {
            IssuanceRefusal::Denied(refusal) => match self.after_refusal(principal, refusal).await {
                Ok(renewed) => Attempt::Again(renewed),
                Err(error) => Attempt::Failed(error),
            },
            IssuanceRefusal::Frozen => {
                self.record_refusal(principal, decryption, AuditAction::ActivationRefusedFrozen).await?;
                Attempt::Failed(Refusal::Frozen.into())
            }
            IssuanceRefusal::Ended => Attempt::Failed(Refusal::NotFound.into()),
            IssuanceRefusal::Changed | IssuanceRefusal::Expired => Attempt::Again(principal.clone()),
        })
    }

    /// Returns the credentials to issue, in the order of `opened`, and the first one that is not available in the
    /// requested form. After a failure, no further storage is called.
    async fn vend_all(
        &self,
        opened: Vec<DecryptedCredential>,
        until: Until<'_>,
        mode: VendMode,
    ) -> (Vec<ActivatedCredential>, Option<(CredentialId, CheckReason)>) {
        let mut credentials = Vec::with_capacity(opened.len());
        let mut failed = None;
        let mut opened = opened.into_iter().peekable();
        while failed.is_none() && opened.peek().is_some() {
            let some = opened.by_ref().take(CONCURRENT).map(|one| self.vend(one, until, mode));
            // Await all of them: a request that is dropped could still issue a credential, without a record.
            for vended in join_all(some).await {
                match vended {
                    Ok(credential) => credentials.push(credential),
                    Err(reason) => {
                        failed.get_or_insert(reason);
                    }
                }
            }
        }
        (credentials, failed)
    }

    async fn vend(
        &self,
        opened: DecryptedCredential,
        until: Until<'_>,
        mode: VendMode,
    ) -> Result<ActivatedCredential, (CredentialId, CheckReason)> {
        let DecryptedCredential { id, version, data, vend, .. } = opened;
        let kind = data.kind().issued_as();
        if data.kind().is_keyless() {
            self.require_closed_trust(&data, until.now).await.map_err(|reason| (id, reason))?;
        }
        let vended = match self.issue(&data, until.order(id), vend.limit(mode)).await.map_err(|reason| (id, reason))? {
            Issued::Short(short) => {
                let ShortLived { data, expires_at } = *short;
                Vended::Short { data, expires_at }
            }
            Issued::Nothing(missed) => {
                if let Some(reason) = missed {
                    self.environment.emit(Event::ShortFormMissed(reason));
                }
                Vended::Raw(data)
            }
        };
        Ok(ActivatedCredential { id, kind, version, vended })
    }

    /// Returns the credential to issue for `data`, or the reason why `mode` forbids it.
    pub(super) async fn issue(
        &self,
        data: &CredentialData,
        order: VendOrder,
        mode: VendMode,
    ) -> Result<Issued, CheckReason> {
        match mode {
            VendMode::Raw => Ok(Issued::Nothing(None)),
            VendMode::Short => self.short(data, order).await.map(|short| Issued::Short(Box::new(short))),
            VendMode::PreferShort => {
                let short = self.short(data, order).await;
                Ok(short.map_or_else(|reason| Issued::Nothing(Some(reason)), |short| Issued::Short(Box::new(short))))
            }
        }
    }

    /// Requests a short-lived credential. Does not check a provider trust.
    pub(super) async fn short(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        allows_short(data)?;
        let vendor = self.vendor.as_ref().ok_or(CheckReason::NotConfigured)?;
        let now = order.now;
        let short = vendor.vend(data, order).await?;
        let sound = short.data.kind() == data.kind().issued_as() && short.expires_at > now;
        if sound { Ok(short) } else { Err(CheckReason::Unexpected) }
    }
}

/// Returns the credentials that a storage provider issued, and that cannot be revoked.
fn left(credentials: &[ActivatedCredential]) -> Vec<IssuedCredential> {
    let issued = credentials.iter().filter(|one| one.vended.form() == VendedForm::Short);
    issued.map(ActivatedCredential::issued_credentials).collect()
}
