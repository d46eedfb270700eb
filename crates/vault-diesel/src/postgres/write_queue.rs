//! The queue of operations that share transactions. The rate of durable writes increases with load,
//! because a work does not wait for the commit of the previous one. A single work is a batch of one.
//!
//! A transaction includes the works queued when its connection is available. Organizations are served round-robin and get
//! equal shares of it, so the writes of one do not delay those of another. Each organization is in at most one
//! transaction at a time, because a second one would only wait for the locks of the first.

use super::connections::{Connections, Failed, Taken, Timeout};
use crate::db::OpenTx as _;
use crate::failure::{Failure, fault, unavailable};
use crate::rows::{Kept, Operating};
use crate::work::{End, Work};
use diesel::result::Error as SqlError;
use diesel_async::AsyncPgConnection;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use vault_core::entity::OF_INSTANCE;
use vault_core::id::OrganizationId;
use vault_core::operation;
use vault_core::port::{Event, RetryReason, StoreError};

/// Maximum number of works in one transaction.
const LARGEST_BATCH: usize = 64;
/// Maximum number of queued works of all organizations.
const LONGEST_QUEUE: usize = 4_096;

/// Queue of operations that share transactions.
pub(super) struct WriteQueue {
    connections: Arc<Connections>,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    of: HashMap<OrganizationId, VecDeque<Entry>>,
    /// Organizations that have queued works and are in no transaction, the next one first.
    turns: VecDeque<OrganizationId>,
    /// Organizations that are in a transaction.
    busy: HashSet<OrganizationId>,
    /// Whether a worker waits for a connection.
    has_worker: bool,
    /// Number of queued works.
    count: usize,
}

struct Entry {
    work: Operating,
    caller: Caller,
}

/// The caller that waits for a work.
struct Caller {
    reply: oneshot::Sender<Result<Box<dyn operation::Work>, StoreError>>,
    since: Instant,
}

impl Caller {
    fn respond(self, outcome: Result<Box<dyn operation::Work>, StoreError>) {
        // The caller may have been dropped. The transaction is committed either way.
        let _ = self.reply.send(outcome);
    }
}

/// Works of one transaction by organization, in the order in which it locks their rows.
type Groups = BTreeMap<OrganizationId, Vec<Entry>>;

impl Waiting {
    fn is_ready(&self) -> bool {
        !self.turns.is_empty()
    }

    fn push(&mut self, queued: Entry) {
        let organization = organization_of(&queued.work);
        self.count += 1;
        let queue = self.of.entry(organization).or_default();
        queue.push_back(queued);
        if queue.len() == 1 && !self.busy.contains(&organization) {
            self.turns.push_back(organization);
        }
    }

    /// Removes a batch from the queue, with an equal share for each waiting organization. Skips works whose callers
    /// were dropped. Rejects works that have waited for longer than `longest`, because their callers might not
    /// receive the response. If `is_alone`, the batch contains only one organization.
    fn take(&mut self, longest: Duration, is_alone: bool) -> Groups {
        let share = if is_alone { LARGEST_BATCH } else { LARGEST_BATCH.div_ceil(self.turns.len().max(1)) };
        let (mut groups, mut taken) = (Groups::new(), 0);
        while taken < LARGEST_BATCH && !(is_alone && taken > 0) {
            let Some(organization) = self.turns.pop_front() else { break };
            let Some(queue) = self.of.get_mut(&organization) else { continue };
            let mut group = Vec::new();
            while group.len() < share.min(LARGEST_BATCH - taken) {
                let Some(next) = queue.pop_front() else { break };
                self.count -= 1;
                if next.caller.reply.is_closed() {
                    continue;
                }
                if next.caller.since.elapsed() > longest {
                    next.caller.respond(Err(unavailable("too many writes are queued for the database")));
                    continue;
                }
                group.push(next);
            }
            if group.is_empty() {
                self.wait_again(organization);
                continue;
            }
            taken += group.len();
            self.busy.insert(organization);
            groups.insert(organization, group);
        }
        groups
    }

    /// Marks organizations as idle after their transaction.
    fn give_back(&mut self, organizations: &[OrganizationId]) {
        for organization in organizations {
            self.busy.remove(organization);
            self.wait_again(*organization);
        }
    }

    /// Moves an organization to the end of the order if it has queued works.
    fn wait_again(&mut self, organization: OrganizationId) {
        if self.of.get(&organization).is_some_and(|queue| !queue.is_empty()) {
            self.turns.push_back(organization);
        } else {
            self.of.remove(&organization);
        }
    }
}

impl WriteQueue {
    pub(super) fn new(connections: &Arc<Connections>) -> Arc<Self> {
        let waiting =
            Waiting { of: HashMap::new(), turns: VecDeque::new(), busy: HashSet::new(), has_worker: false, count: 0 };
        Arc::new(Self { connections: Arc::clone(connections), waiting: Mutex::new(waiting) })
    }

    /// Runs a work. Dropping the future before the transaction starts withdraws it. Afterwards it has no effect on the
    /// transaction.
    pub(super) async fn run(self: &Arc<Self>, work: Operating) -> Result<Box<dyn operation::Work>, StoreError> {
        let (reply, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if waiting.count >= LONGEST_QUEUE {
                return Err(unavailable("too many writes are queued"));
            }
            waiting.push(Entry { work, caller: Caller { reply, since: Instant::now() } });
        }
        self.start_worker();
        let answer = async { answer.await.unwrap_or_else(|_| Err(unavailable("the transaction was not executed"))) };
        self.connections.in_time(answer).await
    }

    /// Returns the number of queued works.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting().count
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker if works are ready and no worker waits for a connection.
    fn start_worker(self: &Arc<Self>) {
        let mut waiting = self.waiting();
        if waiting.is_ready() && !waiting.has_worker {
            waiting.has_worker = true;
            drop(waiting);
            tokio::spawn(work(Arc::clone(self)));
        }
    }

    /// Returns the organization that is served next, if transactions contain only one organization.
    fn next(&self) -> Option<OrganizationId> {
        if self.connections.are_distributed() { self.waiting().turns.front().copied() } else { None }
    }

    fn take(&self) -> Groups {
        // In distributed tables, two organizations may be on two nodes and would need a two-phase commit.
        self.waiting().take(self.connections.longest_wait() * 5 / 7, self.connections.are_distributed())
    }
}

/// Restores the state of the queue when a worker stops, however it stops.
struct Turn {
    queue: Arc<WriteQueue>,
    /// Whether this worker still waits for a connection.
    waits: bool,
    organizations: Vec<OrganizationId>,
}

impl Turn {
    /// Removes a batch, and lets the next worker wait for a connection.
    fn begin(&mut self) -> Groups {
        let groups = self.queue.take();
        self.organizations = groups.keys().copied().collect();
        self.waits = false;
        self.queue.waiting().has_worker = false;
        self.queue.start_worker();
        groups
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut waiting = self.queue.waiting();
            if self.waits {
                waiting.has_worker = false;
            }
            waiting.give_back(&self.organizations);
        }
        // A worker that was dropped because its runtime stopped does not start another one.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.queue.start_worker();
        }
    }
}

/// Waits for a connection, and runs the works queued by then.
async fn work(queue: Arc<WriteQueue>) {
    let mut turn = Turn { queue: Arc::clone(&queue), waits: true, organizations: Vec::new() };
    let connections = &queue.connections;
    match connections.in_time(connections.take_at(queue.next())).await {
        Ok(taken) => {
            let groups = turn.begin();
            if groups.is_empty() {
                taken.give_back();
            } else {
                decide_shared(connections, taken, groups).await;
            }
        }
        Err(error) => refuse(turn.begin().into_values().flatten(), error),
    }
}

/// Runs all works in one transaction. If that fails, runs each organization separately.
async fn decide_shared(connections: &Connections, taken: Taken, groups: Groups) {
    // With several organizations, a lock on the rows of one must not delay the others.
    let timeout = if groups.len() > 1 { Timeout::Shared } else { Timeout::Usual };
    let Err((groups, failed)) = decide_groups(connections, Some(taken), groups, timeout).await else { return };
    if !failed.certain || groups.len() <= 1 {
        return decide_alone(connections, groups, failed).await;
    }
    connections.reports().report(Event::Retried(RetryReason::SharedTransaction));
    for group in groups {
        if let Err((group, failed)) = decide_groups(connections, None, Groups::from([group]), Timeout::Usual).await {
            decide_alone(connections, group, failed).await;
        }
    }
}

/// Runs each work separately if one of them caused the failure and nothing is committed. Otherwise rejects all of
/// them.
async fn decide_alone(connections: &Connections, groups: Groups, failed: Failed) {
    let several = groups.values().map(Vec::len).sum::<usize>() > 1;
    if !(several && failed.certain && failed.own) {
        return refuse(groups.into_values().flatten(), failed.error);
    }
    connections.reports().report(Event::Retried(RetryReason::SharedTransaction));
    for (organization, group) in groups {
        for one in group.into_iter().filter(|one| !one.caller.reply.is_closed()) {
            let one = Groups::from([(organization, vec![one])]);
            if let Err((one, failed)) = decide_groups(connections, None, one, Timeout::Usual).await {
                refuse(one.into_values().flatten(), failed.error);
            }
        }
    }
}

/// Runs the works in one transaction and responds to the callers. Returns the works if it fails.
async fn decide_groups(
    connections: &Connections,
    taken: Option<Taken>,
    groups: Groups,
    timeout: Timeout,
) -> Result<(), (Groups, Failed)> {
    let is_only = groups.values().map(Vec::len).sum::<usize>() == 1;
    let mut callers = Vec::with_capacity(groups.len());
    let mut works = Vec::with_capacity(groups.len());
    for (organization, group) in groups {
        let (of_group, who): (Vec<_>, Vec<_>) = group.into_iter().map(|Entry { work, caller }| (work, caller)).unzip();
        works.push((organization, of_group));
        callers.push(who);
    }
    let rows = works.first().map(|(organization, _)| *organization);
    let mut shared = Shared { works, is_only };
    let written = connections.in_time(connections.write(taken, rows, &mut shared, timeout)).await;
    let works = shared.works;
    match written {
        Ok(()) => {
            let works = works.into_iter().flat_map(|(_, works)| works);
            for (caller, work) in callers.into_iter().flatten().zip(works) {
                caller.respond(Ok(work.0));
            }
            Ok(())
        }
        Err(failed) => {
            let queued = |(work, caller)| Entry { work, caller };
            let groups = works.into_iter().zip(callers).map(|((organization, works), callers)| {
                (organization, works.into_iter().zip(callers).map(queued).collect())
            });
            Err((groups.collect(), failed))
        }
    }
}

/// The works of all organizations of a transaction, in the order in which it locks their rows.
struct Shared {
    works: Vec<(OrganizationId, Vec<Operating>)>,
    is_only: bool,
}

impl Work<AsyncPgConnection> for Shared {
    fn run<'a>(
        &'a mut self,
        connection: &'a mut AsyncPgConnection,
        _kept: &'a Kept,
    ) -> BoxFuture<'a, Result<End, Failure>> {
        Box::pin(async move {
            let mut end = End::Unchanged;
            for (organization, works) in &mut self.works {
                if run_all(connection, *organization, works, self.is_only).await? {
                    end = End::Commit;
                }
            }
            Ok(end)
        })
    }
}

/// Runs works of one organization, in the order of their arrival. Returns whether anything is to be committed. An error is one
/// of the transaction: then none of them may commit.
async fn run_all(
    mut connection: &AsyncPgConnection,
    organization: OrganizationId,
    works: &mut [Operating],
    is_only: bool,
) -> Result<bool, Failure> {
    let collects = works.len() > 1 && organization != OF_INSTANCE;
    let kept = if collects { Kept::collecting() } else { Kept::default() };
    let mut commits = false;
    for work in works {
        match work.run_in(connection.tx(), &kept).await? {
            End::Commit => commits = true,
            // Only a transaction that it does not share can be rolled back for it.
            End::RollBack if !is_only => return Err(Failure::Sql(SqlError::RollbackTransaction)),
            End::RollBack | End::Unchanged => {}
        }
    }
    kept.write(connection.tx()).await?;
    Ok(commits)
}

fn organization_of(work: &Operating) -> OrganizationId {
    work.0.organization().unwrap_or(OF_INSTANCE)
}

/// Sends an error to all callers. Only the first gets the cause, so that it is logged once.
fn refuse(all: impl IntoIterator<Item = Entry>, error: StoreError) {
    let mut all = all.into_iter();
    let first = all.next();
    all.for_each(|one| one.caller.respond(Err(alike(&error))));
    if let Some(first) = first {
        first.caller.respond(Err(error));
    }
}

/// Returns the error for the other callers.
fn alike(error: &StoreError) -> StoreError {
    match error {
        StoreError::Full => StoreError::Full,
        StoreError::Unavailable(_) => unavailable("the transaction that the write shared with others did not succeed"),
        _ => fault("the transaction that the write shared with others failed"),
    }
}
