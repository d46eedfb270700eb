//! The dry run against the real store.

use crate::check::{CheckReport, StorageOperation};
use crate::credential::CredentialData;
use crate::time::Timestamp;
use async_trait::async_trait;

/// What to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The operations, each once. None at all: authenticate only.
    pub operations: Vec<StorageOperation>,
    /// When the job will be done, if that was said.
    pub until: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
}

/// Tries a credential out on its store. Reaches stores; bounds time, size and addresses of that itself, follows no
/// redirects, and leaves nothing behind that it wrote.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait StorageProbe: Send + Sync {
    /// Authenticates first, then tries each operation. Failures are in the report; what needs no network (
    /// [`judge_locally`](crate::check::judge_locally)) is not.
    async fn check(&self, data: &CredentialData, request: ProbeRequest) -> CheckReport;
}
