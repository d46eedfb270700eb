//! An organization's key is rotated while it is used, by several workers, in pieces.

use async_trait::async_trait;
use proptest::prelude::*;
use std::ops::Deref;
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, SealedAuditRecord, Subject};
use vault_core::credential::{CredentialData, CredentialPatch, CredentialType, Description, ListFilter};
use vault_core::cursor::PageRequest;
use vault_core::error::{Error, Refusal};
use vault_core::id::{AccountId, CredentialId, InstanceId, KeyId, OrganizationId};
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::namespace::Namespace;
use vault_core::operation::{InstanceChange, Operation, Operations, ReplaceInstance, ReplacedInstance};
use vault_core::organization::{CountSealed, ReadKeyUses, ReadOrganization};
use vault_core::port::{CreateInstance, Event, InstanceRewrapper, KeyRepository as _, KeyedDigester as _, SealError};
use vault_core::principal::{EmbedderPrincipal, Principal};
use vault_core::role::Role;
use vault_core::sealed::{Blob, InstanceRecord, KeyState};
use vault_core::time::Timestamp;
use vault_core::usecase::*;
use vault_testkit::crypto::FakeDigester;
use vault_testkit::fake::FakeVault;

/// Has no instance keys: their rotation is tested with real ones in `vault-crypto`. Optionally, another process
/// replaces the instance key before it returns.
#[derive(Default)]
struct NoInstanceKeys(Option<(Operations, Environment, ReplaceInstance)>);

fn none<T>() -> Result<T, SealError> {
    Err(SealError::Fault("there are no instance keys".into()))
}

#[async_trait]
impl InstanceRewrapper for NoInstanceKeys {
    async fn next_instance_key(&self, _: &InstanceRecord, _: Timestamp) -> Result<InstanceRecord, SealError> {
        if let Some((operations, environment, command)) = &self.0 {
            let replaced = operations.run(environment, &Principal::Operator, command.clone()).await.unwrap();
            assert_eq!(replaced, ReplacedInstance::Replaced);
        }
        none()
    }

    fn entries(&self, current: &InstanceRecord) -> Result<Vec<KeyringEntry>, SealError> {
        let (purpose, state) = (KeyPurpose::Instance, KeyState::Retiring);
        let (first, since) = (FakeDigester::default().active_key(), current.created_at);
        let retiring = KeyringEntry { purpose, id: first, state, since };
        Ok((current.instance_key != first).then_some(retiring).into_iter().collect())
    }

    fn keyring_without(&self, _: &InstanceRecord, _: KeyId) -> Result<Blob, SealError> {
        none()
    }
}

struct Setting {
    fake: FakeVault,
    vault: Vault,
    organization: OrganizationId,
}

impl Deref for Setting {
    type Target = FakeVault;

    fn deref(&self) -> &FakeVault {
        &self.fake
    }
}

impl Setting {
    async fn new() -> Self {
        let fake = FakeVault::new();
        let organization = fake.operator().create_organization("Acme").await.unwrap().id;
        Self { vault: fake.vault(), fake, organization }
    }

    /// Returns the key operations of one process, with three rows per transaction.
    fn keys(&self) -> Keys {
        self.keys_with(NoInstanceKeys::default())
    }

    fn keys_with(&self, instance_rewrapper: NoInstanceKeys) -> Keys {
        let (store, operations) = (self.store.clone(), self.operations());
        Keys::new(self.environment.clone(), store, operations, Arc::new(instance_rewrapper)).batch(3)
    }

    fn audit(&self, action: AuditAction) -> SealedAuditRecord {
        self.environment.record(self.environment.now(), None, Actor::Operator, action, Subject::Instance)
    }

    async fn instance(&self) -> InstanceRecord {
        let instance = InstanceRecord {
            id: InstanceId::from_bytes([1; 16]),
            root_key: KeyId::from_bytes([2; 16]),
            instance_key: FakeDigester::default().active_key(),
            wrapped: Blob::from_bytes(vec![0]),
            keyring: Blob::from_bytes(vec![0]),
            created_at: self.environment.now(),
            restore_epoch: 0,
        };
        let audit = self.audit(AuditAction::InstanceCreated);
        let command = CreateInstance { instance: instance.clone(), audit };
        assert!(self.store.create_instance(command).await.unwrap());
        instance
    }

    fn editor(&self) -> Principal {
        let account = AccountId::from_bytes([2; 16]);
        Principal::Embedder(EmbedderPrincipal { organization: self.organization, account, role: Role::Editor })
    }

    async fn save(&self, number: usize) -> CredentialId {
        self.vault.save(&self.editor(), request(number)).await.unwrap()
    }

    async fn replace(&self, id: CredentialId, number: usize, stage: bool) {
        let (credential, expires_at, idempotency) = (id.into(), None, None);
        let request =
            CredentialReplacement { credential, data: data(number), expires_at, stage, idempotency, verify: false };
        self.vault.replace(&self.editor(), request).await.unwrap();
    }

    async fn run<O: Operation>(&self, operation: O) -> O::Outcome {
        self.operations().run(&self.environment, &Principal::Operator, operation).await.unwrap()
    }

    /// Returns the ID of each key, the active one first.
    async fn rows(&self) -> Vec<KeyId> {
        let keys = self.run(ReadOrganization(self.organization)).await.unwrap().keys;
        std::iter::once(&keys.active).chain(&keys.retiring).map(|key| key.id).collect()
    }

    async fn count_sealed(&self, key: KeyId) -> i64 {
        self.run(CountSealed(self.organization, key)).await
    }

    async fn listed(&self) -> Vec<ListedCredential> {
        self.vault.list(&self.editor(), ListFilter::default(), PageRequest::default()).await.unwrap().items
    }

    /// Asserts that all values that a user can see can be decrypted.
    async fn assert_all_opens(&self) {
        for row in self.listed().await {
            assert!(row.information.is_some() && row.metadata.is_some(), "{row:?}");
            for version in self.vault.versions(&self.editor(), row.id).await.unwrap() {
                assert!(version.information.is_some(), "{version:?}");
            }
        }
        assert_eq!(
            self.events.events().iter().filter(|event| matches!(event, Event::IntegrityFailure { .. })).count(),
            0
        );
    }

    fn audited(&self, action: AuditAction) -> usize {
        self.store.audit().iter().filter(|record| record.action == action).count()
    }
}

fn data(number: usize) -> CredentialData {
    let json = format!(r#"{{"url":"https://files.example/{number}?sig=q11abcdefghijklmnop"}}"#);
    CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap()
}

fn description(number: usize) -> Description {
    Description::parse(&format!("number {number}"), "/description").unwrap()
}

fn request(number: usize) -> NewCredential {
    let mut request = NewCredential::new(Namespace::parse("imports", "").unwrap(), data(number));
    if number.is_multiple_of(2) {
        request.description = Some(description(number));
    }
    request
}

/// Moves everything and destroys the old keys.
async fn complete(rotation: &OrganizationRotation) -> RotationEnd {
    for _ in 0..1_000 {
        if rotation.step().await.unwrap().is_none()
            && let Some(end) = rotation.finish().await.unwrap()
        {
            return end;
        }
    }
    panic!("a rotation ends");
}

#[tokio::test]
async fn rotation_reseals_all_rows_and_destroys_old_key() {
    let setting = Setting::new().await;
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(setting.save(number).await);
    }
    setting.replace(ids[3], 100, false).await;
    setting.replace(ids[4], 101, true).await;
    let (before, old) = (setting.listed().await, setting.rows().await[0]);
    let rotation = setting.keys().rotate_organization(setting.organization).await.unwrap();
    assert!(rotation.is_new() && rotation.key() != old);
    assert_eq!(rotation.rows(), 10);
    let end = complete(&rotation).await;
    assert_eq!(end, RotationEnd { destroyed: vec![old], kept: Vec::new() });
    assert_eq!(setting.rows().await, [rotation.key()]);
    // Revisions, times and all metadata are unchanged.
    assert_eq!(setting.listed().await, before);
    setting.assert_all_opens().await;
    assert_eq!(setting.audited(AuditAction::OrganizationKeyReplaced), 1);
    assert_eq!(setting.audited(AuditAction::OrganizationKeyDestroyed), 1);
}

#[tokio::test]
async fn damaged_row_keeps_its_key_and_others_continue() {
    let setting = Setting::new().await;
    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(setting.save(number).await);
    }
    let old = setting.rows().await[0];
    assert!(setting.store.tamper_with_data(ids[3], |sealed| sealed.data_key = Blob::from_bytes(vec![0])));
    let rotation = setting.keys().rotate_organization(setting.organization).await.unwrap();
    let end = complete(&rotation).await;
    assert_eq!(end, RotationEnd { destroyed: Vec::new(), kept: vec![(old, 1)] });
    assert_eq!(setting.count_sealed(old).await, 1);
    let failures = setting.events.events().into_iter().filter(|event| matches!(event, Event::IntegrityFailure { .. }));
    assert!(failures.count() > 0);
    // After it is deleted, the next run destroys the key.
    setting.vault.delete(&setting.editor(), ids[3]).await.unwrap();
    let again = setting.keys().rotate_organization(setting.organization).await.unwrap();
    assert_eq!(complete(&again).await, RotationEnd { destroyed: vec![old], kept: Vec::new() });
}

/// Uses are stored after a minute, and replace a key that was used too often.
#[tokio::test]
async fn key_is_replaced_after_many_uses() {
    let setting = Setting::new().await;
    let operations = setting.operations();
    let vault = Vault::new(setting.environment.clone(), setting.tally.clone(), operations.clone());
    let operator = Operator::new(setting.environment.clone(), setting.tally.clone(), operations);
    let operator = operator.key_replaced_at(3);
    let old = setting.rows().await[0];
    for (number, replaces) in [false, false, true].into_iter().enumerate() {
        vault.save(&setting.editor(), request(number)).await.unwrap();
        setting.clock.advance_seconds(60);
        operator.record_counts(false).await.unwrap();
        assert_eq!(setting.rows().await[0] != old, replaces);
    }
    assert_eq!(setting.run(ReadKeyUses(setting.organization)).await, 0);
    setting.assert_all_opens().await;
}

#[tokio::test]
async fn overview_lists_key_states() {
    let setting = Setting::new().await;
    let instance = setting.instance().await;
    for number in 0..4 {
        setting.save(number).await;
    }
    let old = setting.rows().await[0];
    let before = setting.keys().overview().await.unwrap();
    assert_eq!((before.root_key, before.instance_key), (instance.root_key, instance.instance_key));
    assert_eq!(before.organizations.len(), 1);
    let shown = &before.organizations[0];
    assert_eq!((shown.active, shown.uses, &shown.retiring[..]), (old, 0, &[][..]));
    let rotation = setting.keys().rotate_organization(setting.organization).await.unwrap();
    let during = &setting.keys().overview().await.unwrap().organizations[0];
    assert_eq!(during.active, rotation.key());
    assert_eq!((during.retiring[0].key, during.retiring[0].credentials), (old, 4));
    complete(&rotation).await;
    assert_eq!(setting.keys().overview().await.unwrap().organizations[0].retiring, []);
}

#[tokio::test]
async fn concurrent_instance_key_replacement_is_detected() {
    let setting = Setting::new().await;
    let current = setting.instance().await;
    let failed = setting.keys().rotate_instance().await.err();
    assert!(matches!(failed, Some(Error::Seal(SealError::Fault(_)))), "{failed:?}");
    let next = InstanceRecord { instance_key: KeyId::from_bytes([4; 16]), ..current.clone() };
    let command = ReplaceInstance { current, next, change: InstanceChange::InstanceKey };
    let racing = NoInstanceKeys(Some((setting.operations(), setting.environment.clone(), command)));
    let rotation = setting.keys_with(racing).rotate_instance().await.unwrap();
    assert!(!rotation.is_new());
}

#[tokio::test]
async fn deleted_organization_has_no_key_to_rotate() {
    let setting = Setting::new().await;
    let nonexistent = OrganizationId::from_bytes([9; 16]);
    let refused = setting.keys().rotate_organization(nonexistent).await.err();
    assert!(matches!(refused, Some(Error::Refused(Refusal::NoOrganization))));
}

/// Events between the steps of a rotation.
#[derive(Clone, Copy, Debug)]
enum Act {
    Step(usize),
    Finish(usize),
    /// The process with this number exits and restarts.
    Restart(usize),
    Save,
    Replace(usize),
    Stage(usize),
    Promote(usize),
    Describe(usize),
    Delete(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..2_usize).prop_map(Act::Step),
        1 => (0..2_usize).prop_map(Act::Finish),
        1 => (0..2_usize).prop_map(Act::Restart),
        1 => Just(Act::Save),
        1 => (0..9_usize).prop_map(Act::Replace),
        1 => (0..9_usize).prop_map(Act::Stage),
        2 => (0..9_usize).prop_map(Act::Promote),
        1 => (0..9_usize).prop_map(Act::Describe),
        1 => (0..9_usize).prop_map(Act::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// For every order of events between the steps of two processes, every row can be decrypted, and no key is
    /// destroyed that a row names.
    #[test]
    fn everything_opens_after_every_command(acts in proptest::collection::vec(act(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let setting = Setting::new().await;
            for number in 0..9 {
                setting.save(number).await;
            }
            let begin = || async { setting.keys().rotate_organization(setting.organization).await.unwrap() };
            let mut processes = [begin().await, begin().await];
            for (number, act) in acts.into_iter().enumerate() {
                let ids: Vec<_> = setting.listed().await.iter().map(|row| row.id).collect();
                let pick = |wanted: usize| ids[wanted % ids.len()];
                match act {
                    Act::Step(process) => _ = processes[process].step().await.unwrap(),
                    Act::Finish(process) => _ = processes[process].finish().await.unwrap(),
                    Act::Restart(process) => processes[process] = begin().await,
                    Act::Save => _ = setting.save(number).await,
                    Act::Replace(wanted) => setting.replace(pick(wanted), number, false).await,
                    Act::Stage(wanted) => setting.replace(pick(wanted), number, true).await,
                    Act::Promote(wanted) => {
                        let id = pick(wanted);
                        let versions = setting.vault.versions(&setting.editor(), id).await.unwrap();
                        let last = versions.last().unwrap().number;
                        setting.vault.promote(&setting.editor(), id.into(), last).await.unwrap();
                    }
                    Act::Describe(wanted) => {
                        let description = Some(Some(description(number)));
                        let request = CredentialPatch { description, ..CredentialPatch::default() };
                        setting.vault.describe(&setting.editor(), pick(wanted).into(), request).await.unwrap();
                    }
                    Act::Delete(wanted) if ids.len() > 1 => {
                        setting.vault.delete(&setting.editor(), pick(wanted)).await.unwrap();
                    }
                    Act::Delete(_) => {}
                }
                setting.assert_all_opens().await;
                let mut sealed = 0;
                for key in setting.rows().await {
                    sealed += setting.count_sealed(key).await;
                }
                prop_assert_eq!(usize::try_from(sealed).unwrap(), setting.listed().await.len());
            }
            for process in &processes {
                complete(process).await;
            }
            prop_assert_eq!(setting.rows().await.len(), 1);
            setting.assert_all_opens().await;
            Ok(())
        })?;
    }
}
