//! Receivers, as admins and operators administer them.

use super::super::account::directory;
use super::super::account::row::account_of;
use super::super::audit::AuditRecorder;
use super::super::authorize::{authorize, authorize_and_lock, lock_organization_for_update};
use super::super::{Read, Transaction, hourly};
use super::row::{self, ReceiverRow};
use super::{delivery_row, organization_of, reaches};
use crate::db::{Tx, Update, locked};
use crate::failure::Failure;
use crate::schema::{accounts, instance, receivers};
use crate::stored::{AnyId, Column, StoredId as _};
use diesel::{ExpressionMethods as _, QueryDsl as _, SelectableHelper as _};
use vault_core::account::AccountState;
use vault_core::digest::LookupDigests;
use vault_core::hourly::HourlyLimit;
use vault_core::id::{OrganizationId, ReceiverId};
use vault_core::port::{AddReceiver, ChangeReceiver, Find, List, ReceiverOwner, ResendEvent};
use vault_core::receiver::{DeliveryState, EventDelivery, StoredReceiver};
use vault_core::{Command, Refusal};

impl Transaction for Command<AddReceiver> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        let AddReceiver { receiver, member, limit } = &self.payload;
        let owner = receiver.receiver.organization;
        // Before the session, which locks the organization too.
        lock_owner(tx, owner).await?;
        authorize_and_lock(tx, &self.principal, self.now).await?;
        if !reaches(&self.principal, owner) {
            return Err(Refusal::NotFound.into());
        }
        if row::count(tx, owner).await? >= *limit {
            return Err(self.payload.limit_reached().into());
        }
        if let (Some(member), Some(organization)) = (member, owner)
            && !is_member(tx, organization, member).await?
        {
            return Err(Refusal::NoMember.into());
        }
        row::insert(tx, receiver).await?;
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

/// Locks an owner, so that two transactions do not add receivers to it concurrently.
async fn lock_owner(tx: &Tx<'_>, owner: ReceiverOwner) -> Result<(), Failure> {
    match owner {
        Some(organization) => {
            lock_organization_for_update(tx, organization).await?;
        }
        None => {
            let _locked: Option<AnyId> = tx.first(locked(instance::table.select(instance::id), Update)).await?;
        }
    }
    Ok(())
}

/// Returns whether an address is that of an active account of the organization.
async fn is_member(tx: &Tx<'_>, organization: OrganizationId, address: &LookupDigests) -> Result<bool, Failure> {
    let found = directory::account_of(tx, address).await?;
    let Some((_, account)) = found.filter(|(of, _)| *of == organization) else { return Ok(false) };
    let state = account_of(organization.stored(), account.stored()).select(accounts::state);
    let state: Option<Column<AccountState>> = tx.first(state).await?;
    let state = state.map(|state| state.decode("accounts", &account, "state")).transpose()?;
    Ok(state == Some(AccountState::Active))
}

/// Returns whether an address is that of an active account of the organization.
pub(crate) struct IsMember {
    pub(crate) organization: OrganizationId,
    pub(crate) address: LookupDigests,
}

impl Read for IsMember {
    type Outcome = bool;

    async fn read(&self, tx: &Tx<'_>) -> Result<bool, Failure> {
        is_member(tx, self.organization, &self.address).await
    }
}

/// One receiver of an owner, or all.
impl Read for Find<Option<ReceiverId>, ReceiverOwner> {
    type Outcome = Vec<StoredReceiver>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<StoredReceiver>, Failure> {
        authorize(tx, &self.principal, self.now).await?;
        if !reaches(&self.principal, self.of) {
            return Ok(Vec::new());
        }
        let own = receivers::table.filter(receivers::organization_id.eq(organization_of(self.of).stored()));
        let rows = match self.key {
            Some(id) => tx.load(own.filter(receivers::id.eq(id.stored())).select(ReceiverRow::as_select())).await?,
            None => tx.load(own.order(receivers::id).select(ReceiverRow::as_select())).await?,
        };
        rows.into_iter().map(ReceiverRow::decode).collect()
    }
}

impl Transaction for Command<ChangeReceiver> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let ChangeReceiver { owner, receiver, version, next } = &self.payload;
        if !reaches(&self.principal, *owner) {
            return Err(Refusal::NotFound.into());
        }
        match row::lock(tx, *owner, *receiver).await? {
            None => return Err(Refusal::NotFound.into()),
            Some(found) if found != *version => return Err(Refusal::Contended.into()),
            Some(_) => {}
        }
        match next {
            Some(next) => row::replace(tx, next).await?,
            None => row::remove(tx, *owner, *receiver).await?,
        }
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

impl Transaction for Command<EventDelivery> {
    type Outcome = ();

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<(), Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let delivery = &self.payload;
        let reached = reaches(&self.principal, delivery.organization);
        if !reached || row::lock(tx, delivery.organization, delivery.receiver).await?.is_none() {
            return Err(Refusal::NotFound.into());
        }
        // The operator has other ways to overload the server.
        if let Some(organization) = delivery.organization {
            let subject = format!("test:{}", delivery.receiver);
            hourly::take(tx, organization, &subject, HourlyLimit::TESTS, self.now).await?;
        }
        delivery_row::insert(tx, delivery).await?;
        audit.record(tx, &self.audit).await?;
        Ok(())
    }
}

impl Transaction for Command<ResendEvent> {
    /// The delivery, queued again. `None` if it does not exist.
    type Outcome = Option<EventDelivery>;

    async fn run(&self, tx: &Tx<'_>, audit: &mut AuditRecorder) -> Result<Option<EventDelivery>, Failure> {
        authorize_and_lock(tx, &self.principal, self.now).await?;
        let ResendEvent { owner, receiver, event } = self.payload;
        if !reaches(&self.principal, owner) || row::lock(tx, owner, receiver).await?.is_none() {
            return Ok(None);
        }
        let Some(found) = delivery_row::find(tx, owner, receiver, event).await? else { return Ok(None) };
        let now = self.now;
        let again = EventDelivery { state: DeliveryState::Waiting, since: now, next_at: now, ..found };
        delivery_row::set_progress(tx, &again).await?;
        audit.record(tx, &self.audit).await?;
        Ok(Some(again))
    }
}

/// Deliveries to a receiver, the newest first.
impl Read for List<i64, (ReceiverOwner, ReceiverId)> {
    type Outcome = Vec<EventDelivery>;

    async fn read(&self, tx: &Tx<'_>) -> Result<Vec<EventDelivery>, Failure> {
        authorize(tx, &self.principal, self.now).await?;
        let (owner, receiver) = self.of;
        if !reaches(&self.principal, owner) {
            return Ok(Vec::new());
        }
        delivery_row::list(tx, owner, receiver, self.after.unwrap_or(i64::MAX), self.limit).await
    }
}
