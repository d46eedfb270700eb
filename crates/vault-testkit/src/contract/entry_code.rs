//! Cases of [`AuditSealer`] that fakes also pass.

use super::crypto::CryptoSubject;
use crate::clock::ManualClock;
use uuid::Uuid;
use vault_core::audit::{
    Actor, AuditAction, AuditEntry, AuditNote, AuditRecord, Checkpoint, SealedAuditRecord, SealedCheckpoint, Subject,
};
use vault_core::digest::Digest;
use vault_core::id::{AccountId, AuditId, KeyId, OrganizationId, SessionId};
use vault_core::port::AuditSealer;
use vault_core::time::Timestamp;

const NOW: Timestamp = ManualClock::START;

pub(super) fn record() -> AuditRecord {
    AuditRecord {
        id: AuditId::from_bytes([1; 16]),
        at: NOW,
        organization: Some(OrganizationId::from_bytes([2; 16])),
        actor: Actor::Account(AccountId::from_bytes([3; 16]), SessionId::from_bytes([4; 16])),
        action: AuditAction::CredentialSaved,
        subject: Subject::Vault,
        count: 1,
        note: None,
        origin: vault_core::audit::Origin::default(),
        rows: Vec::new(),
        changes: Vec::new(),
    }
}

pub(super) fn checkpoint() -> Checkpoint {
    Checkpoint {
        number: 7,
        at: NOW,
        entries: vec![AuditId::from_bytes([1; 16]), AuditId::from_bytes([2; 16])],
        hash: Digest::from_bytes([5; 32]),
    }
}

pub(super) fn is_genuine(sealer: &dyn AuditSealer, sealed: &SealedAuditRecord) -> bool {
    sealer.is_code(sealed.key, &sealed.record.to_authenticated_bytes(), sealed.code)
}

/// The MAC of an entry verifies until any field of the entry is changed.
pub async fn mac_covers_each_field_of_entry<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let sealer = make().await.audit_sealer();
    let sealed = sealer.seal(record());
    assert!(is_genuine(&*sealer, &sealed));
    let changes: [fn(&mut SealedAuditRecord); 12] = [
        |sealed| sealed.record.id = AuditId::from_bytes([9; 16]),
        |sealed| sealed.record.at = NOW.plus_seconds(1),
        |sealed| sealed.record.organization = None,
        |sealed| sealed.record.actor = Actor::System,
        |sealed| sealed.record.actor = Actor::Embedder(AccountId::from_bytes([3; 16])),
        |sealed| sealed.record.action = AuditAction::CredentialDeleted,
        |sealed| sealed.record.subject = Subject::Instance,
        |sealed| sealed.record.count = 2,
        |sealed| sealed.record.origin.request = Some(Uuid::from_u128(7)),
        |sealed| sealed.record.origin.network = Some(vault_core::network::Network::V4([192, 0, 2])),
        |sealed| sealed.key = KeyId::from_bytes([9; 16]),
        |sealed| sealed.code = Digest::from_bytes([0; 32]),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut changed = sealed.clone();
        change(&mut changed);
        assert!(!is_genuine(&*sealer, &changed), "change {index}");
    }
}

/// A stored entry is verified by its columns, whatever their content.
pub async fn mac_covers_each_column_of_entry<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let sealer = make().await.audit_sealer();
    let noted = AuditRecord { note: Some(AuditNote::of(super::tools::namespace("imports"))), ..record() };
    for record in [record(), noted] {
        let written = sealer.seal(record).to_entry();
        assert!(written.is_genuine(&*sealer));
        let text = || Some("imports/x".to_owned());
        let changes: [&dyn Fn(&mut AuditEntry); 21] = [
            &|entry| entry.id = AuditId::from_bytes([9; 16]).to_string(),
            &|entry| entry.id = entry.id.to_uppercase() + "x",
            &|entry| entry.at = NOW.plus_seconds(1),
            &|entry| entry.organization = None,
            &|entry| entry.organization = Some("unknown".to_owned()),
            &|entry| entry.actor = "system".to_owned(),
            &|entry| entry.account = None,
            &|entry| entry.session = None,
            &|entry| entry.integration = Some(AccountId::from_bytes([3; 16]).to_string()),
            &|entry| entry.action = "credential.deleted".to_owned(),
            &|entry| entry.subject = "instance".to_owned(),
            &|entry| entry.count = 2,
            &|entry| entry.namespace = text(),
            &|entry| entry.purpose = text(),
            &|entry| entry.purpose = Some(String::new()),
            &|entry| entry.network = text(),
            &|entry| entry.credentials = text(),
            &|entry| entry.request = text(),
            &|entry| entry.key = KeyId::from_bytes([9; 16]).to_string(),
            &|entry| entry.code = vec![0; 32],
            &|entry| entry.code = Vec::new(),
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut changed = written.clone();
            change(&mut changed);
            assert!(!changed.is_genuine(&*sealer), "change {index}");
        }
    }
}

/// The MAC of a checkpoint verifies until any field of it is changed. Checkpoints have equal hashes exactly if their
/// contents are equal.
pub async fn mac_covers_checkpoint<S: CryptoSubject>(make: impl AsyncFn() -> S) {
    let sealer = make().await.audit_sealer();
    let sealed = sealer.seal_checkpoint(checkpoint());
    assert!(sealer.is_genuine_checkpoint(&sealed));
    let changes: [fn(&mut SealedCheckpoint); 7] = [
        |sealed| sealed.checkpoint.number = 8,
        |sealed| sealed.checkpoint.at = NOW.plus_seconds(1),
        |sealed| sealed.checkpoint.entries.truncate(1),
        |sealed| sealed.checkpoint.entries.reverse(),
        |sealed| sealed.checkpoint.hash = Digest::from_bytes([6; 32]),
        |sealed| sealed.key = KeyId::from_bytes([9; 16]),
        |sealed| sealed.code = Digest::from_bytes([0; 32]),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut changed = sealed.clone();
        change(&mut changed);
        assert!(!sealer.is_genuine_checkpoint(&changed), "change {index}");
    }
    assert_eq!(sealer.hash_checkpoint(b"content"), sealer.hash_checkpoint(b"content"));
    assert_ne!(sealer.hash_checkpoint(b"content"), sealer.hash_checkpoint(b"contenu"));
}
