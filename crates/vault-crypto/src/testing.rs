//! Fakes for this crate's tests.

use crate::audit::HmacAuditSealer;
use crate::credential::CredentialPorts;
use crate::key::SymmetricKey;
use crate::keyring::{Keyring, NewInstance};
use crate::root_key::RootKeyFile;
use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use uuid::Uuid;
use vault_core::id::{InstanceId, KeyId, OrganizationId};
use vault_core::port::{
    Clock, CreateInstance, Entropy, Event, EventSink, IdGenerator, KeyRepository, NoEntropy, ReplaceOrganizationKey,
    StoreError, TakeKeyUses,
};
use vault_core::sealed::{InstanceKeyRecord, InstanceRecord, KeyState, OrganizationKeys};
use vault_core::time::Timestamp;

/// The same bytes in every run, never the same twice within one.
#[derive(Default)]
pub(crate) struct SameEntropy(AtomicU64);

impl Entropy for SameEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        for chunk in bytes.chunks_mut(32) {
            let block = Sha256::digest(self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes());
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
        Ok(())
    }
}

/// None at all.
pub(crate) struct NoEntropyLeft;

impl Entropy for NoEntropyLeft {
    fn fill(&self, _: &mut [u8]) -> Result<(), NoEntropy> {
        Err(NoEntropy)
    }
}

pub(crate) fn entropy() -> Arc<dyn Entropy> {
    Arc::new(SameEntropy::default())
}

pub(crate) fn key(first: u8) -> SymmetricKey {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(first..).for_each(|(byte, value)| *byte = value);
    SymmetricKey::take(&mut bytes)
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub(crate) fn key_id(number: u128) -> KeyId {
    KeyId::from_uuid(id(number))
}

/// 2026-11-20T12:00:00Z
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_176_000_000);

/// The time is what it is set to.
pub(crate) struct SetClock(pub(crate) AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Default)]
struct CountingIds(AtomicU64);

impl IdGenerator for CountingIds {
    fn ordered(&self, _: Timestamp) -> Uuid {
        id(u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }

    fn random(&self) -> Uuid {
        self.ordered(NOW)
    }
}

#[derive(Default)]
pub(crate) struct Events(pub(crate) Mutex<Vec<Event>>);

impl EventSink for Events {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// Organization keys in memory.
#[derive(Default)]
pub(crate) struct Keys {
    pub(crate) rows: Mutex<HashMap<OrganizationId, OrganizationKeys>>,
    pub(crate) reads: AtomicU64,
    pub(crate) audits: Mutex<Vec<vault_core::audit::SealedAuditRecord>>,
    pub(crate) refuses_to_replace: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl KeyRepository for Keys {
    async fn instance(&self) -> Result<Option<InstanceRecord>, StoreError> {
        Ok(None)
    }

    async fn create_instance(&self, _: CreateInstance) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn instance_keys(&self) -> Result<Vec<InstanceKeyRecord>, StoreError> {
        Ok(Vec::new())
    }

    async fn organization_keys(&self, organization: OrganizationId) -> Result<Option<OrganizationKeys>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Ok(self.rows.lock().unwrap().get(&organization).cloned())
    }

    async fn take_key_uses(&self, command: TakeKeyUses) -> Result<bool, StoreError> {
        tokio::task::yield_now().await;
        let mut rows = self.rows.lock().unwrap();
        let Some(keys) = rows.get_mut(&command.organization) else { return Ok(false) };
        let row = keys.keys.iter_mut().find(|row| row.id == command.key && row.state == KeyState::Active);
        match row {
            Some(row) if row.uses == command.from => {
                row.uses += command.block;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn replace_organization_key(&self, command: ReplaceOrganizationKey) -> Result<bool, StoreError> {
        if self.refuses_to_replace.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("refused".into()));
        }
        tokio::task::yield_now().await;
        let mut rows = self.rows.lock().unwrap();
        let Some(keys) = rows.get_mut(&command.next.organization) else { return Ok(false) };
        match keys.keys.iter_mut().find(|row| row.id == command.current && row.state == KeyState::Active) {
            Some(row) => row.state = KeyState::Retiring,
            None => return Ok(false),
        }
        keys.keys.push(command.next);
        self.audits.lock().unwrap().push(command.audit);
        Ok(true)
    }
}

/// A root key in a scratch directory.
pub(crate) fn root() -> (tempfile::TempDir, RootKeyFile) {
    let directory = tempfile::tempdir().unwrap();
    let root = RootKeyFile::generate(&directory.path().join("root.key"), entropy()).unwrap();
    (directory, root)
}

pub(crate) async fn new_instance(root: &RootKeyFile) -> NewInstance {
    Keyring::create(root, entropy(), InstanceId::from_uuid(id(1)), NOW).await.unwrap()
}

/// Everything that sealing credentials takes.
pub(crate) struct Bench {
    pub(crate) keys: Arc<Keys>,
    pub(crate) events: Arc<Events>,
    pub(crate) audit: Arc<HmacAuditSealer>,
    pub(crate) keyring: Keyring,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let (_directory, root) = root();
        let keyring = new_instance(&root).await.keyring;
        Self { keys: Arc::default(), events: Arc::default(), audit: Arc::new(keyring.audit_sealer()), keyring }
    }

    pub(crate) fn ports(&self) -> CredentialPorts {
        CredentialPorts {
            repository: Arc::clone(&self.keys) as _,
            audit: Arc::clone(&self.audit) as _,
            clock: Arc::new(SetClock(NOW.as_millis().into())),
            ids: Arc::new(CountingIds::default()),
            events: Arc::clone(&self.events) as _,
        }
    }
}
