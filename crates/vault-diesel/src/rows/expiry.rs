//! Deletion of expired rows of all organizations. They are found by their time, with an index, and then deleted by their keys,
//! because each statement that changes rows of an organization names it.

use super::erasure;
use crate::db::{Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{
    account_notices, activations, attempt_classes, credential_secrets, credential_uses, entities, global_lookups,
    hourly_counts, idempotency_keys, known_networks, organizations, sessions,
};
use crate::stored::AnyId;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, QueryDsl as _, delete};
use std::collections::BTreeMap;
use vault_core::credential::USE_SECONDS;
use vault_core::entity::{Index, Kind};
use vault_core::hourly::HOUR_SECONDS;
use vault_core::lockout::NETWORK_KNOWN_SECONDS;
use vault_core::maintenance::{EXPIRED_SLICE, Expired, IDEMPOTENCY_SECONDS};
use vault_core::notice::NOTICE_SECONDS;
use vault_core::time::Timestamp;

/// Deletes a slice of the rows of a table that meet a condition, with the types of their key. One statement deletes the rows
/// whose keys differ in the last column only, in the order in which rows are locked.
macro_rules! sweep {
    ($tx:ident, $table:ident, $expired:expr, ($($first:ident: $of:ty),+), $last:ident: $key:ty) => {{
        let keys = $table::table.filter($expired).select((($($table::$first,)+), $table::$last));
        let keys: Vec<(($($of,)+), $key)> = $tx.page(keys, EXPIRED_SLICE).await?;
        let mut deleted = 0;
        for (($($first,)+), last) in &by_first(keys) {
            let rows = $table::table.filter($expired)$(.filter($table::$first.eq($first)))+;
            deleted += $tx.execute(delete(rows.filter($table::$last.eq_any(last)))).await?;
        }
        deleted
    }};
}

/// Groups keys by their first part, in its order.
fn by_first<G: Ord, K>(keys: Vec<(G, K)>) -> BTreeMap<G, Vec<K>> {
    let mut groups = BTreeMap::new();
    for (first, last) in keys {
        groups.entry(first).or_insert_with(Vec::new).push(last);
    }
    groups
}

/// Deletes at most a slice of the rows of a kind that are expired at `now`.
pub(super) async fn delete_expired(tx: &Tx<'_>, expired: Expired, now: Timestamp) -> Result<usize, Failure> {
    let before = |seconds: i64| now.plus_seconds(-seconds).as_millis();
    let until = now.as_millis();
    Ok(match expired {
        Expired::Sessions => {
            sweep!(tx, sessions, sessions::expires_at.le(until), (organization_id: AnyId), id: AnyId)
        }
        Expired::IdempotencyKeys => {
            let expired = || idempotency_keys::created_at.le(before(IDEMPOTENCY_SECONDS));
            sweep!(tx, idempotency_keys, expired(), (organization_id: AnyId, account_id: AnyId), key: String)
        }
        Expired::Attempts => {
            let until = before(NETWORK_KNOWN_SECONDS);
            let expired = || attempt_classes::last_login_at.lt(until);
            let of_accounts =
                sweep!(tx, attempt_classes, expired(), (organization_id: AnyId, account_id: AnyId), network: Vec<u8>);
            of_accounts + delete_networks(tx, until).await?
        }
        Expired::Invitations => delete_invitations(tx, until).await?,
        Expired::Notices => {
            let expired = || account_notices::at.le(before(NOTICE_SECONDS));
            sweep!(tx, account_notices, expired(), (organization_id: AnyId, account_id: AnyId), at: i64)
        }
        Expired::PendingSeeds => {
            let expired = || entities::kind.eq(Kind::PendingSeed.as_str()).and(entities::due_at.le(until));
            sweep!(tx, entities, expired(), (organization_id: AnyId), id: AnyId)
        }
        Expired::Activations => {
            sweep!(tx, activations, activations::expires_at.le(until), (organization_id: AnyId), id: AnyId)
        }
        Expired::PreviousVersions => {
            let expired = || credential_secrets::destroy_at.le(until);
            sweep!(tx, credential_secrets, expired(), (organization_id: AnyId, id: AnyId), version: i64)
        }
        Expired::CredentialUses => {
            let expired = || credential_uses::expires_at.le(before(USE_SECONDS));
            sweep!(tx, credential_uses, expired(), (organization_id: AnyId, id: AnyId, at: i64), activation_id: AnyId)
        }
        Expired::HourlyCounts => {
            let expired = || hourly_counts::since.le(before(HOUR_SECONDS));
            sweep!(tx, hourly_counts, expired(), (organization_id: AnyId), subject: String)
        }
        // The deleted rows are not counted: a slice may remain, of this organization or the next.
        Expired::Erasures => {
            if erasure::erase_slice(tx).await? {
                EXPIRED_SLICE
            } else {
                0
            }
        }
    })
}

/// Deletes networks without a login of any account. They belong to no organization.
async fn delete_networks(tx: &Tx<'_>, until: i64) -> Result<usize, Failure> {
    let expired = || known_networks::table.filter(known_networks::last_login_at.lt(until));
    let networks: Vec<Vec<u8>> = tx.page(expired().select(known_networks::network), EXPIRED_SLICE).await?;
    if networks.is_empty() {
        return Ok(0);
    }
    Ok(tx.execute(delete(expired().filter(known_networks::network.eq_any(&networks)))).await?)
}

/// Columns are compared as stored, so damage does not keep an invitation.
async fn delete_invitations(tx: &Tx<'_>, until: i64) -> Result<usize, Failure> {
    let expired = || {
        let invitations = entities::table.filter(entities::kind.eq(Kind::Invitation.as_str()));
        invitations.filter(entities::due_at.le(until))
    };
    let found: Vec<(AnyId, AnyId)> =
        tx.page(expired().select((entities::organization_id, entities::id)), EXPIRED_SLICE).await?;
    let mut deleted = 0;
    for (organization, ids) in &by_first(found) {
        // Operations that accept or replace an invitation lock its organization.
        let lock = organizations::table.filter(organizations::id.eq(organization));
        tx.first::<i64, _>(locked(lock.select(organizations::credentials), Update)).await?;
        let still = || expired().filter(entities::organization_id.eq(organization)).filter(entities::id.eq_any(ids));
        let ids: Vec<AnyId> = tx.load(still().select(entities::id)).await?;
        let drafts = entities::table
            .filter(entities::organization_id.eq(organization))
            .filter(entities::kind.eq(Kind::EnrolmentDraft.as_str()))
            .filter(entities::id.eq_any(&ids));
        let leading = global_lookups::table
            .filter(global_lookups::organization_id.eq(organization))
            .filter(global_lookups::id.eq_any(&ids))
            .filter(global_lookups::name.eq_any(Index::names_of(Kind::Invitation)));
        tx.execute(delete(drafts)).await?;
        tx.execute(delete(leading)).await?;
        deleted += tx.execute(delete(still())).await?;
    }
    Ok(deleted)
}
