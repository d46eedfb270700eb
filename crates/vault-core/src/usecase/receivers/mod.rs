//! Receivers: where the vault reports what happens. Cannot open what is secret of them, nor reach them.
//!
//! Admins have those of their organization, operators those of the instance.

mod add;
mod change;
mod deliveries;
mod raise;

pub use add::{AddReceiverRequest, AddedReceiver};
pub use change::ReceiverEdit;

use super::Environment;
use crate::error::{Error, Refusal};
use crate::id::ReceiverId;
use crate::port::{EventStore, Find, KeyedDigester, ReceiverGuard, ReceiverOwner, ReceiverSealer};
use crate::principal::Principal;
use crate::receiver::StoredReceiver;
use crate::role::Action;
use crate::time::Timestamp;
use std::sync::Arc;

/// What admins and operators do with receivers.
#[derive(Clone)]
pub struct Receivers {
    environment: Environment,
    store: Arc<dyn EventStore>,
    sealer: Arc<dyn ReceiverSealer>,
    digester: Arc<dyn KeyedDigester>,
    guard: Option<Arc<dyn ReceiverGuard>>,
}

impl Receivers {
    /// The context on these ports. Without a [`guard`](Self::guard), every address is taken.
    pub const fn new(
        environment: Environment,
        store: Arc<dyn EventStore>,
        sealer: Arc<dyn ReceiverSealer>,
        digester: Arc<dyn KeyedDigester>,
    ) -> Self {
        Self { environment, store, sealer, digester, guard: None }
    }

    /// With one who judges where receivers may be.
    #[must_use]
    pub fn guard(self, guard: Option<Arc<dyn ReceiverGuard>>) -> Self {
        Self { guard, ..self }
    }

    /// Whether mail is sent to receivers.
    pub fn sends_mail(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.sends_mail())
    }

    /// The receivers of the principal's organization; an operator's are those of the instance.
    ///
    /// # Errors
    /// The principal is not authorized for the query.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<StoredReceiver>, Error> {
        principal.administers(Action::ManageReceivers)?;
        self.read(principal, None).await
    }

    /// One of them.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub async fn show(&self, principal: &Principal, receiver: ReceiverId) -> Result<StoredReceiver, Error> {
        principal.administers(Action::ManageReceivers)?;
        self.read(principal, Some(receiver)).await?.pop().ok_or_else(|| Refusal::NotFound.into())
    }

    async fn read(&self, principal: &Principal, key: Option<ReceiverId>) -> Result<Vec<StoredReceiver>, Error> {
        let (of, now) = (owner(principal), self.environment.now());
        Ok(self.store.list_receivers(Find { principal: principal.clone(), of, key, now }).await?)
    }
}

/// The position of what is put on its way at `now`: a later moment has a later one.
pub(super) const fn position(now: Timestamp) -> i64 {
    now.as_millis().saturating_mul(1_000)
}

/// Whose receivers a principal administers.
const fn owner(principal: &Principal) -> ReceiverOwner {
    principal.organization()
}
