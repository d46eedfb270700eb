//! The ports of receivers and events.

use super::{Database, DieselStore};
use crate::transaction::receiver::events::{
    AddDeliveries, AllReceivers, DisableReceiver, NoticesBetween, ReceiversDue, RecordAttempts, RemoveDeliveries,
    WaitingDeliveries,
};
use crate::transaction::receiver::receivers::IsMember;
use async_trait::async_trait;
use vault_core::Command;
use vault_core::audit::SealedAuditRecord;
use vault_core::digest::LookupDigests;
use vault_core::id::{OrganizationId, ReceiverId};
use vault_core::port::{
    AccountNotice, AddReceiver, ChangeReceiver, EventLease, EventRepository, Find, FindExpiring, List, ReceiverOwner,
    ReceiverRepository, RecordEvents, ResendEvent, StoreError,
};
use vault_core::receiver::{Attempted, EventDelivery, EventPosition, Expiring, StoredReceiver};
use vault_core::time::Timestamp;

#[async_trait]
impl<D: Database> ReceiverRepository for DieselStore<D> {
    async fn add_receiver(&self, command: Command<AddReceiver>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn list_receivers(
        &self,
        query: Find<Option<ReceiverId>, ReceiverOwner>,
    ) -> Result<Vec<StoredReceiver>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }

    async fn change_receiver(&self, command: Command<ChangeReceiver>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn add_delivery(&self, command: Command<EventDelivery>) -> Result<(), StoreError> {
        self.run(command).await
    }

    async fn resend_event(&self, command: Command<ResendEvent>) -> Result<Option<EventDelivery>, StoreError> {
        self.run(command).await
    }

    async fn list_deliveries(
        &self,
        query: List<i64, (ReceiverOwner, ReceiverId)>,
    ) -> Result<Vec<EventDelivery>, StoreError> {
        self.answer(query.principal.organization(), query).await
    }
}

#[async_trait]
impl<D: Database> EventRepository for DieselStore<D> {
    async fn acquire_event_lease(&self, lease: EventLease) -> Result<Option<EventPosition>, StoreError> {
        self.run(lease).await
    }

    async fn all_receivers(&self) -> Result<Vec<(String, Option<StoredReceiver>)>, StoreError> {
        self.answer(None, AllReceivers).await
    }

    async fn find_expiring(&self, query: FindExpiring) -> Result<Vec<Expiring>, StoreError> {
        self.answer(Some(query.organization), query).await
    }

    async fn notices_between(&self, after: Timestamp, until: Timestamp) -> Result<Vec<AccountNotice>, StoreError> {
        self.answer(None, NoticesBetween { after, until }).await
    }

    async fn record_events(&self, command: RecordEvents) -> Result<bool, StoreError> {
        self.run(command).await
    }

    async fn add_deliveries(&self, deliveries: Vec<EventDelivery>) -> Result<(), StoreError> {
        self.run(AddDeliveries(deliveries)).await
    }

    async fn receivers_due(&self, now: Timestamp) -> Result<Vec<(ReceiverOwner, ReceiverId)>, StoreError> {
        self.answer(None, ReceiversDue(now)).await
    }

    async fn waiting_deliveries(
        &self,
        owner: ReceiverOwner,
        receiver: ReceiverId,
        limit: usize,
    ) -> Result<Vec<EventDelivery>, StoreError> {
        self.answer(owner, WaitingDeliveries { owner, receiver, limit }).await
    }

    async fn is_member(&self, organization: OrganizationId, address: LookupDigests) -> Result<bool, StoreError> {
        self.answer(Some(organization), IsMember { organization, address }).await
    }

    async fn note_attempts(&self, attempts: Vec<Attempted>) -> Result<(), StoreError> {
        self.run(RecordAttempts(attempts)).await
    }

    async fn disable_receiver(&self, next: StoredReceiver, audit: SealedAuditRecord) -> Result<(), StoreError> {
        self.run(DisableReceiver { next, audit }).await
    }

    async fn remove_deliveries(&self, ended_before: Timestamp) -> Result<usize, StoreError> {
        self.run(RemoveDeliveries(ended_before)).await
    }
}
