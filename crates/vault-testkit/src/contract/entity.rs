//! Cases of operations and of the rows of entities, whatever their kind.

use super::ContractStore;
use super::tools::Settled as _;
use super::world::World;
use futures_util::future::join_all;
use vault_core::audit::AuditAction;
use vault_core::entity::EntityKey;
use vault_core::inspect::{InspectedRow, Stage};
use vault_core::namespace::{NamespaceState, SetFrozen};
use vault_core::operation::{Access, Failure, Operation, Unit};
use vault_core::port::EntityRow;
use vault_core::principal::Principal;

const OPERATOR: Principal = Principal::Operator;

/// An operation that writes, and records nothing.
#[derive(Clone, Debug, PartialEq)]
struct Forget(SetFrozen);

impl Operation for Forget {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.0.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let SetFrozen { organization, namespace, id, .. } = self.0.clone();
        unit.insert(organization, id, &NamespaceState { namespace, frozen_at: Some(unit.now()) }).await
    }
}

/// Reads the row of a namespace's state.
#[derive(Clone, Debug, PartialEq)]
struct ReadRow(SetFrozen);

impl Operation for ReadRow {
    type Outcome = Option<(EntityRow, NamespaceState)>;
    const ACCESS: Access<Self> = Access::Read(|operation| Some(operation.0.organization));

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let lookup = NamespaceState::lookup(&self.0.namespace);
        let Some(found) = unit.find_by::<NamespaceState>(self.0.organization, &lookup).await? else { return Ok(None) };
        Ok(unit.rows().entity(found.key()).await?.map(|row| (row, found.into_value())))
    }
}

async fn row(world: &World<'_>, name: &str) -> EntityRow {
    world.operate(&OPERATOR, ReadRow(world.freeze(name, true))).await.unwrap().unwrap().0
}

/// Rows of an operation that records nothing are rolled back.
pub async fn operation_that_records_nothing_changes_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let outcome = world.operate(&OPERATOR, Forget(world.freeze("forgotten", true))).await;
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

/// The keys of all entities are read page by page, once each.
pub async fn entities_are_read_in_the_order_of_their_keys(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    for name in ["a", "b", "c"] {
        world.set_frozen(name, true).await;
        other.set_frozen(name, true).await;
    }
    let rows = world.rows_of(Stage::Entities(None), 2).await.into_iter();
    let keys: Vec<EntityKey> = rows
        .map(|row| match row {
            InspectedRow::Entity(key) => key,
            other => panic!("no entity: {other:?}"),
        })
        .collect();
    assert!(keys.windows(2).all(|pair| pair[0].order() < pair[1].order()));
    for organization in [world.organization, other.organization] {
        // Its own document, and the states of three namespaces.
        assert_eq!(keys.iter().filter(|key| key.organization == organization).count(), 4);
    }
}
