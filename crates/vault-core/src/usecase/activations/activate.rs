//! Activate a namespace: its credentials, opened for an integration for a while, in the form that it requests. And renew
//! an activation: the same once more, with another end.

use super::open::{Occasion, Opened, Opening};
use super::{AT_ONCE, Activations, RESTARTS, contended};
use crate::activation::{
    Activated, ActivatedCredential, ActivationTtl, HandOutRefusal, HandedOut, Purpose, VendMode, Vended, VendedForm,
    allows_short,
};
use crate::audit::{AuditAction, Subject};
use crate::check::CheckReason;
use crate::credential::CredentialData;
use crate::error::{Error, Refusal};
use crate::id::{ActivationId, CredentialId};
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::port::{Event, FindActivation, HandOut, NewActivation, NoteActivated, ShortLived, StoreError, VendOrder};
use crate::time::Timestamp;
use futures_util::future::join_all;

/// What an integration requests.
#[derive(Clone, Debug)]
pub struct ActivationRequest {
    /// The namespace, given again.
    pub namespace: Namespace,
    /// What it is for.
    pub purpose: Option<Purpose>,
    /// For how long.
    pub ttl: ActivationTtl,
    /// In which form.
    pub vend: VendMode,
}

/// What an integration requests for an activation that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalRequest {
    /// The activation.
    pub activation: ActivationId,
    /// For how long from now.
    pub ttl: ActivationTtl,
}

/// What is to be handed out.
enum Wanted<'a> {
    Begin(&'a ActivationRequest),
    Renewal(RenewalRequest),
}

/// How one attempt to activate went.
enum Attempt {
    /// Credentials were issued.
    Done(Activated),
    /// Nothing was, and nothing will be.
    Failed(Error),
    /// Nothing was, since something changed meanwhile; the integration as it is now.
    Again(IntegrationPrincipal),
}

/// For which activation, and until when, something short-lived is issued.
#[derive(Clone, Copy)]
pub(super) struct Until<'a> {
    pub(super) principal: &'a IntegrationPrincipal,
    pub(super) namespace: &'a Namespace,
    pub(super) activation: ActivationId,
    pub(super) now: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl Until<'_> {
    pub(super) fn order(self, credential: CredentialId) -> VendOrder {
        let Self { principal, namespace, activation, now, expires_at } = self;
        let (organization, integration) = (principal.organization, principal.integration);
        VendOrder { organization, integration, namespace: namespace.clone(), activation, credential, now, expires_at }
    }
}

/// What takes the place of saved data.
pub(super) enum Issued {
    /// A short-lived credential.
    Short(Box<ShortLived>),
    /// The saved data. With a reason: a short-lived credential was preferred, but not available.
    Nothing(Option<CheckReason>),
}

impl Activations {
    /// Activates a namespace: issues all of its credentials or none. The activation ends with its integration at the
    /// latest.
    ///
    /// The first transaction records the begin. A second one, after all waiting, checks everything again and records what
    /// is issued. So nothing is issued after a revocation has returned: of the token, the integration, the organization,
    /// the namespace or a credential. Begun again at most three times if a credential or
    /// the integration changed meanwhile.
    ///
    /// # Errors
    /// [`Refusal::NamespaceNotAllowed`], [`Refusal::Frozen`], [`Refusal::NamespaceEmpty`],
    /// [`Refusal::NamespaceTooLarge`], [`Refusal::TooManyLive`], [`Refusal::NotVended`]; [`Refusal::NotFound`]: the
    /// integration itself ended the activation meanwhile; [`StoreError::Unavailable`], also after three restarts.
    pub async fn activate(
        &self,
        principal: &IntegrationPrincipal,
        request: ActivationRequest,
    ) -> Result<Activated, Error> {
        self.settle(principal, &Wanted::Begin(&request)).await
    }

    /// Renews a live activation of the integration: issues the current credentials of its namespace, in the form that it was
    /// begun with, and gives it another end. Judged like a new activation, and it does not count as another one. After a
    /// refusal the activation lives until it expires.
    ///
    /// # Errors
    /// As [`Activations::activate`], without [`Refusal::TooManyLive`]; [`Refusal::NotFound`]: the integration has no live
    /// activation of this id.
    pub async fn renew(&self, principal: &IntegrationPrincipal, request: RenewalRequest) -> Result<Activated, Error> {
        self.settle(principal, &Wanted::Renewal(request)).await
    }

    async fn settle(&self, principal: &IntegrationPrincipal, wanted: &Wanted<'_>) -> Result<Activated, Error> {
        let mut principal = principal.clone();
        for restarts in 0..=RESTARTS {
            let attempt = match self.attempt(&principal, wanted, restarts).await {
                Ok(Attempt::Failed(error)) if restarts == 0 && error.is_unknown_key() => {
                    Attempt::Again(principal.clone())
                }
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

    async fn attempt(
        &self,
        principal: &IntegrationPrincipal,
        wanted: &Wanted<'_>,
        restarts: usize,
    ) -> Result<Attempt, StoreError> {
        let now = self.environment.now();
        let ends = |ttl: ActivationTtl| {
            let end = now.plus_seconds(ttl.as_seconds().into());
            principal.expires_at.map_or(end, |last| end.min(last))
        };
        let (opening, activation, expires_at, vend) = match wanted {
            Wanted::Begin(request) => {
                let id = ActivationId::from_uuid(self.environment.ids.ordered(now));
                let (expires_at, vend, limit) = (ends(request.ttl), request.vend, self.live_limit);
                let occasion = Occasion::Begin(NewActivation { id, expires_at, vend, limit });
                let (namespace, purpose) = (request.namespace.clone(), request.purpose.clone());
                (Opening { namespace, purpose, occasion }, id, expires_at, vend)
            }
            Wanted::Renewal(RenewalRequest { activation, ttl }) => {
                let (principal, activation) = (principal.clone(), *activation);
                let found = self.store.find_activation(FindActivation { principal, activation, now }).await?;
                let Some(found) = found else { return Ok(Attempt::Failed(Refusal::NotFound.into())) };
                let occasion = Occasion::Renewal(activation);
                let opening = Opening { namespace: found.namespace, purpose: None, occasion };
                (opening, activation, ends(*ttl), found.vend)
            }
        };
        let opened = match self.open(principal, &opening, restarts).await? {
            Ok(opened) => opened,
            Err(error) => return Ok(Attempt::Failed(error)),
        };
        let minute = now.floor_to_minute();
        let unnoted = opened.iter().filter(|one| one.last_activated_at.is_none_or(|last| last < minute));
        let unnoted: Vec<_> = unnoted.map(|one| one.id).collect();
        let until = Until { principal, namespace: &opening.namespace, activation, now, expires_at };
        let (credentials, failed) = self.vend_all(opened, until, vend).await;
        if let Some((credential, reason)) = failed {
            self.abort(principal, &opening, credential, left(&credentials)).await?;
            return Ok(Attempt::Failed(Refusal::NotVended { credential, reason }.into()));
        }
        match self.hand_out(principal, &opening, until, &credentials).await? {
            None => {
                if !unnoted.is_empty() {
                    let organization = principal.organization;
                    // It has been handed out, and the use is recorded: what a list shows may lag behind.
                    let _ =
                        self.store.note_activated(NoteActivated { organization, credentials: unnoted, minute }).await;
                }
                Ok(Attempt::Done(Activated { id: activation, namespace: opening.namespace, expires_at, credentials }))
            }
            Some(refusal) => self.refused(principal, &opening, refusal).await,
        }
    }

    /// The last decision, after all waiting.
    async fn hand_out(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        until: Until<'_>,
        credentials: &[ActivatedCredential],
    ) -> Result<Option<HandOutRefusal>, StoreError> {
        let handed_out: Vec<_> = credentials.iter().map(ActivatedCredential::handed_out).collect();
        let Until { activation, expires_at, .. } = until;
        let subject = Subject::Activation(activation);
        let failed = opening.note(principal, left(credentials));
        let renewal = matches!(opening.occasion, Occasion::Renewal(_));
        let act = HandOut {
            activation,
            renewal,
            expires_at,
            namespace: opening.namespace.clone(),
            credentials: handed_out.clone(),
            purpose: opening.purpose.clone(),
            refused: self.record(principal, opening.occasion.failure(), subject, failed),
        };
        let note = opening.note(principal, handed_out);
        let action = if renewal { AuditAction::ActivationRenewed } else { AuditAction::NamespaceActivated };
        let command = self.command(principal, action, subject, note, act);
        let (activated, failed) = (Event::recorded(&command.audit), Event::recorded(&command.act.refused));
        let outcome = self.store.hand_out(command).await?;
        self.environment.emit(if outcome.is_none() { activated } else { failed });
        Ok(outcome)
    }

    /// What follows from a refusal of the last decision, which has recorded it.
    async fn refused(
        &self,
        principal: &IntegrationPrincipal,
        opening: &Opening,
        refusal: HandOutRefusal,
    ) -> Result<Attempt, StoreError> {
        Ok(match refusal {
            HandOutRefusal::Denied(refusal) => match self.after_refusal(principal, refusal).await {
                Ok(renewed) => Attempt::Again(renewed),
                Err(error) => Attempt::Failed(error),
            },
            HandOutRefusal::Frozen => {
                self.record_refusal(principal, opening, AuditAction::ActivationRefusedFrozen).await?;
                Attempt::Failed(Refusal::Frozen.into())
            }
            HandOutRefusal::Ended => Attempt::Failed(Refusal::NotFound.into()),
            HandOutRefusal::Changed | HandOutRefusal::Expired => Attempt::Again(principal.clone()),
        })
    }

    /// The credentials to issue, in the order of `opened`, and the first one that has no such form. After that
    /// one no further storage is asked.
    async fn vend_all(
        &self,
        opened: Vec<Opened>,
        until: Until<'_>,
        mode: VendMode,
    ) -> (Vec<ActivatedCredential>, Option<(CredentialId, CheckReason)>) {
        let mut credentials = Vec::with_capacity(opened.len());
        let mut failed = None;
        let mut opened = opened.into_iter().peekable();
        while failed.is_none() && opened.peek().is_some() {
            let some = opened.by_ref().take(AT_ONCE).map(|one| self.vend(one, until, mode));
            // All of them are waited for: one that is dropped could have been issued without a record of it.
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
        opened: Opened,
        until: Until<'_>,
        mode: VendMode,
    ) -> Result<ActivatedCredential, (CredentialId, CheckReason)> {
        let Opened { id, version, data, vend, .. } = opened;
        let kind = data.kind();
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

    /// The credential to issue for `data`, or why `mode` forbids it.
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

    async fn short(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        allows_short(data)?;
        let vendor = self.vendor.as_ref().ok_or(CheckReason::NotConfigured)?;
        let now = order.now;
        let short = vendor.vend(data, order).await?;
        let sound = short.data.kind() == data.kind() && short.expires_at > now;
        if sound { Ok(short) } else { Err(CheckReason::Unexpected) }
    }
}

/// Those of `credentials` that a storage issued, and that nobody can revoke.
fn left(credentials: &[ActivatedCredential]) -> Vec<HandedOut> {
    let issued = credentials.iter().filter(|one| one.vended.form() == VendedForm::Short);
    issued.map(ActivatedCredential::handed_out).collect()
}
