//! Receivers of notifications. These operations cannot connect to them.
//!
//! Admins manage those of their organization, operators those of the instance.

mod add;

pub use add::{AddReceiverRequest, AddedReceiver};

use super::Environment;
use crate::audit::Origin;
use crate::cursor::{self, ListName, Page, PageRequest};
use crate::error::{Error, Refusal};
use crate::field::{FieldCode, FieldError};
use crate::id::{EventId, ReceiverId};
use crate::operation::{Operation, Operations};
use crate::port::{Entropy, KeyedDigester, ReceiverGuard};
use crate::principal::{Principal, Scope};
use crate::receiver::{
    ActiveReceivers, ChangeReceiver, EventDelivery, EventKind, EventKinds, FindReceivers, ListDeliveries, Occurrence,
    QueueDeliveries, ReceiverChange, ReceiverKey, ReceiverState, RemoveReceiver, ResendEvent, StoredReceiver,
    TestReceiver, generate_signing_secret,
};
use crate::role::Action;
use crate::time::Timestamp;
use secrecy::SecretString;
use std::sync::Arc;

/// Operations of admins and operators on receivers.
#[derive(Clone)]
pub struct Receivers {
    environment: Environment,
    operations: Operations,
    entropy: Arc<dyn Entropy>,
    digester: Arc<dyn KeyedDigester>,
    guard: Option<Arc<dyn ReceiverGuard>>,
}

/// Changes of a receiver's fields. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverEdit {
    /// New state.
    pub state: Option<ReceiverState>,
    /// Names of its events. An empty list selects all.
    pub events: Option<Vec<String>>,
}

impl Receivers {
    /// Creates the context on these ports. Without a [`guard`](Self::guard), every address is accepted.
    pub fn new(environment: Environment, operations: Operations, entropy: Arc<dyn Entropy>) -> Self {
        let digester = Arc::clone(&operations.ports.digester);
        Self { environment, operations, entropy, digester, guard: None }
    }

    /// Returns the same operations for a request from `origin`, which their audit entries name.
    #[must_use]
    pub fn for_request(&self, origin: Origin) -> Self {
        let mut operations = self.clone();
        operations.environment.origin = origin;
        operations
    }

    /// Sets the port that checks permitted addresses.
    #[must_use]
    pub fn guard(self, guard: Option<Arc<dyn ReceiverGuard>>) -> Self {
        Self { guard, ..self }
    }

    /// Returns whether the server sends mail to receivers.
    pub fn sends_mail(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.sends_mail())
    }

    async fn run<O: Operation>(&self, principal: &Principal, operation: O) -> Result<O::Outcome, Error> {
        principal.administers(Action::ManageReceivers)?;
        self.operations.run(&self.environment, principal, operation).await
    }

    /// Returns the receivers of the principal's organization, or of the instance for an operator.
    ///
    /// # Errors
    /// The principal is not authorized for the query.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<StoredReceiver>, Error> {
        self.run(principal, FindReceivers { owner: principal.organization(), only: None }).await
    }

    /// Returns one receiver.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if it does not exist.
    pub async fn show(&self, principal: &Principal, receiver: ReceiverId) -> Result<StoredReceiver, Error> {
        let find = FindReceivers { owner: principal.organization(), only: Some(receiver) };
        self.run(principal, find).await?.pop().ok_or_else(|| Refusal::NotFound.into())
    }

    /// Changes the events or the state of a receiver. Pending deliveries of a receiver that is enabled are attempted
    /// immediately.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at `/events/…`, or at the document if nothing is to be changed.
    /// - [`Refusal::NotFound`] or [`Refusal::Damaged`].
    pub async fn change(
        &self,
        principal: &Principal,
        receiver: ReceiverId,
        edit: ReceiverEdit,
    ) -> Result<StoredReceiver, Error> {
        if edit == ReceiverEdit::default() {
            let detail = "must change something: state or events";
            return Err(FieldError::new("", FieldCode::Required, detail).into());
        }
        let key = key(principal, receiver);
        let events = edit.events.map(|names| EventKinds::parse(&names, key.owner.is_some(), "/events"));
        let events = events.transpose().map_err(Error::Invalid)?;
        let change = ReceiverChange::Edit { state: edit.state, events };
        self.run(principal, ChangeReceiver { key, change }).await
    }

    /// Replaces the signing secret of a webhook. The previous one also signs for one day.
    ///
    /// # Errors
    /// - [`Error::Invalid`] if the receiver is not a webhook.
    /// - [`Refusal::NotFound`] or [`Refusal::Damaged`].
    pub async fn replace_secret(
        &self,
        principal: &Principal,
        receiver: ReceiverId,
    ) -> Result<(StoredReceiver, SecretString), Error> {
        let secret = generate_signing_secret(&*self.entropy)?;
        let change = ReceiverChange::Secret(secret.clone());
        let changed = self.run(principal, ChangeReceiver { key: key(principal, receiver), change }).await?;
        Ok((changed, secret.text().clone()))
    }

    /// Removes a receiver and its pending deliveries.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub async fn remove(&self, principal: &Principal, receiver: ReceiverId) -> Result<(), Error> {
        self.run(principal, RemoveReceiver(key(principal, receiver))).await
    }

    /// Queues a test for a receiver, which the process with the activation listener delivers.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if the receiver does not exist. [`Refusal::TooOften`] after
    /// [`HourlyLimit::TESTS`](crate::hourly::HourlyLimit::TESTS).
    pub async fn test(&self, principal: &Principal, receiver: ReceiverId) -> Result<EventDelivery, Error> {
        let (key, now) = (key(principal, receiver), self.environment.now());
        let event = EventId::from_uuid(self.environment.ids.ordered(now));
        let delivery = Occurrence::test(event, key, now).to_delivery(key, position(now), now, &*self.digester);
        self.run(principal, TestReceiver(delivery.clone())).await?;
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
        let key = key(principal, receiver);
        let scope = key.owner.map_or(Scope::All, Scope::One);
        let before = match page.cursor.as_deref() {
            None => None,
            Some(text) => {
                let position = cursor::decode_position(&*self.digester, ListName::Deliveries, scope, text).await?;
                let position = position.strip_prefix(receiver.as_bytes().as_slice()).ok_or(Refusal::Cursor)?;
                Some(i64::from_be_bytes(position.try_into().map_err(|_| Refusal::Cursor)?))
            }
        };
        let listed = self.run(principal, ListDeliveries { key, before, limit: page.rows() }).await?;
        Ok(Page::of(listed, &page, |last| {
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
        self.run(principal, ResendEvent { key: key(principal, receiver), event }).await
    }

    /// Queues an event for the receivers of the instance that no audit entry contains, optionally about `name`. Returns the
    /// number of receivers.
    ///
    /// # Errors
    /// The store failed.
    pub async fn raise(&self, kind: EventKind, name: Option<&str>) -> Result<usize, Error> {
        self.digester.refresh().await?;
        let now = self.environment.now();
        let occurrence = Occurrence::of_instance(kind, name, now, &*self.digester);
        let active = self.run(&Principal::Operator, ActiveReceivers).await?;
        let wanting = active.iter().filter(|(key, receiver)| key.owner.is_none() && receiver.wants(kind));
        let deliveries: Vec<_> =
            wanting.map(|(key, _)| occurrence.to_delivery(*key, position(now), now, &*self.digester)).collect();
        let count = deliveries.len();
        if count > 0 {
            self.run(&Principal::Operator, QueueDeliveries(deliveries)).await?;
        }
        Ok(count)
    }
}

/// Returns the position of a delivery that is queued at `now`. Later times have higher positions.
pub(super) const fn position(now: Timestamp) -> i64 {
    now.as_millis().saturating_mul(1_000)
}

/// Returns the key of a receiver that the principal administers.
const fn key(principal: &Principal, id: ReceiverId) -> ReceiverKey {
    ReceiverKey { owner: principal.organization(), id }
}
