//! Moving rows between keys of the instance, and destroying keys that nothing needs.
//!
//! Blobs say themselves which key they are under; only codes have a column for it. There is no index on either: a deployment
//! has few such rows, and a rotation reads all of them once. Whether anything is left under a key is one statement: two could
//! miss what a confirmation moves from the table of the second to that of the first.

use super::super::backend::{Connection, RunQuery, Store, execute_each, for_key_share, for_update};
use super::super::{Decided, Verdict, audit};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{
    accounts, audit as audit_rows, audit_checkpoints, audit_delivery, credentials, enrolment_drafts, event_deliveries,
    idempotency_keys, instance, instance_keys, integrations, invitations, organization_keys, organizations,
    pending_seeds, receivers, retiring_instance_keys, sessions,
};
use crate::stored::{AnyId, CodeColumns, Column, StoredId as _, columns_of, place_of};
use crate::transaction::account::directory;
use crate::transaction::account::invitation_row::{self, InvitationRow};
use crate::transaction::account::row::SignedRow;
use crate::transaction::credential::labels;
use crate::transaction::integration::row::IntegrationRow;
use crate::transaction::receiver::organization_of;
use crate::transaction::receiver::row::ReceiverRow;
use crate::update::update;
use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::sql_types::Bool;
use diesel::{
    BoolExpressionMethods as _, ExpressionMethods as _, IntoSql as _, JoinOnDsl as _, NullableExpressionMethods as _,
    OptionalExtension as _, QueryDsl as _, SelectableHelper as _,
};
use uuid::Uuid;
use vault_core::Refusal;
use vault_core::id::{AccountId, KeyId, OrganizationId, PasswordId, SeedId};
use vault_core::keyring::{KeyTerm, TermPurpose};
use vault_core::organization::OrganizationName;
use vault_core::port::{
    DestroyKey, FindUnderInstanceKey, InstanceKeyRotation, InstancePart, InstancePlace, InstanceRow, KeyDestruction,
    LookUpMove, MoveToInstanceKey, ReplaceInstanceKey, StoreError, StoredPlace,
};
use vault_core::sealed::{
    Blob, InstanceKeyPurpose, KeyState, OrganizationKeyRecord, OrganizationKeys, SealedPassword, SealedSeed,
};
use vault_core::time::Timestamp;

use crate::transaction::organization::keys::insert_instance_key;

#[async_trait]
impl InstanceKeyRotation for Store {
    async fn replace_instance_key(&self, command: ReplaceInstanceKey) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(replace(connection, command))).await
    }

    async fn find_under_instance_key(&self, query: FindUnderInstanceKey) -> Result<Vec<InstanceRow>, StoreError> {
        self.read(query, |connection, query| Box::pin(find(connection, query))).await
    }

    async fn count_under(&self, term: KeyTerm) -> Result<i64, StoreError> {
        self.read(term, |connection, term| Box::pin(count(connection, *term))).await
    }

    async fn move_to_instance_key(&self, command: MoveToInstanceKey) -> Result<Option<usize>, StoreError> {
        self.write(command, |connection, command| Box::pin(move_rows(connection, command))).await
    }

    async fn move_look_ups(&self, rows: Vec<LookUpMove>) -> Result<usize, StoreError> {
        self.write(rows, |connection, rows| Box::pin(move_look_ups(connection, rows))).await
    }

    async fn destroy_key(&self, command: DestroyKey) -> Result<KeyDestruction, StoreError> {
        self.write(command, |connection, command| Box::pin(destroy(connection, command))).await
    }
}

diesel::define_sql_function! {
    /// Bytes `from`, counted from 1, to `from + length`.
    fn substr(bytes: diesel::sql_types::Binary, from: diesel::sql_types::Integer, length: diesel::sql_types::Integer) -> diesel::sql_types::Binary;
}

/// Whether a blob is under a key: version, algorithm, then the key's id.
macro_rules! under {
    ($blob:expr, $key:expr) => {
        substr($blob, 3, 16).eq($key.as_bytes().as_slice())
    };
}

macro_rules! organizations_under {
    ($key:expr) => {
        organizations::table.filter(under!(organizations::fingerprint_wrapped, $key))
    };
}

macro_rules! organization_keys_under {
    ($key:expr) => {
        organization_keys::table.filter(under!(organization_keys::wrapped, $key))
    };
}

macro_rules! accounts_under {
    ($key:expr) => {
        accounts::table.filter(
            accounts::grant_key_id.eq($key.stored()).or(under!(accounts::password, $key).nullable()).or(under!(
                accounts::seed,
                $key
            )
            .nullable()),
        )
    };
}

macro_rules! pending_seeds_under {
    ($key:expr) => {
        pending_seeds::table.filter(under!(pending_seeds::seed, $key))
    };
}

macro_rules! invitations_under {
    ($key:expr) => {
        invitations::table.filter(invitations::digest_key_id.eq($key.stored()))
    };
}

macro_rules! drafts_under {
    ($key:expr) => {
        enrolment_drafts::table
            .filter(under!(enrolment_drafts::password, $key).or(under!(enrolment_drafts::seed, $key)))
    };
}

macro_rules! integrations_under {
    ($key:expr) => {
        integrations::table.filter(integrations::digest_key_id.eq($key.stored()))
    };
}

macro_rules! receivers_under {
    ($key:expr) => {
        receivers::table.filter(
            under!(receivers::address, $key)
                .or(under!(receivers::secret, $key))
                .or(under!(receivers::previous_secret, $key)),
        )
    };
}

macro_rules! instance_keys_under {
    ($key:expr) => {
        instance_keys::table.filter(under!(instance_keys::wrapped, $key))
    };
}

macro_rules! audit_rows_under {
    ($key:expr) => {
        audit_rows::table.filter(audit_rows::key_id.eq($key.stored()))
    };
}

macro_rules! checkpoints_under {
    ($key:expr) => {
        audit_checkpoints::table.filter(audit_checkpoints::key_id.eq($key.stored()))
    };
}

macro_rules! delivery_under {
    ($key:expr) => {
        audit_delivery::table.filter(audit_delivery::key_id.eq($key.stored()))
    };
}

/// Sessions whose tokens may be under a key that was replaced then.
macro_rules! sessions_until {
    ($replaced:expr) => {
        sessions::table.filter(sessions::created_at.le($replaced.plus_seconds(KeyTerm::DRAINED_SECONDS).as_millis()))
    };
}

/// Deliveries whose code may be under a look-up key that was replaced then. Their positions are microseconds.
macro_rules! deliveries_until {
    ($replaced:expr) => {{
        let until = $replaced.plus_seconds(KeyTerm::DRAINED_SECONDS).as_millis().saturating_mul(1_000);
        event_deliveries::table.filter(event_deliveries::position.le(until))
    }};
}

/// Idempotency keys whose request may have its digest under a look-up key that was replaced then.
macro_rules! requests_until {
    ($replaced:expr) => {
        idempotency_keys::table
            .filter(idempotency_keys::created_at.le($replaced.plus_seconds(KeyTerm::DRAINED_SECONDS).as_millis()))
    };
}

/// The next rows of a query, in the order of their places; with [`Rows::all`] those under other keys, too.
macro_rules! page {
    ($rows:expr, $query:expr, $organization:expr, $id:expr) => {{
        let (organization, id) = columns_of(&$query.after.clone().unwrap_or_default());
        $rows
            .or_filter($query.all.into_sql::<Bool>())
            .filter($organization.gt(organization.clone()).or($organization.eq(organization).and($id.gt(id))))
            .order(($organization, $id))
            .limit(i64::try_from($query.limit).unwrap_or(i64::MAX))
    }};
}

async fn replace(connection: &mut Connection, command: &ReplaceInstanceKey) -> Decided<bool> {
    let ReplaceInstanceKey { current, next, keys, now, audit: entry } = command;
    // Whoever stores something under the instance key holds this row.
    type Row = (Column<KeyId>, Column<KeyId>, Vec<u8>);
    let row: Option<Row> =
        for_update!(instance::table.select((instance::root_key_id, instance::instance_key_id, instance::wrapped)))
            .get_result(connection)
            .await
            .optional()?;
    let Some((root_key, instance_key, wrapped)) = row else { return Ok(Verdict::Refused(false)) };
    let root_key = root_key.decode("instance", &current.id, "root_key_id")?;
    let instance_key = instance_key.decode("instance", &current.id, "instance_key_id")?;
    if (root_key, instance_key, wrapped.as_slice())
        != (current.root_key, current.instance_key, current.wrapped.as_bytes())
    {
        return Ok(Verdict::Refused(false));
    }
    diesel::insert_into(retiring_instance_keys::table)
        .values((
            retiring_instance_keys::id.eq(current.instance_key.stored()),
            retiring_instance_keys::root_key_id.eq(current.root_key.stored()),
            retiring_instance_keys::wrapped.eq(current.wrapped.as_bytes()),
            retiring_instance_keys::retired_at.eq(now.as_millis()),
        ))
        .execute(connection)
        .await?;
    update(instance::table)
        .set((
            instance::instance_key_id.eq(next.instance_key.stored()),
            instance::wrapped.eq(next.wrapped.as_bytes()),
            instance::keyring.eq(next.keyring.as_bytes()),
        ))
        .execute(connection)
        .await?;
    for key in keys {
        let replaced = update(instance_keys::table.filter(instance_keys::id.eq(key.id.stored())))
            .set(instance_keys::wrapped.eq(key.wrapped.as_bytes()))
            .execute(connection)
            .await?;
        if replaced == 0 {
            insert_instance_key(&connection.tx(), key).await?;
        }
    }
    // One that was made meanwhile would be lost with the key.
    let left: bool = diesel::select(exists(instance_keys_under!(current.instance_key))).get_result(connection).await?;
    if left {
        return Ok(Verdict::Undo(false));
    }
    audit::record(connection, entry).await?;
    Ok(Verdict::Recorded(true))
}

/// Which rows to read.
struct Rows {
    key: KeyId,
    all: bool,
    part: InstancePart,
    after: Option<StoredPlace>,
    limit: usize,
}

async fn find(connection: &mut Connection, query: &FindUnderInstanceKey) -> Result<Vec<InstanceRow>, Failure> {
    let FindUnderInstanceKey { key, part, after, limit } = *query;
    read(connection, &Rows { key, all: false, part, after: after.map(stored), limit }).await
}

fn stored((organization, id): InstancePlace) -> StoredPlace {
    (organization.to_string(), id.to_string())
}

/// Rows of whichever key.
const fn every(part: InstancePart, after: Option<StoredPlace>, limit: usize) -> Rows {
    Rows { key: KeyId::from_bytes([0; 16]), all: true, part, after, limit }
}

/// The row at a place.
pub(in super::super) async fn row_at(
    connection: &mut Connection,
    part: InstancePart,
    place: InstancePlace,
) -> Result<Option<InstanceRow>, Failure> {
    let (organization, id) = place;
    let before = id.as_u128().checked_sub(1).map(|before| stored((organization, Uuid::from_u128(before))));
    let rows = read(connection, &every(part, before, 1)).await?;
    Ok(rows.into_iter().find(|row| row.place() == place))
}

/// The places of the next rows.
pub(in super::super) async fn places(
    connection: &mut Connection,
    part: InstancePart,
    after: Option<StoredPlace>,
    limit: usize,
) -> Result<Vec<StoredPlace>, Failure> {
    let query = every(part, after, limit);
    macro_rules! places {
        ($rows:expr, $organization:expr, $id:expr) => {
            page!($rows, query, $organization, $id)
                .select(($organization, $id))
                .load::<(AnyId, AnyId)>(connection)
                .await?
        };
    }
    let key = query.key;
    let places = match part {
        InstancePart::Organizations => places!(organizations_under!(key), organizations::id, organizations::id),
        InstancePart::OrganizationKeys => {
            places!(organization_keys_under!(key), organization_keys::organization_id, organization_keys::id)
        }
        InstancePart::Accounts => places!(accounts_under!(key), accounts::organization_id, accounts::id),
        InstancePart::PendingSeeds => {
            places!(pending_seeds_under!(key), pending_seeds::organization_id, pending_seeds::account_id)
        }
        InstancePart::Invitations => {
            places!(invitations_under!(key), invitations::organization_id, invitations::account_id)
        }
        InstancePart::Drafts => {
            places!(drafts_under!(key), enrolment_drafts::organization_id, enrolment_drafts::account_id)
        }
        InstancePart::Integrations => {
            places!(integrations_under!(key), integrations::organization_id, integrations::id)
        }
        InstancePart::Receivers => places!(receivers_under!(key), receivers::organization_id, receivers::id),
    };
    Ok(places.into_iter().map(place_of).collect())
}

async fn read(connection: &mut Connection, query: &Rows) -> Result<Vec<InstanceRow>, Failure> {
    match query.part {
        InstancePart::Organizations => find_organizations(connection, query).await,
        InstancePart::OrganizationKeys => find_organization_keys(connection, query).await,
        InstancePart::Accounts => find_accounts(connection, query).await,
        InstancePart::PendingSeeds => find_pending_seeds(connection, query).await,
        InstancePart::Invitations => {
            let rows =
                page!(invitations_under!(query.key), query, invitations::organization_id, invitations::account_id);
            let rows: Vec<InvitationRow> = rows.select(InvitationRow::as_select()).load(connection).await?;
            rows.into_iter().map(|row| Ok(InstanceRow::Invitation(Box::new(row.decode()?)))).collect()
        }
        InstancePart::Drafts => find_drafts(connection, query).await,
        InstancePart::Integrations => {
            let rows = page!(integrations_under!(query.key), query, integrations::organization_id, integrations::id);
            let rows: Vec<IntegrationRow> = rows.select(IntegrationRow::as_select()).load(connection).await?;
            rows.into_iter().map(|row| Ok(InstanceRow::Integration(Box::new(row.decode()?)))).collect()
        }
        InstancePart::Receivers => {
            let rows = page!(receivers_under!(query.key), query, receivers::organization_id, receivers::id);
            let rows: Vec<ReceiverRow> = rows.select(ReceiverRow::as_select()).load(connection).await?;
            rows.into_iter().map(|row| Ok(InstanceRow::Receiver(Box::new(row.decode()?)))).collect()
        }
    }
}

async fn find_organizations(connection: &mut Connection, query: &Rows) -> Result<Vec<InstanceRow>, Failure> {
    const TABLE: &str = "organizations";
    let rows = page!(organizations_under!(query.key), query, organizations::id, organizations::id);
    let rows: Vec<Column<OrganizationId>> = rows.select(organizations::id).load(connection).await?;
    let mut found = Vec::with_capacity(rows.len());
    for id in rows {
        let organization = id.decode(TABLE, &"unknown", "id")?;
        // None, if it was deleted since.
        if let Some(keys) = read_keys(connection, organization).await? {
            found.push(InstanceRow::Organization { organization, keys: Box::new(keys) });
        }
    }
    Ok(found)
}

/// Reads an organization's keys in one statement: the wrap of the fingerprint key is bound to the others.
async fn read_keys(
    connection: &mut Connection,
    organization: OrganizationId,
) -> Result<Option<OrganizationKeys>, Failure> {
    const TABLE: &str = "organization_keys";
    type Own = (Column<OrganizationName>, Column<KeyId>, Column<Blob>);
    type Key = (Column<KeyId>, Column<KeyState>, Column<Blob>, i64, i64);
    let rows: Vec<(Own, Option<Key>)> = organizations::table
        .left_join(organization_keys::table.on(organization_keys::organization_id.eq(organizations::id)))
        .filter(organizations::id.eq(organization.stored()))
        .select((
            (organizations::name, organizations::fingerprint_key_id, organizations::fingerprint_wrapped),
            (
                organization_keys::id,
                organization_keys::state,
                organization_keys::wrapped,
                organization_keys::uses,
                organization_keys::created_at,
            )
                .nullable(),
        ))
        .load(connection)
        .await?;
    let mut own = None;
    let mut keys = Vec::with_capacity(rows.len());
    for (row, key) in rows {
        own.get_or_insert(row);
        if let Some((id, state, wrapped, uses, created_at)) = key {
            let id = id.decode(TABLE, &organization, "id")?;
            keys.push(OrganizationKeyRecord {
                organization,
                id,
                state: state.decode(TABLE, &id, "state")?,
                wrapped: wrapped.decode(TABLE, &id, "wrapped")?,
                uses,
                created_at: Timestamp::from_millis(created_at),
            });
        }
    }
    let Some((name, fingerprint_key, fingerprint_wrapped)) = own else { return Ok(None) };
    Ok(Some(OrganizationKeys {
        name: name.decode("organizations", &organization, "name")?,
        fingerprint_key: fingerprint_key.decode("organizations", &organization, "fingerprint_key_id")?,
        fingerprint_wrapped: fingerprint_wrapped.decode("organizations", &organization, "fingerprint_wrapped")?,
        keys,
    }))
}

async fn find_organization_keys(connection: &mut Connection, query: &Rows) -> Result<Vec<InstanceRow>, Failure> {
    const TABLE: &str = "organization_keys";
    type Row = (Column<OrganizationId>, Column<KeyId>, Column<Blob>);
    let rows =
        page!(organization_keys_under!(query.key), query, organization_keys::organization_id, organization_keys::id);
    let rows: Vec<Row> = rows
        .select((organization_keys::organization_id, organization_keys::id, organization_keys::wrapped))
        .load(connection)
        .await?;
    let decode = |(organization, key, wrapped): Row| {
        let key = key.decode(TABLE, &"unknown", "id")?;
        Ok(InstanceRow::OrganizationKey {
            organization: organization.decode(TABLE, &key, "organization_id")?,
            key,
            wrapped: wrapped.decode(TABLE, &key, "wrapped")?,
        })
    };
    rows.into_iter().map(decode).collect()
}

async fn find_accounts(connection: &mut Connection, query: &Rows) -> Result<Vec<InstanceRow>, Failure> {
    const TABLE: &str = "accounts";
    type Row = (SignedRow, CodeColumns, Column<Blob>, Column<Blob>);
    let rows = page!(accounts_under!(query.key), query, accounts::organization_id, accounts::id);
    let rows: Vec<Row> = rows
        .select((
            SignedRow::as_select(),
            (accounts::grant_digest, accounts::grant_key_id),
            accounts::password,
            accounts::seed,
        ))
        .load(connection)
        .await?;
    let decode = |(signed, code, password, seed): Row| {
        let signed = signed.decode()?;
        let account = signed.grant.account;
        Ok(InstanceRow::Account {
            code: code.decode(TABLE, &account, "grant_digest")?,
            password: SealedPassword { id: signed.password, blob: password.decode(TABLE, &account, "password")? },
            seed: SealedSeed { id: signed.seed, blob: seed.decode(TABLE, &account, "seed")? },
            signed: Box::new(signed),
        })
    };
    rows.into_iter().map(decode).collect()
}

async fn find_pending_seeds(connection: &mut Connection, query: &Rows) -> Result<Vec<InstanceRow>, Failure> {
    const TABLE: &str = "pending_seeds";
    type Row = (Column<OrganizationId>, Column<AccountId>, Column<SeedId>, Column<Blob>);
    let rows = page!(pending_seeds_under!(query.key), query, pending_seeds::organization_id, pending_seeds::account_id);
    let rows: Vec<Row> = rows
        .select((
            pending_seeds::organization_id,
            pending_seeds::account_id,
            pending_seeds::seed_id,
            pending_seeds::seed,
        ))
        .load(connection)
        .await?;
    let decode = |(organization, account, seed_id, seed): Row| {
        let account = account.decode(TABLE, &"unknown", "account_id")?;
        let id = seed_id.decode(TABLE, &account, "seed_id")?;
        Ok(InstanceRow::PendingSeed {
            organization: organization.decode(TABLE, &account, "organization_id")?,
            account,
            seed: SealedSeed { id, blob: seed.decode(TABLE, &account, "seed")? },
        })
    };
    rows.into_iter().map(decode).collect()
}

async fn find_drafts(connection: &mut Connection, query: &Rows) -> Result<Vec<InstanceRow>, Failure> {
    const TABLE: &str = "enrolment_drafts";
    type Row =
        (Column<OrganizationId>, Column<AccountId>, Column<PasswordId>, Column<Blob>, Column<SeedId>, Column<Blob>);
    let rows = page!(drafts_under!(query.key), query, enrolment_drafts::organization_id, enrolment_drafts::account_id);
    let rows: Vec<Row> = rows
        .select((
            enrolment_drafts::organization_id,
            enrolment_drafts::account_id,
            enrolment_drafts::password_id,
            enrolment_drafts::password,
            enrolment_drafts::seed_id,
            enrolment_drafts::seed,
        ))
        .load(connection)
        .await?;
    let decode = |(organization, account, password_id, password, seed_id, seed): Row| {
        let account = account.decode(TABLE, &"unknown", "account_id")?;
        let id = seed_id.decode(TABLE, &account, "seed_id")?;
        Ok(InstanceRow::Draft {
            organization: organization.decode(TABLE, &account, "organization_id")?,
            account,
            password: SealedPassword {
                id: password_id.decode(TABLE, &account, "password_id")?,
                blob: password.decode(TABLE, &account, "password")?,
            },
            seed: SealedSeed { id, blob: seed.decode(TABLE, &account, "seed")? },
        })
    };
    rows.into_iter().map(decode).collect()
}

async fn count(connection: &mut Connection, term: KeyTerm) -> Result<i64, Failure> {
    let KeyTerm { purpose, id, since, .. } = term;
    match purpose {
        TermPurpose::Instance => count_under_instance_key(connection, id).await,
        TermPurpose::Receiver => Ok(receivers_under!(id).count().get_result(connection).await?),
        TermPurpose::Audit => {
            let entries: i64 = audit_rows_under!(id).count().get_result(connection).await?;
            let checkpoints: i64 = checkpoints_under!(id).count().get_result(connection).await?;
            let delivery: i64 = delivery_under!(id).count().get_result(connection).await?;
            Ok(entries.saturating_add(checkpoints).saturating_add(delivery))
        }
        TermPurpose::Token => Ok(sessions_until!(since).count().get_result(connection).await?),
        TermPurpose::LookUp => {
            let deliveries: i64 = deliveries_until!(since).count().get_result(connection).await?;
            let requests: i64 = requests_until!(since).count().get_result(connection).await?;
            Ok(deliveries.saturating_add(requests))
        }
    }
}

/// Whether nothing needs the key of a purpose.
async fn is_free(connection: &mut Connection, term: KeyTerm) -> Result<bool, Failure> {
    let KeyTerm { purpose, id, since, .. } = term;
    let is_needed: bool = match purpose {
        TermPurpose::Instance => return Ok(!is_above_anything(connection, id).await?),
        TermPurpose::Receiver => diesel::select(exists(receivers_under!(id))).get_result(connection).await?,
        TermPurpose::Audit => {
            let rows = (exists(audit_rows_under!(id)), exists(checkpoints_under!(id)), exists(delivery_under!(id)));
            let (entries, checkpoints, delivery): (bool, bool, bool) =
                diesel::select(rows).get_result(connection).await?;
            entries || checkpoints || delivery
        }
        TermPurpose::Token => diesel::select(exists(sessions_until!(since))).get_result(connection).await?,
        TermPurpose::LookUp => {
            let rows = (exists(deliveries_until!(since)), exists(requests_until!(since)));
            let (deliveries, requests): (bool, bool) = diesel::select(rows).get_result(connection).await?;
            deliveries || requests
        }
    };
    Ok(!is_needed)
}

async fn count_under_instance_key(connection: &mut Connection, key: KeyId) -> Result<i64, Failure> {
    let counts: [i64; 8] = [
        organizations_under!(key).count().get_result(connection).await?,
        organization_keys_under!(key).count().get_result(connection).await?,
        accounts_under!(key).count().get_result(connection).await?,
        pending_seeds_under!(key).count().get_result(connection).await?,
        invitations_under!(key).count().get_result(connection).await?,
        drafts_under!(key).count().get_result(connection).await?,
        integrations_under!(key).count().get_result(connection).await?,
        instance_keys_under!(key).count().get_result(connection).await?,
    ];
    Ok(counts.into_iter().sum())
}

async fn move_rows(connection: &mut Connection, command: &MoveToInstanceKey) -> Decided<Option<usize>> {
    // It must not be replaced before what is moved to it stands.
    let active: Option<Column<KeyId>> =
        for_key_share!(instance::table.select(instance::instance_key_id)).get_result(connection).await.optional()?;
    let active = active.map(|active| active.decode("instance", &"unknown", "instance_key_id")).transpose()?;
    if active != Some(command.to) {
        return Ok(Verdict::Refused(None));
    }
    let Some((first, _)) = command.rows.as_slice().first() else { return Ok(Verdict::Refused(Some(0))) };
    let moved: Vec<usize> = match first.part() {
        InstancePart::Organizations => move_organizations(connection, command).await?,
        InstancePart::OrganizationKeys => move_organization_keys(connection, command).await?,
        InstancePart::Accounts => move_accounts(connection, command).await?,
        InstancePart::PendingSeeds => move_pending_seeds(connection, command).await?,
        InstancePart::Invitations => move_invitations(connection, command).await?,
        InstancePart::Drafts => move_drafts(connection, command).await?,
        InstancePart::Integrations => move_integrations(connection, command).await?,
        InstancePart::Receivers => move_receivers(connection, command).await?,
    };
    Ok(Verdict::Recorded(Some(moved.into_iter().sum())))
}

async fn move_organizations(connection: &mut Connection, command: &MoveToInstanceKey) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (InstanceRow::Organization { organization, keys: before }, InstanceRow::Organization { keys: after, .. }) => {
            Some(
                update(
                    organizations::table
                        .filter(organizations::id.eq(organization.stored()))
                        .filter(organizations::fingerprint_key_id.eq(before.fingerprint_key.stored()))
                        .filter(organizations::fingerprint_wrapped.eq(before.fingerprint_wrapped.as_bytes())),
                )
                .set(organizations::fingerprint_wrapped.eq(after.fingerprint_wrapped.as_bytes())),
            )
        }
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_organization_keys(
    connection: &mut Connection,
    command: &MoveToInstanceKey,
) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (
            InstanceRow::OrganizationKey { organization, key, wrapped: before },
            InstanceRow::OrganizationKey { wrapped, .. },
        ) => Some(
            update(
                organization_keys::table
                    .filter(organization_keys::organization_id.eq(organization.stored()))
                    .filter(organization_keys::id.eq(key.stored()))
                    .filter(organization_keys::wrapped.eq(before.as_bytes())),
            )
            .set(organization_keys::wrapped.eq(wrapped.as_bytes())),
        ),
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_accounts(connection: &mut Connection, command: &MoveToInstanceKey) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (
            InstanceRow::Account { signed, code: before, password: password_before, seed: seed_before },
            InstanceRow::Account { code, password, seed, .. },
        ) => Some(
            update(
                accounts::table
                    .filter(accounts::organization_id.eq(signed.grant.organization.stored()))
                    .filter(accounts::id.eq(signed.grant.account.stored()))
                    .filter(accounts::grant_digest.eq(before.code.as_bytes().as_slice()))
                    .filter(accounts::password.eq(password_before.blob.as_bytes()))
                    .filter(accounts::seed.eq(seed_before.blob.as_bytes())),
            )
            .set((
                accounts::grant_digest.eq(code.code.as_bytes().as_slice()),
                accounts::grant_key_id.eq(code.key.stored()),
                accounts::password.eq(password.blob.as_bytes()),
                accounts::seed.eq(seed.blob.as_bytes()),
            )),
        ),
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_pending_seeds(connection: &mut Connection, command: &MoveToInstanceKey) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (InstanceRow::PendingSeed { organization, account, seed: before }, InstanceRow::PendingSeed { seed, .. }) => {
            Some(
                update(
                    pending_seeds::table
                        .filter(pending_seeds::organization_id.eq(organization.stored()))
                        .filter(pending_seeds::account_id.eq(account.stored()))
                        .filter(pending_seeds::seed.eq(before.blob.as_bytes())),
                )
                .set(pending_seeds::seed.eq(seed.blob.as_bytes())),
            )
        }
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_invitations(connection: &mut Connection, command: &MoveToInstanceKey) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (InstanceRow::Invitation(before), InstanceRow::Invitation(after)) => {
            let grant = &before.invitation.grant;
            Some(
                update(
                    invitations::table
                        .filter(invitations::organization_id.eq(grant.organization.stored()))
                        .filter(invitations::account_id.eq(grant.account.stored()))
                        .filter(invitations::digest.eq(before.digest.code.as_bytes().as_slice())),
                )
                .set((
                    invitations::digest.eq(after.digest.code.as_bytes().as_slice()),
                    invitations::digest_key_id.eq(after.digest.key.stored()),
                )),
            )
        }
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_drafts(connection: &mut Connection, command: &MoveToInstanceKey) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (
            InstanceRow::Draft { organization, account, password: password_before, seed: seed_before },
            InstanceRow::Draft { password, seed, .. },
        ) => Some(
            update(
                enrolment_drafts::table
                    .filter(enrolment_drafts::organization_id.eq(organization.stored()))
                    .filter(enrolment_drafts::account_id.eq(account.stored()))
                    .filter(enrolment_drafts::password.eq(password_before.blob.as_bytes()))
                    .filter(enrolment_drafts::seed.eq(seed_before.blob.as_bytes())),
            )
            .set((
                enrolment_drafts::password.eq(password.blob.as_bytes()),
                enrolment_drafts::seed.eq(seed.blob.as_bytes()),
            )),
        ),
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_integrations(connection: &mut Connection, command: &MoveToInstanceKey) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (InstanceRow::Integration(before), InstanceRow::Integration(after)) => {
            let integration = &before.integration;
            Some(
                update(
                    integrations::table
                        .filter(integrations::organization_id.eq(integration.organization.stored()))
                        .filter(integrations::id.eq(integration.id.stored()))
                        .filter(integrations::digest.eq(before.digest.code.as_bytes().as_slice())),
                )
                .set((
                    integrations::digest.eq(after.digest.code.as_bytes().as_slice()),
                    integrations::digest_key_id.eq(after.digest.key.stored()),
                )),
            )
        }
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_receivers(connection: &mut Connection, command: &MoveToInstanceKey) -> Result<Vec<usize>, Failure> {
    let rows = command.rows.iter().filter_map(|pair| match pair {
        (InstanceRow::Receiver(before), InstanceRow::Receiver(after)) => {
            let (organization, id) = (organization_of(before.receiver.organization), before.receiver.id);
            Some(
                update(
                    receivers::table
                        .filter(receivers::organization_id.eq(organization.stored()))
                        .filter(receivers::id.eq(id.stored()))
                        .filter(receivers::code.eq(before.code.as_bytes().as_slice()))
                        .filter(receivers::address.eq(before.target.address.as_bytes())),
                )
                .set((
                    receivers::address.eq(after.target.address.as_bytes()),
                    receivers::secret.eq(after.target.secret.as_bytes()),
                    receivers::previous_secret.eq(after.target.previous_secret.as_bytes()),
                    receivers::code.eq(after.code.as_bytes().as_slice()),
                )),
            )
        }
        _ => None,
    });
    Ok(execute_each!(connection, rows)?)
}

async fn move_look_ups(connection: &mut Connection, rows: &[LookUpMove]) -> Decided<usize> {
    let mut moved = 0;
    for row in rows {
        moved += usize::from(match row {
            LookUpMove::Address { part: InstancePart::Accounts, place: (organization, id), address } => {
                let account = AccountId::from_uuid(*id);
                let held = accounts::table
                    .filter(accounts::organization_id.eq(organization.stored()))
                    .filter(accounts::id.eq(account.stored()))
                    .select(accounts::version);
                let held: Option<i64> = for_update!(held).get_result(connection).await.optional()?;
                held.is_some() && directory::move_account(&connection.tx(), address, *organization, account).await?
            }
            LookUpMove::Address { place: (organization, id), address, .. } => {
                let account = AccountId::from_uuid(*id);
                let held = invitation_row::lock(&connection.tx(), *organization, account).await?;
                held.is_some() && directory::move_invitation(&connection.tx(), address, *organization, account).await?
            }
            LookUpMove::Credential { organization, id, code: (before, after), labels } => {
                let credential = credentials::table
                    .filter(credentials::organization_id.eq(organization.stored()))
                    .filter(credentials::id.eq(id.stored()))
                    .filter(credentials::code.eq(before.as_bytes().as_slice()));
                let updated = update(credential)
                    .set(credentials::code.eq(after.as_bytes().as_slice()))
                    .execute(connection)
                    .await?;
                if updated == 1 {
                    labels::replace(&connection.tx(), *organization, *id, labels).await?;
                }
                updated == 1
            }
        });
    }
    Ok(Verdict::Recorded(moved))
}

async fn destroy(connection: &mut Connection, command: &DestroyKey) -> Decided<KeyDestruction> {
    let KeyTerm { purpose, id, .. } = command.term;
    let retiring = || retiring_instance_keys::table.filter(retiring_instance_keys::id.eq(id.stored()));
    let wide = || instance_keys::table.filter(instance_keys::id.eq(id.stored()));
    let of_purpose = InstanceKeyPurpose::ALL.into_iter().find(|of| TermPurpose::from(*of) == purpose);
    let held: Option<AnyId> = match of_purpose {
        None => for_update!(retiring().select(retiring_instance_keys::id)).get_result(connection).await.optional()?,
        Some(purpose) => {
            let row = wide().filter(instance_keys::purpose.eq(purpose.as_str()));
            for_update!(row.select(instance_keys::id)).get_result(connection).await.optional()?
        }
    };
    if held.is_none() {
        return Ok(Verdict::Refused(KeyDestruction::NotRetiring));
    }
    if !is_free(connection, command.term).await? {
        return Ok(Verdict::Refused(KeyDestruction::InUse));
    }
    match of_purpose {
        None => diesel::delete(retiring()).execute(connection).await?,
        Some(_) => diesel::delete(wide()).execute(connection).await?,
    };
    let replaced = update(instance::table.filter(instance::keyring.eq(command.current.as_bytes())))
        .set(instance::keyring.eq(command.keyring.as_bytes()))
        .execute(connection)
        .await?;
    if replaced == 0 {
        return Err(Refusal::Contended.into());
    }
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(KeyDestruction::Destroyed))
}

/// Whether anything is under an instance key.
async fn is_above_anything(connection: &mut Connection, key: KeyId) -> Result<bool, Failure> {
    let left: (bool, bool, bool, bool, bool, bool, bool, bool) = diesel::select((
        exists(organizations_under!(key)),
        exists(organization_keys_under!(key)),
        exists(accounts_under!(key)),
        exists(pending_seeds_under!(key)),
        exists(invitations_under!(key)),
        exists(drafts_under!(key)),
        exists(integrations_under!(key)),
        exists(instance_keys_under!(key)),
    ))
    .get_result(connection)
    .await?;
    let (organizations, organization_keys, accounts, pending_seeds, invitations, drafts, integrations, wide) = left;
    let below = organizations || organization_keys || wide;
    Ok(below || accounts || pending_seeds || invitations || drafts || integrations)
}
