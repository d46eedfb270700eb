use super::*;
use crate::testing::{NOW, id, key, key_id};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::id::{AccountId, AuditId, OrganizationId, SessionId};

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
    }
}

#[test]
fn a_change_of_any_field_shows() {
    let sealer = HmacAuditSealer::new((key_id(1), &key(1)), []);
    let sealed = sealer.seal(record());
    assert!(sealer.verify(&sealed));
    let changes: [fn(&mut SealedAuditRecord); 10] = [
        |sealed| sealed.record.id = AuditId::from_uuid(id(9)),
        |sealed| sealed.record.at = NOW.plus_seconds(1),
        |sealed| sealed.record.organization = None,
        |sealed| sealed.record.actor = Actor::System,
        |sealed| sealed.record.actor = Actor::Embedder(AccountId::from_uuid(id(3))),
        |sealed| sealed.record.action = AuditAction::CredentialDeleted,
        |sealed| sealed.record.subject = Subject::Instance,
        |sealed| sealed.record.count = 2,
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
