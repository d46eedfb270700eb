//! Use cases with fake ports.

use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::id::InstanceId;
use vault_core::port::{CredentialStore, StorageProbe};
use vault_core::usecase::{
    AccountPorts, Accounts, Activations, AuditReader, AuditTally, Environment, Integrations, Receivers, Vault,
};
use vault_http::{ActivationParts, Readiness, ServerParts};
use vault_testkit::clock::SeededEntropy;
use vault_testkit::crypto::{FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainReceivers, PlainSealer};
use vault_testkit::memory::MemoryStore;
use vault_testkit::storage::FakeStorage;

/// The ports of the use cases.
pub(crate) struct Fakes {
    pub(super) runtime: Handle,
    pub(super) instance: InstanceId,
    pub(super) environment: Environment,
    pub(super) tally: Arc<AuditTally>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) credentials: Arc<dyn CredentialStore>,
    pub(super) limit: i64,
    pub(crate) hasher: Arc<FakeHasher>,
    pub(super) passcodes: Arc<FakePasscodes>,
    pub(super) digester: Arc<FakeDigester>,
    pub(super) sealer: Arc<PlainSealer>,
    pub(super) tokens: Arc<FakeTokens>,
    pub(super) entropy: Arc<SeededEntropy>,
    pub(super) storage: Arc<FakeStorage>,
    /// Whether a save may request a check.
    pub(super) verifies: bool,
}

impl Fakes {
    pub(super) fn parts(&self) -> ServerParts {
        let environment = &self.environment;
        ServerParts {
            runtime: self.runtime.clone(),
            vault: Vault::new(
                environment.clone(),
                self.tally.clone(),
                self.credentials.clone(),
                self.sealer.clone(),
                self.sealer.clone(),
                self.digester.clone(),
            )
            .limit(self.limit)
            .probe(self.verifies.then(|| self.storage.clone() as Arc<dyn StorageProbe>)),
            accounts: self.accounts(),
            integrations: self.integrations(),
            receivers: Receivers::new(
                environment.clone(),
                self.store.clone(),
                Arc::new(PlainReceivers),
                self.digester.clone(),
            ),
            audit: AuditReader::new(environment.clone(), self.tally.clone(), self.store.clone(), self.digester.clone()),
            federation: None,
            ids: environment.ids.clone(),
            readiness: Readiness::new(|| std::future::ready(Ok(()))),
        }
    }

    pub(super) fn integrations(&self) -> Integrations {
        let (entropy, digester) = (self.entropy.clone(), self.digester.clone());
        Integrations::new(self.environment.clone(), self.store.clone(), entropy, digester)
    }

    pub(crate) fn activation(&self) -> ActivationParts {
        let (store, opener, digester) = (self.store.clone(), self.sealer.clone(), self.digester.clone());
        ActivationParts {
            runtime: self.runtime.clone(),
            activations: Activations::new(self.environment.clone(), self.tally.clone(), store, opener, digester)
                .vendor(Some(self.storage.clone()))
                .probe(Some(self.storage.clone()))
                .trust(Some(self.storage.clone())),
            ids: self.environment.ids.clone(),
            readiness: Readiness::new(|| std::future::ready(Ok(()))),
        }
    }

    /// Logins and sessions, accounts and invitations.
    pub(super) fn accounts(&self) -> Accounts {
        self.accounts_in(self.environment.clone())
    }

    /// The same in another environment.
    pub(super) fn accounts_in(&self, environment: Environment) -> Accounts {
        let ports = AccountPorts {
            environment,
            tally: self.tally.clone(),
            store: self.store.clone(),
            hasher: self.hasher.clone(),
            passcodes: self.passcodes.clone(),
            tokens: self.tokens.clone(),
            digester: self.digester.clone(),
            entropy: self.entropy.clone(),
        };
        Accounts::new(self.instance, ports)
    }
}
