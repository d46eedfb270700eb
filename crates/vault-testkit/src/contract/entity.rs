//! Cases of operations and of the rows of entities, whatever their kind.

use super::ContractStore;
use super::tools::Settled as _;
use super::world::World;
use futures_util::future::join_all;
use uuid::Uuid;
use vault_core::audit::AuditAction;
use vault_core::entity::{EntityKey, Index, Kind};
use vault_core::error::Refusal;
use vault_core::id::OrganizationId;
use vault_core::namespace::{NamespaceState, SetFrozen};
use vault_core::operation::{Access, EntityKeys, Failure, InspectEntity, InspectLookups, Operation, Unit};
use vault_core::port::EntityRow;
use vault_core::principal::Principal;

const OPERATOR: Principal = Principal::Operator;

/// A change that the rules do not allow, as by a user with access to the database.
#[derive(Clone, Debug, PartialEq)]
struct Tamper {
    organization: OrganizationId,
    change: Change,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// The row becomes this one.
    PutBack(EntityRow),
    /// The document moves to the row of another entity.
    Move(Uuid, Uuid),
    /// The value of one namespace leads to another one.
    Lead(String, Uuid),
    /// The operation writes, and records nothing.
    Forget(NamespaceState, Uuid),
}

impl Operation for Tamper {
    type Outcome = ();
    const ACCESS: Access = Access::Write;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let key = |id| EntityKey { organization: self.organization, kind: Kind::Namespace, id };
        match &self.change {
            Change::PutBack(row) => {
                let now = unit.rows().entity(row.key).await?.ok_or(Refusal::NotFound)?;
                unit.rows().replace_entity(now.version, row).await?;
            }
            Change::Move(from, to) => {
                let from = unit.rows().entity(key(*from)).await?.ok_or(Refusal::NotFound)?;
                let to = unit.rows().entity(key(*to)).await?.ok_or(Refusal::NotFound)?;
                unit.rows().replace_entity(to.version, &EntityRow { key: to.key, ..from }).await?;
            }
            Change::Lead(name, id) => {
                unit.rows().enter(key(*id), Index::FrozenNamespace, name).await?;
            }
            Change::Forget(state, id) => return unit.insert(self.organization, *id, state).await,
        }
        unit.commit_without_entry();
        Ok(())
    }
}

/// Reads the row of a namespace's state.
#[derive(Clone, Debug, PartialEq)]
struct ReadRow(SetFrozen);

impl Operation for ReadRow {
    type Outcome = Option<(EntityRow, NamespaceState)>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        Some(self.0.organization)
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let lookup = NamespaceState::lookup(&self.0.namespace);
        let Some(found) = unit.find_by::<NamespaceState>(self.0.organization, &lookup).await? else { return Ok(None) };
        Ok(unit.rows().entity(found.key()).await?.map(|row| (row, found.into_value())))
    }
}

async fn row(world: &World<'_>, name: &str) -> EntityRow {
    world.operate(&OPERATOR, ReadRow(world.freeze(name, true))).await.unwrap().unwrap().0
}

async fn tamper(world: &World<'_>, change: Change) {
    world.operate(&OPERATOR, Tamper { organization: world.organization, change }).await.unwrap();
}

fn is_damaged<T>(outcome: Result<T, vault_core::Error>) -> bool {
    matches!(outcome.decided(), Err(Refusal::Damaged { table: "entities", .. }))
}

/// Rows of an operation that records nothing are rolled back.
pub async fn operation_that_records_nothing_changes_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let SetFrozen { namespace, id, .. } = world.freeze("forgotten", true);
    let change = Change::Forget(NamespaceState { namespace, frozen_at: Some(world.now()) }, id);
    let outcome = world.operate(&OPERATOR, Tamper { organization: world.organization, change }).await;
    assert_eq!(outcome.decided(), Ok(()));
    assert_eq!(world.operate(&OPERATOR, ReadRow(world.freeze("forgotten", true))).await.unwrap(), None);
}

/// Operations of one organization run one after the other: each change has the next version.
pub async fn versions_of_an_entity_rise_without_gaps(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let toggles = (0..12).map(|number| world.operate(&OPERATOR, world.freeze("contract", number % 2 == 0)));
    let changed = join_all(toggles).await.into_iter().filter(|outcome| outcome.as_ref().unwrap().changed).count();
    assert_eq!(row(&world, "contract").await.version, i64::try_from(changed).unwrap());
    let recorded =
        world.audited(AuditAction::NamespaceFrozen).await + world.audited(AuditAction::NamespaceThawed).await;
    assert_eq!(recorded, changed);
}

/// A row that was put back opens, but no operation signs it again: a later change would hide that it was put back.
pub async fn entity_that_was_put_back_is_not_signed_again(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.set_frozen("contract", true).await;
    let frozen = row(&world, "contract").await;
    world.set_frozen("contract", false).await;
    let thawed = row(&world, "contract").await;
    tamper(&world, Change::PutBack(frozen.clone())).await;
    let inspected = world.operate(&OPERATOR, InspectEntity(frozen.key)).await.unwrap().unwrap().unwrap();
    assert_eq!(inspected.version, 1);
    assert!(is_damaged(world.operate(&OPERATOR, world.freeze("contract", false)).await));
    assert_eq!(row(&world, "contract").await, frozen);
    tamper(&world, Change::PutBack(thawed)).await;
    world.set_frozen("contract", true).await;
    assert_eq!(row(&world, "contract").await.version, 3);
}

/// A document opens only in its own row, at its own version.
pub async fn document_opens_only_in_its_row(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    for name in ["one", "other"] {
        world.set_frozen(name, true).await;
    }
    let (one, other) = (row(&world, "one").await, row(&world, "other").await);
    tamper(&world, Change::Move(one.key.id, other.key.id)).await;
    assert!(is_damaged(world.operate(&OPERATOR, world.freeze("other", false)).await));
    assert!(world.operate(&OPERATOR, InspectEntity(other.key)).await.unwrap().unwrap().is_err());
    tamper(&world, Change::PutBack(EntityRow { version: 7, ..one.clone() })).await;
    assert!(is_damaged(world.operate(&OPERATOR, world.freeze("one", false)).await));
}

/// A planted value leads to nothing, and the integrity check finds it.
pub async fn planted_lookup_leads_to_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.set_frozen("contract", true).await;
    let id = row(&world, "contract").await.key.id;
    tamper(&world, Change::Lead("planted".to_owned(), id)).await;
    let mut strays = Vec::new();
    let mut after = None;
    loop {
        let step = world.operate(&OPERATOR, InspectLookups { global: false, after, limit: 2 }).await.unwrap();
        let Some((last, _)) = step.last() else { break };
        after = Some(last.clone());
        let own = step.into_iter().filter(|(row, _)| row.organization == world.organization);
        strays.extend(own.filter(|(_, is_listed)| !is_listed).map(|(row, _)| row.value));
    }
    assert_eq!(strays, ["planted"]);
}

/// The keys of all entities are read page by page, once each.
pub async fn entities_are_read_in_the_order_of_their_keys(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for name in ["a", "b", "c"] {
        world.set_frozen(name, true).await;
        other.set_frozen(name, true).await;
    }
    let mut keys: Vec<EntityKey> = Vec::new();
    loop {
        let after = keys.last().copied();
        let page = world.operate(&OPERATOR, EntityKeys { after, limit: 2 }).await.unwrap();
        if page.is_empty() {
            break;
        }
        keys.extend(page);
    }
    assert!(keys.windows(2).all(|pair| pair[0].order() < pair[1].order()));
    for organization in [world.organization, other.organization] {
        // Its own document, and the states of three namespaces.
        assert_eq!(keys.iter().filter(|key| key.organization == organization).count(), 4);
    }
}
