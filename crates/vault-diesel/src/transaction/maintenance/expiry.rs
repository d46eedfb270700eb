//! Deletion of expired rows of all organizations. A reader finds them by their time, with an index. They are then deleted by their
//! keys, because each statement that changes rows of an organization names it.

use super::super::audit::AuditRecorder;
use super::super::{Read, Transaction};
use crate::db::{Reply, Tx, Update, locked};
use crate::failure::Failure;
use crate::new_row::OF_INSTANCE;
use crate::schema::{
    account_notices, activations, attempt_classes, credential_secrets, credential_uses, entities, global_lookups,
    hourly_counts, idempotency_keys, known_networks, organizations, sessions,
};
use crate::stored::{AnyId, Id, StoredId as _};
use diesel::result::QueryResult;
use diesel::{ExpressionMethods as _, IntoSql as _, QueryDsl as _, delete};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use vault_core::credential::USE_SECONDS;
use vault_core::entity::{Index, Kind};
use vault_core::hourly::HOUR_SECONDS;
use vault_core::lockout::NETWORK_KNOWN_SECONDS;
use vault_core::notice::NOTICE_SECONDS;
use vault_core::port::{EXPIRED_SLICE, IDEMPOTENCY_SECONDS};
use vault_core::time::Timestamp;

/// Rows that expire. `G` is the first part of their keys, such as the organization, and `K` the rest. Rows with an equal first
/// part are deleted with one statement.
pub(crate) struct Expiry<G, K> {
    /// Time between that of a row and its expiry.
    seconds: i64,
    /// Reads keys of rows whose time is not after a moment.
    find: Find<(G, K)>,
    /// Deletes rows by their keys, if their time still is not after that moment.
    delete: Delete<G, K>,
}

type Find<T> = for<'t> fn(&'t Tx<'_>, i64) -> Reply<'t, Vec<T>>;
type Delete<G, K> = for<'t> fn(&'t Tx<'_>, i64, &'t G, &'t [K]) -> BoxFuture<'t, QueryResult<usize>>;

pub(crate) const SESSIONS: Expiry<AnyId, AnyId> = Expiry {
    seconds: 0,
    find: |tx, until| {
        let rows = sessions::table.filter(sessions::expires_at.le(until));
        tx.page(rows.select((sessions::organization_id, sessions::id)), EXPIRED_SLICE)
    },
    delete: |tx, until, organization, ids| {
        let rows = sessions::table
            .filter(sessions::organization_id.eq(organization))
            .filter(sessions::id.eq_any(ids))
            .filter(sessions::expires_at.le(until));
        tx.execute(delete(rows)).boxed()
    },
};

pub(crate) const IDEMPOTENCY_KEYS: Expiry<(AnyId, AnyId), String> = Expiry {
    seconds: IDEMPOTENCY_SECONDS,
    find: |tx, until| {
        let rows = idempotency_keys::table.filter(idempotency_keys::created_at.le(until));
        let owner = (idempotency_keys::organization_id, idempotency_keys::account_id);
        tx.page(rows.select((owner, idempotency_keys::key)), EXPIRED_SLICE)
    },
    delete: |tx, until, (organization, account), keys| {
        let rows = idempotency_keys::table
            .filter(idempotency_keys::organization_id.eq(organization))
            .filter(idempotency_keys::account_id.eq(account))
            .filter(idempotency_keys::key.eq_any(keys))
            .filter(idempotency_keys::created_at.le(until));
        tx.execute(delete(rows)).boxed()
    },
};

/// Networks of accounts without a login.
pub(crate) const ATTEMPTS: Expiry<(AnyId, AnyId), Vec<u8>> = Expiry {
    seconds: NETWORK_KNOWN_SECONDS,
    find: |tx, until| {
        let rows = attempt_classes::table.filter(attempt_classes::last_login_at.lt(until));
        let owner = (attempt_classes::organization_id, attempt_classes::account_id);
        tx.page(rows.select((owner, attempt_classes::network)), EXPIRED_SLICE)
    },
    delete: |tx, until, (organization, account), networks| {
        let rows = attempt_classes::table
            .filter(attempt_classes::organization_id.eq(organization))
            .filter(attempt_classes::account_id.eq(account))
            .filter(attempt_classes::network.eq_any(networks))
            .filter(attempt_classes::last_login_at.lt(until));
        tx.execute(delete(rows)).boxed()
    },
};

/// Networks without a login of any account. They belong to no organization.
pub(crate) const NETWORKS: Expiry<AnyId, Vec<u8>> = Expiry {
    seconds: NETWORK_KNOWN_SECONDS,
    find: |tx, until| {
        let rows = known_networks::table.filter(known_networks::last_login_at.lt(until));
        tx.page(rows.select((OF_INSTANCE.stored().into_sql::<Id>(), known_networks::network)), EXPIRED_SLICE)
    },
    delete: |tx, until, _, networks| {
        let rows = known_networks::table
            .filter(known_networks::network.eq_any(networks))
            .filter(known_networks::last_login_at.lt(until));
        tx.execute(delete(rows)).boxed()
    },
};

/// Columns are compared as stored, so damage does not keep an invitation.
pub(crate) const INVITATIONS: Expiry<AnyId, AnyId> = Expiry {
    seconds: 0,
    find: |tx, until| find_due(tx, Kind::Invitation, until),
    delete: |tx, until, organization, ids| Box::pin(delete_invitations(tx, until, organization, ids)),
};

fn find_due<'t>(tx: &'t Tx<'_>, kind: Kind, until: i64) -> Reply<'t, Vec<(AnyId, AnyId)>> {
    let rows = entities::table.filter(entities::kind.eq(kind.as_str())).filter(entities::due_at.le(until));
    tx.page(rows.select((entities::organization_id, entities::id)), EXPIRED_SLICE)
}

async fn delete_invitations(tx: &Tx<'_>, until: i64, organization: &AnyId, ids: &[AnyId]) -> QueryResult<usize> {
    // Operations that accept or replace an invitation lock its organization.
    let lock = organizations::table.filter(organizations::id.eq(organization));
    tx.first::<i64, _>(locked(lock.select(organizations::credentials), Update)).await?;
    let expired = || {
        entities::table
            .filter(entities::organization_id.eq(organization))
            .filter(entities::kind.eq(Kind::Invitation.as_str()))
            .filter(entities::id.eq_any(ids))
            .filter(entities::due_at.le(until))
    };
    let expired_ids: Vec<AnyId> = tx.load(expired().select(entities::id)).await?;
    let draft = entities::table
        .filter(entities::organization_id.eq(organization))
        .filter(entities::kind.eq(Kind::EnrolmentDraft.as_str()))
        .filter(entities::id.eq_any(&expired_ids));
    let leading = global_lookups::table
        .filter(global_lookups::organization_id.eq(organization))
        .filter(global_lookups::id.eq_any(&expired_ids))
        .filter(global_lookups::name.eq_any(Index::names_of(Kind::Invitation)));
    tx.execute(delete(draft)).await?;
    tx.execute(delete(leading)).await?;
    tx.execute(delete(expired())).await
}

pub(crate) const NOTICES: Expiry<(AnyId, AnyId), i64> = Expiry {
    seconds: NOTICE_SECONDS,
    find: |tx, until| {
        let rows = account_notices::table.filter(account_notices::at.le(until));
        let account = (account_notices::organization_id, account_notices::account_id);
        tx.page(rows.select((account, account_notices::at)), EXPIRED_SLICE)
    },
    delete: |tx, until, (organization, account), times| {
        let rows = account_notices::table
            .filter(account_notices::organization_id.eq(organization))
            .filter(account_notices::account_id.eq(account))
            .filter(account_notices::at.eq_any(times))
            .filter(account_notices::at.le(until));
        tx.execute(delete(rows)).boxed()
    },
};

pub(crate) const PENDING_SEEDS: Expiry<AnyId, AnyId> = Expiry {
    seconds: 0,
    find: |tx, until| find_due(tx, Kind::PendingSeed, until),
    delete: |tx, until, organization, accounts| {
        let rows = entities::table
            .filter(entities::organization_id.eq(organization))
            .filter(entities::kind.eq(Kind::PendingSeed.as_str()))
            .filter(entities::id.eq_any(accounts))
            .filter(entities::due_at.le(until));
        tx.execute(delete(rows)).boxed()
    },
};

pub(crate) const ACTIVATIONS: Expiry<AnyId, AnyId> = Expiry {
    seconds: 0,
    find: |tx, until| {
        let rows = activations::table.filter(activations::expires_at.le(until));
        tx.page(rows.select((activations::organization_id, activations::id)), EXPIRED_SLICE)
    },
    delete: |tx, until, organization, ids| {
        let rows = activations::table
            .filter(activations::organization_id.eq(organization))
            .filter(activations::id.eq_any(ids))
            .filter(activations::expires_at.le(until));
        tx.execute(delete(rows)).boxed()
    },
};

pub(crate) const PREVIOUS_VERSIONS: Expiry<(AnyId, AnyId), i64> = Expiry {
    seconds: 0,
    find: |tx, until| {
        let rows = credential_secrets::table.filter(credential_secrets::destroy_at.le(until));
        let credential = (credential_secrets::organization_id, credential_secrets::id);
        tx.page(rows.select((credential, credential_secrets::version)), EXPIRED_SLICE)
    },
    delete: |tx, until, (organization, id), versions| {
        let rows = credential_secrets::table
            .filter(credential_secrets::organization_id.eq(organization))
            .filter(credential_secrets::id.eq(id))
            .filter(credential_secrets::version.eq_any(versions))
            .filter(credential_secrets::destroy_at.le(until));
        tx.execute(delete(rows)).boxed()
    },
};

pub(crate) const CREDENTIAL_USES: Expiry<(AnyId, AnyId, i64), AnyId> = Expiry {
    seconds: USE_SECONDS,
    find: |tx, until| {
        let rows = credential_uses::table.filter(credential_uses::expires_at.le(until));
        let of = (credential_uses::organization_id, credential_uses::id, credential_uses::at);
        tx.page(rows.select((of, credential_uses::activation_id)), EXPIRED_SLICE)
    },
    delete: |tx, _, (organization, id, at), activations| {
        let rows = credential_uses::table
            .filter(credential_uses::organization_id.eq(organization))
            .filter(credential_uses::id.eq(id))
            .filter(credential_uses::at.eq(at))
            .filter(credential_uses::activation_id.eq_any(activations));
        tx.execute(delete(rows)).boxed()
    },
};

pub(crate) const HOURLY_COUNTS: Expiry<AnyId, String> = Expiry {
    seconds: HOUR_SECONDS,
    find: |tx, until| {
        let rows = hourly_counts::table.filter(hourly_counts::since.le(until));
        tx.page(rows.select((hourly_counts::organization_id, hourly_counts::subject)), EXPIRED_SLICE)
    },
    delete: |tx, until, organization, subjects| {
        let rows = hourly_counts::table
            .filter(hourly_counts::organization_id.eq(organization))
            .filter(hourly_counts::subject.eq_any(subjects))
            .filter(hourly_counts::since.le(until));
        tx.execute(delete(rows)).boxed()
    },
};

impl<G, K> Clone for Expiry<G, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G, K> Copy for Expiry<G, K> {}

impl<G, K> Expiry<G, K> {
    /// The time of the newest rows that are expired at `now`.
    const fn until(&self, now: Timestamp) -> i64 {
        now.plus_seconds(-self.seconds).as_millis()
    }
}

/// Keys of expired rows, by their first part: in the order in which they are locked.
pub(crate) type Found<G, K> = BTreeMap<G, Vec<K>>;

/// Keys of expired rows, at most a slice.
pub(crate) struct FindExpired<G, K> {
    pub(crate) expiry: Expiry<G, K>,
    pub(crate) now: Timestamp,
}

impl<G: Ord + Send + 'static, K: Send + 'static> Read for FindExpired<G, K> {
    type Outcome = Found<G, K>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Found<G, K>, Failure> {
        let mut found = Found::new();
        for (first, rest) in (self.expiry.find)(tx, self.expiry.until(self.now)).await? {
            found.entry(first).or_insert_with(Vec::new).push(rest);
        }
        Ok(found)
    }
}

/// Deletes expired rows that were found.
pub(crate) struct DeleteExpired<G, K> {
    pub(crate) expiry: Expiry<G, K>,
    pub(crate) now: Timestamp,
    pub(crate) found: Found<G, K>,
}

impl<G: Send + Sync + 'static, K: Send + Sync + 'static> Transaction for DeleteExpired<G, K> {
    /// The number of rows.
    type Outcome = usize;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<usize, Failure> {
        audit.commit_without_entry();
        let mut deleted = 0;
        for (first, rest) in &self.found {
            deleted += (self.expiry.delete)(tx, self.expiry.until(self.now), first, rest).await?;
        }
        Ok(deleted)
    }
}
