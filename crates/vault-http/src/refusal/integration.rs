//! The errors of what admins do with integrations.

use super::{BUSY_RETRY, Chain};
use crate::fault::Fault;
use vault_core::usecase::{AdministratorError, ChangeIntegrationError, CreateIntegrationError, ListIntegrationsError};

impl From<AdministratorError> for Fault {
    fn from(error: AdministratorError) -> Self {
        match error {
            AdministratorError::InsufficientRole => Self::insufficient_role(),
            // The organization went away while the token was on its way.
            AdministratorError::NoOrganization => Self::invalid_token(),
            AdministratorError::Store(error) => error.into(),
        }
    }
}

impl From<ListIntegrationsError> for Fault {
    fn from(error: ListIntegrationsError) -> Self {
        match error {
            ListIntegrationsError::InsufficientRole => Self::insufficient_role(),
            ListIntegrationsError::Principal(_) => Self::invalid_token(),
            ListIntegrationsError::Store(error) => error.into(),
        }
    }
}

impl From<CreateIntegrationError> for Fault {
    fn from(error: CreateIntegrationError) -> Self {
        match error {
            CreateIntegrationError::Administrator(error) => error.into(),
            CreateIntegrationError::Principal(_) => Self::invalid_token(),
            CreateIntegrationError::Fields(errors) => Self::fields(errors),
            CreateIntegrationError::NameTaken => {
                Self::conflict("Another integration of the organization has this name.")
            }
            CreateIntegrationError::Entropy(error) => Self::internal().caused_by(Chain(&error)),
            CreateIntegrationError::Store(error) => error.into(),
        }
    }
}

impl From<ChangeIntegrationError> for Fault {
    fn from(error: ChangeIntegrationError) -> Self {
        match error {
            ChangeIntegrationError::Administrator(error) => error.into(),
            ChangeIntegrationError::Principal(_) => Self::invalid_token(),
            ChangeIntegrationError::NotFound => Self::not_found(),
            ChangeIntegrationError::Contended => Self::unavailable(BUSY_RETRY),
            ChangeIntegrationError::Entropy(error) => Self::internal().caused_by(Chain(&error)),
            ChangeIntegrationError::Store(error) => error.into(),
            ChangeIntegrationError::Damaged => Self::internal().caused_by(Chain(&error)),
        }
    }
}
