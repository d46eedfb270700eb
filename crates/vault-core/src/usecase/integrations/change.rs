//! Changes of integrations: token, state, namespaces, expiry and trusts; and deletion.

use super::Integrations;
use super::create::past;
use crate::error::Error;
use crate::field::{FieldCode, FieldError};
use crate::id::OrganizationId;
use crate::identity::{Trust, TrustId};
use crate::integration::{
    ChangeIntegration, DeleteIntegration, IntegrationChange, IntegrationRef, IntegrationState, IntegrationToken,
    ManagedBy, NamespacePatterns, Overlap, StoredIntegration,
};
use crate::principal::Principal;
use crate::time::Timestamp;

/// Changes of an integration's fields. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntegrationEdit {
    /// New state.
    pub state: Option<IntegrationState>,
    /// Namespaces that the integration may activate.
    pub namespaces: Option<Vec<String>>,
    /// New expiry. `Some(None)` removes it.
    pub expires_at: Option<Option<Timestamp>>,
    /// New document set that manages the integration. `Some(None)` removes it.
    pub managed_by: Option<Option<String>>,
}

impl Integrations {
    /// Issues another token, which is shown only once. The current token stays valid for `overlap`, and an older one is
    /// revoked.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound), [`Refusal::NoOrganization`](crate::Refusal::NoOrganization) or [`Refusal::Damaged`](crate::Refusal::Damaged).
    pub async fn rotate(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        overlap: Overlap,
    ) -> Result<(StoredIntegration, IntegrationToken), Error> {
        Self::permit(principal, organization)?;
        let token = IntegrationToken::generate(&*self.entropy)?;
        let change = IntegrationChange::Rotate { token: token.digest(&*self.digester), overlap };
        Ok((self.apply(principal, organization, integration, change).await?, token))
    }

    /// Changes an integration's state, namespaces or expiry. Restrictions are in effect when this returns.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at `/namespaces/…`, `/expires_at` and `/managed_by`, or at the document if nothing is to be
    ///   changed.
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound), [`Refusal::NoOrganization`](crate::Refusal::NoOrganization) or [`Refusal::Damaged`](crate::Refusal::Damaged).
    pub async fn change(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        edit: IntegrationEdit,
    ) -> Result<StoredIntegration, Error> {
        Self::permit(principal, organization)?;
        let change = read(edit, self.environment.now())?;
        self.apply(principal, organization, integration, change).await
    }

    /// Deletes an integration with its activations.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound) or [`Refusal::NoOrganization`](crate::Refusal::NoOrganization).
    pub async fn delete(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
    ) -> Result<(), Error> {
        Self::permit(principal, organization)?;
        let operation = DeleteIntegration { organization, integration: integration.clone() };
        self.operations.run(&self.environment, principal, operation).await
    }

    /// Adds a trust, which allows workloads of an issuer to use the integration, and returns it.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at a field of the trust.
    /// - [`Refusal::NotFound`](crate::Refusal::NotFound), [`Refusal::NoOrganization`](crate::Refusal::NoOrganization) or [`Refusal::Damaged`](crate::Refusal::Damaged).
    pub async fn trust(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        trust: &serde_json::Value,
    ) -> Result<Trust, Error> {
        self.find(principal, organization, integration).await?;
        let (request, issuer) = self.read_trust(principal, organization, trust, "").await?;
        let id = TrustId::from_uuid(self.environment.ids.ordered(self.environment.now()));
        let trust = request.with_ids(id, issuer);
        let change = IntegrationChange::Trust(Box::new(trust.clone()));
        self.apply(principal, organization, integration, change).await?;
        Ok(trust)
    }

    /// Removes a trust. Its workloads are refused when this returns.
    ///
    /// # Errors
    /// [`Refusal::NotFound`](crate::Refusal::NotFound), also if the trust does not exist, [`Refusal::NoOrganization`](crate::Refusal::NoOrganization) or [`Refusal::Damaged`](crate::Refusal::Damaged).
    pub async fn distrust(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        trust: TrustId,
    ) -> Result<(), Error> {
        Self::permit(principal, organization)?;
        self.apply(principal, organization, integration, IntegrationChange::Distrust(trust)).await.map(drop)
    }

    async fn apply(
        &self,
        principal: &Principal,
        organization: OrganizationId,
        integration: &IntegrationRef,
        change: IntegrationChange,
    ) -> Result<StoredIntegration, Error> {
        let operation = ChangeIntegration { organization, integration: integration.clone(), change };
        let changed = self.operations.run(&self.environment, principal, operation).await?;
        Ok(changed.shown(self.environment.now()))
    }
}

fn read(edit: IntegrationEdit, now: Timestamp) -> Result<IntegrationChange, Error> {
    let IntegrationEdit { state, namespaces, expires_at, managed_by } = edit;
    if state.is_none() && namespaces.is_none() && expires_at.is_none() && managed_by.is_none() {
        let detail = "must contain state, namespaces, expires_at or managed_by";
        return Err(FieldError::new("", FieldCode::Required, detail).into());
    }
    let patterns = namespaces.map(|texts| NamespacePatterns::parse(&texts, "/namespaces")).transpose();
    let parse = |set: String| ManagedBy::parse(&set, "/managed_by");
    let managed_by = managed_by.map(|set| set.map(parse).transpose()).transpose();
    match (patterns, managed_by, past(expires_at.flatten(), now)) {
        (Ok(patterns), Ok(managed_by), None) => Ok(IntegrationChange::Edit { state, patterns, expires_at, managed_by }),
        (patterns, managed_by, past) => {
            let errors = patterns.err().into_iter().flatten();
            Err(Error::Invalid(errors.chain(managed_by.err()).chain(past).collect()))
        }
    }
}
