//! Events in the log.

use vault_core::port::{Event, EventSink};

/// Logs the events that an operator must see, without counting. The default, unless [`Opening::events`] sets another
/// sink.
///
/// [`Opening::events`]: crate::Opening::events
#[derive(Clone, Copy, Debug, Default)]
pub struct LoggedEvents;

impl EventSink for LoggedEvents {
    fn emit(&self, event: Event) {
        match event {
            Event::IntegrityFailure { table, id } => {
                tracing::error!(
                    table,
                    id,
                    "a stored row fails its integrity check: it was changed outside the service, or is damaged"
                );
            }
            Event::OrganizationKeyReplaced(key) => {
                tracing::info!(%key, "replaced an organization key that reached its use limit");
            }
            _ => {}
        }
    }
}
