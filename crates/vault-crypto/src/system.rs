//! The system's clock, and IDs from its randomness.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::{ContextV7, Uuid};
use vault_core::port::{Clock, IdGenerator};
use vault_core::time::Timestamp;

/// Clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's one implementation")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// UUIDs from the operating system's randomness. Ordered IDs ascend within one value of this type.
#[derive(Debug)]
pub struct SystemIds {
    context: Mutex<ContextV7>,
}

impl Default for SystemIds {
    fn default() -> Self {
        Self { context: Mutex::new(ContextV7::new()) }
    }
}

impl IdGenerator for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "this is the port's one implementation")]
    fn ordered(&self, now: Timestamp) -> Uuid {
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = u64::try_from(now.as_seconds()).unwrap_or_default();
        let nanos = u32::try_from(now.as_millis().rem_euclid(1000) * 1_000_000).unwrap_or_default();
        Uuid::new_v7(uuid::Timestamp::from_unix(&*context, seconds, nanos))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the port's one implementation")]
    fn random(&self) -> Uuid {
        Uuid::new_v4()
    }
}
