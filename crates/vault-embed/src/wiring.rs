//! Creates the contexts of all operations from the ports of an open vault.
//!
//! The opener, which decrypts credential data, is an argument of the contexts that require it, because an [`OpenVault`]
//! does not contain it.

use crate::vault::OpenVault;
use std::sync::Arc;
use vault_core::port::{EventCarrier, Opener};
use vault_core::usecase::{
    Accounts, Activations, AuditReader, Federation, Inspector, Integrations, Keys, Notifier, Operator, Receivers, Vault,
};
use vault_crypto::FederationKeys;
use vault_diesel::Store;

/// Number of rows that one transaction of a rotation moves on PostgreSQL.
const POSTGRES_BATCH: usize = 64;

/// Credentials.
impl OpenVault {
    /// Returns the context to save, list, show and delete credentials, with the default limit and without a probe.
    pub fn vault(&self) -> Vault {
        let ports = &self.ports;
        Vault::new(ports.environment.clone(), self.tally.clone(), ports.operations.clone())
    }
}

/// Operators.
impl OpenVault {
    /// Returns the context to create and change organizations, and to maintain the store.
    pub fn operator(&self) -> Operator {
        let ports = &self.ports;
        Operator::new(ports.environment.clone(), self.tally.clone(), ports.operations.clone())
    }
}

/// Audit log.
impl OpenVault {
    /// Returns the context to read the audit log, for admins and operators.
    pub fn audit_reader(&self) -> AuditReader {
        let ports = &self.ports;
        let digester = ports.operations.ports.digester.clone();
        AuditReader::new(ports.environment.clone(), self.tally.clone(), ports.operations.clone(), digester)
    }
}

/// Keys.
impl OpenVault {
    /// Returns the context to show keys, and to rotate the instance key and those of organizations.
    pub fn keys(&self) -> Keys {
        let ports = &self.ports;
        let keys = Keys::new(
            ports.environment.clone(),
            ports.store.keys.clone(),
            ports.operations.clone(),
            ports.instance_rewrapper.clone(),
        );
        match self.adapter {
            Store::Sqlite(_) => keys,
            // Each row is locked until the transaction ends, and activations of it have to wait.
            Store::Postgres(_) => keys.batch(POSTGRES_BATCH),
        }
    }
}

/// Integrity checks. With the opener of [`Opening::with_opener`](crate::Opening::with_opener), credential data is also
/// decrypted, and dropped.
impl OpenVault {
    /// Returns the integrity check, which finds stored rows that are damaged or were changed outside the service.
    pub fn inspector(&self, opener: Option<Arc<dyn Opener>>) -> Inspector {
        let ports = &self.ports;
        Inspector::new(ports.environment.clone(), ports.operations.clone(), opener)
    }
}

/// Receivers of notifications.
impl OpenVault {
    /// Returns the context for the administration of receivers by admins and operators.
    pub fn receivers(&self) -> Receivers {
        let ports = &self.ports;
        Receivers::new(ports.environment.clone(), ports.operations.clone(), ports.entropy.clone())
    }

    /// Returns the notifier, which reads events and delivers them to receivers through `carrier`.
    pub fn notifier(&self, carrier: Arc<dyn EventCarrier>) -> Notifier {
        let ports = &self.ports;
        Notifier::new(ports.environment.clone(), carrier, ports.operations.clone())
    }
}

/// Signing keys of federation tokens.
impl OpenVault {
    /// Returns the context of operators and servers for signing keys.
    pub fn federation(&self) -> Federation {
        Federation::new(self.ports.environment.clone(), self.ports.operations.clone(), Arc::new(FederationKeys))
    }
}

/// Accounts.
impl OpenVault {
    /// Returns the context for logins, enrolments, and changes of accounts, with the highest maximum lifetime of
    /// sessions.
    pub fn accounts(&self) -> Accounts {
        self.accounts.clone()
    }
}

/// Integrations and activations. Only [`OpenVault::activations`] decrypts credentials, with the opener that is passed
/// to it.
impl OpenVault {
    /// Returns the context for the administration of integrations and namespaces by admins and operators.
    pub fn integrations(&self) -> Integrations {
        let ports = &self.ports;
        Integrations::new(ports.environment.clone(), ports.operations.clone(), ports.entropy.clone())
    }

    /// Returns the context for operations of integrations. It issues no short-lived credentials and runs no checks with
    /// storages, unless the required ports are set.
    pub fn activations(&self, opener: Arc<dyn Opener>) -> Activations {
        let ports = &self.ports;
        Activations::new(ports.environment.clone(), self.tally.clone(), ports.operations.clone(), opener)
    }
}
