//! The fakes keep what use cases rely on.

use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Subject};
use vault_core::credential::{CredentialData, CredentialType, Information};
use vault_core::id::{AuditId, CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::organization::{Organization, OrganizationName, OrganizationState};
use vault_core::port::*;
use vault_core::sealed::SealedCredential;
use vault_testkit::clock::{ManualClock, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, PlainSealer};
use vault_testkit::memory::MemoryStore;

const NOW: vault_core::time::Timestamp = ManualClock::START;

struct Setting {
    ids: Arc<SequentialIds>,
    sealer: PlainSealer,
    organization: OrganizationId,
    key: KeyId,
}

/// An organization with keys of the fake sealer.
async fn setting() -> Setting {
    let (ids, store) = (Arc::new(SequentialIds::default()), Arc::new(MemoryStore::new()));
    let sealer = PlainSealer::new(store.clone(), ids.clone());
    let organization = OrganizationId::from_uuid(ids.ordered(NOW));
    let name = OrganizationName::parse("Acme").unwrap();
    let keys = sealer.new_organization_keys(organization, NOW).unwrap();
    let key = keys.keys[0].id;
    let command = CreateOrganization {
        organization: Organization { id: organization, name, state: OrganizationState::Active, created_at: NOW },
        keys,
        audit: FakeAuditSealer.seal(record(&ids, AuditAction::OrganizationCreated)),
    };
    assert!(store.create_organization(command).await.unwrap());
    Setting { ids, sealer, organization, key }
}

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
    }
}

fn data() -> CredentialData {
    let json = br#"{"url":"https://files.example/a?sig=q11abcdefghijklmnop"}"#;
    CredentialData::from_canonical_json(CredentialType::DirectLink, json).unwrap()
}

fn namespace(name: &str) -> Namespace {
    Namespace::parse(name, "").unwrap()
}

async fn seal(setting: &Setting, context: CredentialContext) -> Result<SealedCredential, SealError> {
    let information = Information::from_json("{}".to_owned()).unwrap();
    setting.sealer.seal(setting.key, context, &namespace("imports"), &data().to_canonical_json(), &information).await
}

#[tokio::test]
async fn what_was_sealed_opens_in_its_own_place_only() {
    let setting = setting().await;
    let organization = setting.organization;
    let credential = CredentialId::from_uuid(setting.ids.ordered(NOW));
    let context = CredentialContext { organization, credential, version: 1 };
    let sealed = seal(&setting, context).await.unwrap();
    let opened =
        setting.sealer.open(context, &namespace("imports"), CredentialType::DirectLink, &sealed, true).await.unwrap();
    assert_eq!(opened.to_canonical_json().expose(), data().to_canonical_json().expose());
    let rows = [SealedInformation { context, key: sealed.key, blob: &sealed.information }];
    assert_eq!(
        setting.sealer.open_information(organization, &rows).await.unwrap()[0].as_ref().unwrap().as_json(),
        "{}"
    );

    let stray = OrganizationId::from_uuid(setting.ids.random());
    for elsewhere in [
        CredentialContext { version: 2, ..context },
        CredentialContext { credential: CredentialId::from_uuid(setting.ids.random()), ..context },
        CredentialContext { organization: stray, ..context },
    ] {
        let opened =
            setting.sealer.open(elsewhere, &namespace("imports"), CredentialType::DirectLink, &sealed, true).await;
        assert!(matches!(opened, Err(SealError::Integrity { .. } | SealError::NoKeys)));
    }
    let moved = setting.sealer.open(context, &namespace("exports"), CredentialType::DirectLink, &sealed, true).await;
    assert!(matches!(moved, Err(SealError::Integrity { .. })));
    let swapped = SealedCredential { data: sealed.information.clone(), ..sealed.clone() };
    assert!(
        setting.sealer.open(context, &namespace("imports"), CredentialType::DirectLink, &swapped, true).await.is_err()
    );
    assert!(setting.sealer.open_information(stray, &rows).await.unwrap()[0].is_err());
    let nowhere = seal(&setting, CredentialContext { organization: stray, ..context }).await;
    assert!(matches!(nowhere, Err(SealError::NoKeys)));
    let unknown = Setting { key: KeyId::from_bytes([9; 16]), ..setting };
    assert!(matches!(seal(&unknown, context).await, Err(SealError::UnknownKey { .. })));
}

#[tokio::test]
async fn a_failure_changes_nothing_and_a_lost_answer_everything() {
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
