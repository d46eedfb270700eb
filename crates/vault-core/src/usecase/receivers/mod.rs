//! Receivers of notifications. These operations can neither decrypt their secrets nor connect to them.
//!
//! Admins manage those of their organization, operators those of the instance.

mod add;
mod change;
mod deliveries;
mod raise;

pub use add::{AddReceiverRequest, AddedReceiver};
pub use change::ReceiverEdit;

use super::Environment;
use crate::audit::Origin;
use crate::error::{Error, Refusal};
use crate::id::ReceiverId;
use crate::port::{EventStore, Find, KeyedDigester, ReceiverGuard, ReceiverOwner, ReceiverSealer};
use crate::principal::Principal;
use crate::receiver::StoredReceiver;
use crate::role::Action;
use crate::time::Timestamp;
use std::sync::Arc;

/// Operations of admins and operators on receivers.
#[derive(Clone)]
pub struct Receivers {
    environment: Environment,
    store: Arc<dyn EventStore>,
    sealer: Arc<dyn ReceiverSealer>,
    digester: Arc<dyn KeyedDigester>,
    guard: Option<Arc<dyn ReceiverGuard>>,
}

impl Receivers {
    /// Creates the context on these ports. Without a [`guard`](Self::guard), every address is accepted.
    pub const fn new(
        environment: Environment,
        store: Arc<dyn EventStore>,
        sealer: Arc<dyn ReceiverSealer>,
        digester: Arc<dyn KeyedDigester>,
    ) -> Self {
        Self { environment, store, sealer, digester, guard: None }
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

    /// Returns the receivers of the principal's organization, or of the instance for an operator.
    ///
    /// # Errors
    /// The principal is not authorized for the query.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<StoredReceiver>, Error> {
        principal.administers(Action::ManageReceivers)?;
        self.read(principal, None).await
    }

    /// Returns one receiver.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] if it does not exist.
    pub async fn show(&self, principal: &Principal, receiver: ReceiverId) -> Result<StoredReceiver, Error> {
        principal.administers(Action::ManageReceivers)?;
        self.read(principal, Some(receiver)).await?.pop().ok_or_else(|| Refusal::NotFound.into())
    }

    async fn read(&self, principal: &Principal, key: Option<ReceiverId>) -> Result<Vec<StoredReceiver>, Error> {
        let (of, now) = (owner(principal), self.environment.now());
        Ok(self.store.list_receivers(Find { principal: principal.clone(), of, key, now }).await?)
    }
}

/// Returns the position of a delivery that is queued at `now`. Later times have higher positions.
pub(super) const fn position(now: Timestamp) -> i64 {
    now.as_millis().saturating_mul(1_000)
}

/// Returns the owner whose receivers a principal administers.
const fn owner(principal: &Principal) -> ReceiverOwner {
    principal.organization()
}
