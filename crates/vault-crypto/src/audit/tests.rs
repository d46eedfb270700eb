use super::*;
use crate::testing::{NOW, id, key, key_id};
use vault_core::audit::{Actor, AuditAction, AuditEntry, AuditNote, CheckpointContent, Subject};
use vault_core::id::{AccountId, AuditId, OrganizationId, SessionId};
use vault_core::namespace::Namespace;

fn record() -> AuditRecord {
    AuditRecord {
        id: AuditId::from_uuid(id(1)),
        at: NOW,
        organization: Some(OrganizationId::from_uuid(id(2))),
        actor: Actor::Account(AccountId::from_uuid(id(3)), SessionId::from_uuid(id(4))),
        action: AuditAction::CredentialSaved,
        subject: Subject::Vault,
        count: 1,
        note: None,
        origin: vault_core::audit::Origin::default(),
        rows: Vec::new(),
    }
}

#[test]
fn a_change_of_any_field_shows() {
    let sealer = HmacAuditSealer::new((key_id(1), &key(1)), []);
    let sealed = sealer.seal(record());
    assert!(sealer.verify(&sealed));
    let changes: [fn(&mut SealedAuditRecord); 12] = [
        |sealed| sealed.record.id = AuditId::from_uuid(id(9)),
        |sealed| sealed.record.at = NOW.plus_seconds(1),
        |sealed| sealed.record.organization = None,
        |sealed| sealed.record.actor = Actor::System,
        |sealed| sealed.record.actor = Actor::Embedder(AccountId::from_uuid(id(3))),
        |sealed| sealed.record.action = AuditAction::CredentialDeleted,
        |sealed| sealed.record.subject = Subject::Instance,
        |sealed| sealed.record.count = 2,
        |sealed| sealed.record.origin.request = Some(id(7)),
        |sealed| sealed.record.origin.network = Some(vault_core::network::Network::V4([192, 0, 2])),
        |sealed| sealed.key = key_id(2),
        |sealed| sealed.code = Digest::from_bytes([0; 32]),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut changed = sealed.clone();
        change(&mut changed);
        assert!(!sealer.verify(&changed), "change {index}");
    }
}

#[test]
fn older_keys_still_verify_and_the_newest_seals() {
    let before = HmacAuditSealer::new((key_id(1), &key(1)), []);
    let after = HmacAuditSealer::new((key_id(2), &key(2)), [(key_id(1), &key(1))]);
    assert!(after.verify(&before.seal(record())));
    assert_eq!(after.seal(record()).key, key_id(2));
    assert!(!before.verify(&after.seal(record())));
}

fn entry(record: AuditRecord) -> AuditEntry {
    HmacAuditSealer::new((key_id(1), &key(1)), []).seal(record).to_entry()
}

/// A stored entry is judged by its columns, whatever they hold.
#[test]
fn a_change_of_any_column_shows() {
    let sealer = HmacAuditSealer::new((key_id(1), &key(1)), []);
    let noted = AuditRecord { note: Some(AuditNote::of(Namespace::parse("imports", "").unwrap())), ..record() };
    for record in [record(), noted] {
        let written = entry(record);
        assert!(written.is_genuine(&sealer));
        let text = || Some("imports/x".to_owned());
        let changes: [&dyn Fn(&mut AuditEntry); 21] = [
            &|entry| entry.id = AuditId::from_uuid(id(9)).to_string(),
            &|entry| entry.id = entry.id.to_uppercase() + "x",
            &|entry| entry.at = NOW.plus_seconds(1),
            &|entry| entry.organization = None,
            &|entry| entry.organization = Some("nobody".to_owned()),
            &|entry| entry.actor = "system".to_owned(),
            &|entry| entry.account = None,
            &|entry| entry.session = None,
            &|entry| entry.integration = Some(AccountId::from_uuid(id(3)).to_string()),
            &|entry| entry.action = "credential.deleted".to_owned(),
            &|entry| entry.subject = "instance".to_owned(),
            &|entry| entry.count = 2,
            &|entry| entry.namespace = text(),
            &|entry| entry.purpose = text(),
            &|entry| entry.purpose = Some(String::new()),
            &|entry| entry.network = text(),
            &|entry| entry.credentials = text(),
            &|entry| entry.request = text(),
            &|entry| entry.key = key_id(2).to_string(),
            &|entry| entry.code = vec![0; 32],
            &|entry| entry.code = Vec::new(),
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut changed = written.clone();
            change(&mut changed);
            assert!(!changed.is_genuine(&sealer), "change {index}");
        }
    }
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        number: 7,
        at: NOW,
        entries: vec![AuditId::from_uuid(id(1)), AuditId::from_uuid(id(2))],
        hash: Digest::from_bytes([5; 32]),
    }
}

#[test]
fn a_change_of_a_checkpoint_shows() {
    let sealer = HmacAuditSealer::new((key_id(1), &key(1)), []);
    let sealed = sealer.seal_checkpoint(checkpoint());
    assert!(sealer.is_genuine_checkpoint(&sealed));
    let changes: [fn(&mut SealedCheckpoint); 7] = [
        |sealed| sealed.checkpoint.number = 8,
        |sealed| sealed.checkpoint.at = NOW.plus_seconds(1),
        |sealed| sealed.checkpoint.entries.truncate(1),
        |sealed| sealed.checkpoint.entries.reverse(),
        |sealed| sealed.checkpoint.hash = Digest::from_bytes([6; 32]),
        |sealed| sealed.key = key_id(2),
        |sealed| sealed.code = Digest::from_bytes([0; 32]),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut changed = sealed.clone();
        change(&mut changed);
        assert!(!sealer.is_genuine_checkpoint(&changed), "change {index}");
    }
    let later = HmacAuditSealer::new((key_id(2), &key(2)), [(key_id(1), &key(1))]);
    assert!(later.is_genuine_checkpoint(&sealed), "older keys still verify");
}

/// The hash of a checkpoint is SHA-256, of this content, for ever.
#[test]
fn a_checkpoint_is_hashed_as_it_always_was() {
    let sealer = HmacAuditSealer::new((key_id(1), &key(1)), []);
    let content = CheckpointContent {
        previous: Digest::from_bytes([1; 32]),
        number: 2,
        at: vault_core::time::Timestamp::from_millis(3),
        entries: &[(AuditId::from_uuid(id(4)), &[5; 32])],
    };
    let entry = id(4);
    let plain = [
        b"orgvault/1/audit checkpoint".as_slice(),
        &[1; 32],
        &2_u64.to_be_bytes(),
        &3_u64.to_be_bytes(),
        &1_u64.to_be_bytes(),
        entry.as_bytes(),
        &32_u64.to_be_bytes(),
        &[5; 32],
    ];
    let expected: [u8; 32] = Sha256::digest(plain.concat()).into();
    assert_eq!(sealer.hash_checkpoint(&content.to_bytes()), Digest::from_bytes(expected));
}
