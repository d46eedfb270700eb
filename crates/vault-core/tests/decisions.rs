//! Properties of the decisions on credentials, for all orders of commands.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use vault_core::activation::VendRule;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Origin, SealedAuditRecord, Subject};
use vault_core::credential::{CredentialType, VersionList};
use vault_core::decision::{
    Authorized, ChangeFacts, CredentialFacts, EarlierRequest, EarlierRequests, Outcome, SaveFacts, VersionEffect,
    decide_changes, decide_saves,
};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, AuditId, CredentialId, KeyId, OrganizationId, VersionId};
use vault_core::namespace::Namespace;
use vault_core::port::{ChangeCredential, CredentialChange, Idempotency, NewVersion, SaveCredential, StoredMetadata};
use vault_core::principal::Principal;
use vault_core::sealed::{Blob, SealedCredential, SealedMetadata};
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

const KEY: KeyId = KeyId::from_bytes([1; 16]);
const ORGANIZATION: OrganizationId = OrganizationId::from_bytes([2; 16]);
/// No rule reads this value.
const CODE: Digest = Digest::from_bytes([9; 32]);
const NOW: Timestamp = Timestamp::from_millis(1_000);

fn command<A>(payload: A) -> Command<A> {
    let record = AuditRecord {
        id: AuditId::from_bytes([3; 16]),
        at: NOW,
        organization: Some(ORGANIZATION),
        actor: Actor::Operator,
        action: AuditAction::CredentialSaved,
        subject: Subject::Credential(credential(0)),
        count: 1,
        note: None,
        origin: Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    };
    let audit = SealedAuditRecord { record, key: KEY, code: Digest::from_bytes([0; 32]) };
    Command { principal: Principal::Operator, now: NOW, audit, payload }
}

const fn credential(number: u8) -> CredentialId {
    CredentialId::from_bytes([number; 16])
}

fn sealed(key: KeyId) -> SealedCredential {
    let blob = || Blob::from_bytes(Vec::new());
    SealedCredential { key, information: blob(), data_key: blob(), data: blob() }
}

fn metadata(key: KeyId, revision: i64) -> SealedMetadata {
    SealedMetadata { key, revision, blob: Blob::from_bytes(Vec::new()) }
}

fn described(metadata: Option<SealedMetadata>) -> StoredMetadata {
    StoredMetadata { metadata, labels: Vec::new(), vend: VendRule::Any }
}

fn idempotency(key: u8, body: u8) -> Idempotency {
    let account = AccountId::from_bytes([4; 16]);
    Idempotency { account, key: key.to_string(), body: Digest::from_bytes([body; 32]).into() }
}

fn save(number: u8, idempotency: Option<Idempotency>, limit: i64) -> SaveCredential {
    SaveCredential {
        organization: ORGANIZATION,
        id: credential(number),
        version: 1,
        listed: VersionList::default(),
        kind: CredentialType::DirectLink,
        namespace: Namespace::parse("backups", "").unwrap(),
        sealed: sealed(KEY),
        description: described(None),
        code: CODE,
        expires_at: None,
        check: None,
        idempotency,
        limit,
    }
}

fn new_version(number: i64, idempotency: Option<Idempotency>, destroyed: Vec<i64>) -> NewVersion {
    NewVersion {
        number,
        id: VersionId::from_bytes([number as u8; 16]),
        sealed: sealed(KEY),
        check: None,
        idempotency,
        destroyed,
    }
}

fn change(id: u8, revision: i64, change: CredentialChange) -> ChangeCredential {
    let id = credential(id);
    ChangeCredential {
        organization: ORGANIZATION,
        id,
        revision,
        change,
        listed: VersionList::default(),
        description: None,
        code: CODE,
        expires_at: None,
    }
}

fn replace(id: u8, facts: &CredentialFacts, idempotency: Option<Idempotency>) -> ChangeCredential {
    let version = new_version(facts.highest + 1, idempotency, Vec::new());
    let destroy_at = NOW.plus_seconds(60);
    change(id, facts.revision, CredentialChange::Replace { version, destroy_at })
}

const FACTS: CredentialFacts =
    CredentialFacts { revision: 3, version: 2, staged: None, highest: 2, metadata_key: None };

fn changes_of(facts: CredentialFacts) -> ChangeFacts {
    ChangeFacts { credentials: HashMap::from([(credential(1), facts)]), earlier: EarlierRequests::default() }
}

/// Returns the result of one change.
fn check_one(facts: ChangeFacts, payload: ChangeCredential, key_active: bool) -> Result<i64, Refusal> {
    let command = command(payload);
    decide_changes(facts, [Authorized { command: &command, key_active }]).remove(0).into_answer()
}

proptest! {
    /// Saves have the same results in any batches.
    #[test]
    fn batched_saves_equal_sequential_saves(
        saves in vec((prop::option::of((0_u8..4, 0_u8..2)), any::<bool>(), 0_i64..8), 0..12),
        credentials in 0_i64..6,
    ) {
        let saves: Vec<_> = (0_u8..).zip(saves).map(|(number, (key, key_active, limit))| {
            let idempotency = key.map(|(key, body)| idempotency(key, body));
            (command(save(number, idempotency, limit)), key_active)
        }).collect();
        let authorized = |(command, key_active)| Authorized { command, key_active };
        let facts = SaveFacts { credentials: Some(credentials), earlier: EarlierRequests::default() };
        let together = decide_saves(facts, saves.iter().map(|(save, active)| authorized((save, *active))));
        // A plain model of the stored requests after each save.
        let (mut count, mut requests) = (credentials, BTreeMap::new());
        for ((command, active), outcome) in saves.iter().zip(together) {
            let mut earlier = EarlierRequests::default();
            let of = command.payload.idempotency.as_ref();
            if let Some((of, request)) = of.and_then(|of| Some((of, requests.get(&of.key)?))) {
                earlier.insert(of.account, of.key.clone(), *request);
            }
            let alone = decide_saves(SaveFacts { credentials: Some(count), earlier }, [authorized((command, *active))]);
            prop_assert_eq!(&alone[0], &outcome);
            if outcome.effects().is_some() {
                prop_assert!(count < command.payload.limit && *active);
                count += 1;
                if let Some(of) = of {
                    let created = EarlierRequest { body: *of.body.current(), credential: command.payload.id, version: 1 };
                    prop_assert!(requests.insert(of.key.clone(), created).is_none(), "a key is used once");
                }
            }
        }
    }

    /// If several requests change one revision, the first succeeds.
    #[test]
    fn one_change_of_a_revision_succeeds(changes in 1_usize..6) {
        let commands: Vec<_> = (0..changes).map(|_| command(replace(1, &FACTS, None))).collect();
        let authorized = commands.iter().map(|command| Authorized { command, key_active: true });
        let answers: Vec<_> =
            decide_changes(changes_of(FACTS), authorized).into_iter().map(Outcome::into_answer).collect();
        prop_assert_eq!(&answers[0], &Ok(3));
        prop_assert!(answers[1..].iter().all(|answer| *answer == Err(Refusal::Changed)));
    }

    /// A staged version is removed from the row exactly when it is promoted or destroyed.
    #[test]
    fn staged_version_stays_until_it_is_promoted_or_destroyed(number in 3_i64..6, promotes in any::<bool>()) {
        let facts = CredentialFacts { staged: Some(4), highest: 5, ..FACTS };
        let destroy_at = NOW.plus_seconds(60);
        let done = match promotes {
            true => CredentialChange::Promote { number, destroy_at, destroyed: Vec::new() },
            false => CredentialChange::Destroy(number),
        };
        let command = command(change(1, 3, done));
        let outcome = decide_changes(changes_of(facts), [Authorized { command: &command, key_active: true }]).remove(0);
        let effects = outcome.effects().unwrap();
        prop_assert_eq!(effects.staged, (number != 4).then_some(4));
        prop_assert_eq!((effects.revision, effects.highest), (4, 5));
        prop_assert_eq!(matches!(effects.version, VersionEffect::Promote(..)), promotes);
        prop_assert_eq!(outcome.into_answer(), Ok(number));
    }
}

#[test]
fn repeated_request_gets_original_response_after_changes() {
    let earlier = || {
        let mut earlier = EarlierRequests::default();
        let created = EarlierRequest { body: Digest::from_bytes([7; 32]), credential: credential(9), version: 5 };
        earlier.insert(AccountId::from_bytes([4; 16]), "1".to_owned(), created);
        earlier
    };
    // The limit is reached, no key is active, and the credential is deleted.
    let saved = |body| {
        let command = command(save(1, Some(idempotency(1, body)), 0));
        let facts = SaveFacts { credentials: None, earlier: earlier() };
        decide_saves(facts, [Authorized { command: &command, key_active: false }]).remove(0).into_answer()
    };
    assert_eq!((saved(7), saved(8)), (Ok(credential(9)), Err(Refusal::IdempotencyMismatch)));
    let replaced = |body| {
        let facts = ChangeFacts { credentials: HashMap::new(), earlier: earlier() };
        check_one(facts, replace(1, &FACTS, Some(idempotency(1, body))), false)
    };
    assert_eq!((replaced(7), replaced(8)), (Ok(5), Err(Refusal::IdempotencyMismatch)));
}

#[test]
fn replaced_key_is_not_used_for_storing() {
    let other = KeyId::from_bytes([8; 16]);
    let facts = || SaveFacts { credentials: Some(0), earlier: EarlierRequests::default() };
    let evaluate = |payload, key_active| {
        let command = command(payload);
        decide_saves(facts(), [Authorized { command: &command, key_active }]).remove(0).into_answer()
    };
    assert_eq!(evaluate(save(1, None, 1), false), Err(Refusal::Contended));
    let two_keys = SaveCredential { description: described(Some(metadata(other, 1))), ..save(1, None, 1) };
    assert_eq!(evaluate(two_keys, true), Err(Refusal::Contended));
    assert_eq!(evaluate(save(1, None, 1), true), Ok(credential(1)));

    let facts = CredentialFacts { metadata_key: Some(KEY), ..FACTS };
    let with =
        |said_metadata| ChangeCredential { description: Some(described(said_metadata)), ..replace(1, &FACTS, None) };
    assert_eq!(check_one(changes_of(facts), with(Some(metadata(other, 4))), true), Err(Refusal::Contended));
    // Unchanged metadata under another key was resealed concurrently.
    assert_eq!(check_one(changes_of(facts), with(Some(metadata(other, 3))), true), Err(Refusal::Contended));
    assert_eq!(check_one(changes_of(facts), with(Some(metadata(KEY, 3))), true), Ok(3));
}

#[test]
fn save_for_deleted_organization_is_refused() {
    let command = command(save(1, None, 10));
    let facts = SaveFacts { credentials: None, earlier: EarlierRequests::default() };
    let outcome = decide_saves(facts, [Authorized { command: &command, key_active: true }]).remove(0);
    assert_eq!(outcome.into_answer(), Err(Refusal::LimitReached { what: "credentials", limit: 10 }));
}

#[test]
fn deleted_credential_is_not_changed() {
    let facts = ChangeFacts { credentials: HashMap::new(), earlier: EarlierRequests::default() };
    assert_eq!(check_one(facts, replace(1, &FACTS, None), true), Err(Refusal::NotFound));
}
