//! Sealing the audit log, and verifying it after changes by an attacker with write access to the database.

use async_trait::async_trait;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use uuid::Uuid;
use vault_core::audit::{
    Actor, AuditAction, AuditEntry, AuditFinding, AuditVerification, CHECKPOINT_ENTRIES, CheckpointRef, DeliveryBreach,
    DeliveryPosition, Subject,
};
use vault_core::audit::{AppendEntries, SealedCheckpoint, UnsealedEntries};
use vault_core::digest::Digest;
use vault_core::id::AuditId;
use vault_core::port::{AuditSealer, AuditSink, Clock as _, Event, StoreError};
use vault_core::time::Timestamp;
use vault_core::usecase::{DeliveredAudit, Operator, RemovedAudit, SealedAudit};
use vault_testkit::crypto::FakeAuditSealer;
use vault_testkit::fake::FakeVault;

/// Longer than any round of these tests.
const MILLIS: i64 = 1_000;

struct Setting {
    fake: FakeVault,
    operator: Operator,
}

impl Deref for Setting {
    type Target = FakeVault;

    fn deref(&self) -> &FakeVault {
        &self.fake
    }
}

fn setting() -> Setting {
    let fake = FakeVault::new();
    Setting { operator: fake.operator(), fake }
}

impl Setting {
    async fn write(&self, count: usize) -> Vec<AuditId> {
        let now = self.environment.now();
        let record =
            |_| self.environment.record(now, None, Actor::System, AuditAction::CredentialShown, Subject::Vault);
        let records: Vec<_> = (0..count).map(record).collect();
        let ids = records.iter().map(|sealed| sealed.record.id).collect();
        self.operate(AppendEntries(records)).await.unwrap();
        ids
    }

    async fn seal(&self) -> SealedAudit {
        self.operator.seal_audit(MILLIS).await.unwrap()
    }

    async fn verify(&self, anchor: Option<CheckpointRef>) -> (AuditVerification, Vec<AuditFinding>) {
        let mut findings = Vec::new();
        let mut steps = Vec::new();
        let mut report = |finding| findings.push(finding);
        let mut progress = |done, total| steps.push((done, total));
        let verification = self.operator.verify_audit(anchor, &mut report, &mut progress).await.unwrap();
        assert!(steps.iter().all(|(done, total)| done <= total) && steps.is_sorted(), "{steps:?}");
        assert_eq!(verification.findings, u64::try_from(findings.len()).unwrap());
        (verification, findings)
    }

    /// Seals entries in checkpoints with 3, 4 and 5 entries.
    async fn sealed(&self) -> Vec<AuditId> {
        let mut ids = Vec::new();
        for count in [3, 4, 5] {
            ids.extend(self.write(count).await);
            assert_eq!(self.seal().await, SealedAudit { entries: count, more: false });
            self.clock.advance_seconds(1);
        }
        ids
    }
}

#[tokio::test]
async fn sealed_audit_log_verifies() {
    let setting = setting();
    assert_eq!(setting.verify(None).await, (AuditVerification::default(), Vec::new()));
    setting.sealed().await;
    let newest = setting.operator.newest_checkpoint().await.unwrap();
    setting.write(2).await;
    let (verification, findings) = setting.verify(Some(newest)).await;
    let expected = AuditVerification { entries: 12, checkpoints: 3, unsealed: 2, newest: 3, start: 0, findings: 0 };
    assert_eq!((verification, findings), (expected, Vec::new()));
    assert!(setting.operator.has_checkpoint(newest).await.unwrap());
    assert_eq!(setting.seal().await, SealedAudit { entries: 2, more: false });
    assert_eq!(setting.seal().await, SealedAudit::default(), "an idle round writes nothing");
}

/// An entry that is removed before its checkpoint leaves no trace in the store. The process that recorded it reports it.
#[tokio::test]
async fn entry_removed_before_its_checkpoint_is_reported() {
    let setting = setting();
    let organizations = setting.operator.clone();
    let reported = || {
        let events = setting.events.events().into_iter();
        let ids = events.filter_map(|event| match event {
            Event::IntegrityFailure { table: "audit", id } => Some(id),
            _ => None,
        });
        ids.collect::<Vec<_>>()
    };
    organizations.create_organization("Sealed here").await.unwrap();
    assert_eq!(setting.seal().await.entries, 1);
    // Sealed by another process.
    organizations.create_organization("Sealed elsewhere").await.unwrap();
    let other = FakeVault::on(setting.store.clone());
    other.clock.advance_seconds(1);
    assert_eq!(other.operator().seal_audit(MILLIS).await.unwrap().entries, 1);
    setting.seal().await;
    assert_eq!(reported(), Vec::<String>::new());

    organizations.create_organization("Hidden").await.unwrap();
    let unsealed = setting.operate(UnsealedEntries { after: None, limit: 10 }).await.unwrap();
    let [hidden] = &unsealed[..] else { panic!("{unsealed:?}") };
    let hidden = hidden.id.clone();
    setting.store.remove_audit(hidden.parse().unwrap());
    setting.store.fail_next(StoreError::Unavailable("gone".into()));
    assert!(setting.operator.seal_audit(MILLIS).await.is_err());
    assert_eq!(reported(), Vec::<String>::new(), "the round was not complete");
    setting.seal().await;
    assert_eq!(reported(), std::slice::from_ref(&hidden));
    setting.seal().await;
    assert_eq!(reported(), [hidden], "reported once");

    // A checkpoint that the attacker wrote does not count.
    organizations.create_organization("Claimed").await.unwrap();
    assert_eq!(other.operator().seal_audit(MILLIS).await.unwrap().entries, 1);
    setting.store.tamper_with_checkpoints(|checkpoints, _| {
        let newest = checkpoints.values_mut().next_back().unwrap();
        newest.mac = Digest::from_bytes([7; 32]);
    });
    setting.seal().await;
    assert_eq!(reported().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_sealers_create_one_chain() {
    let setting = Arc::new(setting());
    let mut written = 0;
    for _ in 0..20 {
        written += setting.write(7).await.len();
        let rounds = (0..4).map(|_| {
            let operator = setting.operator.clone();
            tokio::spawn(async move { operator.seal_audit(MILLIS).await.unwrap().entries })
        });
        for round in rounds.collect::<Vec<_>>() {
            round.await.unwrap();
        }
    }
    setting.seal().await;
    let (verification, findings) = setting.verify(None).await;
    assert_eq!((verification.entries, verification.unsealed), (u64::try_from(written).unwrap(), 0));
    assert_eq!(findings, []);
}

/// If a sealer is interrupted between two checkpoints, or its response is lost, the next one continues the chain.
#[tokio::test]
async fn next_sealer_continues_chain() {
    let setting = setting();
    setting.write(3).await;
    setting.seal().await;
    setting.write(3).await;
    // The write is the third call: entries and newest checkpoint are read first.
    for read in [true, false] {
        let gone = || StoreError::Unavailable("gone".into());
        match read {
            true => setting.store.fail_next(gone()),
            false => setting.store.lose_answer_after(2, gone()),
        }
        assert!(setting.operator.seal_audit(MILLIS).await.is_err());
    }
    setting.seal().await;
    let (verification, findings) = setting.verify(None).await;
    assert_eq!((verification.entries, verification.unsealed, findings), (6, 0, Vec::new()));
}

/// The findings after each tampering with three checkpoints, whose entries are `ids[..3]`, `ids[3..7]` and `ids[7..]`.
#[tokio::test]
async fn tampering_is_found() {
    type Tampering = fn(&Setting, &[AuditId], AuditId) -> Vec<AuditFinding>;
    fn checkpoints(setting: &Setting, change: impl FnOnce(&mut BTreeMap<i64, SealedCheckpoint>)) {
        setting.store.tamper_with_checkpoints(|checkpoints, _| change(checkpoints));
    }
    fn numbered(setting: &Setting, id: AuditId, number: i64) {
        setting.store.tamper_with_checkpoints(|_, numbers| _ = numbers.insert(id, number));
    }
    fn reordered(entry: AuditId, belongs: String) -> AuditFinding {
        AuditFinding::Reordered { entry: entry.to_string(), belongs }
    }
    let tamperings: [(&str, Tampering); 8] = [
        ("two entries are swapped, and a third is changed", |setting, ids, spare| {
            let (one, other, changed) = (ids[1], ids[9], ids[5]);
            for (from, to) in [(one, spare), (other, one), (spare, other)] {
                assert!(setting.store.tamper_with_audit(from, |record| record.id = to));
            }
            assert!(setting.store.tamper_with_audit(changed, |record| record.at = record.at.plus_seconds(60)));
            let changed = AuditFinding::Changed { entry: changed.to_string(), checkpoint: 2 };
            vec![reordered(one, format!("entry {other}")), changed, reordered(other, format!("entry {one}"))]
        }),
        // Its valid MAC cannot be computed outside the service.
        ("an entry is added to a checkpoint", |setting, _, new| {
            numbered(setting, new, 2);
            vec![AuditFinding::Added { entry: new.to_string(), checkpoint: Some(2) }]
        }),
        ("an entry without a valid MAC is added", |setting, _, new| {
            setting.store.tamper_with_audit(new, |record| record.count = 9);
            vec![AuditFinding::Added { entry: new.to_string(), checkpoint: None }]
        }),
        ("an entry names another checkpoint", |setting, ids, _| {
            numbered(setting, ids[0], 2);
            vec![reordered(ids[0], "checkpoint 1, and its row says checkpoint 2".to_owned())]
        }),
        ("an entry names no checkpoint", |setting, ids, _| {
            setting.store.tamper_with_checkpoints(|_, numbers| _ = numbers.remove(&ids[1]));
            vec![reordered(ids[1], "checkpoint 1, and its row says that none holds it".to_owned())]
        }),
        ("a checkpoint is missing", |setting, _, _| {
            checkpoints(setting, |all| _ = all.remove(&2));
            vec![AuditFinding::CheckpointsMissing { first: 2, last: 2 }]
        }),
        ("an entry is removed from a checkpoint", |setting, _, _| {
            checkpoints(setting, |all| _ = all.get_mut(&2).unwrap().checkpoint.entries.pop());
            vec![AuditFinding::CheckpointChanged { checkpoint: 2 }]
        }),
        // By an attacker with the audit key.
        ("a checkpoint is created again", |setting, _, _| {
            checkpoints(setting, |all| {
                let first = all[&1].checkpoint.hash;
                let second = all.get_mut(&2).unwrap();
                second.checkpoint.hash = first;
                *second = AuditSealer::seal_checkpoint(&FakeAuditSealer, second.checkpoint.clone());
            });
            [2, 3].map(|checkpoint| AuditFinding::CheckpointReplaced { checkpoint }).to_vec()
        }),
    ];
    for (what, tamper) in tamperings {
        let setting = setting();
        let ids = setting.sealed().await;
        let new = setting.write(1).await[0];
        let spare = if what.starts_with("two") { AuditId::from_uuid(setting.environment.ids.random()) } else { new };
        let expected = tamper(&setting, &ids, spare);
        let (_, findings) = setting.verify(None).await;
        assert_eq!(findings[..expected.len()], expected, "{what}");
        let follow = what.contains("names") || what.contains("removed");
        assert!(findings.len() == expected.len() || follow, "{what}: {findings:?}");
    }
}

/// The newest entries are deleted with their checkpoints. Only the anchor proves that they existed.
#[tokio::test]
async fn anchor_detects_truncated_audit_log() {
    let setting = setting();
    let ids = setting.sealed().await;
    let anchor = setting.operator.newest_checkpoint().await.unwrap();
    setting.store.tamper_with_checkpoints(|checkpoints, _| drop(checkpoints.remove(&3)));
    for id in &ids[7..] {
        assert!(setting.store.remove_audit(*id));
    }
    assert_eq!(setting.verify(None).await.1, []);
    assert_eq!(setting.verify(Some(anchor)).await.1, [AuditFinding::Truncated { newest: 2, anchored: 3 }]);
    assert!(!setting.operator.has_checkpoint(anchor).await.unwrap());
    // A service that was restarted on the remaining entries writes again.
    setting.write(1).await;
    setting.seal().await;
    assert_eq!(setting.verify(Some(anchor)).await.1, [AuditFinding::AnchorDiffers { checkpoint: 3 }]);
    assert_eq!(setting.verify(Some(CheckpointRef::NONE)).await.1, []);
}

/// An attacker with write access to the database can neither delete the oldest entries in this way nor hide that they
/// are missing.
#[tokio::test]
async fn forged_start_entry_is_found() {
    let cut = async || {
        let setting = setting();
        setting.sealed().await;
        setting.operator.cut_audit(setting.clock.now(), Some(1), MILLIS).await.unwrap();
        setting
    };
    let setting = cut().await;
    setting.store.tamper_with_checkpoints(|checkpoints, _| drop(checkpoints.remove(&1)));
    assert_eq!(setting.verify(None).await.1, [AuditFinding::CheckpointsMissing { first: 1, last: 1 }]);
    // The second one without its entries, like the first.
    let setting = cut().await;
    setting.store.tamper_with_checkpoints(|checkpoints, _| {
        checkpoints.remove(&1);
        checkpoints.get_mut(&2).unwrap().checkpoint.entries.clear();
    });
    let (_, findings) = setting.verify(None).await;
    assert!(findings.contains(&AuditFinding::CheckpointChanged { checkpoint: 2 }), "{findings:?}");
    // An entry names a checkpoint that was deleted.
    let setting = cut().await;
    let added = setting.write(1).await[0];
    setting.store.tamper_with_checkpoints(|_, numbers| assert!(numbers.insert(added, 1).is_none()));
    let expected = AuditFinding::Added { entry: added.to_string(), checkpoint: Some(1) };
    assert_eq!(setting.verify(None).await.1, [expected]);
    // Nothing is deleted from a damaged checkpoint on, because it is evidence.
    let setting = cut().await;
    setting.store.tamper_with_checkpoints(|checkpoints, _| {
        checkpoints.get_mut(&2).unwrap().checkpoint.at = Timestamp::from_millis(0)
    });
    let removed = setting.operator.cut_audit(setting.clock.now(), None, MILLIS).await.unwrap();
    assert_eq!(removed, RemovedAudit { damaged: Some(2), ..RemovedAudit::default() });
}

/// Accepts entries until it is set to reject them.
#[derive(Default)]
struct Sink {
    taken: Mutex<Vec<String>>,
    refuses: AtomicBool,
}

#[async_trait]
impl AuditSink for Sink {
    async fn deliver(&self, entries: &[AuditEntry]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err("full".into());
        }
        self.taken.lock().unwrap().extend(entries.iter().map(|entry| entry.id.clone()));
        Ok(())
    }
}

/// Stored entries are delivered once and in order, by one process at a time. Entries that the sink rejects stay
/// pending.
#[tokio::test]
async fn entries_are_delivered_in_order_by_one_process() {
    let setting = setting();
    let (sink, one, other) = (Sink::default(), Uuid::from_u128(1), Uuid::from_u128(2));
    let mut ids = setting.sealed().await;
    let deliver = async |holder| setting.operator.deliver_audit(&sink, holder, MILLIS).await;
    let delivered = |entries, checkpoint| Some(DeliveredAudit { entries, checkpoint, waiting: 0 });
    assert_eq!(deliver(one).await.unwrap(), delivered(12, 3), "it starts with the oldest stored entry");
    ids.extend(setting.sealed().await);
    assert_eq!(deliver(other).await.unwrap(), None, "another process delivers");
    assert_eq!(deliver(one).await.unwrap(), delivered(12, 6));
    ids.extend(setting.write(2).await);
    setting.seal().await;
    sink.refuses.store(true, Ordering::Relaxed);
    let refused = deliver(one).await.unwrap_err();
    assert_eq!(refused.to_string(), "the entries of audit checkpoint 7 were not accepted");
    sink.refuses.store(false, Ordering::Relaxed);
    setting.operator.end_delivery(one).await.unwrap();
    assert_eq!(deliver(other).await.unwrap(), delivered(2, 7));
    assert_eq!(deliver(one).await.unwrap(), None);
    setting.clock.advance_seconds(61);
    assert_eq!(deliver(one).await.unwrap(), delivered(0, 7), "a process that went away is replaced");
    assert_eq!(*sink.taken.lock().unwrap(), ids.iter().map(ToString::to_string).collect::<Vec<_>>());
}

/// Progress of a verification: each checkpoint is a step, and reading the entries takes the same number of steps.
#[tokio::test]
async fn progress_is_reported_by_checkpoint() {
    let setting = setting();
    setting.sealed().await;
    let mut steps = Vec::new();
    setting.operator.verify_audit(None, &mut |_| {}, &mut |done, total| steps.push((done, total))).await.unwrap();
    assert_eq!(steps, [(1, 6), (2, 6), (3, 6), (6, 6)]);
    // Entries are read page by page. Entries without a checkpoint do not count.
    let setting = self::setting();
    setting.write(3 * CHECKPOINT_ENTRIES / 2).await;
    setting.seal().await;
    setting.write(CHECKPOINT_ENTRIES).await;
    steps.clear();
    setting.operator.verify_audit(None, &mut |_| {}, &mut |done, total| steps.push((done, total))).await.unwrap();
    assert_eq!(steps, [(1, 4), (2, 4), (3, 4), (4, 4), (4, 4)]);
}

/// Checkpoints that entries name and that were never created are each reported as missing once, up to a limit.
#[tokio::test]
async fn entries_that_name_future_checkpoints_are_found() {
    let setting = setting();
    setting.sealed().await;
    let planted = setting.write(1_300).await;
    let name = |of: fn(i64) -> i64| {
        setting.store.tamper_with_checkpoints(|_, numbers| {
            numbers.extend((0..).zip(&planted).map(|(index, id)| (*id, of(index))));
        });
    };
    name(|index| 50 + index % 2);
    let missing = |number| AuditFinding::CheckpointsMissing { first: number, last: number };
    assert_eq!(setting.verify(None).await.1, [missing(50), missing(51)]);
    name(|index| 50 + index);
    assert_eq!(setting.verify(None).await.1, (50..1_050).map(missing).collect::<Vec<_>>());
}

/// One transaction deletes at most the entries of one checkpoint, so that the audit log is never locked for long.
#[tokio::test]
async fn expired_entries_are_removed_by_checkpoint() {
    let setting = setting();
    for count in [400, 600, 300, 701, 5] {
        setting.write(count).await;
        setting.seal().await;
    }
    setting.clock.advance_seconds(1);
    let now = setting.clock.now();
    assert_eq!(setting.operator.audit_start().await.unwrap(), None);
    let undelivered = setting.operator.cut_audit(now, Some(0), MILLIS).await.unwrap();
    assert_eq!(undelivered, RemovedAudit::default(), "undelivered entries stay");
    let round = setting.operator.cut_audit(now, None, 0).await.unwrap();
    assert_eq!(round, RemovedAudit { entries: 1_000, damaged: None, more: true }, "its time is used");
    assert_eq!(setting.operator.audit_start().await.unwrap().unwrap().number, 2);
    let round = setting.operator.cut_audit(now, None, MILLIS).await.unwrap();
    assert_eq!(round, RemovedAudit { entries: 1_001, damaged: None, more: false });
    let counts: Vec<_> = setting
        .store
        .audit()
        .iter()
        .filter(|one| one.action == AuditAction::AuditTruncated)
        .map(|one| one.count)
        .collect();
    assert_eq!(counts, [1_000, 300, 701]);
    // An entry of a checkpoint before the start.
    let added = setting.write(1).await[0];
    setting.store.tamper_with_checkpoints(|_, numbers| assert!(numbers.insert(added, 1).is_none()));
    let (verification, findings) = setting.verify(setting.operator.audit_start().await.unwrap()).await;
    assert_eq!(findings, [AuditFinding::Added { entry: added.to_string(), checkpoint: Some(1) }]);
    assert_eq!((verification.start, verification.entries, verification.unsealed), (4, 5, 3));
    // A start of the log without a valid MAC is ignored.
    setting.store.tamper_with_checkpoints(|checkpoints, _| {
        checkpoints.get_mut(&4).unwrap().checkpoint.at = Timestamp::from_millis(0);
    });
    assert_eq!(setting.operator.audit_start().await.unwrap(), None);
}

/// An attacker with write access to the database can delay the delivery by a minute, but can neither stop it nor hide
/// the change.
#[tokio::test]
async fn changed_delivery_position_is_reported_and_redelivered() {
    type Act = fn(&mut DeliveryPosition, &mut Timestamp);
    let acts: [(&str, Act); 4] = [
        ("ahead", |position, _| position.checkpoint = 1_000_000),
        ("not delivered yet", |position, _| position.checkpoint = 4),
        ("without a code", |position, _| position.mac.clear()),
        ("of an unknown key", |position, _| position.key = "key".to_owned()),
    ];
    for (what, act) in acts {
        let setting = setting();
        let (sink, holder) = (Sink::default(), Uuid::from_u128(1));
        let mut ids = setting.sealed().await;
        let deliver = async || setting.operator.deliver_audit(&sink, holder, MILLIS).await.unwrap().unwrap();
        deliver().await;
        ids.extend(setting.sealed().await);
        setting.store.tamper_with_delivery(act);
        let progress = setting.operator.delivery_progress().await.unwrap().unwrap();
        assert!(progress.breach.is_some(), "{what}");
        sink.taken.lock().unwrap().clear();
        assert_eq!(deliver().await, DeliveredAudit { entries: 24, checkpoint: 6, waiting: 0 }, "{what}");
        assert_eq!(*sink.taken.lock().unwrap(), ids.iter().map(ToString::to_string).collect::<Vec<_>>(), "{what}");
        let reported = setting.events.take();
        let broken = |event: &Event| matches!(event, Event::IntegrityFailure { table: "audit_delivery", .. });
        assert!(reported.iter().any(broken), "{what}: {reported:?}");
        // A reader of the sink can see it, too.
        setting.seal().await;
        deliver().await;
        let reset =
            setting.store.audit().into_iter().find(|one| one.action == AuditAction::AuditDeliveryReset).unwrap();
        assert!(sink.taken.lock().unwrap().contains(&reset.id.to_string()), "{what}");
        assert_eq!(setting.operator.delivery_progress().await.unwrap().unwrap().breach, None, "{what}");
    }
    // A lease so far in the future cannot come from a process and is ignored.
    let setting = setting();
    let (sink, one, other) = (Sink::default(), Uuid::from_u128(1), Uuid::from_u128(2));
    setting.operator.deliver_audit(&sink, one, MILLIS).await.unwrap().unwrap();
    setting.store.tamper_with_delivery(|_, until| *until = until.plus_seconds(1_000_000));
    let progress = setting.operator.delivery_progress().await.unwrap().unwrap();
    assert!(matches!(progress.breach, Some(DeliveryBreach::Reserved(_))), "{progress:?}");
    assert!(setting.operator.deliver_audit(&sink, other, MILLIS).await.unwrap().is_some());
}

/// Entries that were modified before their retention ended are kept as evidence, with all later ones.
#[tokio::test]
async fn tampered_entries_are_not_removed() {
    type Act = fn(&Setting, &[AuditId]);
    let acts: [(&str, Act); 4] = [
        ("changed", |setting, ids| assert!(setting.store.tamper_with_audit(ids[4], |record| record.count = 9))),
        ("removed", |setting, ids| assert!(setting.store.remove_audit(ids[4]))),
        ("named by another checkpoint", |setting, ids| {
            setting.store.tamper_with_checkpoints(|_, numbers| _ = numbers.insert(ids[4], 1));
        }),
        ("with another checkpoint before it", |setting, _| {
            setting.store.tamper_with_checkpoints(|checkpoints, _| {
                let second = checkpoints.get_mut(&2).unwrap();
                second.checkpoint.hash = Digest::from_bytes([7; 32]);
                *second = AuditSealer::seal_checkpoint(&FakeAuditSealer, second.checkpoint.clone());
            });
        }),
    ];
    for (what, act) in acts {
        let setting = setting();
        let ids = setting.sealed().await;
        act(&setting, &ids);
        let (_, before) = setting.verify(None).await;
        assert!(!before.is_empty(), "{what}");
        let end = setting.clock.now().plus_seconds(60);
        let removed = setting.operator.cut_audit(end, None, MILLIS).await.unwrap();
        assert_eq!(removed, RemovedAudit { entries: 3, damaged: Some(2), more: false }, "{what}");
        let (_, after) = setting.verify(None).await;
        assert_eq!(after, before, "{what}");
    }
    // The oldest checkpoint with its entries.
    let setting = setting();
    let ids = setting.sealed().await;
    setting.store.tamper_with_checkpoints(|checkpoints, _| drop(checkpoints.remove(&1)));
    for id in &ids[..3] {
        assert!(setting.store.remove_audit(*id));
    }
    let removed = setting.operator.cut_audit(setting.clock.now(), None, MILLIS).await.unwrap();
    assert_eq!(removed, RemovedAudit { entries: 0, damaged: Some(2), more: false });
}

/// A round of delivery stops when its time is used up. It delivers at least one checkpoint.
#[tokio::test]
async fn delivery_round_stops_at_time_limit() {
    let setting = setting();
    let (sink, holder) = (Sink::default(), Uuid::from_u128(1));
    let deliver = async |millis| setting.operator.deliver_audit(&sink, holder, millis).await.unwrap().unwrap();
    deliver(MILLIS).await;
    setting.sealed().await;
    for (entries, checkpoint) in [(3, 1), (4, 2)] {
        let waiting = 3 - checkpoint;
        assert_eq!(deliver(0).await, DeliveredAudit { entries, checkpoint, waiting });
    }
    assert_eq!(deliver(MILLIS).await, DeliveredAudit { entries: 5, checkpoint: 3, waiting: 0 });
    assert_eq!(deliver(0).await, DeliveredAudit { entries: 0, checkpoint: 3, waiting: 0 });
}

/// A change that an attacker makes to one entry.
#[derive(Clone, Copy, Debug)]
enum Act {
    Remove,
    Change,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Verification reports exactly the deleted and changed entries, and all others are valid.
    #[test]
    fn exactly_the_tampering_is_found(
        sizes in proptest::collection::vec(1_usize..6, 1..6),
        acts in proptest::collection::btree_map(0_usize..30, prop_oneof![Just(Act::Remove), Just(Act::Change)], 0..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let setting = setting();
            let mut ids = Vec::new();
            for (number, size) in (1_i64..).zip(&sizes) {
                ids.extend(setting.write(*size).await.into_iter().map(|id| (id, number)));
                setting.seal().await;
            }
            let acts: BTreeMap<usize, Act> = acts.into_iter().filter(|(index, _)| *index < ids.len()).collect();
            let mut expected = BTreeSet::new();
            for (index, act) in &acts {
                let (id, checkpoint) = ids[*index];
                let finding = match act {
                    Act::Remove => {
                        assert!(setting.store.remove_audit(id));
                        AuditFinding::Missing { entry: id, checkpoint }
                    }
                    Act::Change => {
                        assert!(setting.store.tamper_with_audit(id, |record| record.at = Timestamp::from_millis(7)));
                        AuditFinding::Changed { entry: id.to_string(), checkpoint }
                    }
                };
                expected.insert(finding.to_string());
            }
            let (verification, findings) = setting.verify(None).await;
            let found: BTreeSet<String> = findings.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
            assert_eq!(findings.len(), acts.len());
            assert_eq!(verification.entries, u64::try_from(ids.len() - acts.len()).unwrap());
        });
    }
}
