//! Which request a task carries out, for the audit, and what that counts for.

use crate::concurrency::Permit;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use vault_core::audit::Origin;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::port::RequestContext;

tokio::task_local! {
    static CURRENT: Current;
}

/// A request, and the permits that count it until the last task that carries it out has ended.
#[derive(Clone, Default)]
struct Current {
    origin: Origin,
    permits: Arc<OnceLock<Permits>>,
}

/// Counts a request for the account and the organization that sent it.
pub(crate) type Permits = (Permit<AccountId>, Permit<OrganizationId>);

/// The request that the calling task carries out for a listener of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct CurrentRequest;

impl RequestContext for CurrentRequest {
    fn current(&self) -> Origin {
        CURRENT.try_with(|current| current.origin).unwrap_or_default()
    }
}

/// `work`, as part of the request that came from `origin`.
pub(crate) fn within<F: Future>(origin: Origin, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(Current { origin, ..Current::default() }, work)
}

/// `work`, as part of the request that the caller carries out, on whatever task it then runs.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(CURRENT.try_with(Clone::clone).unwrap_or_default(), work)
}

/// Whether the request that the caller carries out is counted.
pub(crate) fn is_counted() -> bool {
    CURRENT.try_with(|current| current.permits.get().is_some()).unwrap_or_default()
}

/// Has the request that the caller carries out be counted until it has ended.
pub(crate) fn count(permits: Permits) {
    let _ = CURRENT.try_with(|current| current.permits.set(permits).is_ok());
}
