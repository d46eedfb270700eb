//! Rotation of the instance key: opens all documents, and seals those again that are not under the active key.

use super::{Access, Failure, Operation, Unit};
use crate::entity::{Entity as _, EntityKey, Kind};
use crate::organization::Organization;
use crate::port::{EntityRow, EntitySealer};
use zeroize::Zeroizing;

/// One step of a rotation. A pass of such steps that moved nothing has opened every document, so no other key is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reseal {
    /// Row key after which the step starts.
    pub after: Option<EntityKey>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Result of a step of a rotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Last row of the step. `None` if none remained.
    pub last: Option<EntityKey>,
    /// Number of rows that were moved to the active key.
    pub moved: usize,
    /// Rows that do not open. They keep their key.
    pub damaged: Vec<EntityKey>,
}

impl Operation for Reseal {
    type Outcome = Resealed;
    /// Locks no organization: a row that changes in the meantime is under the active key.
    const ACCESS: Access<Self> = Access::Write(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Resealed, Failure> {
        let (rows, sealer) = (unit.rows(), unit.sealer());
        // A process that has loaded the active key has loaded all before it.
        unit.require_active_key(sealer.active_key()).await?;
        unit.commit_without_entry();
        let mut step = Resealed::default();
        for row in rows.entities_after(self.after, self.limit).await? {
            step.last = Some(row.key);
            let Ok(document) = rewrapped(sealer, &row) else {
                step.damaged.push(row.key);
                continue;
            };
            if row.sealed.key() != Some(sealer.active_key()) {
                let sealed = sealer.seal(&row.key, row.version, &document).map_err(Failure::Seal)?;
                step.moved += usize::from(rows.reseal_entity(&row, &sealed).await?);
            }
        }
        Ok(step)
    }
}

/// Opens a document, and wraps the keys in it with the active instance key.
pub(crate) fn rewrapped(sealer: &dyn EntitySealer, row: &EntityRow) -> Result<Zeroizing<Vec<u8>>, &'static str> {
    let document = sealer.open(&row.key, row.version, &row.sealed)?;
    if row.key.kind != Kind::Organization {
        return Ok(document);
    }
    let organization = serde_json::from_slice::<Organization>(&document);
    let organization = organization.map_err(|_| "the document has another form")?;
    let rewrapped = organization.rewrapped(sealer)?;
    Ok(rewrapped.map_or(document, |after| Zeroizing::new(serde_json::to_vec(&after).unwrap_or_default())))
}
