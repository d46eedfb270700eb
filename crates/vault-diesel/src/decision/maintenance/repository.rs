//! Maintenance: belongs to no tenant, so what has expired is looked for across all of them, by a reader; it is then
//! deleted by its full key, tenant by tenant.

use super::super::backend::{Connection, RunQuery, Store};
use super::super::{Decided, Verdict};
use super::{credential_counts, expired};
use crate::failure::Failure;
use crate::schema::{attempt_classes, idempotency_keys, known_networks, sessions};
use crate::stored::AnyId;
use crate::transaction::organization::erasure::{EraseSlice, PendingErasures};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, QueryDsl as _};
use std::collections::BTreeMap;
use vault_core::lockout::{NETWORK_KNOWN_SECONDS, network_is_known};
use vault_core::port::{
    CountCredentials, CountedSlice, EXPIRED_SLICE, Expired, IDEMPOTENCY_SECONDS, Maintenance, StoreError,
};
use vault_core::time::Timestamp;

#[async_trait]
impl Maintenance for Store {
    async fn delete_expired(&self, expired: Expired, now: Timestamp) -> Result<usize, StoreError> {
        match expired {
            Expired::Sessions => {
                let found = self.read(now, |connection, now| Box::pin(expired_sessions(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(delete_sessions(connection, found))).await
            }
            Expired::IdempotencyKeys => {
                let found =
                    self.read(now, |connection, now| Box::pin(stale_idempotency_keys(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(delete_idempotency_keys(connection, found))).await
            }
            Expired::Attempts => {
                let networks = self.read(now, |connection, now| Box::pin(forgotten_networks(connection, *now))).await?;
                let idle = self.read(now, |connection, now| Box::pin(idle_networks(connection, *now))).await?;
                if networks.is_empty() && idle.is_empty() {
                    return Ok(0);
                }
                let found = (now, networks, idle);
                self.write(found, |connection, found| Box::pin(delete_attempts(connection, found))).await
            }
            Expired::Invitations => {
                let found =
                    self.read(now, |connection, now| Box::pin(expired::invitations_over(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(expired::delete_invitations(connection, found)))
                    .await
            }
            Expired::Notices => {
                let found = self.read(now, |connection, now| Box::pin(expired::old_notices(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(expired::delete_notices(connection, found))).await
            }
            Expired::PendingSeeds => {
                let found = self.read(now, |connection, now| Box::pin(expired::seeds_over(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(expired::delete_seeds(connection, found))).await
            }
            Expired::Activations => {
                let found =
                    self.read(now, |connection, now| Box::pin(expired::activations_over(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(expired::delete_activations(connection, found)))
                    .await
            }
            Expired::PreviousVersions => {
                let found =
                    self.read(now, |connection, now| Box::pin(expired::versions_over(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(expired::delete_versions(connection, found)))
                    .await
            }
            Expired::CredentialUses => {
                let found = self.read(now, |connection, now| Box::pin(expired::old_uses(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write(found, |connection, found| Box::pin(expired::delete_uses(connection, found))).await
            }
            Expired::HourlyCounts => {
                let found = self.read(now, |connection, now| Box::pin(expired::counts_over(connection, *now))).await?;
                if found.is_empty() {
                    return Ok(0);
                }
                self.write((now, found), |connection, found| Box::pin(expired::delete_counts(connection, found))).await
            }
            Expired::Erasures => {
                let pending = self.answer(None, PendingErasures).await?;
                let Some(organization) = pending.iter().find_map(|id| id.decode("erasures").ok()) else {
                    return Ok(0);
                };
                // How many rows went is not counted: a slice may be left, of this organization or the next.
                self.run(EraseSlice(organization)).await?;
                Ok(EXPIRED_SLICE)
            }
        }
    }

    async fn check(&self, now: Timestamp) -> Result<Option<i64>, StoreError> {
        if self.reports().is_full() {
            self.write((), |connection, ()| Box::pin(prove_space(connection))).await?;
            self.reports().has_space();
            tracing::info!("the disk of the database has space again; writes work");
        }
        self.measure(now).await
    }

    async fn count_credentials(&self, query: CountCredentials) -> Result<CountedSlice, StoreError> {
        self.read(query, |connection, query| Box::pin(credential_counts::count(connection, query))).await
    }

    async fn most_key_uses(&self) -> Result<i64, StoreError> {
        self.read((), |connection, ()| Box::pin(credential_counts::most_key_uses(connection))).await
    }
}

/// Writes a page, to find out whether there is space, and leaves nothing in it.
async fn prove_space(connection: &mut Connection) -> Decided<()> {
    let nobody = [0_u8; 32].as_slice();
    diesel::insert_into(known_networks::table)
        .values((known_networks::network.eq(nobody), known_networks::last_login_at.eq(0)))
        .execute(connection)
        .await?;
    diesel::delete(known_networks::table.filter(known_networks::network.eq(nobody))).execute(connection).await?;
    Ok(Verdict::Recorded(()))
}

type BySession = BTreeMap<AnyId, Vec<AnyId>>;
type ByAccount<K> = BTreeMap<(AnyId, AnyId), Vec<K>>;

async fn expired_sessions(connection: &mut Connection, now: Timestamp) -> Result<BySession, Failure> {
    let rows: Vec<(AnyId, AnyId)> = sessions::table
        .filter(sessions::expires_at.le(now.as_millis()))
        .limit(super::SLICE)
        .select((sessions::organization_id, sessions::id))
        .load(connection)
        .await?;
    let mut found = BySession::new();
    for (organization, id) in rows {
        found.entry(organization).or_default().push(id);
    }
    Ok(found)
}

async fn delete_sessions(connection: &mut Connection, (now, found): &(Timestamp, BySession)) -> Decided<usize> {
    let mut deleted = 0;
    for (organization, ids) in found {
        deleted += diesel::delete(
            sessions::table
                .filter(sessions::organization_id.eq(organization))
                .filter(sessions::id.eq_any(ids))
                .filter(sessions::expires_at.le(now.as_millis())),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}

const fn stale_before(now: Timestamp) -> i64 {
    now.plus_seconds(-IDEMPOTENCY_SECONDS).as_millis()
}

async fn stale_idempotency_keys(connection: &mut Connection, now: Timestamp) -> Result<ByAccount<String>, Failure> {
    let rows: Vec<(AnyId, AnyId, String)> = idempotency_keys::table
        .filter(idempotency_keys::created_at.le(stale_before(now)))
        .limit(super::SLICE)
        .select((idempotency_keys::organization_id, idempotency_keys::account_id, idempotency_keys::key))
        .load(connection)
        .await?;
    let mut found = ByAccount::new();
    for (organization, account, key) in rows {
        found.entry((organization, account)).or_insert_with(Vec::new).push(key);
    }
    Ok(found)
}

async fn delete_idempotency_keys(
    connection: &mut Connection,
    (now, found): &(Timestamp, ByAccount<String>),
) -> Decided<usize> {
    let mut deleted = 0;
    for ((organization, account), keys) in found {
        deleted += diesel::delete(
            idempotency_keys::table
                .filter(idempotency_keys::organization_id.eq(organization))
                .filter(idempotency_keys::account_id.eq(account))
                .filter(idempotency_keys::key.eq_any(keys))
                .filter(idempotency_keys::created_at.le(stale_before(*now))),
        )
        .execute(connection)
        .await?;
    }
    Ok(Verdict::Recorded(deleted))
}

const fn known_since(now: Timestamp) -> i64 {
    now.plus_seconds(-NETWORK_KNOWN_SECONDS).as_millis()
}

async fn forgotten_networks(connection: &mut Connection, now: Timestamp) -> Result<ByAccount<Vec<u8>>, Failure> {
    type Row = (AnyId, AnyId, Vec<u8>, Option<i64>);
    let rows: Vec<Row> = attempt_classes::table
        .filter(attempt_classes::last_login_at.lt(known_since(now)))
        .limit(super::SLICE)
        .select((
            attempt_classes::organization_id,
            attempt_classes::account_id,
            attempt_classes::network,
            attempt_classes::last_login_at,
        ))
        .load(connection)
        .await?;
    let mut found = ByAccount::new();
    for (organization, account, network, last_login_at) in rows {
        let known = last_login_at.is_none_or(|last_login| network_is_known(Timestamp::from_millis(last_login), now));
        if !known {
            found.entry((organization, account)).or_insert_with(Vec::new).push(network);
        }
    }
    Ok(found)
}

/// Networks from which no account has logged in for as long as they are remembered.
async fn idle_networks(connection: &mut Connection, now: Timestamp) -> Result<Vec<Vec<u8>>, Failure> {
    Ok(known_networks::table
        .filter(known_networks::last_login_at.lt(known_since(now)))
        .limit(super::SLICE)
        .select(known_networks::network)
        .load(connection)
        .await?)
}

async fn delete_attempts(
    connection: &mut Connection,
    (now, networks, idle): &(Timestamp, ByAccount<Vec<u8>>, Vec<Vec<u8>>),
) -> Decided<usize> {
    let mut deleted = 0;
    for ((organization, account), networks) in networks {
        deleted += diesel::delete(
            attempt_classes::table
                .filter(attempt_classes::organization_id.eq(organization))
                .filter(attempt_classes::account_id.eq(account))
                .filter(attempt_classes::network.eq_any(networks))
                .filter(attempt_classes::last_login_at.lt(known_since(*now))),
        )
        .execute(connection)
        .await?;
    }
    deleted += diesel::delete(
        known_networks::table
            .filter(known_networks::network.eq_any(idle))
            .filter(known_networks::last_login_at.lt(known_since(*now))),
    )
    .execute(connection)
    .await?;
    Ok(Verdict::Recorded(deleted))
}
