//! The process's clock, ids and events.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::{ContextV7, Uuid};
use vault_core::port::{Clock, Event, EventSink, IdGenerator};
use vault_core::time::Timestamp;

/// The system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's one implementation")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// UUIDs of the operating system's randomness.
pub(crate) struct SystemIds {
    context: Mutex<ContextV7>,
}

impl SystemIds {
    pub(crate) fn new() -> Self {
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

/// Counts events for `/metrics` and logs those that an operator must see.
pub(crate) struct Metrics;

impl EventSink for Metrics {
    fn emit(&self, event: Event) {
        match event {
            Event::PasswordEvaluated => metrics::counter!("orgvault_password_evaluations_total").increment(1),
            Event::LoginSucceeded => metrics::counter!("orgvault_logins_total", "outcome" => "succeeded").increment(1),
            Event::LoginRefused(refusal) => {
                metrics::counter!("orgvault_logins_total", "outcome" => refusal.as_str()).increment(1);
            }
            Event::CredentialSaved => metrics::counter!("orgvault_credentials_saved_total").increment(1),
            Event::CredentialDeleted => metrics::counter!("orgvault_credentials_deleted_total").increment(1),
            Event::IntegrityFailure { table, id } => {
                metrics::counter!("orgvault_integrity_failures_total").increment(1);
                tracing::error!(table, id, "a stored row does not fit its code or does not open; it grants nothing");
            }
            Event::NamespaceActivated => metrics::counter!("orgvault_activations_total").increment(1),
            Event::IntegrationRefused(refusal) => {
                metrics::counter!("orgvault_integrations_refused_total", "reason" => refusal.as_str()).increment(1);
            }
            Event::ShortFormMissed(reason) => {
                metrics::counter!("orgvault_short_forms_missed_total", "reason" => reason.as_str()).increment(1);
            }
            Event::OrganizationKeyReplaced(key) => {
                tracing::info!(%key, "an organization's key reached its use limit and was replaced");
            }
            Event::OrganizationKeyNotReplaced(key) => {
                tracing::warn!(%key, "cannot replace an organization's key that reached its use limit; retrying later");
            }
            _ => {}
        }
    }
}

/// Says what each metric means; called once at start.
pub(crate) fn describe_metrics() {
    metrics::describe_counter!(
        "orgvault_password_evaluations_total",
        "Passwords verified against a hash, decoys included"
    );
    metrics::describe_counter!("orgvault_logins_total", "Logins, by outcome");
    metrics::describe_counter!("orgvault_credentials_saved_total", "Credentials saved");
    metrics::describe_counter!("orgvault_credentials_deleted_total", "Credentials deleted");
    metrics::describe_counter!("orgvault_activations_total", "Namespaces whose credentials were handed out");
    metrics::describe_counter!("orgvault_integrations_refused_total", "Integration tokens refused, by reason");
    metrics::describe_counter!(
        "orgvault_short_forms_missed_total",
        "Credentials handed out as saved because nothing short-lived was to be had, by reason"
    );
    metrics::describe_counter!(
        "orgvault_integrity_failures_total",
        "Stored rows that did not fit their code or did not open"
    );
    // Shown from the start, so that a rate can be taken of the first one.
    metrics::counter!("orgvault_password_evaluations_total").absolute(0);
    metrics::counter!("orgvault_integrity_failures_total").absolute(0);
}
