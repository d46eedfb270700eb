//! Alarms of this process: states that the receivers of the instance are told when they begin.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use vault_core::receiver::EventKind;
use vault_core::usecase::Receivers;

/// The alarms of this process. A state that lasts is told once.
#[derive(Clone)]
pub(crate) struct Alarms {
    receivers: Receivers,
    lasting: Arc<Mutex<HashSet<EventKind>>>,
}

/// One alarm.
#[derive(Clone)]
pub(crate) struct Alarm {
    alarms: Alarms,
    kind: EventKind,
}

impl Alarms {
    pub(crate) fn new(receivers: Receivers) -> Self {
        Self { receivers, lasting: Arc::default() }
    }

    /// The alarm of this state.
    pub(crate) fn of(&self, kind: EventKind) -> Alarm {
        Alarm { alarms: self.clone(), kind }
    }
}

impl Alarm {
    /// Notes whether the state lasts. When it begins, receivers are told.
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

    /// Has receivers told that it happened.
    pub(crate) async fn raise(&self) {
        if let Err(error) = self.alarms.receivers.raise(self.kind, None).await {
            let (error, event) = (&error as &dyn Error, self.kind.as_str());
            tracing::warn!(error, event, "the receivers of the instance were not told of an event");
        }
    }
}
