//! Cases of the rotation of keys of the instance.
//!
//! They replace the instance key, under which everything in the database is signed, so each needs a separate database:
//! they are not among the cases of [`store_contract!`](crate::store_contract).

use super::ContractStore;
use super::key::instance;
use super::organization::another;
use super::tools::{Settled as _, race};
use super::world::World;
use crate::crypto::{FakeAuditSealer, FakeDigester};
use vault_core::Refusal;
use vault_core::account::AccountChange;
use vault_core::id::KeyId;
use vault_core::integration::Overlap;
use vault_core::keyring::{KeyPurpose, KeyringEntry};
use vault_core::operation::{CountUnder, InstanceChange, ReplaceInstance, ReplacedInstance};
use vault_core::organization::DeleteOrganization;
use vault_core::port::{IdGenerator, KeyedDigester};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::{Blob, InstanceRecord, KeyState};
use vault_core::time::Timestamp;

/// Returns a value sealed under `key`.
pub(super) fn under(key: KeyId, what: &str) -> Blob {
    Blob::from_bytes([&[Blob::VERSION, 1], key.as_bytes().as_slice(), what.as_bytes()].concat())
}

impl World<'_> {
    /// Creates the instance and returns the key that signs everything in this world.
    pub(super) async fn with_instance(&self) -> KeyId {
        assert!(self.store.create_instance(instance(self)).await.unwrap(), "this case has a separate database");
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

    async fn count_under(&self, entry: KeyringEntry) -> i64 {
        self.operate(&Principal::Operator, CountUnder(entry)).await.unwrap()
    }

    async fn destroy_instance_key(&self, key: KeyId) -> ReplacedInstance {
        self.destroy_key(entry(KeyPurpose::Instance, key, self.now())).await
    }

    async fn destroy_key(&self, entry: KeyringEntry) -> ReplacedInstance {
        let current = self.store.instance().await.unwrap().unwrap();
        let keyring = under(current.instance_key, &format!("keyring without {}", entry.id));
        let next = InstanceRecord { keyring, ..current.clone() };
        let (destroyed, change) = (next.clone(), InstanceChange::Destroyed(entry));
        let outcome = self.replace_instance(ReplaceInstance { current: current.clone(), next, change }).await;
        let expected = if outcome == ReplacedInstance::Replaced { destroyed } else { current };
        assert_eq!(self.store.instance().await.unwrap().unwrap(), expected);
        outcome
    }
}

/// If several requests replace the key, exactly one succeeds. After that, nothing is stored under the previous key.
pub async fn replaced_instance_key_protects_no_new_row(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.with_instance().await;
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
    let created = world.operate(&Principal::Operator, another(&world, "Stale")).await;
    assert_eq!(created.decided().map(drop), Err(Refusal::Contended));
    // Values signed before still work: a login neither seals nor signs.
    world.log_in(&holder).await;
}

/// A replaced key is destroyed when no document remains under it.
pub async fn needed_instance_key_stays(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let old = world.with_instance().await;
    let organization = another(&world, "Moved");
    let other = DeleteOrganization(organization.id);
    world.operate(&Principal::Operator, organization).await.unwrap();
    let holder = world.holder(Role::Editor).await;
    let (invitation, _) = world.invited(Role::Viewer).await;
    let under_old = entry(KeyPurpose::Instance, old, world.now());

    let new = world.replace_instance_key().await;
    // The documents of both organizations, the account with its secrets, and the invitation.
    assert_eq!(world.count_under(under_old).await, 5);
    assert_eq!(world.destroy_instance_key(old).await, ReplacedInstance::InUse);
    // No row has changed.
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
        let entry = entry(purpose, id, since);
        (world.count_under(entry).await, world.destroy_key(entry).await)
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
const fn entry(purpose: KeyPurpose, id: KeyId, since: Timestamp) -> KeyringEntry {
    KeyringEntry { purpose, id, state: KeyState::Retiring, since }
}
