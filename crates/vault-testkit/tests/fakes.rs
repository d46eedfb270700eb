//! The fakes keep what use cases rely on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Subject};
use vault_core::credential::{CredentialData, CredentialType, Information};
use vault_core::digest::DigestPurpose;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, AuditId, CredentialId, InstanceId, KeyId, OrganizationId, SessionId};
use vault_core::namespace::Namespace;
use vault_core::organization::{Organization, OrganizationName, OrganizationState};
use vault_core::passcode::{Passcode, TimeStep};
use vault_core::port::*;
use vault_core::role::Role;
use vault_core::sealed::SealedCredential;
use vault_core::seats::Requester;
use vault_core::session::SessionClaims;
use vault_testkit::clock::{ManualClock, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainSealer};
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
        setting.sealer.open(context, &namespace("imports"), CredentialType::DirectLink, &sealed).await.unwrap();
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
        let opened = setting.sealer.open(elsewhere, &namespace("imports"), CredentialType::DirectLink, &sealed).await;
        assert!(matches!(opened, Err(SealError::Integrity { .. })));
    }
    let moved = setting.sealer.open(context, &namespace("exports"), CredentialType::DirectLink, &sealed).await;
    assert!(matches!(moved, Err(SealError::Integrity { .. })));
    let swapped = SealedCredential { data: sealed.information.clone(), ..sealed.clone() };
    assert!(setting.sealer.open(context, &namespace("imports"), CredentialType::DirectLink, &swapped).await.is_err());
    assert!(setting.sealer.open_information(stray, &rows).await.unwrap()[0].is_err());
    let nowhere = seal(&setting, CredentialContext { organization: stray, ..context }).await;
    assert!(matches!(nowhere, Err(SealError::NoKeys)));
    let unknown = Setting { key: KeyId::from_bytes([9; 16]), ..setting };
    assert!(matches!(seal(&unknown, context).await, Err(SealError::Fault(_))));
}

#[tokio::test]
async fn fingerprints_tell_data_and_organizations_apart() {
    let setting = setting().await;
    let fingerprint = async |text: &str| {
        let bytes = vault_core::credential::SecretBytes::from(text.as_bytes().to_vec());
        setting.sealer.fingerprint(setting.organization, &bytes).await.unwrap()
    };
    assert_eq!(fingerprint("a").await, fingerprint("a").await);
    assert_ne!(fingerprint("a").await, fingerprint("b").await);
}

#[test]
fn digests_depend_on_key_purpose_and_division() {
    let of = |key, purpose, parts: &[&[u8]]| FakeDigester::keyed(key).digest(purpose, parts);
    let first = of(0, DigestPurpose::Address, &[b"ab", b"c"]);
    assert_eq!(first, of(0, DigestPurpose::Address, &[b"ab", b"c"]));
    for other in [
        of(1, DigestPurpose::Address, &[b"ab", b"c"]),
        of(0, DigestPurpose::Network, &[b"ab", b"c"]),
        of(0, DigestPurpose::Address, &[b"a", b"bc"]),
        of(0, DigestPurpose::Address, &[b"abc"]),
    ] {
        assert_ne!(first, other);
    }
}

#[tokio::test]
async fn a_verifier_is_right_for_one_password_of_one_account() {
    let hasher = FakeHasher::with_permits(1);
    let (account, other) = (AccountId::from_bytes([1; 16]), AccountId::from_bytes([2; 16]));
    let password = || SecretString::from("correct: horse");
    let permit = hasher.permit(Requester::Trusted).unwrap();
    assert!(matches!(hasher.permit(Requester::Trusted), Err(HashError::Busy)));
    let stored = hasher.hash(permit, account, password()).await.unwrap();

    let verify = async |account, password, stored| {
        let permit = hasher.permit(Requester::Trusted).unwrap();
        hasher.verify(permit, account, password, stored).await.unwrap()
    };
    let right = verify(Some(account), password(), Some(stored.clone())).await;
    assert!(matches!(right, PasswordVerdict::Right { rehashed: None }));
    let wrong = verify(Some(account), SecretString::from("horse"), Some(stored.clone())).await;
    assert!(matches!(wrong, PasswordVerdict::Wrong));
    assert!(matches!(verify(Some(other), password(), Some(stored.clone())).await, PasswordVerdict::Damaged));
    assert!(matches!(verify(None, password(), None).await, PasswordVerdict::Wrong));
    assert_eq!(hasher.verified(), [Some(account), Some(account), Some(other), None]);
    assert_eq!(hasher.requested(), [Requester::Trusted; 6]);

    hasher.raise_parameters();
    let PasswordVerdict::Right { rehashed: Some(rehashed) } = verify(Some(account), password(), Some(stored)).await
    else {
        panic!("it lags behind")
    };
    let again = verify(Some(account), password(), Some(rehashed)).await;
    assert!(matches!(again, PasswordVerdict::Right { rehashed: None }));
}

#[test]
fn passcodes_match_their_own_step_and_the_next() {
    let digester = Arc::new(FakeDigester::default());
    let passcodes = FakePasscodes::new(Arc::new(SequentialIds::default()), digester.clone());
    let (account, other) = (AccountId::from_bytes([1; 16]), AccountId::from_bytes([2; 16]));
    let seed = passcodes.new_seed(account, &EmailAddress::parse("a@b.example").unwrap()).unwrap();
    assert!(seed.secret.uri.expose_secret().contains(seed.secret.secret.expose_secret()));
    let step = TimeStep::at(NOW);
    let code = passcodes.code_at(account, &seed.sealed, step).unwrap();
    let Passcode::TimeBased(digits) = Passcode::read(&code) else { panic!("{}", code.expose_secret()) };
    let at = |step: TimeStep| passcodes.matching_step(account, &seed.sealed, &digits, step.begins_at()).unwrap();
    assert_eq!(
        (at(step.previous()), at(step), at(step.next()), at(step.next().next())),
        (None, Some(step), Some(step), None)
    );
    assert!(passcodes.matching_step(other, &seed.sealed, &digits, NOW).is_err());

    let codes = passcodes.new_recovery_codes(account).unwrap();
    assert_eq!((codes.codes.len(), codes.digests.len()), (10, 10));
    for (code, digest) in codes.codes.iter().zip(&codes.digests) {
        let Passcode::Recovery(digits) = Passcode::read(&code.0) else { panic!("{}", code.0.expose_secret()) };
        let parts: [&[u8]; 2] = [account.as_bytes(), digits.expose().as_bytes()];
        assert_eq!(digester.digest(DigestPurpose::RecoveryCode, &parts), *digest);
    }
}

#[test]
fn a_token_says_what_was_claimed_until_it_expires() {
    let tokens = FakeTokens::new(InstanceId::from_bytes([9; 16]));
    let claims = SessionClaims {
        instance: InstanceId::from_bytes([9; 16]),
        session: SessionId::from_bytes([1; 16]),
        account: AccountId::from_bytes([2; 16]),
        organization: OrganizationId::from_bytes([3; 16]),
        role: Role::Editor,
        issued_at: NOW,
        expires_at: NOW.plus_seconds(60),
    };
    let token = tokens.issue(&claims).unwrap();
    let token = token.0.expose_secret();
    assert_eq!(tokens.verify(token, NOW.plus_seconds(59)), Ok(claims.clone()));
    assert_eq!(tokens.verify(token, NOW.plus_seconds(60)), Err(TokenRefusal::Expired));
    assert_eq!(tokens.verify(token, NOW.plus_seconds(-1)), Err(TokenRefusal::NotYetValid));
    assert_eq!(tokens.verify(&token.replace("editor", "admin"), NOW), Err(TokenRefusal::NotAuthentic));
    for text in ["", "fake", &token[1..], &token[..token.len() - 20]] {
        assert_eq!(tokens.verify(text, NOW), Err(TokenRefusal::Malformed), "{text}");
    }
    let elsewhere = FakeTokens::new(InstanceId::from_bytes([8; 16]));
    assert_eq!(elsewhere.verify(token, NOW), Err(TokenRefusal::Claims));
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
