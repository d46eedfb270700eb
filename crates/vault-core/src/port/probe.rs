//! Checking a credential against its storage.

use crate::activation::ShortData;
use crate::check::{CheckReport, StorageOperation};
use crate::credential::CredentialData;
use crate::time::Timestamp;
use async_trait::async_trait;

/// What to check.
#[derive(Debug)]
pub struct ProbeRequest {
    /// The short-lived credential made from the data, if that would be issued. It is checked instead of the saved data.
    pub short: Option<ShortData>,
    /// The operations, each once. None at all: authenticate only.
    pub operations: Vec<StorageOperation>,
    /// When the job will be done, if that was said.
    pub until: Option<Timestamp>,
    /// Current time.
    pub now: Timestamp,
}

/// Checks a credential with its storage provider, in the form in which it would be issued. Implementations limit time, size
/// and addresses of connections, follow no redirects, and remove what they wrote.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait StorageProbe: Send + Sync {
    /// Authenticates first, then tries each operation. Failures are in the report; what needs no network (
    /// [`judge_locally`](crate::check::judge_locally)) is not.
    async fn check(&self, data: &CredentialData, request: ProbeRequest) -> CheckReport;
}
