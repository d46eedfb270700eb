//! Counts of credentials of all organizations, a slice of the primary key at a time, and of key uses.

use super::super::Read;
use crate::db::{Parts, Tx};
use crate::failure::Failure;
use crate::schema::organizations;
use crate::stored::StoredId as _;
use diesel::QueryDsl as _;
use diesel::sql_types::{BigInt, Text};
use uuid::Uuid;
use vault_core::credential_counts::{Checked, CountedCredentials, EXPIRY_BOUNDS};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::port::{CountCredentials, CountedSlice};

/// The number of bounds before an expiry.
const DIGITS: [&str; EXPIRY_BOUNDS] = ["0", "1", "2", "3", "4"];

/// The statement that counts a slice: the number of credentials in each group, and the last row key of the group. The number of
/// a group is the check and, times three, the number of bounds before the expiry. Unknown expiries count as none.
///
/// A row key is text, because no function aggregates ids on both databases.
fn count(query: &CountCredentials) -> Parts<'static, (BigInt, BigInt, Text)> {
    // No organization has the nil id.
    let nil = (OrganizationId::from_bytes([0; 16]), CredentialId::from_bytes([0; 16]));
    let (organization, id) = query.after.unwrap_or(nil);
    let moments = query.bounds.moments().map(|moment| moment.as_millis());
    Parts::new("SELECT alike, count(*), max(place) FROM (SELECT CAST(3 * (CASE")
        .each(moments.into_iter().zip(DIGITS), "", |count, (bound, digit)| {
            count.text(" WHEN expires_at <= ").number(bound).text(" THEN ").text(digit)
        })
        .text(" ELSE 5 END) + (CASE WHEN checked_at IS NULL THEN 0 WHEN check_failed IS NULL THEN 1 ELSE 2 END)")
        .text(" AS BIGINT) AS alike, ")
        .dialect("hex(organization_id) || hex(id)", "CAST(organization_id AS TEXT) COLLATE \"C\" || CAST(id AS TEXT)")
        .text(" AS place FROM credentials WHERE (organization_id, id) > (")
        .id(organization.stored())
        .text(", ")
        .id(id.stored())
        .text(") ORDER BY organization_id, id LIMIT ")
        .number(i64::try_from(query.limit).unwrap_or(i64::MAX))
        .text(") AS slice GROUP BY alike")
}

impl Read for CountCredentials {
    type Outcome = CountedSlice;

    async fn read(&self, tx: &Tx<'_>) -> Result<CountedSlice, Failure> {
        let rows: Vec<(i64, i64, String)> = tx.load(count(self)).await?;
        let mut counted = CountedSlice::default();
        for (alike, credentials, place) in rows {
            let damaged = || Failure::damaged("credentials", place.clone(), "id");
            let (organization, id) = place.split_at_checked(place.len() / 2).ok_or_else(damaged)?;
            let organization = OrganizationId::from_uuid(Uuid::try_parse(organization).map_err(|_| damaged())?);
            let id = CredentialId::from_uuid(Uuid::try_parse(id).map_err(|_| damaged())?);
            let alike = usize::try_from(alike).unwrap_or_default();
            let checked = Checked::ALL[alike % Checked::ALL.len()];
            let bounds_before = alike / Checked::ALL.len();
            let credentials = u64::try_from(credentials).unwrap_or_default();
            counted.groups.push(CountedCredentials { checked, bounds_before, credentials });
            counted.last = counted.last.max(Some((organization, id)));
        }
        Ok(counted)
    }
}

/// The number of uses of the most used active organization key, or 0 if there is none.
pub(crate) struct MostKeyUses;

impl Read for MostKeyUses {
    type Outcome = i64;

    async fn read(&self, tx: &Tx<'_>) -> Result<i64, Failure> {
        let most = organizations::table.select(diesel::dsl::max(organizations::key_uses));
        let most: Option<i64> = tx.one(most).await?;
        Ok(most.unwrap_or(0))
    }
}
