//! Cases of signing keys. They are one document of the instance, so each case needs a separate database.

use super::ContractStore;
use super::tools::Settled as _;
use super::world::World;
use futures_util::future::join_all;
use vault_core::Refusal;
use vault_core::audit::AuditAction;
use vault_core::entity::{DocumentSecret, Kind, OF_INSTANCE};
use vault_core::federation::{
    ChangeSigningKeys, FederationIssuer, FederationKey, FederationKeyError, FederationKeyState, Jwk, ListSigningKeys,
    PublicationChecks, PublicationFailure, RecordPublication, SigningKeyChange, StoredSigningKeys,
};
use vault_core::operation::{Access, Failure, Operation, Unit};
use vault_core::port::{EntityRow, IdGenerator as _};
use vault_core::principal::Principal;

const OPERATOR: Principal = Principal::Operator;

fn issuer() -> FederationIssuer {
    FederationIssuer::parse("https://vault.example.com").unwrap()
}

fn add(world: &World<'_>) -> ChangeSigningKeys {
    let id = world.ids.random();
    let jwk = Jwk::new(format!("{:0>43}", id.to_string().replace('-', "")), "n".repeat(342)).unwrap();
    let private_key = DocumentSecret::from(secrecy::SecretString::from("private"));
    change(world, SigningKeyChange::Add(FederationKey::new(issuer(), jwk, private_key, world.now())))
}

fn change(world: &World<'_>, change: SigningKeyChange) -> ChangeSigningKeys {
    ChangeSigningKeys { change, id: world.ids.random(), by_system: false }
}

const fn promote(issuer: FederationIssuer) -> SigningKeyChange {
    SigningKeyChange::Promote { issuer, is_forced: true }
}

async fn listed(world: &World<'_>) -> StoredSigningKeys {
    world.operate(&OPERATOR, ListSigningKeys).await.unwrap()
}

/// If several processes add or promote a key, exactly one does. Keys have one state after the other.
pub async fn signing_keys_change_one_after_the_other(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.operate(&OPERATOR, add(&world)).await.unwrap();
    world.operate(&OPERATOR, change(&world, promote(issuer()))).await.unwrap();
    let added: Vec<_> = (0..4).map(|_| add(&world)).collect();
    let added = join_all(added.into_iter().map(|added| world.operate(&OPERATOR, added))).await;
    assert_eq!(added.iter().filter(|added| added.is_ok()).count(), 1);
    let promotions = join_all((0..4).map(|_| world.operate(&OPERATOR, change(&world, promote(issuer()))))).await;
    let promotions: Vec<_> = promotions.into_iter().map(|promoted| promoted.decided()).collect();
    assert_eq!(promotions.iter().filter(|promoted| promoted.is_ok()).count(), 1);
    let refused = Err(Refusal::FederationKey(FederationKeyError::NoNext));
    assert_eq!(promotions.into_iter().filter(|promoted| *promoted == refused).count(), 3);

    let stored = listed(&world).await;
    let states: Vec<_> = stored.keys.of(&issuer()).iter().map(|key| key.state).collect();
    assert_eq!(states, [FederationKeyState::Current, FederationKeyState::Retired]);
    assert_eq!((stored.document.unwrap().1, stored.damaged), (4, Vec::new()));
    let actions = world.operate(&OPERATOR, add(&world)).await.unwrap();
    let actions: Vec<_> = actions.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, [AuditAction::FederationKeyAdded, AuditAction::FederationKeyRemoved]);
    let states: Vec<_> = listed(&world).await.keys.of(&issuer()).iter().map(|key| key.state).collect();
    assert_eq!(states, [FederationKeyState::Next, FederationKeyState::Current]);
}

/// Reads the rows, then changes them as a user with access to the database.
#[derive(Clone, Debug, PartialEq)]
struct PutBack(Vec<EntityRow>);

impl Operation for PutBack {
    type Outcome = Vec<EntityRow>;
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<EntityRow>, Failure> {
        let rows = unit.rows().lock_entities(OF_INSTANCE, Kind::SigningKeys).await?;
        for row in &self.0 {
            match unit.rows().entity(row.key).await? {
                Some(now) => unit.rows().replace_entity(now.version, row).await?,
                None => unit.rows().insert_entity(row).await?,
            };
            unit.commit_without_entry();
        }
        Ok(rows)
    }
}

/// Keys of a document that was put back are neither listed nor changed. The next addition replaces it.
pub async fn signing_keys_that_were_put_back_are_not_used(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.operate(&OPERATOR, add(&world)).await.unwrap();
    let before = world.operate(&OPERATOR, PutBack(Vec::new())).await.unwrap();
    world.operate(&OPERATOR, change(&world, promote(issuer()))).await.unwrap();
    let newest = world.operate(&OPERATOR, PutBack(before)).await.unwrap();
    let id = newest[0].key.id;
    assert_eq!(listed(&world).await, StoredSigningKeys { damaged: vec![id], ..StoredSigningKeys::default() });
    let refused = world.operate(&OPERATOR, change(&world, promote(issuer()))).await.decided();
    assert_eq!(refused, Err(Refusal::FederationKey(FederationKeyError::NoNext)));
    world.operate(&OPERATOR, add(&world)).await.unwrap();
    let stored = listed(&world).await;
    assert_eq!((stored.keys.all().len(), stored.damaged), (1, Vec::new()));
    // The newest state of the replaced document, too.
    world.operate(&OPERATOR, PutBack(newest)).await.unwrap();
    assert_eq!(listed(&world).await.damaged, [id]);
}

/// If several processes check the publication at the same time, one result is recorded.
pub async fn publication_checks_are_recorded_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.operate(&OPERATOR, add(&world)).await.unwrap();
    let read = listed(&world).await;
    let issuer = issuer();
    let (document, keys) = (read.document.unwrap().0, read.keys.published(&issuer));
    let check = |before: &PublicationChecks, seconds| {
        let finding = |_: &FederationKey| (seconds < 9).then_some(PublicationFailure::KeyMissing);
        let after = before.after(read.keys.all(), &keys, finding, world.now().plus_seconds(seconds));
        RecordPublication { document, before: before.clone(), after }
    };
    let first = join_all((0..8).map(|nth| world.operate(&OPERATOR, check(&PublicationChecks::default(), nth)))).await;
    assert_eq!(first.into_iter().filter(|recorded| *recorded.as_ref().unwrap()).count(), 1);
    let stored = listed(&world).await.checks;
    let (kid, found) = (keys[0].kid(), world.now().plus_seconds(9));
    assert_eq!(stored.of(kid).unwrap().failure, Some(PublicationFailure::KeyMissing));
    assert!(!world.operate(&OPERATOR, check(&PublicationChecks::default(), 9)).await.unwrap());
    let second = join_all((0..8).map(|_| world.operate(&OPERATOR, check(&stored, 9)))).await;
    assert_eq!(second.into_iter().filter(|recorded| *recorded.as_ref().unwrap()).count(), 1);
    let stored = listed(&world).await.checks;
    assert_eq!(stored.of(kid).unwrap().published_at, Some(found));
    assert!(world.operate(&OPERATOR, check(&stored, 60)).await.unwrap());
    let checked = listed(&world).await.checks.of(kid).cloned().unwrap();
    assert_eq!((checked.published_at, checked.checked_at), (Some(found), world.now().plus_seconds(60)));
}
