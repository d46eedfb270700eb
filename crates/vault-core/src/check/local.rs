//! Checks that require no connection: missing settings and expiry.

use super::{Check, CheckKind, CheckReason, CheckReport, CheckResult};
use crate::activation::allows_short;
use crate::credential::{CredentialData, S3Location};
use crate::time::Timestamp;

/// Whether a check should connect to the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageReach {
    /// The storage should be contacted.
    Ask,
    /// The storage need not be contacted, because the credential has expired.
    Spare,
}

/// Runs the checks of `data` at `now` that require no connection. `until` is the planned end of the job.
pub fn verify_locally(data: &CredentialData, until: Option<Timestamp>, now: Timestamp) -> CheckReport {
    let settings = match data {
        CredentialData::S3(data) => Some(settings_of(&data.location())),
        CredentialData::S3Federated(data) => Some(settings_of(&data.location())),
        _ => None,
    };
    let prefix = is_prefix_open(data).then_some(Check::warning(CheckKind::LeastPrivilege, CheckReason::PrefixOpen));
    CheckReport { checks: settings.into_iter().chain(prefix).chain(lifetime(data, until, now)).collect() }
}

/// Returns whether the storage should be contacted, after the result of [`verify_locally`].
pub fn reach(local: &CheckReport) -> StorageReach {
    let dead = |check: &Check| {
        matches!(check.result, CheckResult::Failed(CheckReason::LinkExpired | CheckReason::SecretExpired))
    };
    if local.checks.iter().any(dead) { StorageReach::Spare } else { StorageReach::Ask }
}

/// Amazon's storage has one address per region, which tools guess if no region is saved.
fn settings_of(location: &S3Location<'_>) -> Check {
    if location.endpoint_without_bucket().is_some() {
        return Check::failed(CheckKind::Settings, CheckReason::EndpointHasBucket);
    }
    if location.region.is_none() && location.endpoint.is_none() {
        return Check::warning(CheckKind::Settings, CheckReason::RegionMissing);
    }
    Check::passed(CheckKind::Settings)
}

/// Returns whether a short-lived form would cover more than the folder that its prefix suggests: providers compare
/// prefixes of names, so `in` also covers `in2/a`. Azure's form applies to a container, whatever the prefix is.
fn is_prefix_open(data: &CredentialData) -> bool {
    let prefix = match data {
        CredentialData::S3(data) => &data.key_prefix,
        CredentialData::Gcs(data) => &data.key_prefix,
        CredentialData::S3Federated(data) => &data.key_prefix,
        CredentialData::GcsFederated(data) => &data.key_prefix,
        CredentialData::AzureIdentity(_) | CredentialData::AzureFederated(_) | CredentialData::DirectLink(_) => {
            return false;
        }
    };
    let is_open = prefix.as_deref().is_some_and(|prefix| !prefix.is_empty() && !prefix.ends_with('/'));
    is_open && allows_short(data).is_ok()
}

/// Expiry of a credential, according to its data.
enum End {
    /// It does not expire.
    Never,
    /// It expires at this time, for this reason.
    At(Timestamp, CheckReason),
    /// It expires at an unknown time.
    Unknown,
}

fn end_of(data: &CredentialData) -> End {
    match data {
        CredentialData::S3(data) if data.session_token.is_some() => End::Unknown,
        CredentialData::S3(_)
        | CredentialData::Gcs(_)
        | CredentialData::S3Federated(_)
        | CredentialData::AzureFederated(_)
        | CredentialData::GcsFederated(_) => End::Never,
        // The application's secret also expires, but its expiry is stored only in the directory. A check with the storage
        // detects it.
        CredentialData::AzureIdentity(_) => {
            data.expires_at().map_or(End::Never, |end| End::At(end, CheckReason::SecretExpired))
        }
        CredentialData::DirectLink(_) => {
            data.expires_at().map_or(End::Never, |end| End::At(end, CheckReason::LinkExpired))
        }
    }
}

fn lifetime(data: &CredentialData, until: Option<Timestamp>, now: Timestamp) -> Option<Check> {
    let kind = CheckKind::Lifetime;
    match (end_of(data), until) {
        (End::At(end, reason), _) if end <= now => Some(Check::failed(kind, reason)),
        (End::At(end, _), Some(until)) if end < until => Some(Check::failed(kind, CheckReason::ExpiresTooSoon)),
        (End::Unknown, Some(_)) => Some(Check::warning(kind, CheckReason::ExpiryUnknown)),
        (End::At(..), _) | (End::Never, Some(_)) => Some(Check::passed(kind)),
        (End::Never | End::Unknown, None) => None,
    }
}
