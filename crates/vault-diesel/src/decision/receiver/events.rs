//! Reading events, and noting how they were delivered.

use super::super::backend::{Connection, RunQuery, Store, load_page};
use super::super::{Decided, Verdict, audit};
use super::receivers::is_member;
use super::row::{self, ReceiverRow};
use super::{delivery_row, owner_of};
use crate::failure::Failure;
use crate::schema::{account_notices, credentials, event_deliveries, event_position, integrations, receivers};
use crate::stored::{AnyId, Column, StoredId as _};
use crate::update::update;
use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::{BoolExpressionMethods as _, ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::audit::SealedAuditRecord;
use vault_core::credential::CredentialType;
use vault_core::digest::{Digest, LookUpDigests};
use vault_core::id::{AccountId, CredentialId, IntegrationId, OrganizationId, ReceiverId};
use vault_core::integration::{IntegrationName, IntegrationState};
use vault_core::namespace::Namespace;
use vault_core::notice::{NoticeCode, StoredNotice};
use vault_core::port::{
    AccountNotice, EventLease, EventRepository, FindExpiring, NoteEvents, ReceiverOwner, StoreError,
};
use vault_core::receiver::{
    Attempted, EventDelivery, EventKind, EventPosition, Expiring, ExpiringObject, ReceiverState, StoredReceiver,
};
use vault_core::time::Timestamp;

/// The key of the one row of `event_position`.
const SINGLETON: i64 = 1;
const WAITING: &str = "waiting";

#[async_trait]
impl EventRepository for Store {
    async fn take_events(&self, lease: EventLease) -> Result<Option<EventPosition>, StoreError> {
        self.write(lease, |connection, lease| Box::pin(take(connection, lease))).await
    }

    async fn all_receivers(&self) -> Result<Vec<(String, Option<StoredReceiver>)>, StoreError> {
        self.read((), |connection, ()| Box::pin(all(connection))).await
    }

    async fn find_expiring(&self, query: FindExpiring) -> Result<Vec<Expiring>, StoreError> {
        self.read_for(Some(query.organization), query, |connection, query| Box::pin(expiring(connection, query))).await
    }

    async fn notices_between(&self, after: Timestamp, until: Timestamp) -> Result<Vec<AccountNotice>, StoreError> {
        self.read((after, until), |connection, (after, until)| Box::pin(notices(connection, *after, *until))).await
    }

    async fn note_events(&self, command: NoteEvents) -> Result<bool, StoreError> {
        self.write(command, |connection, command| Box::pin(note(connection, command))).await
    }

    async fn add_deliveries(&self, deliveries: Vec<EventDelivery>) -> Result<(), StoreError> {
        self.write(deliveries, |connection, deliveries| Box::pin(add(connection, deliveries))).await
    }

    async fn receivers_due(&self, now: Timestamp) -> Result<Vec<(ReceiverOwner, ReceiverId)>, StoreError> {
        self.read(now, |connection, now| Box::pin(due(connection, *now))).await
    }

    async fn waiting_deliveries(
        &self,
        owner: ReceiverOwner,
        receiver: ReceiverId,
        limit: usize,
    ) -> Result<Vec<EventDelivery>, StoreError> {
        self.read_for(owner, (owner, receiver, limit), |connection, (owner, receiver, limit)| {
            Box::pin(delivery_row::waiting(connection, *owner, *receiver, *limit))
        })
        .await
    }

    async fn is_member(&self, organization: OrganizationId, address: LookUpDigests) -> Result<bool, StoreError> {
        self.read_for(Some(organization), (organization, address), |connection, (organization, address)| {
            Box::pin(is_member(connection, *organization, address))
        })
        .await
    }

    async fn note_attempts(&self, attempts: Vec<Attempted>) -> Result<(), StoreError> {
        self.write(attempts, |connection, attempts| Box::pin(note_attempts(connection, attempts))).await
    }

    async fn disable_receiver(&self, next: StoredReceiver, audit: SealedAuditRecord) -> Result<(), StoreError> {
        self.write((next, audit), |connection, (next, audit)| Box::pin(disable(connection, next, audit))).await
    }

    async fn remove_deliveries(&self, ended_before: Timestamp) -> Result<usize, StoreError> {
        self.write(ended_before, |connection, before| Box::pin(remove_ended(connection, *before))).await
    }
}

async fn take(connection: &mut Connection, lease: &EventLease) -> Decided<Option<EventPosition>> {
    let EventLease { holder, now, until, first } = lease;
    diesel::insert_into(event_position::table)
        .values((
            event_position::singleton.eq(SINGLETON),
            event_position::checkpoint.eq(first.checkpoint),
            event_position::scanned.eq(first.scanned.as_millis()),
            event_position::newest.eq(first.newest),
            event_position::code.eq(first.code.as_bytes().as_slice()),
        ))
        .on_conflict_do_nothing()
        .execute(connection)
        .await?;
    let holder = holder.hyphenated().to_string();
    let free = event_position::holder
        .is_null()
        .or(event_position::holder.eq(holder.clone()))
        .or(event_position::until.is_null())
        .or(event_position::until.le(now.as_millis()))
        .or(event_position::until.gt(now.plus_seconds(EventLease::LONGEST_SECONDS).as_millis()));
    let taken = update(event_position::table.filter(event_position::singleton.eq(SINGLETON)).filter(free))
        .set((event_position::holder.eq(holder), event_position::until.eq(until.as_millis())))
        .execute(connection)
        .await?;
    if taken == 0 {
        return Ok(Verdict::Refused(None));
    }
    let columns = (event_position::checkpoint, event_position::scanned, event_position::newest, event_position::code);
    let row: Option<(i64, i64, i64, Column<Digest>)> = event_position::table
        .filter(event_position::singleton.eq(SINGLETON))
        .select(columns)
        .get_result(connection)
        .await
        .optional()?;
    let Some((checkpoint, scanned, newest, code)) = row else { return Ok(Verdict::Refused(None)) };
    // No code of 32 bytes fits nothing, as any other that does not fit.
    let code = code.decode("event_position", &checkpoint, "code").unwrap_or(Digest::from_bytes([0; 32]));
    Ok(Verdict::Recorded(Some(EventPosition { checkpoint, scanned: Timestamp::from_millis(scanned), newest, code })))
}

async fn note(connection: &mut Connection, command: &NoteEvents) -> Decided<bool> {
    let NoteEvents { holder, from, to, deliveries } = command;
    let row = event_position::table
        .filter(event_position::singleton.eq(SINGLETON))
        .filter(event_position::holder.eq(holder.hyphenated().to_string()))
        .filter(event_position::checkpoint.eq(from.checkpoint))
        .filter(event_position::scanned.eq(from.scanned.as_millis()));
    let noted = update(row)
        .set((
            event_position::checkpoint.eq(to.checkpoint),
            event_position::scanned.eq(to.scanned.as_millis()),
            event_position::newest.eq(to.newest),
            event_position::code.eq(to.code.as_bytes().as_slice()),
        ))
        .execute(connection)
        .await?;
    if noted == 0 {
        return Ok(Verdict::Refused(false));
    }
    for delivery in deliveries {
        delivery_row::insert(connection, delivery).await?;
    }
    Ok(Verdict::Recorded(true))
}

async fn add(connection: &mut Connection, deliveries: &[EventDelivery]) -> Decided<()> {
    for delivery in deliveries {
        delivery_row::insert(connection, delivery).await?;
    }
    Ok(Verdict::Recorded(()))
}

async fn all(connection: &mut Connection) -> Result<Vec<(String, Option<StoredReceiver>)>, Failure> {
    let rows: Vec<(AnyId, ReceiverRow)> =
        receivers::table.select((receivers::id, row::columns!())).load(connection).await?;
    Ok(rows.into_iter().map(|(id, row)| (id.to_string(), row.decode().ok())).collect())
}

async fn expiring(connection: &mut Connection, query: &FindExpiring) -> Result<Vec<Expiring>, Failure> {
    let FindExpiring { organization, after, until, limit } = *query;
    let own = organization.stored();
    let of_credentials = credentials::table
        .filter(credentials::organization_id.eq(own))
        .filter(credentials::expires_at.gt(after.as_millis()))
        .filter(credentials::expires_at.le(until.as_millis()))
        .filter(credentials::expires_at.lt(i64::MAX))
        .order((credentials::expires_at, credentials::id))
        .select((
            credentials::id,
            credentials::kind,
            credentials::namespace,
            credentials::expires_at,
            credentials::created_at,
        ));
    type CredentialRow = (Column<CredentialId>, Column<CredentialType>, Column<Namespace>, i64, i64);
    let rows: Vec<CredentialRow> = load_page!(of_credentials, connection, limit).await?;
    let mut found = Vec::with_capacity(rows.len());
    for (id, kind, namespace, expires_at, known_since) in rows {
        let id = id.decode("credentials", &organization, "id")?;
        let kind = kind.decode("credentials", &id, "type")?.as_str().to_owned();
        let namespace = namespace.decode("credentials", &id, "namespace")?.as_str().to_owned();
        found.push(Expiring {
            organization,
            object: ExpiringObject::Credential(id, kind, namespace),
            expires_at: Timestamp::from_millis(expires_at),
            known_since: Timestamp::from_millis(known_since),
        });
    }
    let of_integrations = integrations::table
        .filter(integrations::organization_id.eq(own))
        .filter(integrations::state.eq(IntegrationState::Active.as_str()))
        .filter(integrations::expires_at.gt(after.as_millis()))
        .filter(integrations::expires_at.le(until.as_millis()))
        .order((integrations::expires_at, integrations::id))
        .select((integrations::id, integrations::name, integrations::expires_at, integrations::created_at));
    type IntegrationRow = (Column<IntegrationId>, Column<IntegrationName>, Option<i64>, i64);
    let rows: Vec<IntegrationRow> = load_page!(of_integrations, connection, limit).await?;
    for (id, name, expires_at, known_since) in rows {
        let id = id.decode("integrations", &organization, "id")?;
        let name = name.decode("integrations", &id, "name")?.to_string();
        found.push(Expiring {
            organization,
            object: ExpiringObject::Integration(id, name),
            expires_at: Timestamp::from_millis(expires_at.unwrap_or(i64::MAX)),
            known_since: Timestamp::from_millis(known_since),
        });
    }
    Ok(found)
}

async fn notices(
    connection: &mut Connection,
    after: Timestamp,
    until: Timestamp,
) -> Result<Vec<AccountNotice>, Failure> {
    type NoticeRow = (Column<OrganizationId>, Column<AccountId>, i64, Column<NoticeCode>);
    let rows: Vec<NoticeRow> = account_notices::table
        .filter(account_notices::at.gt(after.as_millis()))
        .filter(account_notices::at.le(until.as_millis()))
        .order(account_notices::at)
        .select((
            account_notices::organization_id,
            account_notices::account_id,
            account_notices::at,
            account_notices::code,
        ))
        .load(connection)
        .await?;
    let table = "account_notices";
    let decode = |(organization, account, at, code): NoticeRow| {
        let organization = organization.decode(table, &at, "organization_id")?;
        let account = account.decode(table, &organization, "account_id")?;
        let code = code.decode(table, &account, "code")?;
        Ok((organization, account, StoredNotice { code, at: Timestamp::from_millis(at) }))
    };
    rows.into_iter().map(decode).collect()
}

async fn due(connection: &mut Connection, now: Timestamp) -> Result<Vec<(ReceiverOwner, ReceiverId)>, Failure> {
    let waits = event_deliveries::table
        .filter(event_deliveries::organization_id.eq(receivers::organization_id))
        .filter(event_deliveries::receiver_id.eq(receivers::id))
        .filter(event_deliveries::state.eq(WAITING))
        .filter(event_deliveries::next_at.le(now.as_millis()));
    let is_free = receivers::not_before.le(now.as_millis());
    let is_test = event_deliveries::kind.eq(EventKind::ReceiverTest.as_str());
    let rows: Vec<(Column<OrganizationId>, Column<ReceiverId>)> = receivers::table
        .filter(receivers::state.eq(ReceiverState::Active.as_str()))
        .filter(exists(waits.filter(is_free.or(is_test))))
        .select((receivers::organization_id, receivers::id))
        .load(connection)
        .await?;
    let decode = |(organization, id): (Column<OrganizationId>, Column<ReceiverId>)| {
        let organization = organization.decode("receivers", &"unknown", "organization_id")?;
        Ok((owner_of(organization), id.decode("receivers", &organization, "id")?))
    };
    rows.into_iter().map(decode).collect()
}

async fn note_attempts(connection: &mut Connection, attempts: &[Attempted]) -> Decided<()> {
    for attempted in attempts {
        delivery_row::set_progress(connection, &attempted.delivery).await?;
    }
    if let Some(Attempted { delivery, receiver, .. }) = attempts.last() {
        row::set_status(connection, delivery.organization, delivery.receiver, &receiver.status).await?;
    }
    Ok(Verdict::Recorded(()))
}

async fn disable(connection: &mut Connection, next: &StoredReceiver, record: &SealedAuditRecord) -> Decided<()> {
    let (owner, id) = (next.receiver.organization, next.receiver.id);
    if row::take(connection, owner, id).await? != Some(next.receiver.version - 1) {
        return Ok(Verdict::Refused(()));
    }
    row::replace(connection, next).await?;
    delivery_row::give_up(connection, owner, id, record.record.at).await?;
    audit::record(connection, record).await?;
    Ok(Verdict::Recorded(()))
}

async fn remove_ended(connection: &mut Connection, before: Timestamp) -> Decided<usize> {
    let ended = event_deliveries::table
        .filter(event_deliveries::state.ne(WAITING))
        .filter(event_deliveries::attempted_at.lt(before.as_millis()));
    Ok(Verdict::Recorded(diesel::delete(ended).execute(connection).await?))
}
