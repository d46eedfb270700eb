//! Uses of organization keys are counted, and a used-up key is replaced.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use vault_core::activation::VendRule;
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::credential::{Card, CardVersion, CredentialData, CredentialType, Information, Metadata};
use vault_core::id::{AccountId, CredentialId, KeyId, OrganizationId, VersionId};
use vault_core::key_use::KeyUseLimits;
use vault_core::namespace::Namespace;
use vault_core::port::*;
use vault_core::principal::{EmbedderPrincipal, Principal};
use vault_core::role::Role;
use vault_core::sealed::{KeyState, OrganizationKeys};
use vault_core::usecase::*;
use vault_testkit::clock::ManualClock;
use vault_testkit::fake::FakeVault;
use vault_testkit::faulty::{Fault, Faulty};
use vault_testkit::memory::MemoryStore;

type Damage = fn(&mut OrganizationKeys);

/// Behaviour of the store with keys. Other tasks run between its calls. It can reject the replacement of a key, and
/// report rows that are not in the store.
#[derive(Default)]
struct Keys {
    reads: AtomicUsize,
    refuses_to_replace: AtomicBool,
    damage: Mutex<Option<Damage>>,
}

impl Keys {
    fn fault(&self, method: &str) -> Option<Fault> {
        match method {
            "organization_keys" => _ = self.reads.fetch_add(1, Ordering::Relaxed),
            "replace_organization_key" if self.refuses_to_replace.load(Ordering::Relaxed) => {
                return Some(Fault::Before(StoreError::Unavailable("refused".into())));
            }
            "reserve_key_uses" | "replace_organization_key" => (),
            _ => return None,
        }
        Some(Fault::Delayed(1))
    }
}

struct Setting {
    fake: FakeVault,
    keys: Arc<Keys>,
    repository: Arc<Faulty<MemoryStore>>,
    limits: KeyUseLimits,
    organization: OrganizationId,
}

impl Deref for Setting {
    type Target = FakeVault;

    fn deref(&self) -> &FakeVault {
        &self.fake
    }
}

impl Setting {
    async fn new(block: i64, replace_at: i64, stop_at: i64) -> Self {
        let fake = FakeVault::new();
        let organization = fake.operator().create_organization("Acme").await.unwrap().id;
        let keys = Arc::new(Keys::default());
        let (faults, damages) = (keys.clone(), keys.clone());
        let repository =
            Faulty::new(fake.store.clone())
                .faults(move |method| faults.fault(method))
                .answering::<Option<OrganizationKeys>>("organization_keys", move |found| {
                    if let (Ok(Some(keys)), Some(damage)) = (found, *damages.damage.lock().unwrap()) {
                        damage(keys);
                    }
                });
        let limits = KeyUseLimits::new(block, replace_at, stop_at);
        Self { fake, keys, repository: Arc::new(repository), limits, organization }
    }

    /// Returns the sealer of one process.
    fn process(&self) -> CountedSealer {
        CountedSealer::new(self.environment.clone(), self.sealer.clone(), self.repository.clone())
            .with_limits(self.limits)
    }

    /// Returns each key's state and number of reserved uses.
    async fn rows(&self) -> Vec<(KeyState, i64)> {
        let keys = self.store.organization_keys(self.organization).await.unwrap().unwrap();
        keys.keys.iter().map(|row| (row.state, row.uses)).collect()
    }

    async fn seal(&self, sealer: &CountedSealer) -> Result<KeyId, SealError> {
        let (organization, credential) = (self.organization, CredentialId::from_bytes([1; 16]));
        let version = CardVersion {
            number: 1,
            id: VersionId::from_bytes([2; 16]),
            created_at: ManualClock::START,
            superseded: None,
            expires_at: None,
            information: Information::from_json("{}".to_owned()).unwrap(),
        };
        let card = Card {
            kind: CredentialType::DirectLink,
            namespace: Namespace::parse("imports", "").unwrap(),
            vend: VendRule::Any,
            highest: 1,
            current: version,
            others: Vec::new(),
            metadata: Metadata::default(),
        };
        Ok(sealer.seal((CardContext { organization, credential, revision: 1 }, &card), None).await?.key)
    }

    fn editor(&self) -> Principal {
        let account = AccountId::from_bytes([2; 16]);
        Principal::Embedder(EmbedderPrincipal { organization: self.organization, account, role: Role::Editor })
    }
}

fn data() -> CredentialData {
    let json = br#"{"url":"https://files.example/a?sig=q11abcdefghijklmnop"}"#;
    CredentialData::from_canonical_json(CredentialType::DirectLink, json).unwrap()
}

fn request() -> NewCredential {
    let namespace = Namespace::parse("imports", "").unwrap();
    NewCredential::new(namespace, data())
}

#[tokio::test]
async fn uses_are_reserved_in_blocks_in_advance() {
    let setting = Setting::new(10, 100, 200).await;
    let sealer = setting.process();
    for uses in 1..=25 {
        setting.seal(&sealer).await.unwrap();
        assert_eq!(setting.rows().await, [(KeyState::Active, (uses + 9) / 10 * 10)]);
    }
    assert_eq!(setting.keys.reads.load(Ordering::Relaxed), 3, "one read for each block");
}

#[tokio::test]
async fn exhausted_key_is_replaced_and_recorded() {
    let setting = Setting::new(10, 100, 200).await;
    let sealer = setting.process();
    let first = setting.seal(&sealer).await.unwrap();
    for _ in 1..100 {
        assert_eq!(setting.seal(&sealer).await.unwrap(), first);
    }
    assert_ne!(setting.seal(&sealer).await.unwrap(), first);
    assert_eq!(setting.rows().await, [(KeyState::Retiring, 100), (KeyState::Active, 10)]);
    assert_eq!(setting.events.count(&Event::OrganizationKeyReplaced(first)), 1);
    let audit = setting.store.audit();
    let replaced: Vec<_> =
        audit.iter().filter(|record| record.action == AuditAction::OrganizationKeyReplaced).collect();
    assert_eq!(replaced.len(), 1);
    assert_eq!(replaced[0].actor, Actor::System);
    assert_eq!(replaced[0].subject, Subject::Organization(setting.organization));
}

#[tokio::test]
async fn irreplaceable_key_is_used_up_to_its_limit() {
    let setting = Setting::new(10, 100, 200).await;
    let sealer = setting.process();
    setting.keys.refuses_to_replace.store(true, Ordering::Relaxed);
    let key = setting.seal(&sealer).await.unwrap();
    for _ in 1..200 {
        assert_eq!(setting.seal(&sealer).await.unwrap(), key);
    }
    assert_eq!(setting.events.count(&Event::OrganizationKeyNotReplaced(key)), 10);
    let refused = setting.seal(&sealer).await;
    assert!(matches!(refused, Err(SealError::Store(StoreError::Unavailable(_)))));
    assert_eq!(setting.rows().await, [(KeyState::Active, 200)]);
    setting.keys.refuses_to_replace.store(false, Ordering::Relaxed);
    assert_ne!(setting.seal(&sealer).await.unwrap(), key);
    assert_eq!(setting.rows().await, [(KeyState::Retiring, 200), (KeyState::Active, 10)]);
}

/// A68: many threads and several replicas, with concurrent key replacements, never use a key more often than was
/// reserved.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn key_limits_apply_across_threads_and_replicas() {
    const EACH: usize = 150;
    let setting = Arc::new(Setting::new(7, 70, 140).await);
    let replicas = [(); 3].map(|()| Arc::new(setting.process()));
    let mut tasks = Vec::new();
    for task in 0..12 {
        let (setting, replica) = (Arc::clone(&setting), Arc::clone(&replicas[task % 3]));
        tasks.push(tokio::spawn(async move {
            let (mut used, mut overtaken) = (Vec::new(), 0);
            while used.len() < EACH {
                match setting.seal(&replica).await {
                    Ok(key) => used.push(key),
                    // Other tasks were faster repeatedly.
                    Err(SealError::Store(StoreError::Unavailable(_))) if overtaken < 100 => overtaken += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            used
        }));
    }
    let mut used = HashMap::new();
    for task in tasks {
        for key in task.await.unwrap() {
            *used.entry(key).or_insert(0_i64) += 1;
        }
    }
    assert_eq!(used.values().sum::<i64>(), 12 * EACH as i64);
    let rows = setting.store.organization_keys(setting.organization).await.unwrap().unwrap().keys;
    for row in &rows {
        let used = used.get(&row.id).copied().unwrap_or(0);
        assert!(used <= row.uses && row.uses <= 77, "{used} of {}", row.uses);
    }
    assert_eq!(rows.iter().filter(|row| row.state == KeyState::Active).count(), 1);
    let audit = setting.store.audit();
    let replaced = audit.iter().filter(|record| record.action == AuditAction::OrganizationKeyReplaced).count();
    assert_eq!(replaced, rows.len() - 1);
}

/// Concurrent callers without remaining uses reserve one block together.
#[tokio::test]
async fn concurrent_callers_reserve_one_block() {
    let setting = Arc::new(Setting::new(100, 1_000, 2_000).await);
    let sealer = Arc::new(setting.process());
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (setting, sealer) = (Arc::clone(&setting), Arc::clone(&sealer));
            tokio::spawn(async move { setting.seal(&sealer).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(setting.rows().await, [(KeyState::Active, 100)]);
}

/// If another process replaces the key after this one reserved uses of it, the save is sealed again under the new key.
#[tokio::test]
async fn save_is_sealed_again_when_its_key_was_replaced() {
    let setting = Setting::new(10, 100, 200).await;
    let (vault, editor) = (setting.vault(), setting.editor());
    let saved = vault.save(&editor, request()).await.unwrap();
    let first = setting.store.sealed_data(saved).unwrap().data_key.key().unwrap();
    let next = setting.sealer.new_organization_key(setting.organization, ManualClock::START).unwrap();
    let (action, subject) = (AuditAction::OrganizationKeyReplaced, Subject::Organization(setting.organization));
    let audit =
        setting.environment.record(ManualClock::START, Some(setting.organization), Actor::System, action, subject);
    let keys = setting.store.organization_keys(setting.organization).await.unwrap().unwrap();
    let fingerprint = setting.sealer.bind_organization_keys(setting.organization, &keys, &keys).await.unwrap();
    let command = ReplaceOrganizationKey { current: first, next: next.clone(), fingerprint, audit };
    assert!(setting.store.replace_organization_key(command).await.unwrap());
    let saved = vault.save(&editor, request()).await.unwrap();
    assert_eq!(setting.store.sealed_data(saved).unwrap().data_key.key(), Some(next.id));
    assert_eq!(setting.rows().await, [(KeyState::Retiring, 65_536), (KeyState::Active, 65_536)]);
}

#[tokio::test]
async fn organization_without_exactly_one_active_key_is_damaged() {
    let two: Damage = |keys| keys.keys.push(keys.keys[0].clone());
    let none: Damage = |keys| keys.keys[0].state = KeyState::Retiring;
    for damage in [two, none] {
        let setting = Setting::new(10, 100, 200).await;
        *setting.keys.damage.lock().unwrap() = Some(damage);
        let refused = setting.seal(&setting.process()).await;
        let row = (setting.organization.to_string(), "organization_keys");
        let Err(SealError::Store(StoreError::Integrity { table, id, .. })) = refused else { panic!("{refused:?}") };
        assert_eq!((id, table), row);
        assert_eq!(setting.rows().await, [(KeyState::Active, 0)]);
    }
}
