use super::*;
use crate::testing::{NOW, id, key_id, keyring_of};
use vault_core::audit::{Actor, AuditAction, CheckpointContent, Subject};
use vault_core::id::{AccountId, AuditId, InstanceId, OrganizationId, SessionId};

fn sealer(audit: &[u8]) -> HmacAuditSealer {
    HmacAuditSealer::new(Arc::new(keyring_of(InstanceId::from_uuid(id(1)), 9, audit, &[9])))
}

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
        changes: Vec::new(),
    }
}

#[test]
fn older_keys_verify_and_newest_seals() {
    let before = sealer(&[1]);
    let after = sealer(&[2, 1]);
    assert!(after.verify(&before.seal(record())));
    assert_eq!(after.seal(record()).key, key_id(2));
    assert!(!before.verify(&after.seal(record())));
    let (number, hash) = (7, Digest::from_bytes([5; 32]));
    let checkpoint = Checkpoint { number, at: NOW, entries: vec![AuditId::from_uuid(id(1))], hash };
    assert!(after.is_genuine_checkpoint(&before.seal_checkpoint(checkpoint)));
}

/// The hash of a checkpoint is SHA-256 of this content and must never change.
#[test]
fn checkpoint_hash_is_pinned() {
    let sealer = sealer(&[1]);
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
