//! The request that a task belongs to, for the audit log and concurrency limits.

use crate::concurrency::Permit;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use vault_core::audit::Origin;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::port::RequestContext;

tokio::task_local! {
    static CURRENT: Current;
}

/// A request, with permits that count it until its last task has ended.
#[derive(Clone, Default)]
struct Current {
    origin: Origin,
    permits: Arc<OnceLock<Permits>>,
}

/// Permits of the account and the organization that sent a request.
pub(crate) type Permits = (Permit<AccountId>, Permit<OrganizationId>);

/// Provides the calling task's request for listeners of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct CurrentRequest;

impl RequestContext for CurrentRequest {
    fn current(&self) -> Origin {
        CURRENT.try_with(|current| current.origin).unwrap_or_default()
    }
}

/// Runs `work` as part of the request from `origin`.
pub(crate) fn within<F: Future>(origin: Origin, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(Current { origin, ..Current::default() }, work)
}

/// Runs `work` as part of the caller's request, on whichever task it is polled.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(CURRENT.try_with(Clone::clone).unwrap_or_default(), work)
}

/// Returns whether the caller's request is already counted.
pub(crate) fn is_counted() -> bool {
    CURRENT.try_with(|current| current.permits.get().is_some()).unwrap_or_default()
}

/// Counts the caller's request until it ends.
pub(crate) fn count(permits: Permits) {
    let _ = CURRENT.try_with(|current| current.permits.set(permits).is_ok());
}
