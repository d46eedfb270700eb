//! Tests of a receiver, list of its deliveries, and repeated delivery.

use super::{Receivers, owner};
use crate::audit::{AuditAction, Subject};
use crate::cursor::{self, ListName, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::id::{EventId, ReceiverId};
use crate::port::{Event, List, ResendEvent};
use crate::principal::{Principal, Scope};
use crate::receiver::{EventDelivery, Occurrence};
use crate::role::Action;

impl Receivers {
    /// Queues a test for a receiver, which the process with the activation listener delivers.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if the receiver does not exist. [`Refusal::TooOften`] after
    /// [`HourlyLimit::TESTS`](crate::hourly::HourlyLimit::TESTS).
    pub async fn test(&self, principal: &Principal, receiver: ReceiverId) -> Result<EventDelivery, Error> {
        let stored = self.show(principal, receiver).await?;
        let now = self.environment.now();
        let event = EventId::from_uuid(self.environment.ids.ordered(now));
        let occurrence = Occurrence::test(event, &stored.receiver, now);
        let delivery = occurrence.to_delivery(&stored.receiver, super::position(now), now, &*self.digester);
        let (owner, subject) = (owner(principal), Subject::Receiver(receiver));
        let command =
            self.environment.command(principal, owner, AuditAction::ReceiverTested, subject, delivery.clone());
        let tested = Event::recorded(&command.audit);
        self.store.add_delivery(command).await?;
        self.environment.emit(tested);
        Ok(delivery)
    }

    /// Reads a page of the finished and pending deliveries to a receiver, newest first.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if the receiver does not exist. [`Refusal::Cursor`] if the cursor does not belong to this
    /// list.
    pub async fn deliveries(
        &self,
        principal: &Principal,
        receiver: ReceiverId,
        page: PageRequest,
    ) -> Result<Page<EventDelivery>, Error> {
        self.show(principal, receiver).await?;
        let owner = owner(principal);
        let scope = owner.map_or(Scope::All, Scope::One);
        let after = match page.cursor.as_deref() {
            None => None,
            Some(text) => {
                let position = cursor::decode_position(&*self.digester, ListName::Deliveries, scope, text).await?;
                let position = position.strip_prefix(receiver.as_bytes().as_slice()).ok_or(Refusal::Cursor)?;
                Some(i64::from_be_bytes(position.try_into().map_err(|_| Refusal::Cursor)?))
            }
        };
        let now = self.environment.now();
        let query = List { principal: principal.clone(), of: (owner, receiver), after, limit: page.rows(), now };
        Ok(Page::of(self.store.list_deliveries(query).await?, &page, |last| {
            let position = [receiver.as_bytes().as_slice(), &last.position.to_be_bytes()].concat();
            cursor::encode_position(&*self.digester, ListName::Deliveries, scope, &position)
        }))
    }

    /// Queues an event for a receiver again, whatever its state.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if the receiver or the event does not exist.
    pub async fn resend(
        &self,
        principal: &Principal,
        receiver: ReceiverId,
        event: EventId,
    ) -> Result<EventDelivery, Error> {
        principal.administers(Action::ManageReceivers)?;
        let (owner, subject) = (owner(principal), Subject::Receiver(receiver));
        let payload = ResendEvent { owner, receiver, event };
        let command = self.environment.command(principal, owner, AuditAction::ReceiverResent, subject, payload);
        let resent = Event::recorded(&command.audit);
        let delivery = self.store.resend_event(command).await?.ok_or(Refusal::NotFound)?;
        self.environment.emit(resent);
        Ok(delivery)
    }
}
