//! The publication check of an issuer.

use super::{Change, Federation, VerifiedKeys};
use crate::audit::Actor;
use crate::error::Error;
use crate::federation::{
    FederationIssuer, Jwk, PublicationFailure, PublicationFinding, StoredFederationKey, check_publication,
};
use crate::port::{IssuerPublication, RecordPublication};

/// Result of a publication check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicationReport {
    /// Number of checked keys.
    pub keys: usize,
    /// Findings, most severe first.
    pub findings: Vec<PublicationFinding>,
    /// `true` if the previous check failed too.
    pub failed_before: bool,
}

impl PublicationReport {
    /// Returns whether this check and the previous one failed.
    pub fn is_lasting(&self) -> bool {
        self.failed_before && !self.findings.is_empty()
    }
}

impl Federation {
    /// Checks whether providers can read the keys of `issuer`, and records the findings. Does not fetch anything if there
    /// is no key.
    ///
    /// # Errors
    /// The store failed.
    pub async fn check(
        &self,
        issuer: &FederationIssuer,
        publication: &dyn IssuerPublication,
    ) -> Result<PublicationReport, Error> {
        let keys = self.read().await?;
        self.check_keys(issuer, publication, &keys).await
    }

    /// Runs the check if the last one was 15 minutes ago or a new key was never checked. Otherwise returns `None`.
    ///
    /// # Errors
    /// The store failed.
    pub async fn check_if_due(
        &self,
        issuer: &FederationIssuer,
        publication: &dyn IssuerPublication,
    ) -> Result<Option<PublicationReport>, Error> {
        let (keys, now) = (self.read().await?, self.environment.now());
        let is_due = keys.valid.iter().any(|row| row.key.issuer == *issuer && row.is_check_due(now));
        if is_due { self.check_keys(issuer, publication, &keys).await.map(Some) } else { Ok(None) }
    }

    async fn check_keys(
        &self,
        issuer: &FederationIssuer,
        publication: &dyn IssuerPublication,
        keys: &VerifiedKeys,
    ) -> Result<PublicationReport, Error> {
        let checked: Vec<&StoredFederationKey> = keys.valid.iter().filter(|row| row.key.issuer == *issuer).collect();
        if checked.is_empty() {
            return Ok(PublicationReport::default());
        }
        let expected: Vec<&Jwk> = checked.iter().map(|row| &row.key.jwk).collect();
        let retired: Vec<&Jwk> = keys.dropped_of(issuer).map(|key| &key.jwk).collect();
        let findings = match publication.fetch(issuer).await {
            Ok(documents) => check_publication(issuer, &expected, &retired, &documents),
            Err(failure) => vec![(failure, None)],
        };
        let checked_at = self.environment.now();
        let failed_before = checked.iter().any(|row| row.failure.is_some());
        let records = checked.iter().map(|row| RecordPublication {
            key: row.key.id,
            seen: row.checked_at,
            checked_at,
            failure: finding_about(&row.key.jwk, &findings),
        });
        let is_recorded = self.store.record_publication(records.collect()).await?;
        if is_recorded {
            let found: Vec<_> =
                checked.iter().filter(|row| finds(&row.key.jwk, &findings)).map(|row| row.key.id).collect();
            self.record_first_found(&found).await?;
        }
        // A concurrent check records and reports its own finding.
        Ok(PublicationReport { keys: expected.len(), findings, failed_before: failed_before && is_recorded })
    }

    /// Records the time of the first check that found these keys.
    async fn record_first_found(&self, found: &[crate::id::KeyId]) -> Result<(), Error> {
        let changed = self.change(Actor::System, |keys, now| {
            let found = keys.valid.iter().filter(|row| found.contains(&row.key.id));
            let changed: Vec<_> = found.filter_map(|row| row.key.first_found(now)).collect();
            Ok((!changed.is_empty()).then(|| ((), Change { changed, ..Change::default() })))
        });
        changed.await.map(drop)
    }
}

/// Returns the finding to record for a key: the most severe one about it or about all keys.
fn finding_about(key: &Jwk, findings: &[PublicationFinding]) -> Option<PublicationFailure> {
    let concerns = |(failure, kid): &&PublicationFinding| {
        *failure != PublicationFailure::KeyMissing || kid.as_deref() == Some(key.kid())
    };
    findings.iter().find(concerns).map(|(failure, _)| *failure)
}

fn finds(key: &Jwk, findings: &[PublicationFinding]) -> bool {
    finding_about(key, findings).is_none_or(PublicationFailure::finds_keys)
}
