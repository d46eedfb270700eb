//! Checks of a namespace: tests its credentials with their storage providers, in the form that an activation would
//! issue, without issuing them.

use super::activate::{Issued, Until};
use super::open::{DecryptedCredential, Decryption, DecryptionReason};
use super::{Activations, CONCURRENT, RESTARTS, contended};
use crate::activation::{ActivationTtl, ShortData, VendMode, VendedForm};
use crate::check::{Check, CheckKind, CheckReason, CheckReport, StorageOperation, StorageReach, reach, verify_locally};
use crate::credential::{CredentialData, CredentialType};
use crate::error::Error;
use crate::id::CredentialId;
use crate::integration::IntegrationPrincipal;
use crate::namespace::Namespace;
use crate::port::{ProbeRequest, StorageProbe};
use crate::time::Timestamp;
use futures_util::future::join_all;

/// Request for a check.
#[derive(Clone, Debug)]
pub struct CheckNamespaceRequest {
    /// The namespace.
    pub namespace: Namespace,
    /// Operations that the job requires. If empty, only checks whether each storage accepts its credential.
    pub operations: Vec<StorageOperation>,
    /// Planned end of the job.
    pub until: Option<Timestamp>,
    /// Form that the job's activation will request.
    pub vend: VendMode,
}

/// Result for one credential.
#[derive(Clone, Debug)]
pub struct CheckedCredential {
    /// ID of the credential.
    pub id: CredentialId,
    /// Type in which it is issued.
    pub kind: CredentialType,
    /// Tested form, which is the one that an activation would issue. `None` if the storage was not called.
    pub form: Option<VendedForm>,
    /// The checks.
    pub report: CheckReport,
}

impl Activations {
    /// Checks all credentials, oldest first. Authorized and recorded like an activation, but starts none.
    ///
    /// # Errors
    /// Those of [`Activations::activate`], except those of its last transaction and of the limit of active activations.
    /// Problems of a credential are in its report.
    pub async fn check(
        &self,
        principal: &IntegrationPrincipal,
        request: CheckNamespaceRequest,
    ) -> Result<Vec<CheckedCredential>, Error> {
        let CheckNamespaceRequest { namespace, operations, until, vend } = request;
        let decryption = Decryption { namespace: namespace.clone(), purpose: None, reason: DecryptionReason::Check };
        let opened = self.open_for_check(principal, &decryption).await?;
        let now = self.environment.now();
        let asked = Asked { operations, until, now };
        let expires_at = end_of_check(now);
        let form_until = Until { principal, namespace: &namespace, activation: None, now, expires_at };
        let mut credentials = Vec::with_capacity(opened.len());
        let mut opened = opened.into_iter().peekable();
        while opened.peek().is_some() {
            let some = opened.by_ref().take(CONCURRENT);
            credentials.extend(join_all(some.map(|one| self.check_one(one, form_until, vend, &asked))).await);
        }
        Ok(credentials)
    }

    async fn open_for_check(
        &self,
        principal: &IntegrationPrincipal,
        decryption: &Decryption,
    ) -> Result<Vec<DecryptedCredential>, Error> {
        let mut principal = principal.clone();
        for _ in 0..=RESTARTS {
            match self.open(&principal, decryption).await {
                Ok(opened) => return opened,
                Err(error) => principal = self.after(&principal, error).await?,
            }
        }
        Err(contended())
    }

    async fn check_one(
        &self,
        opened: DecryptedCredential,
        until: Until<'_>,
        mode: VendMode,
        asked: &Asked,
    ) -> CheckedCredential {
        let DecryptedCredential { id, data, vend, .. } = opened;
        let local = verify_locally(&data, asked.until, asked.now);
        let (form, outside) = match (reach(&local), &self.probe) {
            (StorageReach::Spare, _) => (None, skipped(CheckReason::EarlierFailed)),
            (StorageReach::Ask, None) => (None, skipped(CheckReason::NotConfigured)),
            (StorageReach::Ask, Some(probe)) if data.kind().is_keyless() => {
                let report = self.check_keyless(&**probe, &data, until.order(id), asked.probing(None)).await;
                (Some(VendedForm::Short), report)
            }
            (StorageReach::Ask, Some(probe)) => match self.issue(&data, until.order(id), vend.limit(mode)).await {
                Ok(Issued::Short(short)) => {
                    (Some(VendedForm::Short), probe.check(&data, asked.probing(Some(short.data))).await)
                }
                Ok(Issued::Nothing(_)) => (Some(VendedForm::Raw), probe.check(&data, asked.probing(None)).await),
                Err(reason) => (Some(VendedForm::Short), not_issued(reason, &asked.operations)),
            },
        };
        CheckedCredential { id, kind: data.kind().issued_as(), form, report: local.and(outside) }
    }
}

/// Requested checks of every credential.
struct Asked {
    operations: Vec<StorageOperation>,
    until: Option<Timestamp>,
    now: Timestamp,
}

impl Asked {
    fn probing(&self, short: Option<ShortData>) -> ProbeRequest {
        ProbeRequest { short, operations: self.operations.clone(), until: self.until, now: self.now }
    }
}

/// Checks whether the storage provider accepts `data`, as far as that can be determined.
pub(in crate::usecase) async fn authenticates(
    probe: &dyn StorageProbe,
    data: &CredentialData,
    now: Timestamp,
) -> CheckReport {
    let local = verify_locally(data, None, now);
    let outside = match reach(&local) {
        StorageReach::Spare => skipped(CheckReason::EarlierFailed),
        StorageReach::Ask => {
            probe.check(data, ProbeRequest { short: None, operations: Vec::new(), until: None, now }).await
        }
    };
    local.and(outside)
}

fn skipped(reason: CheckReason) -> CheckReport {
    CheckReport { checks: vec![Check::skipped(CheckKind::Authenticate, reason)] }
}

/// Returns the report that an activation would issue nothing, for this reason.
pub(super) fn not_issued(reason: CheckReason, operations: &[StorageOperation]) -> CheckReport {
    let failed = Check::failed(CheckKind::Authenticate, reason);
    let others = operations.iter().map(|one| Check::skipped(CheckKind::Operation(*one), CheckReason::EarlierFailed));
    CheckReport { checks: std::iter::once(failed).chain(others).collect() }
}

/// Returns the requested expiry of a credential that only a check uses.
pub(super) fn end_of_check(now: Timestamp) -> Timestamp {
    now.plus_seconds(ActivationTtl::DEFAULT.into())
}
