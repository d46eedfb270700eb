//! The publication check of an issuer.

use super::Federation;
use crate::error::Error;
use crate::federation::{
    FederationIssuer, FederationKey, Jwk, ListSigningKeys, PublicationFailure, PublicationFinding, RecordPublication,
    StoredSigningKeys, check_publication,
};
use crate::port::IssuerPublication;

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
        let stored = self.run(ListSigningKeys).await?;
        self.check_keys(issuer, publication, &stored).await
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
        let (stored, now) = (self.run(ListSigningKeys).await?, self.environment.now());
        let is_due = stored.keys.published(issuer).iter().any(|key| stored.checks.is_due(key.kid(), now));
        if is_due { self.check_keys(issuer, publication, &stored).await.map(Some) } else { Ok(None) }
    }

    async fn check_keys(
        &self,
        issuer: &FederationIssuer,
        publication: &dyn IssuerPublication,
        stored: &StoredSigningKeys,
    ) -> Result<PublicationReport, Error> {
        let StoredSigningKeys { document: Some((document, _)), keys, checks, .. } = stored else {
            return Ok(PublicationReport::default());
        };
        let (published, unpublished): (Vec<_>, Vec<_>) = keys.of(issuer).into_iter().partition(|key| key.is_published);
        if published.is_empty() {
            return Ok(PublicationReport::default());
        }
        let expected: Vec<&Jwk> = published.iter().map(|key| &key.jwk).collect();
        let retired: Vec<&Jwk> = unpublished.iter().map(|key| &key.jwk).collect();
        let findings = match publication.fetch(issuer).await {
            Ok(documents) => check_publication(issuer, &expected, &retired, &documents),
            Err(failure) => vec![(failure, None)],
        };
        let failed = |key: &&FederationKey| checks.of(key.kid()).is_some_and(|checked| checked.failure.is_some());
        let failed_before = published.iter().any(failed);
        let finding = |key: &FederationKey| finding_about(key, &findings);
        let after = checks.after(keys.all(), &published, finding, self.environment.now());
        let record = RecordPublication { document: *document, before: checks.clone(), after };
        // A concurrent check records and reports its own finding.
        let is_recorded = self.run(record).await?;
        Ok(PublicationReport { keys: expected.len(), findings, failed_before: failed_before && is_recorded })
    }
}

/// Returns the finding to record for a key: the most severe one about it or about all keys.
fn finding_about(key: &FederationKey, findings: &[PublicationFinding]) -> Option<PublicationFailure> {
    let concerns = |(failure, kid): &&PublicationFinding| {
        *failure != PublicationFailure::KeyMissing || kid.as_deref() == Some(key.kid())
    };
    findings.iter().find(concerns).map(|(failure, _)| *failure)
}
