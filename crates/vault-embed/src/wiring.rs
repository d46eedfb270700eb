//! Every operation, made of the ports of an open vault: the one place where they are put together.
//!
//! What opens the data of credentials is an argument of those that need it: an [`OpenVault`] has none to give.

use crate::vault::OpenVault;
use std::sync::Arc;
use vault_core::port::{CredentialVendor, Opener, StorageProbe};
use vault_core::usecase::{
    Accounts, Activate, AuthenticateIntegration, ChangeIntegrationUseCase, CheckNamespace, CreateIntegrationUseCase,
    FreezeNamespaceUseCase, ListIntegrationsUseCase, OpenNamespace, Operator, OwnActivations, Vault,
};

/// Credentials.
impl OpenVault {
    /// Saves, lists, shows and deletes credentials, with the default limit and without a probe.
    pub fn vault(&self) -> Vault {
        let ports = &self.ports;
        Vault::new(
            ports.ambient.clone(),
            self.tally.clone(),
            ports.store.credentials.clone(),
            ports.sealer.clone(),
            ports.information_opener.clone(),
            ports.digester.clone(),
        )
    }
}

/// Operators.
impl OpenVault {
    /// Creates and changes organizations, and keeps the store small.
    pub fn operator(&self) -> Operator {
        let ports = &self.ports;
        Operator::new(ports.ambient.clone(), self.tally.clone(), ports.store.operator.clone(), ports.sealer.clone())
    }
}

/// Accounts.
impl OpenVault {
    /// Logs in and out, enrols, and shows and changes accounts, with the longest lifetime of sessions that there is.
    pub fn accounts(&self) -> Accounts {
        self.accounts.clone()
    }
}

/// Integrations and their namespaces.
impl OpenVault {
    /// Creates integrations.
    pub fn create_integration(&self) -> CreateIntegrationUseCase {
        let ports = &self.ports;
        CreateIntegrationUseCase {
            ambient: ports.ambient.clone(),
            entropy: ports.entropy.clone(),
            digester: ports.digester.clone(),
            organizations: ports.store.organizations.clone(),
            integrations: ports.store.integrations.clone(),
        }
    }

    /// Changes, rotates and deletes integrations.
    pub fn change_integration(&self) -> ChangeIntegrationUseCase {
        let ports = &self.ports;
        ChangeIntegrationUseCase {
            ambient: ports.ambient.clone(),
            entropy: ports.entropy.clone(),
            digester: ports.digester.clone(),
            organizations: ports.store.organizations.clone(),
            integrations: ports.store.integrations.clone(),
        }
    }

    /// Lists integrations.
    pub fn list_integrations(&self) -> ListIntegrationsUseCase {
        ListIntegrationsUseCase::new(self.ports.ambient.clone(), self.ports.store.integrations.clone())
    }

    /// Freezes and thaws namespaces.
    pub fn freeze_namespace(&self) -> FreezeNamespaceUseCase {
        let ports = &self.ports;
        FreezeNamespaceUseCase::new(
            ports.ambient.clone(),
            ports.store.organizations.clone(),
            ports.store.freezes.clone(),
        )
    }
}

/// Activations. Only [`OpenVault::activate`] and [`OpenVault::check_namespace`] open credentials, with the opener that they
/// are given.
impl OpenVault {
    /// Verifies integration tokens.
    pub fn authenticate_integration(&self) -> AuthenticateIntegration {
        AuthenticateIntegration::new(
            self.ports.ambient.clone(),
            self.tally.clone(),
            self.ports.digester.clone(),
            self.ports.store.integrations.clone(),
        )
    }

    /// Activates namespaces; an integration has at most `live_limit` live activations.
    pub fn activate(
        &self,
        opener: Arc<dyn Opener>,
        live_limit: i64,
        vendor: Option<Arc<dyn CredentialVendor>>,
    ) -> Activate {
        Activate { live_limit, open: self.open_namespace(opener), vendor }
    }

    /// Checks the credentials of a namespace against their storage.
    pub fn check_namespace(&self, opener: Arc<dyn Opener>, probe: Option<Arc<dyn StorageProbe>>) -> CheckNamespace {
        CheckNamespace { open: self.open_namespace(opener), probe }
    }

    /// Lists and ends an integration's own activations.
    pub fn own_activations(&self, vendor: Option<Arc<dyn CredentialVendor>>) -> OwnActivations {
        OwnActivations {
            ambient: self.ports.ambient.clone(),
            authenticate: self.authenticate_integration(),
            activations: self.ports.store.activations.clone(),
            vendor,
        }
    }

    fn open_namespace(&self, opener: Arc<dyn Opener>) -> OpenNamespace {
        OpenNamespace {
            ambient: self.ports.ambient.clone(),
            authenticate: self.authenticate_integration(),
            activations: self.ports.store.activations.clone(),
            opener,
            log: self.ports.store.audit.clone(),
        }
    }
}
