//! Decisions of one kind in one organization that wait together and share a transaction: durable writes rise with load,
//! where otherwise each would wait for the commit of the one before. Organizations take turns at the connections.

use super::connections::{Connections, Failed, Haste, Taken};
use super::decision::decide;
use super::together::{AT_ONCE, Fate, Together, decide_together};
use crate::failure::{NoSpace, fault, no_space, unavailable};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;
use vault_core::Command;
use vault_core::id::OrganizationId;
use vault_core::port::StoreError;

/// The most bytes in one transaction, unless the first decision has more.
const LARGEST_SIZE: usize = 1024 * 1024;
/// The most decisions that wait, of all organizations.
const LONGEST_QUEUE: usize = 4_096;

/// Decisions of one kind, where they wait.
pub(super) struct Gathered<A: Together> {
    connections: Arc<Connections>,
    waiting: Mutex<Queues<A>>,
}

struct Queues<A: Together> {
    /// A queue for each organization that has a worker. The worker removes it when it ends.
    of: HashMap<OrganizationId, VecDeque<Waiting<A>>>,
    /// How many decisions there are in all of them.
    count: usize,
}

struct Waiting<A: Together> {
    command: Command<A>,
    caller: Caller<A>,
}

/// Who waits for a decision.
struct Caller<A: Together> {
    reply: oneshot::Sender<Result<A::Outcome, StoreError>>,
    since: Instant,
}

impl<A: Together> Caller<A> {
    fn tell(self, outcome: Result<A::Outcome, StoreError>) {
        // A caller that is gone misses its answer; the decision stands all the same.
        let _ = self.reply.send(outcome);
    }
}

impl<A: Together> Gathered<A> {
    pub(super) fn new(connections: &Arc<Connections>) -> Arc<Self> {
        let waiting = Mutex::new(Queues { of: HashMap::new(), count: 0 });
        Arc::new(Self { connections: Arc::clone(connections), waiting })
    }

    /// Makes a decision. Whoever goes away before its transaction begins withdraws it; later it is made all the same.
    pub(super) async fn decide(self: &Arc<Self>, command: Command<A>) -> Result<A::Outcome, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue(Waiting { command, caller: Caller { reply, since: Instant::now() } })?;
        let answer = async { answer.await.unwrap_or_else(|_| Err(unavailable("the decision was not made"))) };
        self.connections.in_time(answer).await
    }

    fn queue(self: &Arc<Self>, waiting: Waiting<A>) -> Result<(), StoreError> {
        let organization = waiting.command.act.organization();
        let mut queues = self.queues();
        if queues.count >= LONGEST_QUEUE {
            return Err(unavailable("too many writes are queued"));
        }
        queues.count += 1;
        match queues.of.get_mut(&organization) {
            Some(queue) => queue.push_back(waiting),
            None => {
                queues.of.insert(organization, VecDeque::from([waiting]));
                let worker = Worker { gathered: Arc::clone(self), organization, ended: false };
                tokio::spawn(worker.work());
            }
        }
        Ok(())
    }

    /// How many decisions wait.
    pub(super) fn waiting(&self) -> usize {
        self.queues().count
    }

    fn queues(&self) -> MutexGuard<'_, Queues<A>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the decisions of an organization until none waits.
struct Worker<A: Together> {
    gathered: Arc<Gathered<A>>,
    organization: OrganizationId,
    /// Whether its queue is gone. There may be another's by then.
    ended: bool,
}

impl<A: Together> Drop for Worker<A> {
    /// Without a worker nobody may wait, however it ended.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut queues = self.gathered.queues();
        let left = queues.of.remove(&self.organization);
        queues.count -= left.map_or(0, |left| left.len());
    }
}

impl<A: Together> Worker<A> {
    async fn work(mut self) {
        while self.has_waiting() {
            let connections = &self.gathered.connections;
            // A turn at the connections first: meanwhile more may come to share it.
            match connections.in_time(connections.take()).await {
                Ok(taken) => self.decide_next(taken).await,
                Err(error) => refuse(self.take(usize::MAX), error),
            }
        }
    }

    /// Whether a decision waits. If not, the next that comes has a worker of its own.
    fn has_waiting(&mut self) -> bool {
        let mut queues = self.gathered.queues();
        let waits = queues.of.get(&self.organization).is_some_and(|queue| !queue.is_empty());
        if !waits {
            queues.of.remove(&self.organization);
            self.ended = true;
        }
        waits
    }

    /// Takes what waits, up to `most` decisions of the size that a transaction may have; without those whose callers
    /// are gone, and those that have waited so long that their callers might not see the answer.
    fn take(&self, most: usize) -> Vec<Waiting<A>> {
        let longest = self.gathered.connections.longest_wait() * 5 / 7;
        let (mut taken, mut size) = (Vec::new(), 0);
        let mut queues = self.gathered.queues();
        let Queues { of, count } = &mut *queues;
        let Some(queue) = of.get_mut(&self.organization) else { return taken };
        while let Some(next) = queue.front() {
            size += next.command.act.size();
            if taken.len() >= most || (size > LARGEST_SIZE && !taken.is_empty()) {
                break;
            }
            let Some(next) = queue.pop_front() else { break };
            *count -= 1;
            if next.caller.reply.is_closed() {
                continue;
            }
            if next.caller.since.elapsed() > longest {
                next.caller.tell(Err(unavailable("too many writes wait for the database")));
                continue;
            }
            taken.push(next);
        }
        taken
    }

    /// Puts decisions back that are to be made next.
    fn put_back(&self, again: Vec<Waiting<A>>) {
        let mut queues = self.gathered.queues();
        queues.count += again.len();
        let queue = queues.of.entry(self.organization).or_default();
        again.into_iter().rev().for_each(|one| queue.push_front(one));
    }

    async fn decide_next(&self, taken: Taken<'_>) {
        let mut batch = self.take(AT_ONCE);
        match (batch.len(), batch.pop()) {
            (1, Some(one)) => self.decide_alone(Some(taken), one).await,
            (_, Some(last)) => {
                batch.push(last);
                self.decide_all(taken, batch).await;
            }
            (_, None) => taken.give_back(),
        }
    }

    async fn decide_alone(&self, taken: Option<Taken<'_>>, Waiting { command, caller }: Waiting<A>) {
        let connections = &self.gathered.connections;
        let decision = connections.write(
            taken,
            &command,
            |connection, command| Box::pin(decide(connection, command)),
            Haste::Usual,
        );
        caller.tell(connections.in_time(decision).await.map_err(|failed: Failed| failed.error));
    }

    async fn decide_all(&self, taken: Taken<'_>, batch: Vec<Waiting<A>>) {
        let (commands, callers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|Waiting { command, caller }| (command, caller)).unzip();
        let connections = &self.gathered.connections;
        let all = (self.organization, &commands[..]);
        let decision = connections.write(
            Some(taken),
            &all,
            |connection, (organization, commands)| Box::pin(decide_together(connection, *organization, commands)),
            Haste::Usual,
        );
        let outcome = connections.in_time(decision).await;
        let all = commands.into_iter().zip(callers).map(|(command, caller)| Waiting { command, caller });
        match outcome {
            Ok(fates) => {
                let (mut again, mut alone) = (Vec::new(), Vec::new());
                for (one, fate) in all.zip(fates) {
                    match fate {
                        Fate::Decided(outcome) => one.caller.tell(Ok(outcome)),
                        Fate::Denied(denial) => one.caller.tell(Err(StoreError::Denied(denial))),
                        Fate::Again => again.push(one),
                        Fate::Alone => alone.push(one),
                    }
                }
                self.put_back(again);
                self.decide_each(alone).await;
            }
            // One of them is at fault, and the database has said that nothing stands: the others are not to suffer.
            Err(Failed { certain: true, own: true, .. }) => self.decide_each(all.collect()).await,
            Err(failed) => refuse(all, failed.error),
        }
    }

    async fn decide_each(&self, all: Vec<Waiting<A>>) {
        for one in all {
            if !one.caller.reply.is_closed() {
                self.decide_alone(None, one).await;
            }
        }
    }
}

/// Tells all of an error. The first is told its cause, for the log.
fn refuse<A: Together>(all: impl IntoIterator<Item = Waiting<A>>, error: StoreError) {
    let mut all = all.into_iter();
    let first = all.next();
    all.for_each(|one| one.caller.tell(Err(alike(&error))));
    if let Some(first) = first {
        first.caller.tell(Err(error));
    }
}

/// The same error for one more caller.
fn alike(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(cause) if cause.is::<NoSpace>() => no_space(),
        StoreError::Unavailable(_) => unavailable("the transaction that the write shared with others did not succeed"),
        _ => fault("the transaction that the write shared with others failed"),
    }
}
