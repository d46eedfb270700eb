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
use vault_core::inspect::{InspectedRow, ReadPage, RowFinding, Stage, Violation};
use vault_core::namespace::{NamespaceState, SetFrozen};
use vault_core::operation::{Access, Failure, Operation, Unit};
use vault_core::port::{EntityRow, IdGenerator as _};
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
    /// The row is removed.
    Remove(Uuid),
    /// The operation writes, and records nothing.
    Forget(NamespaceState, Uuid),
}

impl Operation for Tamper {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.organization));

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
            Change::Remove(id) => {
                unit.rows().remove_entity(key(*id)).await?;
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
    let findings = world.findings(InspectedRow::Entity(frozen.key)).await;
    assert!(matches!(findings[..], [RowFinding { violation: Violation::NotAsRecorded { .. }, .. }]), "{findings:?}");
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
    let findings = world.findings(InspectedRow::Entity(other.key)).await;
    assert!(matches!(findings[..], [RowFinding { violation: Violation::Unreadable(_), .. }]), "{findings:?}");
    tamper(&world, Change::PutBack(EntityRow { version: 7, ..one.clone() })).await;
    assert!(is_damaged(world.operate(&OPERATOR, world.freeze("one", false)).await));
}

/// A planted value leads to nothing, and the integrity check finds it.
pub async fn planted_lookup_leads_to_nothing(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    world.set_frozen("contract", true).await;
    let id = row(&world, "contract").await.key.id;
    let planted = world.ids.random().to_string();
    tamper(&world, Change::Lead(planted.clone(), id)).await;
    let mut strays = Vec::new();
    let mut stage = Stage::Lookups(None);
    while matches!(stage, Stage::Lookups(_)) {
        let page = world.operate(&OPERATOR, ReadPage { stage, limit: 2 }).await.unwrap();
        stage = page.next;
        strays.extend(page.findings.into_iter().map(|finding| finding.id));
    }
    assert_eq!(strays.iter().filter(|value| **value == planted).count(), 1);
}

/// A namespace whose state was removed is found by the entries about it, in any state.
pub async fn removed_state_of_a_namespace_is_found(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    other.set_frozen("theirs", true).await;
    for (name, frozen) in [("a", true), ("b", true), ("a", false)] {
        world.set_frozen(name, frozen).await;
    }
    let (organization, id) = (world.organization, *world.organization.as_uuid());
    let key = InspectedRow::Entity(EntityKey { organization, kind: Kind::Organization, id });
    assert_eq!(world.findings(key.clone()).await, []);
    tamper(&world, Change::Remove(row(&world, "a").await.key.id)).await;
    let findings = world.findings(key).await;
    let [RowFinding { id, violation: Violation::Deleted { .. }, .. }] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(id, "a");
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
