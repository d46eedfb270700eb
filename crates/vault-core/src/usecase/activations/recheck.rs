//! Periodic and requested checks of saved credentials: whether their storages still accept them.

use super::Activations;
use super::check::authenticates;
use super::check::end_of_check;
use crate::audit::AuditAction;
use crate::check::{CheckReason, CheckReport, CheckResult, verify_locally};
use crate::credential::{ClaimChecks, CredentialData, DueCheck, LastCheck, RecordCheck, VersionKey};
use crate::error::Error;
use crate::operation::Operation;
use crate::port::{ProbeRequest, SealError, StorageProbe, VendOrder};
use crate::principal::Principal;
use crate::time::Timestamp;
use futures_util::stream::{self, StreamExt as _};
use std::collections::BTreeMap;

/// Maximum number of storages that are checked concurrently.
const CONCURRENT_STORES: usize = 8;
/// Maximum number of concurrent checks per storage.
const PER_STORE: usize = 2;
/// Maximum number of requested checks per round.
const REQUESTS: usize = 16;

impl Activations {
    /// Runs checks that are due and returns their number: requested checks and, with `turn`, at most that number of
    /// periodic ones, with at least that number of seconds between the starts of two rounds. Checks that another
    /// process has claimed are skipped.
    ///
    /// A credential that cannot be decrypted counts as failing, and the reason is logged.
    ///
    /// # Errors
    /// The store failed. Checks without a stored result are due again after a minute.
    pub async fn check_due(&self, turn: Option<(usize, i64)>) -> Result<usize, Error> {
        let Some(probe) = &self.probe else { return Ok(0) };
        let due = self.by_system(ClaimChecks { most: REQUESTS, turn }).await?;
        let count = due.len();
        let mut by_store: BTreeMap<String, Vec<(DueCheck, Option<CredentialData>)>> = BTreeMap::new();
        for (check, owner) in due {
            let opened = self.open_one(&owner, check.credential.clone());
            if let Err(error @ SealError::UnknownKey { .. }) = &opened {
                // If a rotation ended between reading the row and reading the keys, the next check can decrypt it.
                self.environment.report(error);
                continue;
            }
            let data = opened.inspect_err(|error| self.environment.report(error)).ok().map(|opened| opened.data);
            let store = data.as_ref().map(CredentialData::storage).unwrap_or_default();
            by_store.entry(store).or_default().push((check, data));
        }
        let results: Vec<Result<(), Error>> = stream::iter(by_store.into_values())
            .map(|checks| {
                let checks = stream::iter(checks).map(|(due, data)| self.check_again(&**probe, due, data));
                checks.buffer_unordered(PER_STORE).collect::<Vec<_>>()
            })
            .buffer_unordered(CONCURRENT_STORES)
            .concat()
            .await;
        results.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(count)
    }

    /// Records that this process runs checks, so that a check requested directly after its start is accepted.
    ///
    /// # Errors
    /// The store failed.
    pub async fn announce_checks(&self) -> Result<(), Error> {
        if self.probe.is_some() {
            self.by_system(ClaimChecks { most: 0, turn: None }).await?;
        }
        Ok(())
    }

    /// Runs an operation that no principal requested.
    pub(super) async fn by_system<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }

    async fn check_again(
        &self,
        probe: &dyn StorageProbe,
        due: DueCheck,
        data: Option<CredentialData>,
    ) -> Result<(), Error> {
        let failed = match &data {
            Some(data) => {
                let now = self.environment.now();
                let report = match data.kind().is_keyless() {
                    true => self.check_saved_keyless(probe, data, &due, now).await,
                    false => authenticates(probe, data, now).await,
                };
                report.checks.iter().find_map(|check| match check.result {
                    CheckResult::Failed(reason) => Some(reason),
                    _ => None,
                })
            }
            None => Some(CheckReason::Unexpected),
        };
        let DueCheck { organization, credential, before, .. } = due;
        let now = self.environment.now();
        let check = LastCheck::after(before, now, failed);
        let failed_before = before.map(|before| before.failed.is_some());
        let changed = (failed_before != Some(failed.is_some())).then_some(match failed {
            Some(_) => AuditAction::CredentialFailing,
            None => AuditAction::CredentialHealthy,
        });
        let key = VersionKey { organization, id: credential.row.id, version: credential.version };
        self.by_system(RecordCheck { key, check, changed }).await?;
        Ok(())
    }

    /// Checks a keyless credential, from which a short-lived one must be issued first.
    async fn check_saved_keyless(
        &self,
        probe: &dyn StorageProbe,
        data: &CredentialData,
        due: &DueCheck,
        now: Timestamp,
    ) -> CheckReport {
        let order = VendOrder {
            organization: due.organization,
            integration: None,
            namespace: due.credential.row.namespace.clone(),
            activation: None,
            credential: due.credential.row.id,
            now,
            expires_at: end_of_check(now),
        };
        let request = ProbeRequest { short: None, operations: Vec::new(), until: None, now };
        verify_locally(data, None, now).and(self.check_keyless(probe, data, order, request).await)
    }
}
