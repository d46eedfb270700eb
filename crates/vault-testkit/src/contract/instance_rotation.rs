//! Cases of [`InstanceKeyRotation`](vault_core::port::InstanceKeyRotation). They replace the instance key, which everything in
//! the database is signed under, so each needs a database of its own: they are not among the cases of
//! [`store_contract!`](crate::store_contract).

use super::ContractStore;
use super::key::instance;
use super::tools::{name, paged, race};
use super::world::{Holder, World};
use crate::crypto::FakeDigester;
use std::sync::Arc;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::digest::{Digest, RowCode};
use vault_core::id::{KeyId, OrganizationId, SeedId};
use vault_core::integration::{Integration, StoredIntegration};
use vault_core::invitation::StoredInvitation;
use vault_core::port::{
    AccountChange, ChangeIntegration, ConcludeAttempt, CreateAccount, DestroyInstanceKey, FindUnderInstanceKey,
    IdGenerator, InstancePart, InstanceRow, IntegrationChange, KeyDestruction, KeyedDigester, MoveToInstanceKey,
    OwnChange, ReplaceInstanceKey, StoreError,
};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::{Blob, InstanceKeyRecord, InstanceRecord, SealedPassword, SealedSeed};

/// What `key` made.
fn under(key: KeyId, what: &str) -> Blob {
    Blob::from_bytes([&[Blob::VERSION, 1], key.as_bytes().as_slice(), what.as_bytes()].concat())
}

/// What was made of `blob` by `to`, if `from` made it.
fn blob_again(blob: &Blob, from: KeyId, to: KeyId) -> Blob {
    if blob.key() == Some(from) {
        under(to, std::str::from_utf8(&blob.as_bytes()[18..]).unwrap())
    } else {
        blob.clone()
    }
}

/// The row as `to` makes it again.
fn again(row: &InstanceRow, from: KeyId, to: KeyId) -> InstanceRow {
    let code = |code: &RowCode| {
        let mut bytes = *code.code.as_bytes();
        bytes[0] ^= 1;
        if code.key == from { RowCode { key: to, code: Digest::from_bytes(bytes) } } else { *code }
    };
    let blob = |blob: &Blob| blob_again(blob, from, to);
    let seed = |seed: &SealedSeed| SealedSeed { id: seed.id, blob: blob(&seed.blob) };
    let mut made = row.clone();
    match &mut made {
        InstanceRow::Organization { wrapped, .. } | InstanceRow::OrganizationKey { wrapped, .. } => {
            *wrapped = blob(wrapped)
        }
        InstanceRow::Account { code: of_row, password, seed: of_account, .. } => {
            (*of_row, *password, *of_account) = (code(of_row), SealedPassword(blob(&password.0)), seed(of_account));
        }
        InstanceRow::PendingSeed { seed: waiting, .. } => *waiting = seed(waiting),
        InstanceRow::Invitation(stored) => {
            **stored = StoredInvitation { digest: code(&stored.digest), ..(**stored).clone() };
        }
        InstanceRow::Draft { password, seed: drafted, .. } => {
            (*password, *drafted) = (SealedPassword(blob(&password.0)), seed(drafted));
        }
        InstanceRow::Integration(stored) => {
            **stored = StoredIntegration { digest: code(&stored.digest), ..(**stored).clone() };
        }
    }
    made
}

impl World<'_> {
    /// The key that everything of this world is signed under.
    async fn with_instance(&self) -> KeyId {
        assert!(self.store.create_instance(instance(self)).await.unwrap(), "this case has a database of its own");
        FakeDigester::default().active_key()
    }

    fn next_instance_key(&self, current: &InstanceRecord, keys: &[InstanceKeyRecord]) -> ReplaceInstanceKey {
        let next = KeyId::from_uuid(self.ids.random());
        let wrapped = |row: &InstanceKeyRecord| InstanceKeyRecord { wrapped: under(next, "wide"), ..row.clone() };
        ReplaceInstanceKey {
            current: current.clone(),
            next: InstanceRecord {
                instance_key: next,
                wrapped: under(next, "wrapped"),
                keyring: under(next, "keyring"),
                ..current.clone()
            },
            keys: keys.iter().map(wrapped).collect(),
            now: self.now(),
            audit: self.audit(AuditAction::InstanceKeyReplaced),
        }
    }

    /// Replaces the instance key; the new one.
    async fn replace_instance_key(&self) -> KeyId {
        let (record, keys) = (self.store.instance().await.unwrap().unwrap(), self.store.instance_keys().await.unwrap());
        let command = self.next_instance_key(&record, &keys);
        let next = command.next.instance_key;
        assert!(self.store.replace_instance_key(command).await.unwrap());
        next
    }

    /// An account with secrets under `key`.
    fn sealed_account(&self, key: KeyId) -> (Holder, CreateAccount) {
        let mut holder = self.new_holder(Role::Editor);
        let id = SeedId::from_uuid(self.ids.random());
        holder.password = SealedPassword(under(key, &format!("password {id}")));
        holder.seed = SealedSeed { id: holder.seed.id, blob: under(key, &format!("seed {id}")) };
        let act = CreateAccount {
            digest: RowCode { key, ..holder.signed.digest(&FakeDigester::default()) },
            ..self.create_account(&holder).act
        };
        (holder, act)
    }

    async fn put_account(&self, act: CreateAccount) -> Result<(), StoreError> {
        self.store.create_account(self.by_operator(self.organization, AuditAction::AccountCreated, act)).await
    }

    async fn found(&self, key: KeyId, part: InstancePart, limit: usize) -> Vec<InstanceRow> {
        let page = async |last: Option<&InstanceRow>| {
            let query = FindUnderInstanceKey { key, part, after: last.map(InstanceRow::place), limit };
            let rows = self.store.find_under_instance_key(query).await.unwrap();
            assert!(rows.iter().all(|row| row.part() == part));
            rows
        };
        paged(limit, page).await
    }

    async fn destroy_instance_key(&self, key: KeyId) -> KeyDestruction {
        let record = self.store.instance().await.unwrap().unwrap();
        let keyring = under(record.instance_key, &format!("keyring without {key}"));
        let command = |current: &Blob| {
            let audit = self.audit(AuditAction::InstanceKeyDestroyed);
            DestroyInstanceKey { key, current: current.clone(), keyring: keyring.clone(), audit }
        };
        let outcome = self.store.destroy_instance_key(command(&record.keyring)).await.unwrap();
        let expected = if outcome == KeyDestruction::Destroyed { &keyring } else { &record.keyring };
        assert_eq!(self.store.instance().await.unwrap().unwrap().keyring, *expected);
        outcome
    }
}

fn is_contended<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Refusal::Contended)))
}

/// Of several replacements at once one is made; from it on nothing comes under the key before.
pub async fn nothing_comes_under_a_replaced_instance_key(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let old = world.with_instance().await;
    let holder = world.holder(Role::Admin).await;
    let session = world.log_in(&holder).await;
    let integration = world.integration().await;
    let (invitation, _) = world.invited(Role::Viewer).await;
    world.put_account(world.sealed_account(old).1).await.unwrap();
    let strange = KeyId::from_uuid(world.ids.random());
    assert!(is_contended(world.put_account(world.sealed_account(strange).1).await), "it is no key of the deployment");

    let (record, keys) = (world.store.instance().await.unwrap().unwrap(), world.store.instance_keys().await.unwrap());
    let commands: Vec<_> = (0..8).map(|_| world.next_instance_key(&record, &keys)).collect();
    let made = race(commands.clone().into_iter().map(|command| {
        let store = Arc::clone(&world.store);
        async move { store.replace_instance_key(command).await.unwrap() }
    }))
    .await;
    let winners: Vec<_> = commands.iter().zip(&made).filter(|(_, made)| **made).map(|(command, _)| command).collect();
    assert_eq!((winners.len(), world.audited(AuditAction::InstanceKeyReplaced).await), (1, 1));
    let new = winners[0].next.instance_key;
    assert_eq!(world.store.instance().await.unwrap().as_ref(), Some(&winners[0].next));
    assert_eq!(world.store.instance_keys().await.unwrap(), winners[0].keys);
    let retiring = world.store.retiring_instance_keys().await.unwrap();
    assert_eq!(retiring.len(), 1);
    assert_eq!((retiring[0].id, retiring[0].root_key, &retiring[0].wrapped), (old, record.root_key, &record.wrapped));
    assert!(
        !world.store.replace_instance_key(world.next_instance_key(&record, &keys)).await.unwrap(),
        "it is replaced already"
    );

    // Whatever it sealed or signed.
    let stale = world.sealed_account(old).1;
    let (_, fresh) = world.sealed_account(new);
    assert!(is_contended(world.put_account(stale.clone()).await));
    assert!(is_contended(world.put_account(CreateAccount { digest: stale.digest, ..fresh.clone() }).await));
    assert!(is_contended(world.put_account(CreateAccount { password: stale.password, ..fresh.clone() }).await));
    assert!(is_contended(world.put_account(CreateAccount { seed: stale.seed, ..fresh.clone() }).await));
    world.put_account(fresh).await.unwrap();
    let change = world.change_account(&holder, holder.signed.version, AccountChange::Unlock);
    assert!(is_contended(world.store.change_account(change).await));
    let (other, address) = world.invitation(Role::Viewer);
    let invite = world.invite(&Principal::Operator, &other, address);
    assert!(is_contended(world.store.create_invitation(invite).await));
    let mut draft = world.write_draft(&invitation);
    draft.draft.password = SealedPassword(under(old, "password"));
    assert!(is_contended(world.store.write_draft(draft).await));
    let pending = OwnChange::PendingSeed {
        seed: SealedSeed { id: SeedId::from_uuid(world.ids.random()), blob: under(old, "seed") },
        expires_at: world.now().plus_seconds(60),
    };
    let proof = world.prove(&holder, &session, world.fresh_step(), pending);
    let concluded = world.store.conclude_attempt(ConcludeAttempt::Account(Box::new(proof))).await;
    assert!(is_contended(concluded), "nothing is spent");
    let replaced = Integration { version: integration.integration.next_version(), ..integration.integration.clone() };
    let digest = replaced.digest(&FakeDigester::default());
    let act = ChangeIntegration {
        organization: world.organization,
        integration: integration.integration.id,
        version: integration.integration.version,
        change: IntegrationChange::Replace { integration: Box::new(replaced), digest },
    };
    let command = world.by_operator(world.organization, AuditAction::IntegrationChanged, act);
    assert!(is_contended(world.store.change_integration(command).await));
    let mut organization = world.create_organization(
        OrganizationId::from_uuid(world.ids.random()),
        KeyId::from_uuid(world.ids.random()),
        &name(&format!("Stale {}", world.ids.random())),
    );
    organization.keys.fingerprint_wrapped = under(old, "fingerprint");
    assert!(is_contended(world.store.create_organization(organization).await));
    let mut key = world.replace_key(world.key);
    key.next.wrapped = under(old, "key");
    assert!(is_contended(world.store.replace_organization_key(key).await));
    // What was signed before works: a login neither seals nor signs.
    world.log_in(&holder).await;
}

/// Rows are found by their key, moved if they are as they were read, and a key is destroyed when nothing is left under it.
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
    assert!(world.store.create_organization(organization).await.unwrap());
    let mut holders = Vec::new();
    for _ in 0..5 {
        let (holder, act) = world.sealed_account(old);
        world.put_account(act).await.unwrap();
        holders.push(holder);
    }
    let session = world.log_in(&holders[0]).await;
    let pending = OwnChange::PendingSeed {
        seed: SealedSeed { id: SeedId::from_uuid(world.ids.random()), blob: under(old, "pending seed") },
        expires_at: world.now().plus_seconds(600),
    };
    world.proven(&holders[0], &session, pending).await;
    let (invitation, _) = world.invited(Role::Viewer).await;
    let mut draft = world.write_draft(&invitation);
    draft.draft.password = SealedPassword(under(old, "drafted password"));
    draft.draft.seed.blob = under(old, "drafted seed");
    assert!(world.store.write_draft(draft).await.unwrap());
    let integration = world.integration().await;
    let expected = [1, 1, 5, 1, 1, 1, 1];

    assert_eq!(world.destroy_instance_key(old).await, KeyDestruction::NotRetiring, "it is active");
    let new = world.replace_instance_key().await;
    assert_eq!(world.store.count_under_instance_key(old).await.unwrap(), expected.iter().sum::<i64>());
    assert_eq!(world.destroy_instance_key(old).await, KeyDestruction::InUse);
    let mut left: i64 = expected.iter().sum();
    for (part, count) in InstancePart::ALL.into_iter().zip(expected) {
        let rows = world.found(old, part, 2).await;
        assert_eq!(i64::try_from(rows.len()).unwrap(), count, "{part:?}");
        assert!(rows.is_sorted_by_key(InstanceRow::place));
        let rows: Vec<_> = rows.into_iter().map(|row| (row.clone(), again(&row, old, new))).collect();
        let stray = MoveToInstanceKey { to: old, rows: rows.clone() };
        assert_eq!(world.store.move_to_instance_key(stray).await.unwrap(), None, "it is not active");
        // One that is no longer as it was read stays as it is.
        let (before, after) = rows[0].clone();
        let other = vec![(again(&before, old, old_but_other(old)), after)];
        let moved = world.store.move_to_instance_key(MoveToInstanceKey { to: new, rows: other }).await;
        assert_eq!(moved.unwrap(), Some(0), "{part:?}");
        let command = MoveToInstanceKey { to: new, rows: rows.clone() };
        let moved = world.store.move_to_instance_key(command.clone()).await.unwrap();
        assert_eq!(moved, Some(rows.len()), "{part:?}");
        assert_eq!(world.store.move_to_instance_key(command).await.unwrap(), Some(0), "they were moved");
        assert_eq!(world.found(old, part, 2).await, []);
        let found = world.found(new, part, 2).await;
        assert_eq!(found, rows.into_iter().map(|(_, after)| after).collect::<Vec<_>>());
        left -= count;
        assert_eq!(world.store.count_under_instance_key(old).await.unwrap(), left);
        if left == 0 {
            // Another process has stored another keyring document since.
            let audit = world.audit(AuditAction::InstanceKeyDestroyed);
            let (current, keyring) = (under(new, "earlier keyring"), under(new, "later keyring"));
            let stale = DestroyInstanceKey { key: old, current, keyring, audit };
            assert!(is_contended(world.store.destroy_instance_key(stale).await));
        }
        let expected = if left == 0 { KeyDestruction::Destroyed } else { KeyDestruction::InUse };
        assert_eq!(world.destroy_instance_key(old).await, expected, "{part:?}");
    }
    assert_eq!(world.destroy_instance_key(old).await, KeyDestruction::NotRetiring);
    assert_eq!(world.audited(AuditAction::InstanceKeyDestroyed).await, 1);
    assert_eq!(world.store.retiring_instance_keys().await.unwrap(), []);
    // Nothing else of a row has changed.
    for holder in &holders {
        let read = world.read(holder).await;
        assert_eq!((&read.signed, read.digest.key), (&holder.signed, new));
    }
    assert_eq!(world.open(&invitation).await.unwrap().stored.invitation, invitation);
    assert_eq!(world.activator(&integration).seen, integration.digest.code);
}

/// A key that is none.
fn old_but_other(old: KeyId) -> KeyId {
    let mut bytes = *old.as_bytes();
    bytes[0] ^= 1;
    KeyId::from_bytes(bytes)
}
