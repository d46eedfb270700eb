//! The fakes keep the properties that use cases rely on. They pass the contract of cryptography except for
//! confidentiality and authenticity.

use secrecy::ExposeSecret as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use vault_core::audit::{Actor, AuditAction, AuditRecord, Subject};
use vault_core::id::{AuditId, InstanceId};
use vault_core::port::*;
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_testkit::clock::{ManualClock, SequentialIds};
use vault_testkit::contract::{
    DigestSubject, PasscodeSubject, PasswordSubject, SealingPorts, SealingSubject, TokenSubject,
};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainSealer};
use vault_testkit::fake::FakeVault;
use vault_testkit::memory::MemoryStore;

const NOW: vault_core::time::Timestamp = ManualClock::START;

/// The fakes of one deployment.
pub(crate) struct Fakes {
    ids: Arc<SequentialIds>,
    digester: FakeDigester,
    hasher: Arc<FakeHasher>,
    instance: InstanceId,
}

pub(crate) async fn fakes() -> Fakes {
    static IDS: LazyLock<SequentialIds> = LazyLock::new(SequentialIds::default);
    static DEPLOYMENTS: AtomicU64 = AtomicU64::new(0);
    let number = DEPLOYMENTS.fetch_add(1, Ordering::SeqCst);
    Fakes {
        ids: Arc::new(SequentialIds::seeded(number)),
        digester: FakeDigester::keyed(number),
        hasher: Arc::default(),
        instance: InstanceId::from_uuid(IDS.random()),
    }
}

impl SealingSubject for Fakes {
    fn start(&self, keys: Arc<dyn KeyRepository>) -> SealingPorts {
        let plain = Arc::new(PlainSealer::new(keys, self.ids.clone()));
        SealingPorts { sealer: plain.clone(), lister: plain.clone(), opener: plain.clone(), rewrapper: plain }
    }
}

impl DigestSubject for Fakes {
    fn digester(&self) -> Arc<dyn KeyedDigester> {
        Arc::new(self.digester)
    }

    fn audit_sealer(&self) -> Arc<dyn AuditSealer> {
        Arc::new(FakeAuditSealer)
    }
}

impl TokenSubject for Fakes {
    fn issuer(&self) -> Arc<dyn TokenIssuer> {
        Arc::new(FakeTokens::new(self.instance))
    }

    fn instance(&self) -> InstanceId {
        self.instance
    }
}

impl PasswordSubject for Fakes {
    fn hasher(&self) -> Arc<dyn PasswordHasher> {
        self.hasher.clone()
    }
}

impl PasscodeSubject for Fakes {
    fn passcodes(&self) -> Arc<dyn PasscodeVerifier> {
        Arc::new(FakePasscodes::new(self.ids.clone()))
    }
}

vault_testkit::sealing_contract!(fakes: fakes());
vault_testkit::digest_contract!(fakes: fakes());
vault_testkit::token_contract!(fakes: fakes());
vault_testkit::password_contract!(fakes: fakes());
vault_testkit::passcode_contract!(fakes: fakes());

fn record(ids: &SequentialIds, action: AuditAction) -> AuditRecord {
    AuditRecord {
        id: AuditId::from_uuid(ids.ordered(NOW)),
        at: NOW,
        organization: None,
        actor: Actor::Operator,
        action,
        subject: Subject::Instance,
        count: 1,
        note: None,
        origin: vault_core::audit::Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    }
}

#[tokio::test]
async fn failed_commit_changes_nothing_and_lost_response_everything() {
    let store = MemoryStore::new();
    let ids = SequentialIds::default();
    let entry = || FakeAuditSealer.seal(record(&ids, AuditAction::CredentialShown));
    let unavailable = || StoreError::Unavailable("on purpose".into());
    store.fail_next(unavailable());
    store.lose_next_answer(unavailable());
    assert!(matches!(store.append(vec![entry()]).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.audit().len(), 0);
    assert!(matches!(store.append(vec![entry()]).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.audit().len(), 1);
    store.append(vec![entry()]).await.unwrap();
    assert_eq!(store.audit().len(), 2);
}

/// Each use case of a vault continues the randomness of the others.
#[tokio::test]
async fn use_cases_of_one_vault_create_different_codes() {
    let fake = FakeVault::new();
    let acme = fake.operator().ensure_organization("Acme").await.unwrap().id;
    let invited = async |email| {
        let invited = fake.accounts().invite(&Principal::Operator, acme, email, Role::Viewer).await.unwrap();
        invited.code.text().expose_secret().to_owned()
    };
    assert_ne!(invited("ada@example.com").await, invited("joe@example.com").await);
}
