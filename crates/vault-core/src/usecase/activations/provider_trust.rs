//! Trust checks: whether a provider accepts only the subjects of this server's credentials.
//!
//! Without them, a user of another organization could save the role of this one, and an open provider trust would accept
//! their token.

use super::Activations;
use super::check::not_issued;
use crate::check::{Check, CheckKind, CheckReason, CheckReport, CheckResult};
use crate::credential::CredentialData;
use crate::federation::FederationSubject;
use crate::id::{CredentialId, OrganizationId};
use crate::port::{ProbeRequest, StorageProbe, VendOrder};
use crate::time::Timestamp;

impl Activations {
    /// Succeeds only if the provider trust of a keyless credential is closed, or was closed within the last hour.
    ///
    /// # Errors
    /// [`CheckReason::TrustOpen`], or the reason why this is unknown.
    pub(super) async fn require_closed_trust(&self, data: &CredentialData, now: Timestamp) -> Result<(), CheckReason> {
        let target = data.trust_target().ok_or(CheckReason::Unexpected)?;
        if self.closed.contains(&target, now) { Ok(()) } else { self.check_trust(data, now).await }
    }

    /// Checks the provider trust of a keyless credential, whatever an earlier check found.
    async fn check_trust(&self, data: &CredentialData, now: Timestamp) -> Result<(), CheckReason> {
        let target = data.trust_target().ok_or(CheckReason::Unexpected)?;
        let trust = self.trust.as_ref().ok_or(CheckReason::NotConfigured)?;
        // Another organization's subject: a provider that accepts it accepts the tokens of any.
        let ids = &self.environment.ids;
        let (organization, credential) = (ids.ordered(now), ids.ordered(now));
        let subject =
            FederationSubject::new(OrganizationId::from_uuid(organization), CredentialId::from_uuid(credential));
        let checked = trust.check_trust(data, &subject, now).await;
        match checked {
            Ok(()) => self.closed.insert(target, now),
            Err(_) => self.closed.remove(&target),
        }
        checked
    }

    /// Checks a keyless credential: requests a short-lived credential, uses it as `request` specifies, and checks the
    /// provider trust. Nothing is issued.
    pub(super) async fn check_keyless(
        &self,
        probe: &dyn StorageProbe,
        data: &CredentialData,
        order: VendOrder,
        request: ProbeRequest,
    ) -> CheckReport {
        let now = order.now;
        let mut report = match self.short(data, order).await {
            Ok(short) => probe.check(data, ProbeRequest { short: Some(short.data), ..request }).await,
            Err(reason) => not_issued(reason, &request.operations),
        };
        let of = |check: &Check| check.kind == CheckKind::Authenticate;
        let authenticated = report.checks.iter().find(|check| of(check)).map(|check| check.result);
        let trust = match authenticated {
            None | Some(CheckResult::Failed(_) | CheckResult::Skipped(_)) => {
                Check::skipped(CheckKind::Trust, CheckReason::EarlierFailed)
            }
            Some(CheckResult::Passed | CheckResult::Warning(_)) => match self.check_trust(data, now).await {
                Ok(()) => Check::passed(CheckKind::Trust),
                Err(reason) => Check::failed(CheckKind::Trust, reason),
            },
        };
        let place = report.checks.iter().position(of).map_or(0, |index| index + 1);
        report.checks.insert(place, trust);
        report
    }
}
