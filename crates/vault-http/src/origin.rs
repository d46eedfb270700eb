//! Which request a task carries out, for the audit.

use std::future::Future;
use vault_core::audit::Origin;
use vault_core::port::Origins;

tokio::task_local! {
    static CURRENT: Origin;
}

/// The request that the calling task carries out for a listener of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOrigins;

impl Origins for RequestOrigins {
    fn current(&self) -> Origin {
        CURRENT.try_with(|origin| *origin).unwrap_or_default()
    }
}

/// `work`, as part of the request that came from `origin`.
pub(crate) fn within<F: Future>(origin: Origin, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(origin, work)
}

/// `work`, as part of the request that the caller carries out, on whatever task it then runs.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(RequestOrigins.current(), work)
}
