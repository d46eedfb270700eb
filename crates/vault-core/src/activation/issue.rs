//! The last transaction of an activation before its response: it decides again, and issues the credentials.

use super::{Activation, ForIntegration, IssuanceFacts, IssuanceRefusal, IssuedCredential, Purpose, check_issuance};
use crate::audit::SealedAuditRecord;
use crate::credential::CredentialUse;
use crate::entity::Index;
use crate::id::{ActivationId, CredentialId};
use crate::namespace::Namespace;
use crate::operation::{Access, Failure, Operation, Unit, flat};
use crate::time::Timestamp;
use futures_util::try_join;

/// Decides with [`check_issuance`] whether prepared credentials may be issued. After a refusal, stores
/// [`IssueCredentials::refused`] instead of the command's entry, and removes the activation, unless it was to be renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueCredentials {
    /// ID of the started activation.
    pub activation: ActivationId,
    /// True if an issued activation is renewed. It must still be active, gets the expiry and number of credentials of
    /// this command, and survives a refusal.
    pub renewal: bool,
    /// Time at which it expires (exclusive end).
    pub expires_at: Timestamp,
    /// Its namespace.
    pub namespace: Namespace,
    /// Credentials to issue. Each is recorded as a use of its credential, and a renewal updates this record.
    pub credentials: Vec<IssuedCredential>,
    /// Purpose that the integration stated.
    pub purpose: Option<Purpose>,
    /// Audit record of a refusal, which replaces the command's record.
    pub refused: SealedAuditRecord,
}

impl Operation for ForIntegration<IssueCredentials> {
    /// Why they are not issued. An unauthorized principal is such a reason too.
    type Outcome = Option<IssuanceRefusal>;
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.principal.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<IssuanceRefusal>, Failure> {
        let IssueCredentials { activation, renewal, expires_at, namespace, credentials, purpose, refused } =
            &self.payload;
        let (principal, now, rows) = (&self.principal, self.now, unit.rows());
        let organization = principal.organization;
        let wanted: Vec<CredentialId> = credentials.iter().map(|one| one.credential).collect();
        let (authorized, found, frozen, current) = try_join!(
            unit.authorize_integration(principal, now),
            flat(rows.activation(organization, *activation)),
            flat(rows.find(organization, Index::FrozenNamespace, namespace.as_str())),
            flat(rows.issuable_versions(organization, namespace, &wanted)),
        )?;
        let found = found.filter(|found| found.integration == principal.integration);
        let found = found.filter(|found| !renewal || found.is_live(now));
        let facts = IssuanceFacts {
            integration: authorized.map(drop),
            frozen: frozen.is_some(),
            started: found.is_some(),
            expires_at: *expires_at,
            current: &current,
        };
        if let Err(refusal) = check_issuance(&facts, credentials, now) {
            if !renewal {
                rows.remove_activation(organization, *activation).await?;
            }
            unit.record_entry(refused).await?;
            return Ok(Some(refusal));
        }
        // The start of the activation, so that a renewal finds the row of the first issuance.
        let at = found.as_ref().map_or(now, |found| found.started_at);
        let uses: Vec<_> = credentials
            .iter()
            .map(|one| {
                let used = CredentialUse {
                    activation: *activation,
                    at,
                    expires_at: *expires_at,
                    ended_at: None,
                    version: one.version,
                    integration: principal.integration,
                    name: None,
                    form: one.form,
                    purpose: purpose.clone(),
                    workload: principal.subject().map(str::to_owned),
                };
                (one.credential, used)
            })
            .collect();
        let renewed = async {
            let Some(found) = found.filter(|_| *renewal) else { return Ok(()) };
            let credentials = u32::try_from(credentials.len()).unwrap_or(u32::MAX);
            rows.renew_activation(&Activation { expires_at: *expires_at, credentials, ..found }).await
        };
        try_join!(flat(renewed), flat(rows.set_uses(organization, &uses)), unit.record_entry(&self.audit))?;
        Ok(None)
    }
}
