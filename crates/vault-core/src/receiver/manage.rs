//! Administration of receivers.

use super::{
    Channel, EventKinds, MAX_RECEIVERS, PreviousSecret, Receiver, ReceiverKey, ReceiverOwner, ReceiverState,
    ReceiverStatus, SECRET_OVERLAP_SECONDS, StoredReceiver, reaches,
};
use crate::account::is_member;
use crate::audit::{AuditAction, AuditChange, ChangedField, Subject};
use crate::email::EmailAddress;
use crate::entity::{DocumentSecret, Entity as _, EntityKey, Index, Kind, OF_INSTANCE, Opened};
use crate::error::Refusal;
use crate::field::{FieldCode, FieldError};
use crate::id::ReceiverId;
use crate::operation::{Access, Failure, Operation, Unit};
use crate::time::Timestamp;
use futures_util::future::try_join_all;
use futures_util::try_join;
use uuid::Uuid;

/// Adds a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddReceiver {
    /// Its owner and ID.
    pub key: ReceiverKey,
    /// The receiver.
    pub receiver: Receiver,
    /// The e-mail address, which must belong to an active account of the organization. `None` allows any address.
    pub member: Option<EmailAddress>,
}

impl Operation for AddReceiver {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| operation.key.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let Self { key, receiver, member } = self;
        unit.authorize().await?;
        if !reaches(unit.principal(), key.owner) {
            return Err(Refusal::NotFound.into());
        }
        let limit = i64::try_from(MAX_RECEIVERS).unwrap_or(i64::MAX);
        if unit.rows().count_entities(key.organization(), Kind::Receiver).await? >= limit {
            return Err(Refusal::LimitReached { what: "receivers", limit }.into());
        }
        if let (Some(member), Some(organization)) = (member, key.owner)
            && !is_member(unit, organization, member).await?
        {
            return Err(Refusal::NoMember.into());
        }
        unit.insert(key.organization(), *key.id.as_uuid(), receiver).await?;
        unit.record(key.owner, AuditAction::ReceiverAdded, receiver.subject(*key.id.as_uuid())).await
    }
}

/// Returns a receiver that the principal may see.
pub(super) async fn find(unit: &Unit<'_>, key: ReceiverKey) -> Result<Opened<Receiver>, Failure> {
    let found = match reaches(unit.principal(), key.owner) {
        true => unit.find(key.organization(), *key.id.as_uuid()).await?,
        false => None,
    };
    found.ok_or_else(|| Refusal::NotFound.into())
}

/// Finds the receivers of an owner, ordered by ID. Those that do not open are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindReceivers {
    /// Their owner.
    pub owner: ReceiverOwner,
    /// Only this one, which must exist and open.
    pub only: Option<ReceiverId>,
}

impl Operation for FindReceivers {
    type Outcome = Vec<StoredReceiver>;
    const ACCESS: Access<Self> = Access::Read(|operation| operation.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<StoredReceiver>, Failure> {
        let owner = self.owner;
        unit.authorize().await?;
        if let Some(id) = self.only {
            let key = ReceiverKey { owner, id };
            let found = find(unit, key).await?;
            return Ok(vec![StoredReceiver::new(found, unit.rows().receiver_status(key).await?)]);
        }
        if !reaches(unit.principal(), owner) {
            return Ok(Vec::new());
        }
        let organization = owner.unwrap_or(OF_INSTANCE);
        let first = EntityKey { organization, kind: Kind::Receiver, id: Uuid::nil() };
        let rows = unit.rows().entities_after(Some(first), MAX_RECEIVERS).await?;
        let own = rows.iter().filter(|row| (row.key.organization, row.key.kind) == (organization, Kind::Receiver));
        let opened = own.map(|row| unit.open_or_report::<Receiver>(row)).collect::<Result<Vec<_>, _>>()?;
        let with_status = opened.into_iter().flatten().map(async |found: Opened<Receiver>| {
            let key = ReceiverKey { owner, id: ReceiverId::from_uuid(found.key().id) };
            Ok(StoredReceiver::new(found, unit.rows().receiver_status(key).await?))
        });
        try_join_all(with_status).await
    }
}

/// Finds all active receivers. Those that do not open are omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveReceivers;

impl Operation for ActiveReceivers {
    type Outcome = Vec<(ReceiverKey, Receiver)>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Self::Outcome, Failure> {
        let mut active = Vec::new();
        for (_, row) in unit.rows().listed_entities(Index::ActiveReceiver, None, None, usize::MAX).await? {
            match Opened::<Receiver>::open(unit.sealer(), &row) {
                Ok(found) => {
                    active.push((ReceiverKey::of_row(row.key.organization, row.key.id), found.into_value()));
                }
                Err(Failure::UnknownKey { key }) if !unit.keys_are_loaded() => return Err(Failure::UnknownKey { key }),
                // Receivers are read every second. Damage is reported when there is something to deliver.
                Err(_) => {}
            }
        }
        Ok(active)
    }
}

/// Changes a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeReceiver {
    /// The receiver.
    pub key: ReceiverKey,
    /// The change.
    pub change: ReceiverChange,
}

/// Change of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverChange {
    /// New values of fields. `None` leaves a field unchanged. Pending deliveries of a receiver that is enabled are attempted
    /// immediately.
    Edit {
        /// New state.
        state: Option<ReceiverState>,
        /// New events.
        events: Option<EventKinds>,
    },
    /// Another signing secret of a webhook. The previous one signs for one day too.
    Secret(DocumentSecret),
}

impl Operation for ChangeReceiver {
    type Outcome = StoredReceiver;
    const ACCESS: Access<Self> = Access::Write(|operation| operation.key.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<StoredReceiver, Failure> {
        let (key, rows) = (self.key, unit.rows());
        unit.authorize().await?;
        let reading = async { Ok(rows.receiver_status(key).await?) };
        let (before, mut status) = try_join!(find(unit, key), reading)?;
        let (action, after) = before.changed(&self.change, unit.now())?;
        unit.replace(&before, &after).await?;
        if matches!(self.change, ReceiverChange::Edit { state: Some(ReceiverState::Active), .. }) {
            status = ReceiverStatus { last_delivered_at: status.last_delivered_at, ..ReceiverStatus::NEW };
            rows.set_receiver_status(key, &status).await?;
        }
        let affected = after.subject(*key.id.as_uuid()).changing(changes(&before, &after));
        unit.record(key.owner, action, affected).await?;
        Ok(StoredReceiver { key, version: before.version() + 1, receiver: after, status })
    }
}

impl Receiver {
    /// Returns the receiver after a change at `now`, and how the audit log names the change.
    fn changed(&self, change: &ReceiverChange, now: Timestamp) -> Result<(AuditAction, Self), Failure> {
        let before = self.clone();
        match change {
            ReceiverChange::Edit { state, events } => {
                let state = state.unwrap_or(self.state);
                let events = events.clone().unwrap_or(before.events);
                Ok((AuditAction::ReceiverChanged, Self { state, events, ..before }))
            }
            ReceiverChange::Secret(_) if self.channel != Channel::Webhook => {
                let detail = "only webhooks have a signing secret";
                Err(Failure::Invalid(vec![FieldError::new("", FieldCode::NotAllowed, detail)]))
            }
            ReceiverChange::Secret(secret) => {
                let until = now.plus_seconds(SECRET_OVERLAP_SECONDS);
                let previous = before.secret.map(|secret| PreviousSecret { secret, until });
                let secret = Some(secret.clone());
                Ok((AuditAction::ReceiverSecretReplaced, Self { secret, previous, ..before }))
            }
        }
    }
}

fn changes(before: &Receiver, after: &Receiver) -> Vec<AuditChange> {
    let state = |state: &ReceiverState| Some(state.as_str().to_owned());
    let state = AuditChange::between(ChangedField::State, &before.state, &after.state, state);
    let events = |events: &EventKinds| Some(events.to_string());
    let events = AuditChange::between(ChangedField::Events, &before.events, &after.events, events);
    state.into_iter().chain(events).collect()
}

/// Removes a receiver with its deliveries. It need not open: removing it is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveReceiver(pub ReceiverKey);

impl Operation for RemoveReceiver {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| operation.0.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let key = self.0;
        unit.authorize().await?;
        if !reaches(unit.principal(), key.owner) {
            return Err(Refusal::NotFound.into());
        }
        let removed = unit.remove::<Receiver>(key.organization(), *key.id.as_uuid());
        let deliveries = async { Ok(unit.rows().remove_deliveries(key).await?) };
        let (removed, ()) = try_join!(removed, deliveries)?;
        if !removed {
            return Err(Refusal::NotFound.into());
        }
        unit.record(key.owner, AuditAction::ReceiverRemoved, Subject::Receiver(key.id).into()).await
    }
}

/// Disables a receiver whose endpoint is gone, unless it was changed, and gives up its pending deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisableReceiver {
    /// The receiver.
    pub key: ReceiverKey,
    /// Its version when the endpoint was found to be gone.
    pub version: i64,
}

impl Operation for DisableReceiver {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| operation.key.owner);

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        let key = self.key;
        let found = unit.find::<Receiver>(key.organization(), *key.id.as_uuid()).await?;
        let Some(before) = found.filter(|found| found.version() == self.version) else { return Ok(()) };
        let after = Receiver { state: ReceiverState::Disabled, ..Receiver::clone(&before) };
        unit.replace(&before, &after).await?;
        unit.rows().give_up_deliveries(key, unit.now()).await?;
        unit.record_by_system(key.owner, AuditAction::ReceiverDisabled, after.subject(*key.id.as_uuid())).await
    }
}
