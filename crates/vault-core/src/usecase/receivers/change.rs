//! Changes of receivers: events, state and signing secret; and removal.

use super::{Receivers, owner};
use crate::audit::{AuditAction, AuditChange, ChangedField, RecordedRow, RowState, Subject};
use crate::error::{Error, Refusal};
use crate::field::{FieldCode, FieldError};
use crate::id::ReceiverId;
use crate::port::{ChangeReceiver, Event, StoreError};
use crate::principal::Principal;
use crate::receiver::{
    Channel, EventKinds, Receiver, ReceiverState, ReceiverStatus, SECRET_OVERLAP_SECONDS, SealedTarget, StoredReceiver,
};
use crate::role::Action;
use crate::usecase::sound_under_known_keys;
use secrecy::SecretString;

/// Changes of a receiver's row. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverEdit {
    /// New state.
    pub state: Option<ReceiverState>,
    /// Names of its events. An empty list selects all.
    pub events: Option<Vec<String>>,
}

/// New row of a change, with its audit action and changes.
type Changed = (Option<StoredReceiver>, AuditAction, Vec<AuditChange>);

impl Receivers {
    /// Changes the events or the state of a receiver. Pending deliveries of a receiver that is enabled are attempted
    /// immediately.
    ///
    /// # Errors
    /// - [`Error::Invalid`] at `/events/…`, or at the document if nothing is to be changed.
    /// - [`Refusal::NotFound`], [`Refusal::Damaged`] or [`Refusal::Contended`].
    pub async fn change(
        &self,
        principal: &Principal,
        receiver: ReceiverId,
        edit: ReceiverEdit,
    ) -> Result<StoredReceiver, Error> {
        if edit == ReceiverEdit::default() {
            let detail = "must change something: state or events";
            return Err(FieldError::new("", FieldCode::Required, detail).into());
        }
        let organization = owner(principal).is_some();
        let events = edit.events.map(|names| EventKinds::parse(&names, organization, "/events"));
        let events = events.transpose().map_err(Error::Invalid)?;
        self.carry_out(principal, receiver, |stored| {
            let current = &stored.receiver;
            let next = Receiver {
                state: edit.state.unwrap_or(current.state),
                events: events.clone().unwrap_or_else(|| current.events.clone()),
                version: current.version + 1,
                ..current.clone()
            };
            let state = AuditChange::between(ChangedField::State, &current.state, &next.state, |state| {
                Some(state.as_str().to_owned())
            });
            let reported = AuditChange::between(ChangedField::Events, &current.events, &next.events, |events| {
                Some(events.to_string())
            });
            let status = match edit.state {
                Some(ReceiverState::Active) => {
                    ReceiverStatus { last_delivered_at: stored.status.last_delivered_at, ..ReceiverStatus::NEW }
                }
                _ => stored.status,
            };
            let next = StoredReceiver::sign(next, stored.target.clone(), status, &*self.digester);
            Ok((Some(next), AuditAction::ReceiverChanged, state.into_iter().chain(reported).collect()))
        })
        .await
    }

    /// Replaces the signing secret of a webhook. The previous one also signs for one day.
    ///
    /// # Errors
    /// - [`Error::Invalid`] if the receiver is not a webhook.
    /// - [`Refusal::NotFound`], [`Refusal::Damaged`] or [`Refusal::Contended`].
    pub async fn replace_secret(
        &self,
        principal: &Principal,
        receiver: ReceiverId,
    ) -> Result<(StoredReceiver, SecretString), Error> {
        let mut issued = None;
        let changed = self
            .carry_out(principal, receiver, |stored| {
                if stored.receiver.channel != Channel::Webhook {
                    let detail = "only webhooks have a signing secret";
                    return Err(FieldError::new("", FieldCode::NotAllowed, detail).into());
                }
                let number = stored.target.secret_number + 1;
                let (secret, sealed) = self.sealer.new_secret(receiver, number)?;
                issued = Some(secret);
                let target = SealedTarget {
                    secret_number: number,
                    secret: sealed,
                    previous_secret: stored.target.secret.clone(),
                    previous_until: self.environment.now().plus_seconds(SECRET_OVERLAP_SECONDS),
                    ..stored.target.clone()
                };
                let next = Receiver { version: stored.receiver.version + 1, ..stored.receiver.clone() };
                let next = StoredReceiver::sign(next, target, stored.status, &*self.digester);
                Ok((Some(next), AuditAction::ReceiverSecretReplaced, Vec::new()))
            })
            .await?;
        issued.map(|secret| (changed, secret)).ok_or_else(|| Refusal::Contended.into())
    }

    /// Removes a receiver and its pending deliveries.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] or [`Refusal::Contended`].
    pub async fn remove(&self, principal: &Principal, receiver: ReceiverId) -> Result<(), Error> {
        self.carry_out(principal, receiver, |_| Ok((None, AuditAction::ReceiverRemoved, Vec::new()))).await?;
        Ok(())
    }

    /// Decides a change on the current row, and repeats this after a concurrent change.
    async fn carry_out(
        &self,
        principal: &Principal,
        receiver: ReceiverId,
        mut decide: impl FnMut(&StoredReceiver) -> Result<Changed, Error>,
    ) -> Result<StoredReceiver, Error> {
        principal.administers(Action::ManageReceivers)?;
        let owner = owner(principal);
        for _ in self.environment.attempts() {
            let stored = self.show(principal, receiver).await?;
            let (next, action, changes) = decide(&stored)?;
            // Never re-sign an invalid row: that would legitimize a row planted through SQL.
            if next.is_some()
                && !sound_under_known_keys(&*self.digester, || stored.mac_is_valid(&*self.digester)).await?
            {
                let id = receiver.to_string();
                self.environment.emit(Event::IntegrityFailure { table: "receivers", id: id.clone() });
                return Err(Refusal::Damaged { table: "receivers", id }.into());
            }
            let (version, boxed) = (stored.receiver.version, next.clone().map(Box::new));
            let payload = ChangeReceiver { owner, receiver, version, next: boxed };
            let gone = || Subject::Receiver(receiver).left(RecordedRow::Receiver, RowState::Gone);
            let affected = next.as_ref().map_or_else(gone, |next| next.left(&*self.digester)).changing(changes);
            let command = self.environment.command(principal, owner, action, affected, payload);
            let changed = Event::recorded(&command.audit);
            match self.store.change_receiver(command).await {
                Err(StoreError::Refused(Refusal::Contended)) => {}
                decided => {
                    decided?;
                    self.environment.emit(changed);
                    return Ok(next.unwrap_or(stored));
                }
            }
        }
        Err(Refusal::Contended.into())
    }
}
