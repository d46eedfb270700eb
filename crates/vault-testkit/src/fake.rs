//! A vault on fakes: all operations, without files, databases and ciphers.

use crate::clock::{ManualClock, RecordingEvents, SeededEntropy, SequentialIds};
use crate::contract::Store;
use crate::crypto::{FakeAuditSealer, FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainSealer};
use crate::memory::MemoryStore;
use std::sync::Arc;
use vault_core::Error;
use vault_core::audit::Origin;
use vault_core::id::InstanceId;
use vault_core::operation::{Operation, Operations};
use vault_core::port::EventCarrier;
use vault_core::principal::Principal;
use vault_core::usecase::{
    AccountPorts, Accounts, Activations, AuditReader, AuditTally, Environment, Integrations, Notifier, Operator,
    Receivers, Vault,
};

/// A vault with a store in memory, a fixed clock, and crypto without any security. It has the same
/// interface as an open vault of `vault-embed`. [`FakeVault::on`] uses another store.
///
/// All use cases of a vault share its fakes. A use case that is created after a field was replaced uses the new one.
///
/// ```
/// use vault_core::credential::{CredentialData, CredentialType};
/// use vault_core::id::AccountId;
/// use vault_core::principal::Principal;
/// use vault_core::role::Role;
/// use vault_core::usecase::NewCredential;
/// use vault_testkit::fake::FakeVault;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let opened = FakeVault::new();
/// let acme = opened.operator().ensure_organization("acme").await?;
/// let who = Principal::embedder(acme.id, AccountId::from_bytes([1; 16]), Role::Editor);
/// let body = br#"{"url":"https://files.example/nightly.bin"}"#;
/// let data = CredentialData::from_json(CredentialType::DirectLink, body)?;
/// let id = opened.vault().save(&who, NewCredential::new("imports/nightly".parse()?, data)).await?;
/// let page = opened.vault().list(&who, Default::default(), Default::default()).await?;
/// assert_eq!(page.items[0].id, id);
/// # Ok::<(), vault_core::Error>(())
/// # }).unwrap();
/// ```
pub struct FakeVault<S = MemoryStore> {
    /// The store.
    pub store: Arc<S>,
    /// The clock.
    pub clock: Arc<ManualClock>,
    /// The source of IDs.
    pub ids: Arc<SequentialIds>,
    /// The emitted events.
    pub events: Arc<RecordingEvents>,
    /// Clock, IDs, events and audit MACs.
    pub environment: Environment,
    /// The counters of the audit log.
    pub tally: Arc<AuditTally>,
    /// Seals and unseals credentials.
    pub sealer: Arc<PlainSealer>,
    /// Computes lookup digests and MACs of rows.
    pub digester: Arc<FakeDigester>,
    /// Hashes passwords.
    pub hasher: Arc<FakeHasher>,
    /// Creates and verifies passcodes.
    pub passcodes: Arc<FakePasscodes>,
    /// Issues access tokens.
    pub tokens: Arc<FakeTokens>,
    /// Randomness of tokens, enrolment codes and generated passwords.
    pub entropy: Arc<SeededEntropy>,
    ports: Arc<dyn Store>,
}

impl Default for FakeVault {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeVault {
    /// The instance ID of the fake.
    pub const INSTANCE: InstanceId = InstanceId::from_bytes([1; 16]);

    /// Creates an empty vault.
    pub fn new() -> Self {
        Self::through(|store| store)
    }

    /// Creates an empty vault whose operations access its store through another one, for example a
    /// [`Faulty`](crate::faulty::Faulty) one.
    pub fn through<S: Store>(wrap: impl FnOnce(Arc<MemoryStore>) -> Arc<S>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let ports = wrap(Arc::clone(&store));
        Self::with_ports(store, ports)
    }
}

impl<S: Store> FakeVault<S> {
    /// Creates a vault on `store`, for example one on a database.
    pub fn on(store: Arc<S>) -> Self {
        let ports = Arc::clone(&store);
        Self::with_ports(store, ports)
    }
}

impl<S> FakeVault<S> {
    fn with_ports(store: Arc<S>, ports: Arc<dyn Store>) -> Self {
        let (clock, ids) = (Arc::new(ManualClock::default()), Arc::new(SequentialIds::default()));
        let events = Arc::new(RecordingEvents::default());
        let environment = Environment {
            clock: clock.clone(),
            ids: ids.clone(),
            events: events.clone(),
            audit: Arc::new(FakeAuditSealer),
            awaited: Arc::default(),
            origin: Origin::default(),
        };
        let (sealer, digester) = (Arc::new(PlainSealer::new(ids.clone())), Arc::new(FakeDigester::default()));
        let operations = Operations::new(ports.clone(), digester.clone(), sealer.clone(), digester.clone());
        Self {
            tally: Arc::new(AuditTally::new(environment.clone(), operations)),
            sealer,
            digester,
            hasher: Arc::new(FakeHasher::default()),
            passcodes: Arc::new(FakePasscodes::new(ids.clone())),
            tokens: Arc::new(FakeTokens::new(FakeVault::INSTANCE)),
            entropy: Arc::new(SeededEntropy::default()),
            store,
            clock,
            ids,
            events,
            environment,
            ports,
        }
    }

    /// Returns the use cases of credentials.
    pub fn vault(&self) -> Vault {
        Vault::new(self.environment.clone(), self.tally.clone(), self.operations())
    }

    /// Returns the use cases of operators: organizations and maintenance.
    pub fn operator(&self) -> Operator {
        Operator::new(self.environment.clone(), self.tally.clone(), self.operations())
    }

    /// Returns the use cases that read the audit log.
    pub fn audit_reader(&self) -> AuditReader {
        let (tally, digester) = (self.tally.clone(), self.digester.clone());
        AuditReader::new(self.environment.clone(), tally, self.operations(), digester)
    }

    /// Returns the use cases of accounts: logins, enrolment and changes.
    pub fn accounts(&self) -> Accounts {
        Accounts::new(FakeVault::INSTANCE, self.account_ports())
    }

    /// Returns the ports of [`FakeVault::accounts`], for tests that replace some of them.
    pub fn account_ports(&self) -> AccountPorts {
        AccountPorts {
            environment: self.environment.clone(),
            tally: self.tally.clone(),
            operations: self.operations(),
            hasher: self.hasher.clone(),
            passcodes: self.passcodes.clone(),
            tokens: self.tokens.clone(),
            digester: self.digester.clone(),
            entropy: self.entropy.clone(),
        }
    }

    /// Returns the administration of integrations and namespaces.
    pub fn integrations(&self) -> Integrations {
        Integrations::new(self.environment.clone(), self.operations(), self.entropy.clone())
    }

    /// Returns what runs operations on the store.
    pub fn operations(&self) -> Operations {
        let (documents, credentials) = (self.digester.clone(), self.sealer.clone());
        Operations::new(self.ports.clone(), documents, credentials, self.digester.clone())
    }

    /// Runs an operation of the operator.
    ///
    /// # Errors
    /// Those of the operation.
    pub async fn operate<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations().run(&self.environment, &Principal::Operator, operation).await
    }

    /// Returns the administration of receivers.
    pub fn receivers(&self) -> Receivers {
        Receivers::new(self.environment.clone(), self.operations(), self.entropy.clone())
    }

    /// Returns the notifier, which reads events and delivers them to receivers through `carrier`.
    pub fn notifier(&self, carrier: Arc<dyn EventCarrier>) -> Notifier {
        Notifier::new(self.environment.clone(), carrier, self.operations())
    }

    /// Returns the use cases of integrations.
    pub fn activations(&self) -> Activations {
        Activations::new(self.environment.clone(), self.tally.clone(), self.operations(), self.sealer.clone())
    }
}
