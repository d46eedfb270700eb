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
            Event::SpaceFreed => tracing::info!("the disk of the database has space again; writes work"),
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
        "Passwords hashed against the verifier of an account. Decoys are not counted"
    );
    metrics::describe_counter!("orgvault_logins_total", "Logins");
    metrics::describe_counter!("orgvault_credentials_saved_total", "Saved credentials");
    metrics::describe_counter!("orgvault_credentials_deleted_total", "Deleted credentials");
    metrics::describe_counter!(
        "orgvault_credential_health_changes_total",
        "Checks with another result than the previous check of the credential"
    );
    metrics::describe_counter!("orgvault_activations_total", "Activations that issued credentials");
    metrics::describe_counter!("orgvault_integrations_refused_total", "Rejected integration tokens");
    metrics::describe_counter!("orgvault_workloads_refused_total", "Rejected identity tokens");
    metrics::describe_counter!("orgvault_issuer_failures_total", "Failed requests to issuers for their keys");
    metrics::describe_counter!(
        "orgvault_short_lived_unavailable_total",
        "Saved credentials issued for `prefer-short`, because no short-lived one was available, by `reason`"
    );
    metrics::describe_counter!("orgvault_retries_total", "Reads and changes that the server retried");
    metrics::describe_counter!(
        "orgvault_commits_indeterminate_total",
        "Commits with unknown outcome. The request gets 503"
    );
    metrics::describe_counter!(
        "orgvault_requests_repeated_total",
        "Requests that got the result of an earlier request with the same `Idempotency-Key`"
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
    metrics::describe_counter!(crate::inspections::ROWS, "Rows that the integrity check of the server has read");
    metrics::describe_gauge!(
        crate::inspections::FINDINGS,
        "Findings of the last complete integrity check of the server"
    );
    metrics::describe_gauge!(
        crate::inspections::COMPLETED,
        "Time at which the last integrity check of the server completed"
    );
    metrics::describe_gauge!(crate::audit::WAITING, "Audit checkpoints with entries that the sink has not accepted");
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use vault_testkit::page::{assert_table, metric_rows};

    /// `ORGVAULT_UPDATE=1` regenerates the table.
    #[test]
    fn metric_reference_matches_declarations() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/metrics.md");
        let rows = metric_rows(&[], || {
            super::describe_metrics();
            crate::backups::describe();
            crate::federation::begin_exchanges();
        });
        assert_table(&path, "| Metric of the vault | Meaning |\n|---|---|\n", &rows);
    }
}
