//! Checks that the lookup tables lead to each row.

use super::Read;
use crate::db::Tx;
use crate::failure::Failure;
use crate::rows::entity_of;
use crate::schema::{accounts, directory};
use crate::stored::StoredId as _;
use diesel::dsl::exists;
use diesel::{ExpressionMethods as _, QueryDsl as _, select};
use vault_core::entity::Kind;
use vault_core::id::AccountId;
use vault_core::port::{InstancePart, InstanceRowKey, Lookup};

/// The tables that do not lead to a row.
pub(crate) struct MissingLookups {
    pub(crate) part: InstancePart,
    pub(crate) place: InstanceRowKey,
    pub(crate) expected: Vec<Lookup>,
}

impl Read for MissingLookups {
    type Outcome = Vec<&'static str>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<&'static str>, Failure> {
        let mut missing = Vec::new();
        for lookup in &self.expected {
            if let Some((table, false)) = leads(tx, self.part, self.place, lookup).await? {
                missing.push(table);
            }
        }
        Ok(missing)
    }
}

/// The table concerned, and whether it leads to the row. `None` if no table is concerned.
async fn leads(
    tx: &Tx<'_>,
    part: InstancePart,
    (organization, id): InstanceRowKey,
    lookup: &Lookup,
) -> Result<Option<(&'static str, bool)>, Failure> {
    let (of, owner) = (organization.stored(), AccountId::from_uuid(id).stored());
    let (table, found) = match (part, lookup) {
        (InstancePart::Accounts, Lookup::Address(address)) => {
            let leading = directory::table
                .filter(directory::address.eq(address.as_str()))
                .filter(directory::organization_id.eq(of))
                .filter(directory::account_id.eq(owner));
            ("directory", tx.one(select(exists(leading))))
        }
        (InstancePart::PendingSeeds, Lookup::Owner) => {
            let own = accounts::table.filter(accounts::organization_id.eq(of)).filter(accounts::id.eq(owner));
            ("accounts", tx.one(select(exists(own))))
        }
        (_, Lookup::Owner) => {
            let own = entity_of(of, Kind::Invitation.as_str(), owner);
            ("entities", tx.one(select(exists(own))))
        }
        (_, Lookup::Address(_)) => return Ok(None),
    };
    Ok(Some((table, found.await?)))
}
