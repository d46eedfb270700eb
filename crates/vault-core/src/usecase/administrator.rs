//! Who administers an organization's integrations, and from where.

use crate::id::OrganizationId;
use crate::organization::OrganizationName;
use crate::port::{OrganizationRepository, StoreError};
use crate::principal::{Principal, SessionPrincipal};

/// An operator or an admin, and the organization concerned.
#[derive(Clone, Debug)]
pub enum Administrator {
    /// An operator, in the organization of this name.
    Operator(String),
    /// An admin's session, in its own organization.
    Session(SessionPrincipal),
}

/// Why somebody administers nothing.
#[derive(Debug, thiserror::Error)]
pub enum AdministratorError {
    /// The role does not permit it.
    #[error("the role does not permit administering integrations")]
    InsufficientRole,
    /// No organization of this name.
    #[error("no organization of this name")]
    NoOrganization,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Administrator {
    /// By whose order, and in which organization.
    pub(super) async fn authority(
        self,
        organizations: &dyn OrganizationRepository,
    ) -> Result<(Principal, OrganizationId), AdministratorError> {
        match self {
            Self::Operator(name) => {
                let name = OrganizationName::parse(&name).map_err(|_| AdministratorError::NoOrganization)?;
                let organization = organizations.find_organization(&name).await?;
                Ok((Principal::Operator, organization.ok_or(AdministratorError::NoOrganization)?.id))
            }
            Self::Session(principal) => {
                let organization = principal.organization;
                let authority = Principal::Session(principal);
                if authority.administers(crate::role::Action::ManageIntegrations).is_ok() {
                    Ok((authority, organization))
                } else {
                    Err(AdministratorError::InsufficientRole)
                }
            }
        }
    }
}
