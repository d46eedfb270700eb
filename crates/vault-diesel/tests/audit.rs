//! The audit log in the encrypted file after changes by an attacker who has its key, and its removal and delivery on
//! both databases.

use crate::support;

use rusqlite::Connection;
use std::sync::Arc;
use support::NOW;
use support::sqlite::Scratch;
use uuid::Uuid;
use vault_core::audit::{
    Actor, AppendEntries, AuditAction, AuditFinding, Checkpoint, CutAudit, DeliveryLease, DeliveryPosition,
    DeliveryState, ReadCheckpoints, ReadDelivery, RecordDelivered, SealedCheckpoint, Subject,
};
use vault_core::id::AuditId;
use vault_core::time::Timestamp;
use vault_core::usecase::Operator;
use vault_diesel::SqliteStore;
use vault_testkit::contract::Store;
use vault_testkit::fake::FakeVault;
use vault_testkit::postgres::Cluster;

struct Setting {
    scratch: Scratch,
    fake: FakeVault<SqliteStore>,
    operator: Operator,
}

/// Nine entries in three checkpoints.
async fn setting() -> (Setting, Vec<AuditId>) {
    let scratch = Scratch::new();
    let fake = FakeVault::on(scratch.migrated().await);
    let setting = Setting { scratch, operator: fake.operator(), fake };
    let mut written = Vec::new();
    for _ in 0..3 {
        written.extend(setting.write(3).await);
        assert_eq!(setting.operator.seal_audit(1_000).await.unwrap().entries, 3);
    }
    (setting, written)
}

impl Setting {
    async fn write(&self, count: usize) -> Vec<AuditId> {
        let (environment, now) = (&self.fake.environment, self.fake.environment.now());
        let record = |_| environment.record(now, None, Actor::System, AuditAction::CredentialShown, Subject::Vault);
        let records: Vec<_> = (0..count).map(record).collect();
        let ids = records.iter().map(|sealed| sealed.record.id).collect();
        self.fake.operate(AppendEntries(records)).await.unwrap();
        ids
    }

    /// Changes the file with its key.
    fn with_key(&self, change: impl FnOnce(&Connection)) {
        change(&self.scratch.bare());
    }

    async fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let mut report = |finding: AuditFinding| findings.push(finding.to_string());
        self.operator.verify_audit(None, &mut report, &mut |_, _| {}).await.unwrap();
        findings
    }
}

/// The sealer skips an entry whose ID is malformed, and the verification reports it.
#[tokio::test(flavor = "multi_thread")]
async fn entries_with_foreign_ids_are_found() {
    let (setting, ids) = setting().await;
    let (first, columns) = (ids[0], "at, organization_id, actor, action, subject, count, key_id, code");
    setting.with_key(|file| {
        for id in ["", "00", "78", "ffffff"] {
            let sql = format!("INSERT INTO audit (id, {columns}) SELECT x'{id}', {columns} FROM audit WHERE id = ?1");
            file.execute(&sql, [first.as_uuid()]).unwrap();
        }
    });
    setting.write(2).await;
    assert_eq!(setting.operator.seal_audit(1_000).await.unwrap().entries, 2);
    let added = |id: &str| format!("entry {id} was added: its MAC does not verify, and no checkpoint contains it");
    assert_eq!(setting.findings().await, ["", "00", "78", "ffffff"].map(added));
}

/// The oldest entries are removed in one transaction, and only one process delivers at a time.
async fn oldest_entries_go_and_new_ones_are_delivered<S: Store>(store: Arc<S>) {
    let mut fake = FakeVault::on(store);
    // Nothing is removed if the clock differs from that of the database.
    fake.environment.clock = Arc::new(support::HostClock);
    let (operator, environment) = (fake.operator(), &fake.environment);
    let write = async |count: usize| {
        let record = |_| {
            environment.record(environment.now(), None, Actor::System, AuditAction::CredentialShown, Subject::Vault)
        };
        fake.operate(AppendEntries((0..count).map(record).collect())).await.unwrap();
        operator.seal_audit(1_000).await.unwrap();
    };
    let verify = async || {
        let mut findings = Vec::new();
        let mut report = |finding: AuditFinding| findings.push(finding.to_string());
        let verified = operator.verify_audit(None, &mut report, &mut |_, _| {}).await.unwrap();
        assert_eq!(findings, Vec::<String>::new());
        (verified.start, verified.newest, verified.entries)
    };
    for count in [3, 4, 1_000, 7] {
        write(count).await;
    }
    let before = environment.now().plus_seconds(1);
    let removed = async |last| operator.cut_audit(before, last, 1_000).await.unwrap().entries;
    assert_eq!(removed(Some(2)).await, 7);
    assert_eq!(verify().await, (2, 4, 1_007));
    assert_eq!(removed(None).await, 1_000);
    assert_eq!(removed(None).await, 0, "the newest checkpoint stays");
    operator.seal_audit(1_000).await.unwrap();
    assert_eq!(verify().await, (3, 5, 9));

    // A start that does not match the checkpoints changes nothing.
    let [start, next]: [_; 2] =
        fake.operate(ReadCheckpoints::After { number: 0, limit: 2 }).await.unwrap().try_into().unwrap();
    let (start, next) = (start.sealed.unwrap(), next.sealed.unwrap());
    let entry =
        || environment.record(environment.now(), None, Actor::System, AuditAction::AuditTruncated, Subject::Audit);
    let entries = next.checkpoint.entries.clone();
    for (first, start) in [
        (4, &next),
        (3, &SealedCheckpoint { checkpoint: Checkpoint { number: 4, ..start.checkpoint.clone() }, ..start.clone() }),
    ] {
        let cut = CutAudit { first, entries: entries.clone(), start: start.clone(), audit: entry() };
        assert!(!fake.operate(cut).await.unwrap());
    }
    assert_eq!(verify().await, (3, 5, 9));

    let position = |checkpoint| DeliveryPosition { checkpoint, key: Uuid::from_u128(7).to_string(), mac: vec![7; 32] };
    let (one, other, now) = (Uuid::from_u128(1), Uuid::from_u128(2), environment.now());
    let take = async |holder, now: Timestamp| {
        let first = position(0);
        fake.operate(DeliveryLease { holder, now, until: now.plus_seconds(60), first }).await.unwrap()
    };
    let note = async |holder, from, to| fake.operate(RecordDelivered { holder, from, to: position(to) }).await.unwrap();
    assert_eq!(fake.operate(ReadDelivery).await.unwrap(), None);
    assert_eq!(take(one, now).await, Some(position(0)));
    assert_eq!(take(other, now.plus_seconds(59)).await, None);
    assert!(!note(other, 0, 6).await);
    assert!(!note(one, 4, 6).await);
    assert!(note(one, 0, 6).await);
    let (position_now, until) = (position(6), Some(now.plus_seconds(60)));
    assert_eq!(fake.operate(ReadDelivery).await.unwrap(), Some(DeliveryState { position: position_now, until }));
    assert_eq!(take(other, now.plus_seconds(60)).await, Some(position(6)));
    assert!(!note(one, 6, 7).await);
    assert_eq!(
        take(one, now.plus_seconds(59)).await,
        Some(position(6)),
        "no process takes it for longer than a minute"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_entries_are_deleted_from_file() {
    let scratch = Scratch::new();
    oldest_entries_go_and_new_ones_are_delivered(scratch.migrated().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oldest_entries_are_deleted_from_postgres() {
    let address = Cluster::shared().create_database();
    let store = support::postgres::patient_store(&address).await;
    store.migrate(NOW, &mut |_| {}).await.unwrap();
    oldest_entries_go_and_new_ones_are_delivered(store).await;
}
