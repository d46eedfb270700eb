//! Port for checks of a credential with its storage.

use crate::activation::ShortData;
use crate::check::{CheckReport, StorageOperation};
use crate::credential::CredentialData;
use crate::time::Timestamp;
use async_trait::async_trait;

/// Request for a check.
#[derive(Debug)]
pub struct ProbeRequest {
    /// Short-lived credential issued from the data, if an activation would issue one. It is checked instead of the
    /// saved data.
    pub short: Option<ShortData>,
    /// Operations without duplicates. If empty, the check only authenticates.
    pub operations: Vec<StorageOperation>,
    /// Planned end of the job, if specified.
    pub until: Option<Timestamp>,
    /// Current time.
    pub now: Timestamp,
}

/// Port that checks a credential with its storage provider, in the form in which it would be issued. Implementations
/// limit duration, size and addresses of connections, do not follow redirects, and delete what they wrote.
#[async_trait]
pub trait StorageProbe: Send + Sync {
    /// Authenticates first, then tries each operation. The report contains failures, but not the checks that require no
    /// connection ([`verify_locally`](crate::check::verify_locally)).
    async fn check(&self, data: &CredentialData, request: ProbeRequest) -> CheckReport;
}
