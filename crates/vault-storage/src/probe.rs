//! Checks of credentials, independent of the storage provider.

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::future::Future;
use tokio::time::{Instant, timeout_at};
use vault_core::check::{Check, CheckKind, CheckReason, CheckReport, StorageOperation};
use vault_core::credential::Buckets;
use vault_core::time::Timestamp;

/// The parameters of a check.
pub(crate) struct Trial {
    /// Operations to check.
    pub(crate) operations: Vec<StorageOperation>,
    /// Unique name for a new object, without the prefix.
    pub(crate) name: String,
    /// Current time.
    pub(crate) now: Timestamp,
    /// Time after which no request is started, except for the removal of a written object.
    pub(crate) deadline: Instant,
}

impl Trial {
    /// Returns the result of `trying`, or a failure after the deadline.
    async fn in_time<T>(&self, trying: impl Future<Output = Result<T, CheckReason>>) -> Result<T, CheckReason> {
        timeout_at(self.deadline, trying).await.unwrap_or(Err(CheckReason::Unreachable))
    }
}

/// Content of the object that a write check creates.
pub(crate) const CONTENT: &[u8] = b"Written and removed again by a check of a credential.\n";

/// An existing object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Full name.
    pub(crate) name: String,
    /// Size in bytes.
    pub(crate) size: u64,
}

impl Found {
    /// Returns the best object to read: one with content, so that its first byte can be requested.
    pub(crate) fn best(objects: impl Iterator<Item = Self>) -> Option<Self> {
        let mut first = None;
        for object in objects {
            if object.size > 0 {
                return Some(object);
            }
            first.get_or_insert(object);
        }
        first
    }
}

/// A storage location, accessed with one credential.
#[async_trait]
pub(crate) trait Objects: Send + Sync {
    /// Returns an object with the prefix, if there is one.
    async fn list(&self) -> Result<Option<Found>, CheckReason>;
    /// Reads the first byte of an object.
    async fn read(&self, object: &Found) -> Result<(), CheckReason>;
    /// Writes a new object.
    async fn write(&self, name: &str) -> Result<(), CheckReason>;
    /// Removes an object.
    async fn remove(&self, name: &str) -> Result<(), CheckReason>;
    /// Returns whether the credential permits more than requested, if this can be determined without using it.
    async fn opens_more(&self, trial: &Trial) -> Option<bool>;
    /// Returns the common prefix of all object names.
    fn prefix(&self) -> &str;
}

/// Checks a credential after a first listing with the result `listing`.
pub(crate) async fn examine(
    objects: &dyn Objects,
    listing: Result<Option<Found>, CheckReason>,
    trial: &Trial,
) -> Vec<Check> {
    match listing {
        // A denied listing shows that the provider accepts the credential.
        Ok(_) | Err(CheckReason::Denied) => {}
        Err(reason) => return refused(reason, &trial.operations),
    }
    let mut checks = vec![Check::passed(CheckKind::Authenticate)];
    let wants = |operation| trial.operations.contains(&operation);
    if wants(StorageOperation::List) {
        checks.push(evaluated(StorageOperation::List, listing.as_ref().map(|_| ()).map_err(|reason| *reason)));
    }
    let found = listing.ok().flatten();
    let read = match &found {
        Some(found) if wants(StorageOperation::Read) => Some(trial.in_time(objects.read(found)).await),
        _ => None,
    };
    let wrote = if wants(StorageOperation::Write) {
        let own_to_read = wants(StorageOperation::Read) && read.is_none();
        Some(write(objects, trial, own_to_read).await)
    } else {
        None
    };
    if wants(StorageOperation::Read) {
        let kind = CheckKind::Operation(StorageOperation::Read);
        let result = read.or(wrote.as_ref().and_then(|wrote| wrote.read));
        checks.push(result.map_or(Check::skipped(kind, CheckReason::NothingToTry), |result| {
            evaluated(StorageOperation::Read, result)
        }));
    }
    checks.extend(wrote.map(|wrote| wrote.check));
    if !trial.operations.is_empty() {
        let kind = CheckKind::LeastPrivilege;
        let more = timeout_at(trial.deadline, objects.opens_more(trial)).await.ok().flatten();
        checks.extend(
            more.map(|more| if more { Check::warning(kind, CheckReason::ExcessRights) } else { Check::passed(kind) }),
        );
    }
    checks
}

struct Wrote {
    check: Check,
    read: Option<Result<(), CheckReason>>,
}

/// Writes an object, reads it if no other object exists, and removes it.
async fn write(objects: &dyn Objects, trial: &Trial, read_it: bool) -> Wrote {
    let kind = CheckKind::Operation(StorageOperation::Write);
    let object = Found { name: [objects.prefix(), &trial.name].concat(), size: CONTENT.len() as u64 };
    if let Err(reason) = trial.in_time(objects.write(&object.name)).await {
        if reason == CheckReason::Unreachable {
            // The write may have succeeded. If it has not, there is nothing to remove.
            let _ = objects.remove(&object.name).await;
        }
        return Wrote { check: evaluated(StorageOperation::Write, Err(reason)), read: None };
    }
    let read = if read_it { Some(trial.in_time(objects.read(&object)).await) } else { None };
    let check = match objects.remove(&object.name).await {
        Ok(()) => Check::passed(kind),
        // The write succeeded as requested. Warn that the object still exists.
        Err(reason) => Check::warning(kind, reason),
    };
    Wrote { check, read }
}

fn evaluated(operation: StorageOperation, result: Result<(), CheckReason>) -> Check {
    let kind = CheckKind::Operation(operation);
    match result {
        Ok(()) => Check::passed(kind),
        Err(reason @ CheckReason::NothingToTry) => Check::skipped(kind, reason),
        Err(reason) => Check::failed(kind, reason),
    }
}

/// How many buckets of a credential are checked at the same time.
const AT_ONCE: usize = 8;

/// Checks each of the buckets. Of several, the report has the worst result of each kind.
pub(crate) async fn each_bucket<'a, F: Future<Output = Vec<Check>>>(
    buckets: &'a Buckets,
    check: impl Fn(&'a str) -> F,
) -> Vec<Check> {
    if let Some(bucket) = buckets.single() {
        return check(bucket).await;
    }
    let checks: Vec<_> = buckets.iter().map(|bucket| check(bucket).map(move |checks| (bucket, checks))).collect();
    let reports: Vec<_> = stream::iter(checks).buffered(AT_ONCE).collect().await;
    CheckReport::of_buckets(reports).checks
}

/// Reports a failed authentication or connection. All operations are skipped.
pub(crate) fn refused(reason: CheckReason, operations: &[StorageOperation]) -> Vec<Check> {
    std::iter::once(Check::failed(CheckKind::Authenticate, reason)).chain(skipped(operations)).collect()
}

/// Reports operations as skipped.
pub(crate) fn skipped(operations: &[StorageOperation]) -> impl Iterator<Item = Check> {
    operations.iter().map(|operation| Check::skipped(CheckKind::Operation(*operation), CheckReason::EarlierFailed))
}
