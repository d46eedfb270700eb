//! A vault on fakes: all operations, without files, databases and ciphers.

use crate::clock::{ManualClock, RecordingEvents, SeededEntropy, SequentialIds};
use crate::contract::Store;
use crate::crypto::{
    FakeAuditSealer, FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainReceivers, PlainSealer,
};
use crate::memory::MemoryStore;
use std::sync::Arc;
use vault_core::audit::Origin;
use vault_core::id::InstanceId;
use vault_core::port::EventCarrier;
use vault_core::usecase::{
    AccountPorts, Accounts, Activations, AuditTally, Environment, Integrations, Notifier, Operator, Receivers, Vault,
};

/// A vault with a store in memory, a fixed clock, and crypto without any security. It has the same
/// interface as an open vault of `vault-embed`.
///
/// ```
/// use vault_core::credential::{CredentialData, CredentialType, DataPolicy};
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
/// let data = CredentialData::from_json(CredentialType::DirectLink, body, DataPolicy::default())?;
/// let id = opened.vault().save(&who, NewCredential::new("imports/nightly".parse()?, data)).await?;
/// let page = opened.vault().list(&who, Default::default(), Default::default()).await?;
/// assert_eq!(page.items[0].id, id);
/// # Ok::<(), vault_core::Error>(())
/// # }).unwrap();
/// ```
pub struct FakeVault {
    /// The store.
    pub store: Arc<MemoryStore>,
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
        let ports: Arc<dyn Store> = wrap(Arc::clone(&store));
        let (clock, ids) = (Arc::new(ManualClock::default()), Arc::new(SequentialIds::default()));
        let events = Arc::new(RecordingEvents::default());
        let environment = Environment {
            clock: clock.clone(),
            ids: ids.clone(),
            events: events.clone(),
            audit: Arc::new(FakeAuditSealer),
            origin: Origin::default(),
        };
        let tally = Arc::new(AuditTally::new(environment.clone(), ports.clone()));
        let sealer = Arc::new(PlainSealer::new(ports.clone(), ids.clone()));
        Self { store, clock, ids, events, environment, tally, sealer, ports }
    }

    /// Returns the use cases of credentials.
    pub fn vault(&self) -> Vault {
        let (sealer, digester) = (self.sealer.clone(), Arc::new(FakeDigester::default()));
        Vault::new(self.environment.clone(), self.tally.clone(), self.ports.clone(), sealer.clone(), sealer, digester)
    }

    /// Returns the use cases of operators: organizations and maintenance.
    pub fn operator(&self) -> Operator {
        Operator::new(self.environment.clone(), self.tally.clone(), self.ports.clone(), self.sealer.clone())
    }

    /// Returns the use cases of accounts: logins, enrolment and changes.
    pub fn accounts(&self) -> Accounts {
        let digester = Arc::new(FakeDigester::default());
        let ports = AccountPorts {
            environment: self.environment.clone(),
            tally: self.tally.clone(),
            store: self.ports.clone(),
            hasher: Arc::new(FakeHasher::default()),
            passcodes: Arc::new(FakePasscodes::new(self.ids.clone())),
            tokens: Arc::new(FakeTokens::new(Self::INSTANCE)),
            digester,
            entropy: Arc::new(SeededEntropy::default()),
        };
        Accounts::new(Self::INSTANCE, ports)
    }

    /// Returns the administration of integrations and namespaces.
    pub fn integrations(&self) -> Integrations {
        let (entropy, digester) = (Arc::new(SeededEntropy::default()), Arc::new(FakeDigester::default()));
        Integrations::new(self.environment.clone(), self.ports.clone(), entropy, digester)
    }

    /// Returns the administration of receivers.
    pub fn receivers(&self) -> Receivers {
        let digester = Arc::new(FakeDigester::default());
        Receivers::new(self.environment.clone(), self.ports.clone(), Arc::new(PlainReceivers), digester)
    }

    /// Returns the notifier, which reads events and delivers them to receivers through `carrier`.
    pub fn notifier(&self, carrier: Arc<dyn EventCarrier>) -> Notifier {
        let digester = Arc::new(FakeDigester::default());
        Notifier::new(self.environment.clone(), self.ports.clone(), Arc::new(PlainReceivers), carrier, digester)
    }

    /// Returns the use cases of integrations.
    pub fn activations(&self) -> Activations {
        let (opener, digester) = (self.sealer.clone(), Arc::new(FakeDigester::default()));
        Activations::new(self.environment.clone(), self.tally.clone(), self.ports.clone(), opener, digester)
    }
}
