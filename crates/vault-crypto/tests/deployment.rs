//! Processes of one deployment: real keys over a store in memory.

use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, Origin, Subject};
use vault_core::id::InstanceId;
use vault_core::operation::Operations;
use vault_core::port::{Clock as _, CreateInstance, KeyRepository as _, KeyedDigester};
use vault_core::usecase::{
    AccountPorts, Accounts, AuditTally, Environment, Inspector, Integrations, Keys, Operator, Vault,
};
use vault_crypto::{Argon2Parameters, HashingPool, Keyring, LoadedRootKey, OsEntropy};
use vault_testkit::clock::{ManualClock, RecordingEvents, SequentialIds};
use vault_testkit::memory::MemoryStore;

/// What all processes of a deployment share.
pub(crate) struct Deployment {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ids: Arc<SequentialIds>,
    pub(crate) events: Arc<RecordingEvents>,
    root: Arc<LoadedRootKey>,
    pool: Arc<HashingPool>,
    _directory: tempfile::TempDir,
}

/// One process, with the keys that there were when it was started.
pub(crate) struct Process {
    pub(crate) environment: Environment,
    pub(crate) digester: Arc<dyn KeyedDigester>,
    pub(crate) operations: Operations,
    pub(crate) accounts: Accounts,
    pub(crate) integrations: Integrations,
    pub(crate) keys: Keys,
    pub(crate) operator: Operator,
    pub(crate) inspector: Inspector,
    pub(crate) vault: Vault,
}

impl Deployment {
    /// Creates an instance without organizations, with the IDs of `seed`.
    pub(crate) async fn seeded(seed: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = LoadedRootKey::generate(&directory.path().join("root.key"), Arc::new(OsEntropy)).unwrap();
        let deployment = Self {
            store: Arc::new(MemoryStore::new()),
            clock: Arc::new(ManualClock::default()),
            ids: Arc::new(SequentialIds::seeded(seed)),
            events: Arc::new(RecordingEvents::default()),
            root: Arc::new(root),
            pool: HashingPool::with_size(2, 64).unwrap(),
            _directory: directory,
        };
        let (now, id) = (deployment.clock.now(), InstanceId::from_bytes([1; 16]));
        let created = Keyring::create(&deployment.root, Arc::new(OsEntropy), id, now).unwrap();
        let environment = deployment.environment(&created.keyring);
        let audit = environment.record(now, None, Actor::Operator, AuditAction::InstanceCreated, Subject::Instance);
        let command = CreateInstance { instance: created.instance, audit };
        assert!(deployment.store.create_instance(command).await.unwrap());
        deployment
    }

    fn environment(&self, keyring: &Keyring) -> Environment {
        Environment {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            events: self.events.clone(),
            audit: Arc::new(keyring.audit_sealer()),
            awaited: Arc::default(),
            origin: Origin::default(),
        }
    }

    pub(crate) async fn open(&self) -> Keyring {
        let store = &self.store;
        let record = store.instance().await.unwrap().unwrap();
        Keyring::open(&self.root, Arc::new(OsEntropy), &record).unwrap()
    }

    pub(crate) async fn start(&self) -> Process {
        let (store, entropy) = (&self.store, Arc::new(OsEntropy));
        let keyring = self.open().await;
        keyring.renewing(self.root.clone(), store.clone());
        let environment = self.environment(&keyring);
        let digester = Arc::new(keyring.digester(environment.clock.clone()));
        let hasher = keyring.password_hasher(self.pool.clone(), Argon2Parameters::LEAST, Vec::new()).unwrap();
        let (crypto, documents) = (keyring.credentials(), Arc::new(keyring.entity_sealer()));
        let operations = Operations::new(store.clone(), documents, crypto.sealer, digester.clone());
        let tally = Arc::new(AuditTally::new(environment.clone(), operations.clone()));
        let ports = AccountPorts {
            environment: environment.clone(),
            tally: tally.clone(),
            operations: operations.clone(),
            hasher: Arc::new(hasher),
            passcodes: Arc::new(keyring.passcodes()),
            tokens: Arc::new(keyring.token_issuer(0)),
            digester: digester.clone(),
            entropy: entropy.clone(),
        };
        let rewrapper = Arc::new(keyring.instance_rewrapper());
        Process {
            inspector: Inspector::new(environment.clone(), operations.clone(), Some(crypto.opener)),
            accounts: Accounts::new(keyring.instance(), ports),
            integrations: Integrations::new(environment.clone(), operations.clone(), entropy),
            keys: Keys::new(environment.clone(), store.clone(), operations.clone(), rewrapper).batch(1),
            vault: Vault::new(environment.clone(), tally.clone(), operations.clone()),
            operator: Operator::new(environment.clone(), tally, operations.clone()),
            operations,
            environment,
            digester,
        }
    }
}
