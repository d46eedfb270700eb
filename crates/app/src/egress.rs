//! The outgoing proxy of the settings.

use crate::settings::Settings;
use secrecy::ExposeSecret as _;
use vault_cli::failure::Failure;
use vault_core::check::CheckReason;
use vault_storage::{Egress, EgressPolicy, Proxy};

/// Metric: number of connections that failed because of the outgoing proxy.
const FAILURES: &str = "orgvault_egress_proxy_failures_total";

/// Registers the description and the series of the metric.
pub(crate) fn describe() {
    metrics::describe_counter!(FAILURES, "Outgoing connections that failed because of the proxy");
    for reason in CheckReason::ALL.iter().filter(|reason| reason.is_of_proxy()) {
        metrics::counter!(FAILURES, "reason" => reason.as_str()).absolute(0);
    }
}

/// Returns the proxy, its rules and the trusted CAs. All parts of the process share the proxy. The permitted addresses are those of
/// `--allow-egress`.
///
/// # Errors
/// A file that the settings name cannot be used.
pub(crate) fn of(settings: &Settings) -> Result<Egress, Failure> {
    let policy = EgressPolicy::allowing(settings.server.permitted_networks());
    if let Some(found) = settings.egress.get() {
        return Ok(found.with_policy(policy));
    }
    let created = create(settings)?;
    Ok(settings.egress.get_or_init(|| created).with_policy(policy))
}

/// Returns whether the password for the proxy is sent over a network without encryption.
pub(crate) fn sends_password_unencrypted(settings: &Settings) -> bool {
    let server = &settings.server;
    let is_plain = server.egress_proxy.as_ref().is_some_and(|url| !url.is_https() && !url.is_local());
    is_plain && server.egress_proxy_credentials.is_some()
}

fn create(settings: &Settings) -> Result<Egress, Failure> {
    let server = &settings.server;
    let ca_file = server.ca_file.as_deref();
    let flawed = |error| Failure::new(format!("--ca-file: {error}"));
    let Some(url) = &server.egress_proxy else { return Egress::default().trusting(ca_file).map_err(flawed) };
    let proxy = Proxy::new(url.clone(), ca_file).map_err(flawed)?;
    let proxy = match &server.egress_proxy_credentials {
        // Sent to the proxy.
        Some(credentials) => proxy
            .with_credentials(credentials.expose_secret())
            .ok_or_else(|| Failure::usage("egress-proxy-credentials: must be one line USER:PASSWORD"))?,
        None => proxy,
    };
    let proxy = proxy.on_failure(|reason| metrics::counter!(FAILURES, "reason" => reason.as_str()).increment(1));
    let egress = Egress::through(proxy, server.egress_direct.clone(), server.permitted_names());
    egress.trusting(ca_file).map_err(flawed)
}
