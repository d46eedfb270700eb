//! The ports of maintenance and restores.

use super::{Database, DieselStore};
use crate::transaction::maintenance::credential_counts::MostKeyUses;
use crate::transaction::maintenance::expiry::{self, DeleteExpired, Expiry, FindExpired};
use crate::transaction::maintenance::health::ProveSpace;
use crate::transaction::maintenance::restore::ReadRestoreEpoch;
use crate::transaction::organization::erasure::{EraseSlice, PendingErasures};
use async_trait::async_trait;
use vault_core::Command;
use vault_core::port::{
    CountCredentials, CountedSlice, EXPIRED_SLICE, Expired, FinishRestore, Maintenance, RestoreRepository, Settled,
    StoreError,
};
use vault_core::time::Timestamp;

#[async_trait]
impl<D: Database> Maintenance for DieselStore<D> {
    async fn delete_expired(&self, expired: Expired, now: Timestamp) -> Result<usize, StoreError> {
        match expired {
            Expired::Sessions => expire(&**self, expiry::SESSIONS, now).await,
            Expired::IdempotencyKeys => expire(&**self, expiry::IDEMPOTENCY_KEYS, now).await,
            Expired::Attempts => {
                Ok(expire(&**self, expiry::ATTEMPTS, now).await? + expire(&**self, expiry::NETWORKS, now).await?)
            }
            Expired::Invitations => expire(&**self, expiry::INVITATIONS, now).await,
            Expired::Notices => expire(&**self, expiry::NOTICES, now).await,
            Expired::PendingSeeds => expire(&**self, expiry::PENDING_SEEDS, now).await,
            Expired::Activations => expire(&**self, expiry::ACTIVATIONS, now).await,
            Expired::PreviousVersions => expire(&**self, expiry::PREVIOUS_VERSIONS, now).await,
            Expired::CredentialUses => expire(&**self, expiry::CREDENTIAL_USES, now).await,
            Expired::HourlyCounts => expire(&**self, expiry::HOURLY_COUNTS, now).await,
            Expired::Erasures => {
                let pending = self.answer(None, PendingErasures).await?;
                let Some(organization) = pending.iter().find_map(|id| id.decode("erasures").ok()) else {
                    return Ok(0);
                };
                // The deleted rows are not counted: a slice may remain, of this organization or the next.
                self.run(EraseSlice(organization)).await?;
                Ok(EXPIRED_SLICE)
            }
        }
    }

    async fn check(&self, now: Timestamp) -> Result<Option<i64>, StoreError> {
        if self.reports().is_full() {
            self.run(ProveSpace).await?;
            self.reports().has_space();
            tracing::info!("the disk of the database has space again; writes work");
        }
        self.measure(now).await
    }

    async fn count_credentials(&self, query: CountCredentials) -> Result<CountedSlice, StoreError> {
        self.answer(None, query).await
    }

    async fn most_key_uses(&self) -> Result<i64, StoreError> {
        self.answer(None, MostKeyUses).await
    }
}

/// Deletes at most a slice of rows that expired. Returns their number.
async fn expire<G, K>(store: &impl Database, expiry: Expiry<G, K>, now: Timestamp) -> Result<usize, StoreError>
where
    G: Ord + Send + Sync + 'static,
    K: Send + Sync + 'static,
{
    let found = store.answer(None, FindExpired { expiry, now }).await?;
    if found.is_empty() {
        return Ok(0);
    }
    store.run(DeleteExpired { expiry, now, found }).await
}

#[async_trait]
impl<D: Database> RestoreRepository for DieselStore<D> {
    async fn restore_epoch(&self) -> Result<u64, StoreError> {
        self.answer(None, ReadRestoreEpoch).await
    }

    async fn finish_restore(&self, command: Command<FinishRestore>) -> Result<Option<Settled>, StoreError> {
        self.run_patiently(command).await
    }
}
