//! The routes of the public listener. Each row names path, operation, handler and policy.

use super::{
    ACTIVATION, Inner, accounts, audit, check_credential, delete, describe, destroy_version, enrolment, federation,
    integrations, list, list_uses, list_versions, log_in, log_out, match_credential, namespaces, own, promote, read,
    receivers, replace, save, show, show_trust, static_content,
};
use crate::endpoint::{self, Endpoint, get, handler, patch, post};
use crate::route::Route;

pub(crate) static PUBLIC: [Endpoint<Inner>; 63] = [
    post("{base}/login", "log-in", handler!(log_in::run)).open(),
    post("{base}/logout", "log-out", handler!(log_out::run)),
    get("{base}/organization-vault", "list", handler!(list::run)),
    patch("{base}/organization-vault", "save", handler!(save::run)),
    // Must precede the next route, which matches the same path.
    post("{base}/organization-vault/read", "read", handler!(read::run)),
    get("{base}/organization-vault/{id}", "show", handler!(show::run)),
    patch("{base}/organization-vault/{id}", "describe", handler!(describe::run)),
    endpoint::delete("{base}/organization-vault/{id}", "delete", handler!(delete::run)),
    get("{base}/organization-vault/{id}/versions", "list-versions", handler!(list_versions::run)),
    post("{base}/organization-vault/{id}/versions", "replace", handler!(replace::run)),
    endpoint::delete(
        "{base}/organization-vault/{id}/versions/{version}",
        "destroy-version",
        handler!(destroy_version::run),
    ),
    post("{base}/organization-vault/{id}/promote", "promote", handler!(promote::run)),
    post("{base}/organization-vault/{id}/match", "match", handler!(match_credential::run)),
    post("{base}/organization-vault/{id}/check", "check-credential", handler!(check_credential::run)),
    get("{base}/organization-vault/{id}/activations", "list-uses", handler!(list_uses::run)),
    get("{base}/organization-vault/{id}/trust", "show-trust", handler!(show_trust::run)),
    get("{base}/accounts", "list-accounts", handler!(accounts::list::run)),
    post("{base}/accounts", "invite", handler!(accounts::invite::run)),
    patch("{base}/accounts/{id}", "change-account", handler!(accounts::change::run)),
    endpoint::delete("{base}/accounts/{id}", "delete-account", handler!(accounts::delete::run)),
    post("{base}/accounts/{id}/unlock", "unlock-account", handler!(accounts::unlock::run)),
    post("{base}/accounts/{id}/re-enrol", "re-enrol", handler!(accounts::re_enrol::run)),
    post("{base}/enrol", "enrol", handler!(enrolment::draft::run)).open(),
    post("{base}/enrol/invitation", "show-invitation", handler!(enrolment::show::run)).open(),
    post("{base}/enrol/confirm", "confirm-enrolment", handler!(enrolment::confirm::run)).open(),
    get("{base}/account", "show-account", handler!(own::show::run)),
    get("{base}/account/sessions", "list-sessions", handler!(own::list_sessions::run)),
    endpoint::delete("{base}/account/sessions/{id}", "end-session", handler!(own::end_session::run)),
    post("{base}/account/password", "change-password", handler!(own::change_password::run)),
    post("{base}/account/passcode", "replace-passcode", handler!(own::replace_passcode::run)),
    post("{base}/account/passcode/confirm", "confirm-passcode", handler!(own::confirm_passcode::run)),
    post("{base}/account/recovery-codes", "replace-recovery-codes", handler!(own::replace_recovery_codes::run)),
    get("{base}/integrations", "list-integrations", handler!(integrations::list::run)),
    post("{base}/integrations", "create-integration", handler!(integrations::create::run)),
    // Must precede the next route, which matches the same path.
    get("{base}/integrations/usage", "list-integration-usage", handler!(integrations::usage::run)),
    patch("{base}/integrations/{id}", "change-integration", handler!(integrations::change::run)),
    endpoint::delete("{base}/integrations/{id}", "delete-integration", handler!(integrations::delete::run)),
    get("{base}/integrations/{id}/trusts", "list-trusts", handler!(integrations::trusts::list)),
    post("{base}/integrations/{id}/trusts", "create-trust", handler!(integrations::trusts::create)),
    endpoint::delete("{base}/integrations/{id}/trusts/{trust}", "delete-trust", handler!(integrations::trusts::delete)),
    get("{base}/issuers", "list-issuers", handler!(integrations::trusts::issuers)),
    post("{base}/integrations/{id}/rotate", "rotate-integration", handler!(integrations::rotate::run)),
    get("{base}/receivers", "list-receivers", handler!(receivers::list::run)),
    post("{base}/receivers", "add-receiver", handler!(receivers::add::run)),
    patch("{base}/receivers/{id}", "change-receiver", handler!(receivers::change::run)),
    endpoint::delete("{base}/receivers/{id}", "remove-receiver", handler!(receivers::change::remove)),
    post("{base}/receivers/{id}/rotate-secret", "rotate-receiver-secret", handler!(receivers::change::rotate_secret)),
    post("{base}/receivers/{id}/test", "test-receiver", handler!(receivers::deliveries::test)),
    get("{base}/receivers/{id}/deliveries", "list-deliveries", handler!(receivers::deliveries::list)),
    post("{base}/receivers/{id}/deliveries/{delivery}/resend", "resend-event", handler!(receivers::deliveries::resend)),
    get("{base}/namespaces", "list-namespaces", handler!(namespaces::list)),
    get("{base}/namespaces/usage", "show-namespace-usage", handler!(namespaces::usage)),
    post("{base}/namespaces/freeze", "freeze-namespace", handler!(namespaces::freeze)),
    post("{base}/namespaces/thaw", "thaw-namespace", handler!(namespaces::thaw)),
    get("{base}/audit", "list-audit", handler!(audit::run)),
    get("/openapi.json", "openapi", handler!(static_content::openapi)),
    get("/.well-known/openid-configuration", "show-federation-issuer", handler!(federation::discovery)),
    get("/federation/jwks.json", "show-federation-keys", handler!(federation::key_set)),
    get("/docs", "docs", handler!(static_content::docs)),
    get("/", "console", handler!(static_content::console)),
    get("/console/{id}", "console-file", handler!(static_content::console_file)),
    get("/livez", "live", handler!(static_content::live)).probe(),
    get("/readyz", "ready", handler!(static_content::ready)).probe(),
];

/// Returns every route of the public listener, from the table that dispatches requests. Authorization tests use it to
/// detect new routes.
pub fn routes() -> impl Iterator<Item = Route> {
    PUBLIC.iter().map(|endpoint| endpoint.route)
}

/// Returns every route of the activation listener.
pub fn activation_routes() -> impl Iterator<Item = Route> {
    ACTIVATION.iter().map(|endpoint| endpoint.route)
}
