//! Validation of requested trusts against the configured issuers.

use super::Integrations;
use crate::error::Error;
use crate::field::{FieldCode, FieldError};
use crate::id::{IssuerId, OrganizationId};
use crate::identity::{FindIssuers, ListIssuers, StoredIssuer, TrustId, TrustRequest, Trusts};
use crate::integration::{FindIntegration, IntegrationRef, StoredIntegration};
use crate::principal::Principal;
use serde_json::Value;

impl Integrations {
    /// Returns the issuers that integrations of an organization may trust, ordered by name.
    ///
    /// # Errors
    /// The principal is not authorized to administer its integrations, or the store failed.
    pub async fn issuers(
        &self,
        principal: &Principal,
        organization: OrganizationId,
    ) -> Result<Vec<StoredIssuer>, Error> {
        Self::permit(principal, organization)?;
        let issuers = self.operations.run(&self.environment, principal, ListIssuers).await?;
        Ok(issuers.into_iter().filter(|stored| stored.issuer.serves(organization)).collect())
    }

    /// Returns an integration of `organization`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound) if it does not exist.
    pub async fn find(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
    ) -> Result<StoredIntegration, Error> {
        Self::permit(principal, organization)?;
        let operation = FindIntegration { organization, integration: integration.clone() };
        self.operations.run(&self.environment, principal, operation).await
    }

    /// Validates the trusts of a new integration.
    pub(super) async fn read_trusts(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        asked: &[Value],
    ) -> Result<Trusts, Error> {
        let (mut trusts, mut errors) = (Vec::new(), Vec::new());
        for (number, value) in asked.iter().enumerate() {
            match self.read_trust(principal, organization, value, &format!("/trusts/{number}")).await {
                Ok((request, issuer)) => {
                    let id = self.environment.ids.ordered(self.environment.now());
                    trusts.push(request.with_ids(TrustId::from_uuid(id), issuer));
                }
                Err(Error::Invalid(violations)) => errors.extend(violations),
                Err(error) => return Err(error),
            }
        }
        if errors.is_empty() { Ok(Trusts::new(trusts, "/trusts")?) } else { Err(Error::Invalid(errors)) }
    }

    /// Validates a trust in the JSON at `field`: its format, whether its issuer exists, and whether it specifies the
    /// claims that the issuer requires. Also returns the ID of the issuer.
    pub(super) async fn read_trust(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        value: &Value,
        field: &str,
    ) -> Result<(TrustRequest, IssuerId), Error> {
        let request = TrustRequest::parse(value, field).map_err(Error::Invalid)?;
        let find = FindIssuers(vec![request.issuer.clone()]);
        let mut found = self.operations.run(&self.environment, principal, find).await?;
        found.retain(|stored| stored.issuer.serves(organization));
        let Some(stored) = found.first() else {
            let detail = format!(
                "is no issuer that this organization may trust: {0}. An operator adds it with `orgvault issuer add {0} \
                 --issuer URL`",
                request.issuer
            );
            return Err(FieldError::new(format!("{field}/issuer"), FieldCode::NotAllowed, detail).into());
        };
        request.satisfies(&stored.issuer, field).map_err(Error::Invalid)?;
        Ok((request, stored.issuer.id))
    }
}
