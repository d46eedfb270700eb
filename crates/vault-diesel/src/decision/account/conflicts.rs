//! How many invitations of an organization met an address in use.

use super::super::backend::{Connection, RunQuery, for_update};
use crate::failure::Failure;
use crate::schema::address_conflicts;
use crate::stored::ToIdText as _;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::id::OrganizationId;
use vault_core::invitation::AddressConflicts;
use vault_core::time::Timestamp;

macro_rules! row_of {
    ($organization:expr) => {
        address_conflicts::table.filter(address_conflicts::organization_id.eq($organization.text()))
    };
}

/// Takes the count, if there is one.
pub(crate) async fn hold(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<AddressConflicts, Failure> {
    let row: Option<(i64, i64)> =
        for_update!(row_of!(organization).select((address_conflicts::conflicts, address_conflicts::since)))
            .get_result(connection)
            .await
            .optional()?;
    let Some((conflicts, since)) = row else { return Ok(AddressConflicts::default()) };
    let damaged = |_| Failure::damaged("address_conflicts", organization.to_string(), "conflicts");
    let count = u32::try_from(conflicts).map_err(damaged)?;
    Ok(AddressConflicts { count, since: (count > 0).then_some(Timestamp::from_millis(since)) })
}

/// Counts one.
pub(crate) async fn count(
    connection: &mut Connection,
    organization: OrganizationId,
    now: Timestamp,
) -> Result<(), Failure> {
    diesel::insert_into(address_conflicts::table)
        .values((
            address_conflicts::organization_id.eq(organization.text()),
            address_conflicts::conflicts.eq(0),
            address_conflicts::since.eq(now.as_millis()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    let counted = hold(connection, organization).await?.plus_one(now);
    diesel::update(row_of!(organization))
        .set((
            address_conflicts::conflicts.eq(i64::from(counted.count)),
            address_conflicts::since.eq(counted.since.unwrap_or(now).as_millis()),
        ))
        .execute(connection)
        .await?;
    Ok(())
}
