//! Cases of issuers.

use super::ContractStore;
use super::tools::Settled;
use super::world::World;
use futures_util::future::join_all;
use vault_core::Refusal;
use vault_core::id::IssuerId;
use vault_core::identity::{
    AddIssuer, FindIssuers, Issuer, IssuerKeySet, IssuerName, KeySource, ListIssuers, RecordKeys, RemoveIssuer,
    StoredIssuer,
};
use vault_core::port::IdGenerator as _;
use vault_core::principal::Principal;

const OPERATOR: Principal = Principal::Operator;

/// If several requests add an issuer with the same name, exactly one succeeds. The issuer is found, listed, and removed
/// once.
pub async fn parallel_additions_of_one_issuer_create_one(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let additions: Vec<_> = (0..8).map(|nth| addition(&world, "raced", nth)).collect();
    let name = additions[0].issuer.name.clone();
    let added = join_all(additions.iter().map(|addition| world.operate(&OPERATOR, addition.clone()))).await;
    let added: Vec<_> = added.into_iter().map(Settled::decided).collect();
    let created: Vec<_> = added.iter().filter_map(|added| added.clone().ok()).collect();
    assert_eq!(created.len(), 1);
    assert_eq!(added.iter().filter(|added| **added == Err(Refusal::IssuerExists)).count(), 7);
    assert_eq!(find(&world, &[&name]).await, created);
    assert!(world.operate(&OPERATOR, ListIssuers).await.unwrap().contains(&created[0]));

    let removals = join_all((0..4).map(|_| world.operate(&OPERATOR, RemoveIssuer(name.clone())))).await;
    let removals: Vec<_> = removals.into_iter().map(Settled::decided).collect();
    assert_eq!(removals.iter().filter(|removed| removed.is_ok()).count(), 1);
    assert_eq!(removals.iter().filter(|removed| **removed == Err(Refusal::NotFound)).count(), 3);
    assert_eq!(find(&world, &[&name]).await, []);
}

/// The keys of an issuer are recorded only if they are unchanged since they were read.
pub async fn issuer_keys_are_recorded_only_in_row_read(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let first = world.operate(&OPERATOR, addition(&world, "first", 0)).await.unwrap();
    let other = world.operate(&OPERATOR, addition(&world, "other", 0)).await.unwrap();
    let set = |keys: &str, seconds| IssuerKeySet::fetched(keys.to_owned(), world.now().plus_seconds(seconds));
    let record = async |version, set: &IssuerKeySet| {
        let record = RecordKeys { issuer: first.issuer.id, version, set: set.clone() };
        world.operate(&OPERATOR, record).await.unwrap()
    };
    let second = set("{\"keys\":[2]}", 1);
    assert!(record(1, &second).await);
    assert!(!record(1, &set("{\"keys\":[3]}", 2)).await, "the row has changed");
    let failed =
        IssuerKeySet { failure: "unreachable".to_owned(), asked_at: world.now().plus_seconds(3), ..second.clone() };
    assert!(record(2, &failed).await);
    let found = find(&world, &[&first.issuer.name, &other.issuer.name]).await;
    assert_eq!(found, [StoredIssuer { set: failed, version: 3, ..first.clone() }, other]);
}

async fn find(world: &World<'_>, names: &[&IssuerName]) -> Vec<StoredIssuer> {
    let names = names.iter().copied().cloned().collect();
    world.operate(&OPERATOR, FindIssuers(names)).await.unwrap()
}

/// Returns an issuer with a name that no other case uses. `nth` distinguishes issuers with the same name.
fn addition(world: &World<'_>, prefix: &str, nth: usize) -> AddIssuer {
    let name = format!("{prefix}-{}", world.organization);
    let issuer = Issuer {
        id: IssuerId::from_uuid(world.ids.random()),
        name: IssuerName::parse(&name, "").unwrap(),
        url: format!("https://issuer.example/{nth}"),
        source: KeySource::Discovery("https://keys.example".to_owned()),
        ca: String::new(),
        required: Vec::new(),
        organizations: vec![world.organization],
        created_at: world.now(),
    };
    AddIssuer { issuer, set: IssuerKeySet::fetched("{\"keys\":[]}".to_owned(), world.now()) }
}
