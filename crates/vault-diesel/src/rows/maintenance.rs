//! Rows of all organizations, for maintenance.

use super::{TxRows, expiry, several, then};
use crate::db::Parts;
use crate::failure::Failure;
use crate::schema::{
    account_logins, activations, entities, global_lookups, known_networks, organizations, recovery_codes, sessions,
};
use crate::stored::StoredId as _;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::{ExpressionMethods as _, QueryDsl as _, delete, insert_into, update};
use uuid::Uuid;
use vault_core::credential_counts::{Checked, CountedCredentials, EXPIRY_BOUNDS};
use vault_core::entity::{Index, Kind};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::maintenance::{CountCredentials, CountedSlice, Expired, Settled};
use vault_core::passcode::TimeStep;
use vault_core::port::{MaintenanceRows, Reply};
use vault_core::time::Timestamp;

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

fn decode(rows: Vec<(i64, i64, String)>) -> Result<CountedSlice, Failure> {
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

impl MaintenanceRows for TxRows<'_> {
    fn delete_expired(&self, expired: Expired, now: Timestamp) -> Reply<'_, usize> {
        several(expiry::delete_expired(&self.tx, expired, now))
    }

    fn count_credentials(&self, query: &CountCredentials) -> Reply<'_, CountedSlice> {
        then(self.tx.load(count(query)), decode)
    }

    fn most_key_uses(&self) -> Reply<'_, i64> {
        let most = organizations::table.select(diesel::dsl::max(organizations::key_uses));
        then(self.tx.one(most), |most: Option<i64>| Ok(most.unwrap_or(0)))
    }

    fn server_time(&self) -> Reply<'_, Option<Timestamp>> {
        let time: Parts<'_, Nullable<BigInt>> = Parts::new("SELECT ")
            .dialect("(SELECT NULL FROM instance)", "(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
        then(self.tx.one(time), |time: Option<i64>| Ok(time.map(Timestamp::from_millis)))
    }

    fn prove_space(&self) -> Reply<'_, ()> {
        let no_network = [0_u8; 32].as_slice();
        let new = (known_networks::network.eq(no_network), known_networks::last_login_at.eq(0));
        several(async move {
            self.tx.execute(insert_into(known_networks::table).values(new)).await?;
            let own = known_networks::table.filter(known_networks::network.eq(no_network));
            self.tx.execute(delete(own)).await?;
            Ok(())
        })
    }

    fn revoke_restored(&self, step: TimeStep, ends_invitations: bool) -> Reply<'_, Settled> {
        several(async move {
            let tx = &self.tx;
            let earlier = account_logins::table.filter(account_logins::last_step.lt(step.0));
            tx.execute(update(earlier).set(account_logins::last_step.eq(step.0))).await?;
            let unconfirmed = [Kind::PendingSeed, Kind::EnrolmentDraft].map(Kind::as_str);
            tx.execute(delete(entities::table.filter(entities::kind.eq_any(unconfirmed)))).await?;
            let mut settled = Settled {
                sessions: tx.execute(delete(sessions::table)).await? as u64,
                recovery_codes: tx.execute(delete(recovery_codes::table)).await? as u64,
                activations: tx.execute(delete(activations::table)).await? as u64,
                invitations: 0,
            };
            if ends_invitations {
                let leading = global_lookups::name.eq_any(Index::names_of(Kind::Invitation));
                tx.execute(delete(global_lookups::table.filter(leading))).await?;
                let invitations = entities::table.filter(entities::kind.eq(Kind::Invitation.as_str()));
                settled.invitations = tx.execute(delete(invitations)).await? as u64;
            }
            Ok(settled)
        })
    }
}
