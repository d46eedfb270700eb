//! Receivers, as admins and operators administer them.

use super::super::account::directory;
use super::super::backend::{Connection, RunQuery, Store, for_update};
use super::super::{Answer, Decided, Decision, Verdict, audit, decide};
use super::row::{self, ReceiverRow};
use super::{delivery_row, organization_of, reaches};
use crate::db::OpenTx as _;
use crate::failure::Failure;
use crate::schema::{accounts, instance, organizations, receivers};
use crate::stored::{AnyId, Column, StoredId as _};
use crate::transaction::authorize::{authorize, authorize_and_lock};
use async_trait::async_trait;
use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use vault_core::account::AccountState;
use vault_core::digest::LookUpDigests;
use vault_core::id::{OrganizationId, ReceiverId};
use vault_core::port::{
    AddReceiver, ChangeReceiver, Find, List, ReceiverOwner, ReceiverRepository, ResendEvent, StoreError,
};
use vault_core::receiver::{DeliveryState, EventDelivery, StoredReceiver};
use vault_core::{Command, Refusal};

#[async_trait]
impl ReceiverRepository for Store {
    async fn add_receiver(&self, command: Command<AddReceiver>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn list_receivers(
        &self,
        query: Find<Option<ReceiverId>, ReceiverOwner>,
    ) -> Result<Vec<StoredReceiver>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| Box::pin(list(connection, query)))
            .await
    }

    async fn change_receiver(&self, command: Command<ChangeReceiver>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn add_delivery(&self, command: Command<EventDelivery>) -> Result<(), StoreError> {
        Ok(self.write(command, |connection, command| Box::pin(decide(connection, command))).await??)
    }

    async fn resend_event(&self, command: Command<ResendEvent>) -> Result<Option<EventDelivery>, StoreError> {
        self.write(command, |connection, command| Box::pin(resend(connection, command))).await
    }

    async fn list_deliveries(
        &self,
        query: List<i64, (ReceiverOwner, ReceiverId)>,
    ) -> Result<Vec<EventDelivery>, StoreError> {
        self.read_for(query.principal.organization(), query, |connection, query| {
            Box::pin(list_deliveries(connection, query))
        })
        .await
    }
}

impl Decision for AddReceiver {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        // Before the session is judged, which holds the organization too.
        take_owner(connection, command.act.receiver.receiver.organization).await?;
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let AddReceiver { receiver, member, limit } = &command.act;
        let owner = receiver.receiver.organization;
        if !reaches(&command.principal, owner) {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        }
        if row::count(connection, owner).await? >= *limit {
            return Ok(Verdict::Refused(Err(command.act.limit_reached())));
        }
        if let (Some(member), Some(organization)) = (member, owner)
            && !is_member(connection, organization, member).await?
        {
            return Ok(Verdict::Refused(Err(Refusal::NoMember)));
        }
        row::insert(connection, receiver).await?;
        Ok(Verdict::Done(Ok(())))
    }
}

/// Takes the row of an owner, so that no two add receivers to it at once.
async fn take_owner(connection: &mut Connection, owner: ReceiverOwner) -> Result<(), Failure> {
    let _taken: Option<AnyId> = match owner {
        Some(organization) => {
            let row =
                organizations::table.filter(organizations::id.eq(organization.stored())).select(organizations::id);
            for_update!(row).get_result(connection).await.optional()?
        }
        None => for_update!(instance::table.select(instance::id)).get_result(connection).await.optional()?,
    };
    Ok(())
}

/// Whether an address is that of an active account of the organization.
pub(super) async fn is_member(
    connection: &mut Connection,
    organization: OrganizationId,
    address: &LookUpDigests,
) -> Result<bool, Failure> {
    let found = directory::account_of(connection, address).await?;
    let Some((_, account)) = found.filter(|(of, _)| *of == organization) else { return Ok(false) };
    let state: Option<Column<AccountState>> = accounts::table
        .filter(accounts::organization_id.eq(organization.stored()))
        .filter(accounts::id.eq(account.stored()))
        .select(accounts::state)
        .get_result(connection)
        .await
        .optional()?;
    let state = state.map(|state| state.decode("accounts", &account, "state")).transpose()?;
    Ok(state == Some(AccountState::Active))
}

async fn list(
    connection: &mut Connection,
    query: &Find<Option<ReceiverId>, ReceiverOwner>,
) -> Result<Vec<StoredReceiver>, Failure> {
    authorize(&connection.tx(), &query.principal, query.now).await?;
    if !reaches(&query.principal, query.of) {
        return Ok(Vec::new());
    }
    let of = receivers::table.filter(receivers::organization_id.eq(organization_of(query.of).stored()));
    let rows: Vec<ReceiverRow> = match query.key {
        Some(id) => of.filter(receivers::id.eq(id.stored())).select(row::columns!()).load(connection).await?,
        None => of.order(receivers::id).select(row::columns!()).load(connection).await?,
    };
    rows.into_iter().map(ReceiverRow::decode).collect()
}

impl Decision for ChangeReceiver {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let ChangeReceiver { owner, receiver, version, next } = &command.act;
        if !reaches(&command.principal, *owner) {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        }
        match row::take(connection, *owner, *receiver).await? {
            None => return Ok(Verdict::Refused(Err(Refusal::NotFound))),
            Some(found) if found != *version => return Ok(Verdict::Refused(Err(Refusal::Contended))),
            Some(_) => {}
        }
        match next {
            Some(next) => row::replace(connection, next).await?,
            None => row::remove(connection, *owner, *receiver).await?,
        }
        Ok(Verdict::Done(Ok(())))
    }
}

impl Decision for EventDelivery {
    type Held = ();
    type Outcome = Answer;

    async fn authorize(connection: &mut Connection, command: &Command<Self>) -> Result<(), Failure> {
        authorize_and_lock(&connection.tx(), &command.principal, command.now).await
    }

    async fn act(connection: &mut Connection, command: &Command<Self>, (): ()) -> Decided<Answer> {
        let delivery = &command.act;
        let reached = reaches(&command.principal, delivery.organization);
        if !reached || row::take(connection, delivery.organization, delivery.receiver).await?.is_none() {
            return Ok(Verdict::Refused(Err(Refusal::NotFound)));
        }
        delivery_row::insert(connection, delivery).await?;
        Ok(Verdict::Done(Ok(())))
    }
}

async fn resend(connection: &mut Connection, command: &Command<ResendEvent>) -> Decided<Option<EventDelivery>> {
    authorize_and_lock(&connection.tx(), &command.principal, command.now).await?;
    let ResendEvent { owner, receiver, event } = command.act;
    let is_there = reaches(&command.principal, owner) && row::take(connection, owner, receiver).await?.is_some();
    let found = if is_there { delivery_row::find(connection, owner, receiver, event).await? } else { None };
    let Some(found) = found else { return Ok(Verdict::Refused(None)) };
    let now = command.now;
    let again = EventDelivery { state: DeliveryState::Waiting, since: now, next_at: now, ..found };
    delivery_row::set_progress(connection, &again).await?;
    audit::record(connection, &command.audit).await?;
    Ok(Verdict::Recorded(Some(again)))
}

async fn list_deliveries(
    connection: &mut Connection,
    query: &List<i64, (ReceiverOwner, ReceiverId)>,
) -> Result<Vec<EventDelivery>, Failure> {
    authorize(&connection.tx(), &query.principal, query.now).await?;
    let (owner, receiver) = query.of;
    if !reaches(&query.principal, owner) {
        return Ok(Vec::new());
    }
    delivery_row::list(connection, owner, receiver, query.after.unwrap_or(i64::MAX), query.limit).await
}
