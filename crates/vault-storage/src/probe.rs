//! How a credential is tried out, whatever its store is.

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::future::Future;
use tokio::time::{Instant, timeout_at};
use vault_core::check::{Check, CheckKind, CheckReason, CheckReport, StorageOperation};
use vault_core::credential::Buckets;
use vault_core::time::Timestamp;

/// What is to be tried.
pub(crate) struct Trial {
    /// The operations.
    pub(crate) operations: Vec<StorageOperation>,
    /// The name of an object that nobody else has, to be put behind the prefix.
    pub(crate) name: String,
    /// Now.
    pub(crate) now: Timestamp,
    /// When nothing further is to be begun, but that what was written is removed.
    pub(crate) deadline: Instant,
}

impl Trial {
    /// What `trying` comes to, if it does in time.
    async fn in_time<T>(&self, trying: impl Future<Output = Result<T, CheckReason>>) -> Result<T, CheckReason> {
        timeout_at(self.deadline, trying).await.unwrap_or(Err(CheckReason::Unreachable))
    }
}

/// What a write check writes.
pub(crate) const CONTENT: &[u8] = b"Written and removed again by a check of a credential.\n";

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its whole name.
    pub(crate) name: String,
    /// Its size in bytes.
    pub(crate) size: u64,
}

impl Found {
    /// The one of `objects` that is best to be read: one with content, so that its first byte can be asked for.
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

/// A store, as one credential opens it.
#[async_trait]
pub(crate) trait Objects: Send + Sync {
    /// An object under the prefix, if there is one.
    async fn list(&self) -> Result<Option<Found>, CheckReason>;
    /// Reads the beginning of an object.
    async fn read(&self, object: &Found) -> Result<(), CheckReason>;
    /// Writes a new object.
    async fn write(&self, name: &str) -> Result<(), CheckReason>;
    /// Removes an object.
    async fn remove(&self, name: &str) -> Result<(), CheckReason>;
    /// Whether it opens more than was asked for, where that can be told without using it.
    async fn opens_more(&self, trial: &Trial) -> Option<bool>;
    /// The beginning of the names of all objects concerned.
    fn prefix(&self) -> &str;
}

/// Tries a credential out whose store answered a first listing with `listing`.
pub(crate) async fn examine(
    objects: &dyn Objects,
    listing: Result<Option<Found>, CheckReason>,
    trial: &Trial,
) -> Vec<Check> {
    match listing {
        // Who is refused one thing is known.
        Ok(_) | Err(CheckReason::Denied) => {}
        Err(reason) => return refused(reason, &trial.operations),
    }
    let mut checks = vec![Check::passed(CheckKind::Authenticate)];
    let wants = |operation| trial.operations.contains(&operation);
    if wants(StorageOperation::List) {
        checks.push(judged(StorageOperation::List, listing.as_ref().map(|_| ()).map_err(|reason| *reason)));
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
        checks.push(
            result.map_or(Check::skipped(kind, CheckReason::NothingToTry), |result| {
                judged(StorageOperation::Read, result)
            }),
        );
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

/// Writes an object, reads it if there was nothing else to read, and removes it.
async fn write(objects: &dyn Objects, trial: &Trial, read_it: bool) -> Wrote {
    let kind = CheckKind::Operation(StorageOperation::Write);
    let object = Found { name: [objects.prefix(), &trial.name].concat(), size: CONTENT.len() as u64 };
    if let Err(reason) = trial.in_time(objects.write(&object.name)).await {
        if reason == CheckReason::Unreachable {
            // It may have been written all the same; if not, there is nothing to remove.
            let _ = objects.remove(&object.name).await;
        }
        return Wrote { check: judged(StorageOperation::Write, Err(reason)), read: None };
    }
    let read = if read_it { Some(trial.in_time(objects.read(&object)).await) } else { None };
    let check = match objects.remove(&object.name).await {
        Ok(()) => Check::passed(kind),
        // It was written, as was asked; that it is still there somebody should know.
        Err(reason) => Check::warning(kind, reason),
    };
    Wrote { check, read }
}

fn judged(operation: StorageOperation, result: Result<(), CheckReason>) -> Check {
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

/// The store does not know the credential, or is not there; nothing further was tried.
pub(crate) fn refused(reason: CheckReason, operations: &[StorageOperation]) -> Vec<Check> {
    std::iter::once(Check::failed(CheckKind::Authenticate, reason)).chain(skipped(operations)).collect()
}

/// Operations that were not tried.
pub(crate) fn skipped(operations: &[StorageOperation]) -> impl Iterator<Item = Check> {
    operations.iter().map(|operation| Check::skipped(CheckKind::Operation(*operation), CheckReason::EarlierFailed))
}
