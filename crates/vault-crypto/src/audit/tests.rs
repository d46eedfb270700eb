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

/// `vault-core` tests that the bytes contain each field.
#[test]
fn mac_covers_all_bytes_and_names_its_key() {
    let sealer = sealer(&[2, 1]);
    let sealed = sealer.seal(record());
    let mut bytes = record().to_authenticated_bytes();
    assert!(sealer.is_mac(sealed.key, &bytes, sealed.mac));
    assert!(!sealer.is_mac(key_id(1), &bytes, sealed.mac) && !sealer.is_mac(key_id(9), &bytes, sealed.mac));
    assert!(!sealer.is_mac(sealed.key, &bytes, Digest::from_bytes([0; 32])));
    for place in 0..bytes.len() {
        bytes[place] ^= 1;
        assert!(!sealer.is_mac(sealed.key, &bytes, sealed.mac), "{place}");
        bytes[place] ^= 1;
    }
    let entries = vec![AuditId::from_uuid(id(1)), AuditId::from_uuid(id(2))];
    let sealed = sealer.seal_checkpoint(Checkpoint { number: 7, at: NOW, entries, hash: Digest::from_bytes([5; 32]) });
    let changes: [fn(&mut SealedCheckpoint); 7] = [
        |sealed| sealed.checkpoint.number = 8,
        |sealed| sealed.checkpoint.at = NOW.plus_seconds(1),
        |sealed| sealed.checkpoint.entries.truncate(1),
        |sealed| sealed.checkpoint.entries.reverse(),
        |sealed| sealed.checkpoint.hash = Digest::from_bytes([6; 32]),
        |sealed| sealed.key = key_id(1),
        |sealed| sealed.mac = Digest::from_bytes([0; 32]),
    ];
    assert!(sealer.is_genuine_checkpoint(&sealed));
    for (index, change) in changes.iter().enumerate() {
        let mut changed = sealed.clone();
        change(&mut changed);
        assert!(!sealer.is_genuine_checkpoint(&changed), "change {index}");
    }
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
