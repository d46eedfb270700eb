//! Rotation of the instance key: opens all rows that depend on it, and puts those under the active key that are not.

use super::{Access, Failure, Operation, Unit};
use crate::entity::EntityKey;
use crate::id::OrganizationId;
use crate::port::{InstancePart, InstanceRow, InstanceRowKey, SealError, StoredRowKey, UnreadableRow};

/// Position from which a step continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResealFrom {
    /// Entities of all kinds, after a key.
    Entities(Option<EntityKey>),
    /// Rows of a typed table, after a row key.
    Rows(InstancePart, Option<StoredRowKey>),
}

impl ResealFrom {
    /// The first row of all.
    pub const START: Self = Self::Entities(None);
}

/// One step of a rotation. A pass of such steps that moved nothing has opened every row, so no other key is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reseal {
    /// Place after which the step starts.
    pub from: ResealFrom,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Result of a step of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resealed {
    /// Place of the next step. `None` if no rows remain.
    pub next: Option<ResealFrom>,
    /// Number of rows that were moved to the active key.
    pub moved: usize,
    /// Tables and IDs of rows that do not open. They keep their key.
    pub damaged: Vec<(&'static str, String)>,
}

impl Operation for Reseal {
    type Outcome = Resealed;
    const ACCESS: Access = Access::Write;

    /// Locks no organization: a row that changes in the meantime is under the active key.
    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Resealed, Failure> {
        // A process that has loaded the active key has loaded all before it.
        unit.require_active_key(unit.sealer().active_key()).await?;
        unit.commit_without_entry();
        match &self.from {
            ResealFrom::Entities(after) => self.entities(unit, *after).await,
            ResealFrom::Rows(part, after) => self.rows(unit, *part, after.clone()).await,
        }
    }
}

impl Reseal {
    async fn entities(&self, unit: &Unit<'_>, after: Option<EntityKey>) -> Result<Resealed, Failure> {
        let (rows, sealer) = (unit.rows(), unit.sealer());
        let next = InstancePart::all().next().map(|first| ResealFrom::Rows(first, None));
        let mut step = Resealed { next, moved: 0, damaged: Vec::new() };
        for row in rows.entities_after(after, self.limit).await? {
            step.next = Some(ResealFrom::Entities(Some(row.key)));
            let Ok(document) = sealer.open(&row.key, row.version, &row.sealed) else {
                step.damaged.push((EntityKey::TABLE, row.key.id.to_string()));
                continue;
            };
            if row.sealed.key() != Some(sealer.active_key()) {
                let sealed = sealer.seal(&row.key, row.version, &document).map_err(Failure::Seal)?;
                step.moved += usize::from(rows.reseal_entity(&row, &sealed).await?);
            }
        }
        Ok(step)
    }

    async fn rows(
        &self,
        unit: &Unit<'_>,
        part: InstancePart,
        after: Option<StoredRowKey>,
    ) -> Result<Resealed, Failure> {
        let next = InstancePart::all().skip_while(|one| *one != part).nth(1).map(|next| ResealFrom::Rows(next, None));
        let mut step = Resealed { next, moved: 0, damaged: Vec::new() };
        for place in unit.rows().instance_places(part, after, self.limit).await? {
            match self.row(unit, part, &place).await? {
                Some(moved) => step.moved += usize::from(moved),
                None => step.damaged.push((part.table(), place.1.clone())),
            }
            step.next = Some(ResealFrom::Rows(part, Some(place)));
        }
        Ok(step)
    }

    /// Returns whether the row was moved. `None` if it is damaged.
    async fn row(&self, unit: &Unit<'_>, part: InstancePart, place: &StoredRowKey) -> Result<Option<bool>, Failure> {
        let (Ok(organization), Ok(id)) = (place.0.parse(), place.1.parse()) else { return Ok(None) };
        let row = match unit.rows().instance_row(part, (organization, id)).await? {
            Some(Ok(row)) => row,
            Some(Err(_)) => return Ok(None),
            None => return Ok(Some(false)), // it was deleted concurrently
        };
        let sealed = match unit.sealer().reseal_row(&row) {
            Ok(sealed) => sealed,
            Err(SealError::Integrity { .. } | SealError::UnknownKey { .. }) => return Ok(None),
            Err(error) => return Err(Failure::Seal(error)),
        };
        let moves = sealed != row;
        if moves {
            unit.rows().reseal_row(&row, &sealed).await?;
        }
        Ok(Some(moves))
    }
}

/// Reads the row keys of a typed table in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstancePlaces {
    /// Kind of the rows.
    pub part: InstancePart,
    /// Row key after which the page starts.
    pub after: Option<StoredRowKey>,
    /// Maximum number of row keys.
    pub limit: usize,
}

impl Operation for InstancePlaces {
    type Outcome = Vec<StoredRowKey>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<StoredRowKey>, Failure> {
        Ok(unit.rows().instance_places(self.part, self.after.clone(), self.limit).await?)
    }
}

/// Reads a row of a typed table for an integrity check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadInstanceRow {
    /// Kind of the row.
    pub part: InstancePart,
    /// Its key.
    pub place: InstanceRowKey,
}

impl Operation for ReadInstanceRow {
    type Outcome = Option<Result<InstanceRow, UnreadableRow>>;
    const ACCESS: Access = Access::Read;

    fn organization(&self) -> Option<OrganizationId> {
        None
    }

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        Ok(unit.rows().instance_row(self.part, self.place).await?)
    }
}
