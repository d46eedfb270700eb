//! Events: counted for `/metrics`, and logged if operators need them.

use crate::egress;
use crate::event_log::EventLog;
use crate::figures;
use std::sync::Arc;
use vault_core::audit::AuditAction;
use vault_core::identity::WorkloadRefusal;
use vault_core::integration::IntegrationRefusal;
use vault_core::port::{Event, EventSink, LoginRefusal, RetryReason};

/// The event sink of a server, which counts and logs. Short commands report their own results instead.
#[derive(Clone, Default)]
pub(crate) struct ServerEvents(Arc<EventLog>);

impl ServerEvents {
    pub(crate) fn log(&self) -> &EventLog {
        &self.0
    }
}

impl EventSink for ServerEvents {
    fn emit(&self, event: Event) {
        self.0.write(&event);
        match event {
            Event::PasswordEvaluated => metrics::counter!("orgvault_password_evaluations_total").increment(1),
            Event::LoginSucceeded { .. } => {
                metrics::counter!("orgvault_logins_total", "outcome" => "succeeded").increment(1);
            }
            Event::LoginRefused { refusal, .. } => {
                metrics::counter!("orgvault_logins_total", "outcome" => refusal.as_str()).increment(1);
            }
            Event::IntegrityFailure { .. } => metrics::counter!("orgvault_integrity_failures_total").increment(1),
            Event::Recorded(record) => match record.action {
                AuditAction::CredentialSaved => metrics::counter!("orgvault_credentials_saved_total").increment(1),
                AuditAction::CredentialDeleted => metrics::counter!("orgvault_credentials_deleted_total").increment(1),
                AuditAction::CredentialHealthy => count_health("healthy"),
                AuditAction::CredentialFailing => count_health("failing"),
                AuditAction::NamespaceActivated => metrics::counter!("orgvault_activations_total").increment(1),
                _ => {}
            },
            Event::IntegrationRefused { refusal, .. } => {
                metrics::counter!("orgvault_integrations_refused_total", "reason" => refusal.as_str()).increment(1);
            }
            Event::WorkloadRefused { refusal, .. } => {
                metrics::counter!("orgvault_workloads_refused_total", "reason" => refusal.as_str()).increment(1);
            }
            Event::IssuerUnreachable { .. } => metrics::counter!("orgvault_issuer_failures_total").increment(1),
            Event::ShortFormMissed(reason) => {
                metrics::counter!("orgvault_short_lived_unavailable_total", "reason" => reason.as_str()).increment(1);
            }
            Event::Retried(reason) => {
                metrics::counter!("orgvault_retries_total", "reason" => reason.as_str()).increment(1);
            }
            Event::CommitIndeterminate => metrics::counter!("orgvault_commits_indeterminate_total").increment(1),
            Event::RequestRepeated => metrics::counter!("orgvault_requests_repeated_total").increment(1),
            Event::EventsTakenOver => metrics::counter!("orgvault_events_taken_over_total").increment(1),
            Event::ChangesCommitted { changes } => figures::count_batch(changes),
            Event::ConnectionAwaited { waited, obtained } => figures::count_wait(waited, obtained),
            _ => {}
        }
    }
}

fn count_health(state: &'static str) {
    metrics::counter!("orgvault_credential_health_changes_total", "state" => state).increment(1);
}

/// Registers the descriptions of all metrics. Called once at start.
pub(crate) fn describe_metrics() {
    egress::describe();
    crate::federation::describe();
    metrics::describe_counter!(
        "orgvault_password_evaluations_total",
        "Passwords verified against an account's own hash; decoys do not count"
    );
    metrics::describe_counter!("orgvault_logins_total", "Logins, by outcome");
    metrics::describe_counter!("orgvault_credentials_saved_total", "Credentials saved");
    metrics::describe_counter!("orgvault_credentials_deleted_total", "Credentials deleted");
    metrics::describe_counter!(
        "orgvault_credential_health_changes_total",
        "Changes of credential health that checks found, by new state"
    );
    metrics::describe_counter!("orgvault_activations_total", "Activations");
    metrics::describe_counter!("orgvault_integrations_refused_total", "Integration tokens refused, by reason");
    metrics::describe_counter!("orgvault_workloads_refused_total", "Identity tokens refused, by reason");
    metrics::describe_counter!("orgvault_issuer_failures_total", "Requests to issuers for their keys that failed");
    metrics::describe_counter!(
        "orgvault_short_lived_unavailable_total",
        "Saved credentials released because no short-lived one was available, by reason"
    );
    metrics::describe_counter!("orgvault_retries_total", "Retries of reads and changes, by reason");
    metrics::describe_counter!("orgvault_commits_indeterminate_total", "Commits with unknown outcome");
    metrics::describe_counter!(
        "orgvault_requests_repeated_total",
        "Repeated requests with the same idempotency key that got the earlier response"
    );
    metrics::describe_counter!(
        "orgvault_events_taken_over_total",
        "Takeovers of the event delivery from another server"
    );
    metrics::describe_counter!(
        "orgvault_integrity_failures_total",
        "Stored rows that failed their integrity check or could not be decrypted"
    );
    metrics::describe_counter!(crate::audit::DELIVERED, "Audit entries that the sink accepted");
    metrics::describe_counter!(crate::receivers::DELIVERED, "Events that receivers accepted");
    metrics::describe_counter!(crate::inspections::ROWS, "Stored rows checked by the integrity check");
    metrics::describe_gauge!(crate::inspections::FINDINGS, "Findings of the last complete integrity check");
    metrics::describe_gauge!(crate::inspections::COMPLETED, "Time of the last complete integrity check");
    metrics::describe_gauge!(
        crate::audit::WAITING,
        "Audit checkpoints with entries that the sink has not accepted yet"
    );
    figures::describe();
    begin_series();
}

/// Creates all series at start. A series that starts with its first event shows no increase, so no alert would fire.
fn begin_series() {
    for counter in [
        "orgvault_password_evaluations_total",
        "orgvault_integrity_failures_total",
        "orgvault_credentials_saved_total",
        "orgvault_credentials_deleted_total",
        "orgvault_activations_total",
        "orgvault_issuer_failures_total",
        "orgvault_commits_indeterminate_total",
        "orgvault_requests_repeated_total",
        "orgvault_events_taken_over_total",
    ] {
        metrics::counter!(counter).absolute(0);
    }
    for outcome in LoginRefusal::ALL.iter().map(|refusal| refusal.as_str()).chain(["succeeded"]) {
        metrics::counter!("orgvault_logins_total", "outcome" => outcome).absolute(0);
    }
    for reason in RetryReason::ALL.iter().map(|reason| reason.as_str()) {
        metrics::counter!("orgvault_retries_total", "reason" => reason).absolute(0);
    }
    for state in ["healthy", "failing"] {
        metrics::counter!("orgvault_credential_health_changes_total", "state" => state).absolute(0);
    }
    for reason in IntegrationRefusal::ALL.map(IntegrationRefusal::as_str) {
        metrics::counter!("orgvault_integrations_refused_total", "reason" => reason).absolute(0);
    }
    for reason in WorkloadRefusal::NAMES {
        metrics::counter!("orgvault_workloads_refused_total", "reason" => reason).absolute(0);
    }
    figures::begin_series();
}
