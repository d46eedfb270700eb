//! Alarms of this process: conditions that are reported to the instance's receivers when they start.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use vault_core::receiver::EventKind;
use vault_core::usecase::Receivers;

/// The alarms of this process. Each lasting condition is reported once.
#[derive(Clone)]
pub(crate) struct Alarms {
    receivers: Receivers,
    lasting: Arc<Mutex<HashSet<EventKind>>>,
}

/// The alarm for one condition.
#[derive(Clone)]
pub(crate) struct Alarm {
    alarms: Alarms,
    kind: EventKind,
}

impl Alarms {
    pub(crate) fn new(receivers: Receivers) -> Self {
        Self { receivers, lasting: Arc::default() }
    }

    /// Returns the alarm for this condition.
    pub(crate) fn of(&self, kind: EventKind) -> Alarm {
        Alarm { alarms: self.clone(), kind }
    }
}

impl Alarm {
    /// Records whether the condition is present. Notifies receivers when it starts.
    pub(crate) async fn set(&self, lasts: bool) {
        let begins = {
            let mut lasting = self.alarms.lasting.lock().unwrap_or_else(PoisonError::into_inner);
            if !lasts {
                lasting.remove(&self.kind);
            }
            lasts && lasting.insert(self.kind)
        };
        if begins {
            self.raise().await;
        }
    }

    /// Notifies receivers of the condition.
    pub(crate) async fn raise(&self) {
        if let Err(error) = self.alarms.receivers.raise(self.kind, None).await {
            let (error, event) = (&error as &dyn Error, self.kind.as_str());
            tracing::warn!(error, event, "an event for the receivers of the instance was not stored");
        }
    }
}
