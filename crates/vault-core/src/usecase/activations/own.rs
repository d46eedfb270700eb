//! List and end of an integration's own activations.

use super::{Activations, RESTARTS, contended};
use crate::activation::{Activation, EndActivation, ListActivations};
use crate::audit::{Actor, AuditAction, Subject};
use crate::command::Command;
use crate::cursor::{self, ListName, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::ActivationId;
use crate::integration::IntegrationPrincipal;
use crate::port::Event;
use crate::principal::Scope;

impl Activations {
    /// Reads a page of the integration's active activations, newest first.
    ///
    /// # Errors
    /// [`Refusal::Cursor`] if the cursor does not belong to this list.
    pub async fn list(&self, principal: &IntegrationPrincipal, page: PageRequest) -> Result<Page<Activation>, Error> {
        let scope = Scope::One(principal.organization);
        let after = match page.cursor.as_deref() {
            Some(text) => Some(self.position(principal, text).await?),
            None => None,
        };
        let mut principal = principal.clone();
        for _ in 0..=RESTARTS {
            let query = ListActivations {
                principal: principal.clone(),
                after,
                limit: page.rows(),
                now: self.environment.now(),
            };
            let activations = match self.by_system(query).await {
                Ok(activations) => activations,
                Err(error) => {
                    principal = self.after(&principal, error).await?;
                    continue;
                }
            };
            return Ok(Page::of(activations, &page, |last| {
                let position = [principal.integration.as_bytes().as_slice(), last.id.as_bytes()].concat();
                cursor::encode_position(&*self.digester, ListName::Activations, scope, &position)
            }));
        }
        Err(contended())
    }

    /// Returns the activation after which the page of a cursor starts.
    async fn position(&self, principal: &IntegrationPrincipal, text: &str) -> Result<ActivationId, Error> {
        let scope = Scope::One(principal.organization);
        let position = cursor::decode_position(&*self.digester, ListName::Activations, scope, text).await?;
        let last = position.strip_prefix(principal.integration.as_bytes().as_slice());
        let last: Option<[u8; 16]> = last.and_then(|last| last.try_into().ok());
        Ok(last.map(ActivationId::from_bytes).ok_or(Refusal::Cursor)?)
    }

    /// Ends an activation. Short-lived credentials that were issued for it are valid until they expire, because no
    /// storage provider can revoke them individually.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if the integration has no active activation with this ID.
    pub async fn end(&self, principal: &IntegrationPrincipal, activation: ActivationId) -> Result<(), Error> {
        let mut principal = principal.clone();
        for _ in 0..=RESTARTS {
            let now = self.environment.now();
            let (organization, actor) = (Some(principal.organization), Actor::from(&principal));
            let subject = Subject::Activation(activation);
            let audit = self.environment.record(now, organization, actor, AuditAction::ActivationEnded, subject);
            let command = Command { principal: principal.clone(), now, audit, payload: EndActivation { activation } };
            let ended = Event::recorded(&command.audit);
            match self.by_system(command).await {
                Ok(true) => {
                    self.environment.emit(ended);
                    return Ok(());
                }
                Ok(false) => return Err(Refusal::NotFound.into()),
                Err(error) => principal = self.after(&principal, error).await?,
            }
        }
        Err(contended())
    }
}
