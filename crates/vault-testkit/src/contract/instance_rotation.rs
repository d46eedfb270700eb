//! Cases of the rotation of keys of the instance.
//!
//! They replace the instance key, under which everything in the database is signed, so each needs a separate database:
//! they are not among the cases of [`store_contract!`](crate::store_contract).

use super::ContractStore;
use super::key::instance;
use super::tools::{Settled as _, name, race};
use super::world::World;
use crate::crypto::{FakeAuditSealer, FakeDigester};
use vault_core::Refusal;
use vault_core::account::AccountChange;
use vault_core::id::{KeyId, OrganizationId};
use vault_core::integration::Overlap;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::operation::{
    Access, CountUnder, Failure, InstanceChange, Operation, ReplaceInstance, ReplacedInstance, Unit,
};
use vault_core::organization::DeleteOrganization;
use vault_core::port::{IdGenerator, InstancePart, InstanceRow, KeyedDigester, StoreError};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::{Blob, InstanceRecord, KeyState};
use vault_core::time::Timestamp;

/// Returns a value sealed under `key`.
pub(super) fn under(key: KeyId, what: &str) -> Blob {
    Blob::from_bytes([&[Blob::VERSION, 1], key.as_bytes().as_slice(), what.as_bytes()].concat())
}

/// Returns `blob` resealed under `to`, if it was sealed under `from`.
fn blob_again(blob: &Blob, from: KeyId, to: KeyId) -> Blob {
    if blob.key() == Some(from) {
        under(to, std::str::from_utf8(&blob.as_bytes()[18..]).unwrap())
    } else {
        blob.clone()
    }
}

/// Returns the row resealed under `to`.
pub(super) fn again(row: &InstanceRow, from: KeyId, to: KeyId) -> InstanceRow {
    let blob = |blob: &Blob| blob_again(blob, from, to);
    let mut created = row.clone();
    match &mut created {
        InstanceRow::Organization { keys, .. } => keys.fingerprint_wrapped = blob(&keys.fingerprint_wrapped),
        InstanceRow::OrganizationKey { wrapped, .. } => *wrapped = blob(wrapped),
    }
    created
}

impl World<'_> {
    /// Creates the instance and returns the key that signs everything in this world.
    pub(super) async fn with_instance(&self) -> KeyId {
        assert!(self.store.create_instance(instance(self)).await.unwrap(), "this case has a database of its own");
        FakeDigester::default().active_key()
    }

    fn next_instance_key(&self, current: &InstanceRecord) -> ReplaceInstance {
        let next = KeyId::from_uuid(self.ids.random());
        let (wrapped, keyring) = (under(next, "wrapped"), under(next, "keyring"));
        let next = InstanceRecord { instance_key: next, wrapped, keyring, ..current.clone() };
        ReplaceInstance { current: current.clone(), next, change: InstanceChange::InstanceKey }
    }

    async fn replace_instance(&self, command: ReplaceInstance) -> ReplacedInstance {
        self.operate(&Principal::Operator, command).await.unwrap()
    }

    /// Replaces the instance key and returns the new one.
    async fn replace_instance_key(&self) -> KeyId {
        let command = self.next_instance_key(&self.store.instance().await.unwrap().unwrap());
        let next = command.next.instance_key;
        assert_eq!(self.replace_instance(command).await, ReplacedInstance::Replaced);
        next
    }

    async fn count_under(&self, term: KeyringEntry) -> i64 {
        self.operate(&Principal::Operator, CountUnder(term)).await.unwrap()
    }

    async fn destroy_instance_key(&self, key: KeyId) -> ReplacedInstance {
        self.destroy_key(term(KeyPurpose::Instance, key, self.now())).await
    }

    async fn destroy_key(&self, term: KeyringEntry) -> ReplacedInstance {
        let current = self.store.instance().await.unwrap().unwrap();
        let keyring = under(current.instance_key, &format!("keyring without {}", term.id));
        let next = InstanceRecord { keyring, ..current.clone() };
        let (destroyed, change) = (next.clone(), InstanceChange::Destroyed(term));
        let outcome = self.replace_instance(ReplaceInstance { current: current.clone(), next, change }).await;
        let expected = if outcome == ReplacedInstance::Replaced { destroyed } else { current };
        assert_eq!(self.store.instance().await.unwrap().unwrap(), expected);
        outcome
    }
}

/// Moves the rows of a part, and returns their number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Move {
    part: InstancePart,
    from: KeyId,
    to: KeyId,
}

impl Operation for Move {
    type Outcome = i64;
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<i64, Failure> {
        let Self { part, from, to } = *self;
        let (rows, mut moved, mut after) = (unit.rows(), 0, None);
        loop {
            let places = rows.instance_places(part, after.clone(), 2).await?;
            assert!(places.is_sorted() && places.iter().all(|place| after.as_ref().is_none_or(|after| place > after)));
            let Some(last) = places.last() else { break };
            after = Some(last.clone());
            for (organization, id) in places {
                let place = (organization.parse().unwrap(), id.parse().unwrap());
                let before = rows.instance_row(part, place).await?.unwrap().unwrap();
                assert_eq!((before.part(), before.place()), (part, place));
                if !before.keys().contains(&from) {
                    continue;
                }
                let after = again(&before, from, to);
                let changed = again(&before, from, old_but_other(from));
                assert!(!rows.reseal_row(&changed, &after).await?, "{part:?}: it changed since it was read");
                assert!(rows.reseal_row(&before, &after).await?, "{part:?}");
                assert_eq!(rows.instance_row(part, place).await?.unwrap().unwrap(), after);
                moved += 1;
            }
        }
        unit.commit_without_entry();
        Ok(moved)
    }
}

pub(super) fn is_contended<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Refusal::Contended)))
}

/// If several requests replace the key, exactly one succeeds. After that, nothing is stored under the previous key.
pub async fn replaced_instance_key_protects_no_new_row(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let old = world.with_instance().await;
    let holder = world.holder(Role::Admin).await;
    let session = world.log_in(&holder).await;
    let integration = world.integration().await;
    let (invitation, _) = world.invited(Role::Viewer).await;

    let record = world.store.instance().await.unwrap().unwrap();
    let commands: Vec<_> = (0..8).map(|_| world.next_instance_key(&record)).collect();
    let created = race(commands.clone().into_iter().map(|command| {
        let replaced = world.running(&world.store, Principal::Operator, command);
        async move { replaced.await.unwrap() }
    }))
    .await;
    let created: Vec<_> = created.iter().map(|created| *created == ReplacedInstance::Replaced).collect();
    let winners: Vec<_> =
        commands.iter().zip(&created).filter(|(_, created)| **created).map(|(command, _)| command).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(world.store.instance().await.unwrap().as_ref(), Some(&winners[0].next));
    let again = world.replace_instance(world.next_instance_key(&record)).await;
    assert_eq!(again, ReplacedInstance::Changed, "it is replaced already");

    let contended = Err(Refusal::Contended);
    assert_eq!(world.run(world.create_account(&world.new_holder(Role::Viewer))).await.decided(), contended);
    let change = world.change_account(&holder, AccountChange::Disable);
    assert_eq!(world.run(change).await.decided().map(drop), contended);
    let (other, _) = world.invitation(Role::Viewer);
    assert_eq!(world.invites(world.invite(&Principal::Operator, &other)).await, contended);
    let draft = world.write_draft(&invitation);
    assert_eq!(world.operate(&Principal::Operator, draft).await.decided().map(drop), contended);
    let codes = world.own_codes(Vec::new());
    let proof = world.prove(&holder, &session, world.fresh_step(), codes);
    assert_eq!(world.operate(&proof.by, proof.attempt).await.decided().map(drop), contended, "nothing is spent");
    let rotation = world.change_integration(integration.stored.id, world.rotation(Overlap::DEFAULT));
    assert_eq!(world.operate(&Principal::Operator, rotation).await.decided(), Err(Refusal::Contended));
    let mut organization = world.create_organization(
        OrganizationId::from_uuid(world.ids.random()),
        KeyId::from_uuid(world.ids.random()),
        &name(&format!("Stale {}", world.ids.random())),
    );
    organization.keys.fingerprint_wrapped = under(old, "fingerprint");
    let created = world.operate(&Principal::Operator, organization).await;
    assert_eq!(created.decided(), Err(Refusal::Contended));
    let mut key = world.replace_key(world.key);
    key.next.wrapped = under(old, "key");
    assert!(is_contended(world.store.replace_organization_key(key).await));
    // A login seals nothing.
    world.log_in(&holder).await;
}

/// Rows are found by their key and moved if they are unchanged since they were read; a key is destroyed when nothing
/// remains under it.
pub async fn rows_move_to_the_next_instance_key(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let old = world.with_instance().await;
    let mut organization = world.create_organization(
        OrganizationId::from_uuid(world.ids.random()),
        KeyId::from_uuid(world.ids.random()),
        &name(&format!("Moved {}", world.ids.random())),
    );
    organization.keys.fingerprint_wrapped = under(old, "fingerprint");
    organization.keys.keys[0].wrapped = under(old, "key");
    let other = DeleteOrganization(organization.organization.id);
    world.operate(&Principal::Operator, organization).await.unwrap();
    let holder = world.holder(Role::Editor).await;
    let (invitation, _) = world.invited(Role::Viewer).await;
    let expected = [1, 1];
    let under_old = term(KeyPurpose::Instance, old, world.now());

    let new = world.replace_instance_key().await;
    // With the documents of both organizations, the account with its secrets, and the invitation.
    let mut left: i64 = 5 + expected.iter().sum::<i64>();
    assert_eq!(world.count_under(under_old).await, left);
    assert_eq!(world.destroy_instance_key(old).await, ReplacedInstance::InUse);
    for (part, count) in InstancePart::all().zip(expected) {
        let step = Move { part, from: old, to: new };
        assert_eq!(world.operate(&Principal::Operator, step).await.unwrap(), count, "{part:?}");
        assert_eq!(world.operate(&Principal::Operator, step).await.unwrap(), 0, "{part:?}: they were moved");
        left -= count;
        assert_eq!(world.count_under(under_old).await, left);
        assert_eq!(world.destroy_instance_key(old).await, ReplacedInstance::InUse, "{part:?}");
    }
    // Nothing else in a row has changed.
    assert_eq!(world.read(&holder).await.account, holder.account);
    assert_eq!(*world.open(&invitation).await.unwrap().invitation, invitation);

    world.delete_organization().await;
    world.operate(&Principal::Operator, other).await.unwrap();
    // Another process has stored another keyring document since.
    let current = world.store.instance().await.unwrap().unwrap();
    let stale = InstanceRecord { keyring: under(new, "earlier keyring"), ..current.clone() };
    let change = InstanceChange::Destroyed(under_old);
    let stale = ReplaceInstance { current: stale, next: current, change };
    assert_eq!(world.replace_instance(stale).await, ReplacedInstance::Changed);
    assert_eq!(world.destroy_instance_key(old).await, ReplacedInstance::Replaced);
}

/// A key of a purpose is destroyed once nothing needs it: no session and no delivery of its time, no audit record.
pub async fn unused_key_is_destroyed(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.with_instance().await;
    let key = KeyId::from_uuid(world.ids.random());
    let holder = world.holder(Role::Viewer).await;
    world.log_in(&holder).await;
    let (now, before) = (world.now(), world.now().plus_seconds(-KeyringEntry::DRAINED_SECONDS - 3_600));
    let under = async |purpose, id, since| {
        let term = term(purpose, id, since);
        (world.count_under(term).await, world.destroy_key(term).await)
    };

    let outcome = under(KeyPurpose::Token, key, now).await;
    assert_eq!(outcome, (1, ReplacedInstance::InUse), "a session may have a token under it");
    assert_eq!(under(KeyPurpose::Token, key, before).await, (0, ReplacedInstance::Replaced));

    let (count, outcome) = under(KeyPurpose::Audit, FakeAuditSealer::KEY, before).await;
    assert!(count >= 2 && outcome == ReplacedInstance::InUse, "{count} {outcome:?}");
    assert_eq!(under(KeyPurpose::Audit, key, now).await, (0, ReplacedInstance::Replaced));
    assert_eq!(under(KeyPurpose::Lookup, key, before).await, (0, ReplacedInstance::Replaced));
}

/// Returns a retiring key.
const fn term(purpose: KeyPurpose, id: KeyId, since: Timestamp) -> KeyringEntry {
    KeyringEntry { purpose, id, state: KeyState::Retiring, since }
}

/// Returns a key that does not exist.
fn old_but_other(old: KeyId) -> KeyId {
    let mut bytes = *old.as_bytes();
    bytes[0] ^= 1;
    KeyId::from_bytes(bytes)
}
