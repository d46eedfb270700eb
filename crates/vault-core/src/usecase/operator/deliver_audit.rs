//! Deliver audit entries outside as they are written.

use super::Operator;
use crate::audit::AuditEntry;
use crate::error::Error;
use crate::id::AuditId;
use crate::port::{AuditSink, Delivery};
use std::collections::HashMap;
use uuid::Uuid;

/// For how long the right to deliver is taken, in seconds. A sink that takes longer for one checkpoint may get entries twice.
const LEASE_SECONDS: i64 = 60;

/// What a round of delivering came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveredAudit {
    /// How many entries were delivered.
    pub entries: usize,
    /// The last checkpoint that was delivered.
    pub checkpoint: i64,
    /// How many checkpoints wait.
    pub waiting: i64,
}

/// Entries could not be delivered. They wait.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The sink did not accept the entries of a checkpoint.
    #[error("the entries of audit checkpoint {checkpoint} were not accepted")]
    Sink {
        /// The checkpoint.
        checkpoint: i64,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Operator {
    /// Delivers the entries of checkpoints that `sink` has not accepted yet, in order and at least once, until none is left
    /// or `millis` milliseconds are used. Of several processes one delivers, `holder`; `None`: another one does.
    ///
    /// # Errors
    /// The store or the sink failed; what was delivered before is noted.
    pub async fn deliver_audit(
        &self,
        sink: &dyn AuditSink,
        holder: Uuid,
        millis: i64,
    ) -> Result<Option<DeliveredAudit>, DeliveryError> {
        let (began, mut entries) = (self.environment.now(), 0);
        loop {
            let Some(checkpoint) = self.begin_delivery(holder).await? else { return Ok(None) };
            let newest = self.newest_checkpoint().await?.number;
            let waiting = newest.saturating_sub(checkpoint).max(0);
            if waiting == 0 || (entries > 0 && self.environment.now().millis_since(began) >= millis) {
                return Ok(Some(DeliveredAudit { entries, checkpoint, waiting }));
            }
            let next = self.store.checkpoints(checkpoint, 1).await.map_err(Error::from)?.pop();
            let Some(next) = next else { return Ok(Some(DeliveredAudit { entries, checkpoint, waiting: 0 })) };
            // What is missing or damaged is for `verify_audit` to report.
            let ids = next.sealed.map(|sealed| sealed.checkpoint.entries).unwrap_or_default();
            let found = self.ordered(ids).await?;
            if !found.is_empty() {
                let delivered = sink.deliver(&found).await;
                delivered.map_err(|cause| DeliveryError::Sink { checkpoint: next.number, cause })?;
                entries += found.len();
            }
            if !self.store.note_delivered(holder, checkpoint, next.number).await.map_err(Error::from)? {
                return Ok(None);
            }
        }
    }

    /// Takes the right to deliver for a minute, unless another process has it. The first time, delivery begins after the
    /// checkpoints there are. The last checkpoint that was delivered.
    ///
    /// # Errors
    /// The store failed.
    pub async fn begin_delivery(&self, holder: Uuid) -> Result<Option<i64>, Error> {
        let now = self.environment.now();
        Ok(self.store.take_delivery(Delivery { holder, now, until: now.plus_seconds(LEASE_SECONDS) }).await?)
    }

    /// Gives the right to deliver back, so that another process need not wait until it ends.
    ///
    /// # Errors
    /// The store failed; the right ends by itself.
    pub async fn end_delivery(&self, holder: Uuid) -> Result<(), Error> {
        let now = self.environment.now();
        self.store.take_delivery(Delivery { holder, now, until: now }).await?;
        Ok(())
    }

    /// The entries with these ids, in this order.
    async fn ordered(&self, ids: Vec<AuditId>) -> Result<Vec<AuditEntry>, Error> {
        let found = self.store.entries(ids.clone()).await?;
        let mut found: HashMap<String, AuditEntry> = found.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
        Ok(ids.iter().filter_map(|id| found.remove(&id.to_string())).collect())
    }
}
