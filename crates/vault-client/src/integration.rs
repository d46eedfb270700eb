//! Integrations of the organization, and whom they trust.

use crate::account::below;
use crate::{ClientError, Session};
use serde::Serialize;
use ureq::http::Method;
use vault_api::{CreateIntegrationRequest, IntegrationItem, IssuedIntegration, IssuerItem, TrustRequest};

const INTEGRATIONS: &str = "/integrations";

/// A change of an integration; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IntegrationChange {
    /// `active` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Namespaces that it may activate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// When it expires, RFC 3339, or never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Option<String>>,
    /// The set of documents that describes it, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<Option<String>>,
}

/// What admins do with their organization's integrations.
///
/// # Errors
/// [`ClientError::Problem`], each: the role does not permit it, there is no such integration, or something stands in the way.
impl Session {
    /// All integrations.
    pub fn integrations(&self) -> Result<Vec<IntegrationItem>, ClientError> {
        self.all(INTEGRATIONS)
    }

    /// Makes one. Its token is shown this once.
    pub fn create_integration(&self, request: &CreateIntegrationRequest) -> Result<IssuedIntegration, ClientError> {
        self.send_json(Method::POST, INTEGRATIONS, request)?.json()
    }

    /// Changes one.
    pub fn change_integration(&self, id: &str, change: &IntegrationChange) -> Result<IntegrationItem, ClientError> {
        self.send_json(Method::PATCH, &below(INTEGRATIONS, id), change)?.json()
    }

    /// Deletes one, with its activations.
    pub fn delete_integration(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(INTEGRATIONS, id)).map(|_| ())
    }

    /// The issuers that integrations may trust.
    pub fn issuers(&self) -> Result<Vec<IssuerItem>, ClientError> {
        self.send(Method::GET, "/issuers")?.json()
    }

    /// Has one trust a workload.
    pub fn trust(&self, id: &str, trust: &TrustRequest) -> Result<(), ClientError> {
        self.send_json(Method::POST, &[&below(INTEGRATIONS, id), "/trusts"].concat(), trust).map(|_| ())
    }

    /// Ends a trust.
    pub fn distrust(&self, id: &str, trust: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(&[&below(INTEGRATIONS, id), "/trusts"].concat(), trust)).map(|_| ())
    }
}
