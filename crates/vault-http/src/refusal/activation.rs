//! The errors of what integrations ask for.

use crate::fault::Fault;
use vault_api::ProblemCode;
use vault_core::port::SealError;
use vault_core::usecase::{ActivateError, AuthenticateIntegrationError, OpenNamespaceError, OwnActivationsError};

impl From<AuthenticateIntegrationError> for Fault {
    fn from(error: AuthenticateIntegrationError) -> Self {
        match error {
            AuthenticateIntegrationError::Invalid(refusal) => {
                tracing::debug!(reason = refusal.as_str(), "integration token refused");
                Self::invalid_integration_token()
            }
            AuthenticateIntegrationError::Store(error) => error.into(),
        }
    }
}

impl From<OpenNamespaceError> for Fault {
    fn from(error: OpenNamespaceError) -> Self {
        match error {
            OpenNamespaceError::Principal(_) => Self::invalid_integration_token(),
            OpenNamespaceError::NotAllowed => Self::namespace_not_allowed(),
            OpenNamespaceError::Frozen => {
                Self::new(ProblemCode::Frozen, "Nothing of it is opened until an operator thaws it.")
            }
            OpenNamespaceError::NotFound => {
                Self::new(ProblemCode::NotFound, "The namespace holds no credentials; names are compared exactly.")
            }
            OpenNamespaceError::TooLarge => {
                let detail = "It holds more than 100 credentials, so none was opened. Spread them over several.";
                Self::new(ProblemCode::NamespaceTooLarge, detail)
            }
            OpenNamespaceError::TooManyLive => Self::too_many_live(),
            // The organization went away with its keys while the token was on its way.
            OpenNamespaceError::Seal(SealError::NoKeys) => Self::invalid_integration_token(),
            OpenNamespaceError::Seal(error) => error.into(),
            OpenNamespaceError::Store(error) => error.into(),
        }
    }
}

impl From<ActivateError> for Fault {
    fn from(error: ActivateError) -> Self {
        match error {
            ActivateError::Open(error) => error.into(),
            ActivateError::NotVended { credential, reason } => {
                let remedy = reason.remedy();
                let detail = format!("No short-lived credential for {credential} ({reason}). {remedy}");
                Self::new(ProblemCode::Conflict, detail)
            }
        }
    }
}

impl From<OwnActivationsError> for Fault {
    fn from(error: OwnActivationsError) -> Self {
        match error {
            OwnActivationsError::Principal(_) => Self::invalid_integration_token(),
            OwnActivationsError::NotFound => Self::not_found(),
            OwnActivationsError::Store(error) => error.into(),
        }
    }
}
