//! Cases of the audit log and its checkpoints. The cases of each operation check that it writes its entry exactly if it
//! changed something.

use super::ContractStore;
use super::tools::{namespace, paged};
use super::world::World;
use crate::crypto::FakeAuditSealer;
use futures_util::future::join_all;
use vault_core::activation::{IssuedCredential, Purpose, VendedForm};
use vault_core::audit::{
    Actor, AddCheckpoint, AuditAction, AuditEntry, AuditNote, Checkpoint, CheckpointContent, CheckpointRef,
    FindEntries, ListEntries, ReadCheckpoints, SealedAuditRecord, SealedCheckpoint, StoredCheckpoint, UnsealedEntries,
    UnsealedEntry,
};
use vault_core::id::{AccountId, AuditId, CredentialId, IntegrationId, SessionId};
use vault_core::network::Network;
use vault_core::port::{AuditOrder, AuditRange, AuditSealer, IdGenerator};
use vault_core::principal::{Principal, Scope};

/// Appended entries are returned unchanged by their IDs and in lists, for every kind of actor, subject and note.
pub async fn entries_are_read_as_written(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let (account, session) = (AccountId::from_uuid(world.ids.random()), SessionId::from_uuid(world.ids.random()));
    let integration = IntegrationId::from_uuid(world.ids.random());
    let mut entries = Vec::new();
    for actor in [Actor::Account(account, session), Actor::Integration(integration), Actor::System] {
        let mut record = world.audit(AuditAction::CredentialsListed).record;
        (record.actor, record.count) = (actor, 17);
        record.origin.request = Some(world.ids.random());
        record.origin.network = (actor != Actor::System).then(|| Network::of("192.0.2.7".parse().unwrap()));
        entries.push(FakeAuditSealer.seal(record));
    }
    let mut record = world.audit(AuditAction::NamespaceActivated).record;
    record.note = Some(AuditNote {
        purpose: Some(Purpose::parse("Größe “Ωmega” % _ \\ ' nightly", "").unwrap()),
        network: Some(Network::of("2001:db8::1".parse().unwrap())),
        credentials: vec![IssuedCredential {
            credential: CredentialId::from_uuid(world.ids.random()),
            version: 3,
            form: VendedForm::Raw,
            expires_at: Some(world.now()),
        }],
        ..AuditNote::of(namespace("Team/nightly"))
    });
    entries.push(FakeAuditSealer.seal(record));
    world.append(entries.clone()).await.unwrap();
    let expected: Vec<AuditEntry> = entries.iter().map(SealedAuditRecord::to_entry).collect();
    let mut ids: Vec<AuditId> = entries.iter().map(|sealed| sealed.record.id).collect();
    ids.push(AuditId::from_uuid(world.ids.random()));
    let found = world.operate(&Principal::Operator, FindEntries(ids)).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|entry| AuditEntry { checkpoint: None, ..entry }).collect();
    assert_eq!(found, expected);
    assert!(found.iter().all(|entry| entry.is_genuine(&FakeAuditSealer)));
}

/// Lists work in both directions, within a range of IDs, and page by page. An organization's list includes entries once
/// they are sealed.
pub async fn entries_are_listed_in_ranges(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let entries: Vec<_> = (0..7).map(|_| world.audit(AuditAction::CredentialShown)).collect();
    world.append(entries.clone()).await.unwrap();
    world.append(vec![other.audit(AuditAction::CredentialShown)]).await.unwrap();
    let ids: Vec<String> = entries.iter().map(|sealed| sealed.record.id.to_string()).collect();
    assert!(ids.is_sorted());
    let list = async |order, from: usize, until: usize, after: Option<usize>, limit| {
        let id = |index: usize| entries.get(index).map(|sealed| sealed.record.id);
        let range = AuditRange { scope: Scope::One(world.organization), from: id(from), until: id(until), order };
        let after = after.map(|index| ids[index].clone());
        let found = world.operate(&Principal::Operator, ListEntries { range, after, limit }).await.unwrap();
        assert!(found.iter().all(|entry| entry.organization == Some(world.organization.to_string())));
        let own = found.iter().filter_map(|entry| ids.iter().position(|id| *id == entry.id));
        own.collect::<Vec<_>>()
    };
    assert!(list(AuditOrder::OldestFirst, 0, 9, None, 10).await.is_empty(), "nothing is sealed yet");
    add(&world, &entries).await;
    assert_eq!(list(AuditOrder::OldestFirst, 0, 9, None, 10).await, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(list(AuditOrder::NewestFirst, 0, 9, None, 10).await, [6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(list(AuditOrder::OldestFirst, 2, 5, None, 10).await, [2, 3, 4]);
    assert_eq!(list(AuditOrder::NewestFirst, 2, 5, None, 10).await, [4, 3, 2]);
    assert_eq!(list(AuditOrder::OldestFirst, 0, 9, Some(3), 2).await, [4, 5]);
    assert_eq!(list(AuditOrder::NewestFirst, 0, 9, Some(3), 2).await, [2, 1]);
    assert_eq!(list(AuditOrder::NewestFirst, 0, 3, Some(5), 9).await, [2, 1, 0]);

    let everything = AuditRange {
        scope: Scope::All,
        from: Some(entries[0].record.id),
        until: Some(entries[6].record.id),
        order: AuditOrder::OldestFirst,
    };
    let query = ListEntries { range: everything, after: None, limit: 1_000 };
    let found = world.operate(&Principal::Operator, query).await.unwrap();
    let found = found.iter().filter(|entry| ids.contains(&entry.id)).count();
    assert_eq!(found, 6);
}

/// A checkpoint is returned unchanged. Its entries name it and are not pending for another.
pub async fn checkpoint_covers_its_entries(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let entries: Vec<_> = (0..3).map(|_| world.audit(AuditAction::CredentialShown)).collect();
    world.append(entries.clone()).await.unwrap();
    assert_eq!(unsealed(&world, &entries).await, 3);
    let sealed = add(&world, &entries[..2]).await;
    let number = sealed.checkpoint.number;
    let found = world.checkpoints(ReadCheckpoints::From(number)).await;
    assert_eq!(found, [StoredCheckpoint { number, sealed: Some(sealed) }]);
    let newest = world.checkpoints(ReadCheckpoints::Newest).await[0].number;
    assert!(newest >= number);
    let later = ReadCheckpoints::After { number: newest.max(number), limit: 5 };
    assert!(world.checkpoints(later).await.iter().all(|later| later.number > newest));
    assert_eq!(unsealed(&world, &entries).await, 1);
    let ids = entries.iter().map(|sealed| sealed.record.id).collect();
    let found = world.operate(&Principal::Operator, FindEntries(ids)).await.unwrap();
    let checkpoints: Vec<_> = found.iter().map(|entry| entry.checkpoint).collect();
    assert_eq!(checkpoints, [Some(number), Some(number), None]);
}

/// A checkpoint is rejected if its number exists or leaves a gap, or if one of its entries is sealed or does not exist.
pub async fn mismatched_checkpoint_changes_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let entries: Vec<_> = (0..3).map(|_| world.audit(AuditAction::CredentialShown)).collect();
    world.append(entries.clone()).await.unwrap();
    let created = add(&world, &entries[..1]).await;
    let number = created.checkpoint.number;
    let add = async |number: i64, ids: Vec<AuditId>| {
        let checkpoint = Checkpoint { number, at: world.now(), entries: ids, hash: created.checkpoint.hash };
        let add = AddCheckpoint(FakeAuditSealer.seal_checkpoint(checkpoint));
        world.operate(&Principal::Operator, add).await.unwrap()
    };
    assert!(!add(number, vec![entries[1].record.id]).await, "the number is taken");
    assert!(!add(number + 1_000_000, vec![entries[1].record.id]).await, "the number before is not there");
    let stray = AuditId::from_uuid(world.ids.random());
    for ids in [vec![entries[1].record.id, entries[0].record.id], vec![entries[1].record.id, stray]] {
        let next = world.checkpoints(ReadCheckpoints::Newest).await[0].number + 1;
        assert!(!add(next, ids).await, "an entry is sealed, or not there");
    }
    assert_eq!(unsealed(&world, &entries).await, 2);
    assert_eq!(world.checkpoints(ReadCheckpoints::From(number)).await[0].sealed, Some(created));
}

/// If several processes add a checkpoint with the same number, exactly one succeeds, so that concurrent sealers create
/// one chain.
pub async fn parallel_checkpoints_form_one_chain(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let entries: Vec<_> = (0..8).map(|_| world.audit(AuditAction::CredentialShown)).collect();
    world.append(entries.clone()).await.unwrap();
    let added = join_all(entries.iter().map(|entry| add(&world, std::slice::from_ref(entry)))).await;
    let numbers: Vec<_> = added.iter().map(|sealed| sealed.checkpoint.number).collect();
    let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
    assert_eq!(distinct.len(), 8);
    let (first, last) = (**distinct.first().unwrap(), **distinct.last().unwrap());
    let chain = ReadCheckpoints::After { number: first - 1, limit: usize::try_from(last - first + 1).unwrap() };
    let chain = world.checkpoints(chain).await;
    let chain: Vec<_> = chain.into_iter().map(|stored| stored.sealed.unwrap().checkpoint).collect();
    for pair in chain.windows(2) {
        assert_eq!(pair[1].number, pair[0].number + 1);
        let Some(entry) = entries.iter().find(|entry| pair[1].entries == [entry.record.id]) else { continue };
        let content = CheckpointContent {
            previous: pair[0].hash,
            number: pair[1].number,
            at: pair[1].at,
            entries: &[(entry.record.id, entry.mac.as_bytes())],
        };
        assert_eq!(
            FakeAuditSealer.hash_checkpoint(&content.to_bytes()),
            pair[1].hash,
            "it follows from the previous one"
        );
    }
}

/// Returns the next checkpoint, with `entries`.
async fn checkpoint_of(world: &World<'_>, entries: &[SealedAuditRecord]) -> SealedCheckpoint {
    let (at, newest) = (world.now(), world.checkpoints(ReadCheckpoints::Newest).await.pop());
    let newest = newest.map_or(CheckpointRef::NONE, |stored| stored.sealed.unwrap().checkpoint.mark());
    let coded: Vec<_> = entries.iter().map(|entry| (entry.record.id, entry.mac.as_bytes().as_slice())).collect();
    let content = CheckpointContent { previous: newest.hash, number: newest.number + 1, at, entries: &coded };
    let hash = FakeAuditSealer.hash_checkpoint(&content.to_bytes());
    let ids = entries.iter().map(|entry| entry.record.id).collect();
    FakeAuditSealer.seal_checkpoint(Checkpoint { number: content.number, at, entries: ids, hash })
}

/// Adds `entries` to the next checkpoint, while other cases may seal concurrently.
pub(super) async fn add(world: &World<'_>, entries: &[SealedAuditRecord]) -> SealedCheckpoint {
    for _ in 0..1_000 {
        let sealed = checkpoint_of(world, entries).await;
        if world.operate(&Principal::Operator, AddCheckpoint(sealed.clone())).await.unwrap() {
            return sealed;
        }
    }
    panic!("a checkpoint that fits is added");
}

/// Returns the number of `entries` that no checkpoint contains.
async fn unsealed(world: &World<'_>, entries: &[SealedAuditRecord]) -> usize {
    let ids: Vec<_> = entries.iter().map(|sealed| sealed.record.id.to_string()).collect();
    let page = async |last: Option<&UnsealedEntry>| {
        let after = last.map(|last| last.id.clone());
        world.operate(&Principal::Operator, UnsealedEntries { after, limit: 100 }).await.unwrap()
    };
    paged(100, page).await.iter().filter(|entry| ids.contains(&entry.id)).count()
}
