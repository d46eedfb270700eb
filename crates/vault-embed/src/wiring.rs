//! Every operation, made of the ports of an open vault: the one place where they are put together.
//!
//! What opens the data of credentials is an argument of those that need it: an [`OpenVault`] has none to give.

use crate::vault::OpenVault;
use std::sync::Arc;
use vault_core::port::{EventCarrier, Opener};
use vault_core::usecase::{
    Accounts, Activations, AuditReader, InspectionCrypto, Inspector, Integrations, KeyCrypto, Keys, Notifier, Operator,
    Receivers, Vault,
};
use vault_diesel::Store;

/// How many rows of PostgreSQL one transaction of a rotation moves.
const POSTGRES_BATCH: usize = 64;

/// Credentials.
impl OpenVault {
    /// Saves, lists, shows and deletes credentials, with the default limit and without a probe.
    pub fn vault(&self) -> Vault {
        let ports = &self.ports;
        Vault::new(
            ports.environment.clone(),
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
        Operator::new(ports.environment.clone(), self.tally.clone(), ports.store.operator.clone(), ports.sealer.clone())
    }
}

/// The audit.
impl OpenVault {
    /// Reads the audit, as admins and operators do.
    pub fn audit_reader(&self) -> AuditReader {
        let ports = &self.ports;
        let (store, digester) = (ports.store.trail.clone(), ports.digester.clone());
        AuditReader::new(ports.environment.clone(), self.tally.clone(), store, digester)
    }
}

/// Keys.
impl OpenVault {
    /// Shows how the keys stand, and rotates the instance key and those of organizations.
    pub fn keys(&self) -> Keys {
        let ports = &self.ports;
        let crypto = KeyCrypto {
            sealer: ports.sealer.clone(),
            rewrapper: ports.rewrapper.clone(),
            instance_rewrapper: ports.instance_rewrapper.clone(),
            information: ports.information_opener.clone(),
            digester: ports.digester.clone(),
        };
        let keys = Keys::new(ports.environment.clone(), ports.store.rotation.clone(), crypto);
        match self.adapter {
            Store::Sqlite(_) => keys,
            // Each row is held until the transaction ends, and activations of it wait for that.
            Store::Postgres(_) => keys.batch(POSTGRES_BATCH),
        }
    }
}

/// Inspections. With the opener of [`Opening::with_opener`](crate::Opening::with_opener), the data of credentials is opened,
/// too, and dropped.
impl OpenVault {
    /// Finds stored rows that are damaged or were changed by others.
    pub fn inspector(&self, opener: Option<Arc<dyn Opener>>) -> Inspector {
        let ports = &self.ports;
        let crypto = InspectionCrypto {
            information: ports.information_opener.clone(),
            instance: ports.instance_rewrapper.clone(),
            digester: ports.digester.clone(),
            receivers: ports.receiver_opener.clone(),
            opener,
        };
        Inspector::new(ports.environment.clone(), ports.store.inspection.clone(), crypto)
    }
}

/// Receivers of events. What is secret of them is opened by [`OpenVault::notifier`] alone.
impl OpenVault {
    /// Receivers, as admins and operators administer them.
    pub fn receivers(&self) -> Receivers {
        let ports = &self.ports;
        let (store, sealer) = (ports.store.receivers.clone(), ports.receiver_sealer.clone());
        Receivers::new(ports.environment.clone(), store, sealer, ports.digester.clone())
    }

    /// Reads events and delivers them to receivers through `carrier`.
    pub fn notifier(&self, carrier: Arc<dyn EventCarrier>) -> Notifier {
        let ports = &self.ports;
        let (store, opener) = (ports.store.receivers.clone(), ports.receiver_opener.clone());
        Notifier::new(ports.environment.clone(), store, opener, carrier, ports.digester.clone())
    }
}

/// Accounts.
impl OpenVault {
    /// Logs in and out, enrols, and shows and changes accounts, with the longest lifetime of sessions that there is.
    pub fn accounts(&self) -> Accounts {
        self.accounts.clone()
    }
}

/// Integrations and activations. Only [`OpenVault::activations`] opens credentials, with the opener that it is given.
impl OpenVault {
    /// Integrations and namespaces, as admins and operators administer them.
    pub fn integrations(&self) -> Integrations {
        let ports = &self.ports;
        let (entropy, digester) = (ports.entropy.clone(), ports.digester.clone());
        Integrations::new(ports.environment.clone(), ports.store.integrations.clone(), entropy, digester)
    }

    /// What integrations do. It issues nothing short-lived and checks nothing against storages, unless it is given what
    /// does.
    pub fn activations(&self, opener: Arc<dyn Opener>) -> Activations {
        let ports = &self.ports;
        let (store, digester) = (ports.store.activations.clone(), ports.digester.clone());
        Activations::new(ports.environment.clone(), self.tally.clone(), store, opener, digester)
    }
}
