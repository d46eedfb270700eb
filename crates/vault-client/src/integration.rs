//! Integrations of the organization, their trusts, and namespaces.

use crate::account::below;
use crate::list::query;
use crate::{ClientError, Session};
use serde::Serialize;
use serde_json::json;
use ureq::http::Method;
use vault_api::{
    ChangeIntegrationRequest, CreateIntegrationRequest, FrozenNamespace, IntegrationItem, IntegrationUsageItem,
    IssuedIntegration, IssuerItem, NamespaceItem, NamespaceRequest, NamespaceUsage, RotateIntegrationRequest,
    TrustItem,
};

const INTEGRATIONS: &str = "/integrations";
const NAMESPACES: &str = "/namespaces";

/// Operations of admins on the integrations of their organization.
///
/// # Errors
/// [`ClientError::Problem`] of each: the role does not permit it, the integration does not exist, or a rule forbids the
/// change.
impl Session {
    /// Returns all integrations.
    pub fn integrations(&self) -> Result<Vec<IntegrationItem>, ClientError> {
        self.all(INTEGRATIONS)
    }

    /// Counts the activations and denied requests of integrations since a time in RFC 3339, at most of the last 30 days.
    /// `None` counts the last 30 days.
    pub fn integration_usage(&self, since: Option<&str>) -> Result<Vec<IntegrationUsageItem>, ClientError> {
        let since = query(json!({"since": since}), None);
        self.send(Method::GET, &[INTEGRATIONS, "/usage", &since].concat())?.json()
    }

    /// Creates an integration. Its token is returned only once.
    pub fn create_integration<T: Serialize>(
        &self,
        request: &CreateIntegrationRequest<T>,
    ) -> Result<IssuedIntegration, ClientError> {
        self.send_json(Method::POST, INTEGRATIONS, request)?.json()
    }

    /// Changes an integration.
    pub fn change_integration(
        &self,
        id: &str,
        change: &ChangeIntegrationRequest,
    ) -> Result<IntegrationItem, ClientError> {
        self.send_json(Method::PATCH, &below(INTEGRATIONS, id), change)?.json()
    }

    /// Issues a new token, which is returned only once. The old one stays valid for `overlap` seconds, or a day.
    pub fn rotate_integration(&self, id: &str, overlap: Option<i64>) -> Result<IssuedIntegration, ClientError> {
        let path = [&below(INTEGRATIONS, id), "/rotate"].concat();
        self.send_json(Method::POST, &path, &RotateIntegrationRequest { overlap })?.json()
    }

    /// Deletes an integration with its activations.
    pub fn delete_integration(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(INTEGRATIONS, id)).map(|_| ())
    }

    /// Returns the issuers that integrations may trust.
    pub fn issuers(&self) -> Result<Vec<IssuerItem>, ClientError> {
        self.send(Method::GET, "/issuers")?.json()
    }

    /// Adds a trust to an integration: a [`TrustRequest`](vault_api::TrustRequest), or its JSON.
    pub fn trust(&self, id: &str, trust: &impl Serialize) -> Result<TrustItem, ClientError> {
        self.send_json(Method::POST, &[&below(INTEGRATIONS, id), "/trusts"].concat(), trust)?.json()
    }

    /// Removes a trust.
    pub fn distrust(&self, id: &str, trust: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(&[&below(INTEGRATIONS, id), "/trusts"].concat(), trust)).map(|_| ())
    }

    /// Returns the namespaces that have credentials or are frozen.
    pub fn namespaces(&self) -> Result<Vec<NamespaceItem>, ClientError> {
        self.all(NAMESPACES)
    }

    /// Counts the activations and denied requests of namespaces since a time in RFC 3339, at most of the last 30 days.
    /// `None` counts the last 30 days. `integration` counts those of one integration.
    pub fn namespace_usage(
        &self,
        since: Option<&str>,
        integration: Option<&str>,
    ) -> Result<NamespaceUsage, ClientError> {
        let parameters = query(json!({"since": since, "integration": integration}), None);
        self.send(Method::GET, &[NAMESPACES, "/usage", &parameters].concat())?.json()
    }

    /// Rejects all activations of a namespace.
    pub fn freeze(&self, namespace: &str) -> Result<FrozenNamespace, ClientError> {
        self.set_frozen("/freeze", namespace)
    }

    /// Allows activations of a frozen namespace again.
    pub fn thaw(&self, namespace: &str) -> Result<FrozenNamespace, ClientError> {
        self.set_frozen("/thaw", namespace)
    }

    fn set_frozen(&self, path: &str, namespace: &str) -> Result<FrozenNamespace, ClientError> {
        let request = NamespaceRequest { namespace: namespace.to_owned() };
        self.send_json(Method::POST, &[NAMESPACES, path].concat(), &request)?.json()
    }
}
