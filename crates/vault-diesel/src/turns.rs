//! Fair scheduling of a small connection pool: waiting organizations are served round-robin, however many requests each
//! has queued.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use vault_core::id::OrganizationId;

/// The requests that share a queue: those of one organization, or all that belong to none.
type Group = Option<OrganizationId>;

/// A request that waits for a slot.
pub(crate) trait Waiting {
    /// Returns whether the caller was dropped.
    fn is_cancelled(&self) -> bool;
}

impl<T> Waiting for oneshot::Sender<T> {
    fn is_cancelled(&self) -> bool {
        self.is_closed()
    }
}

/// A fixed number of slots, and the requests that wait for one. Waiting organizations are served round-robin. Requests of one
/// organization are served in the order of their arrival.
#[derive(Debug)]
pub(crate) struct FairQueue<T>(Mutex<State<T>>);

/// The queue is closed and accepts no more requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

#[derive(Debug)]
struct State<T> {
    free: usize,
    closed: bool,
    waiting: HashMap<Group, VecDeque<T>>,
    /// The groups that wait, the next one first.
    circle: VecDeque<Group>,
}

impl<T: Waiting> FairQueue<T> {
    /// Creates a queue with free slots.
    pub(crate) fn new(slots: usize) -> Self {
        let (waiting, circle) = (HashMap::new(), VecDeque::new());
        Self(Mutex::new(State { free: slots, closed: false, waiting, circle }))
    }

    /// Returns the number of free slots.
    pub(crate) fn available(&self) -> usize {
        self.lock().free
    }

    /// Rejects all waiting and all later requests.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.circle.clear();
        let refused = std::mem::take(&mut state.waiting);
        drop(state);
        drop(refused);
    }

    /// Occupies a slot if one is free. While one is free, no request waits.
    ///
    /// # Errors
    /// The queue is closed.
    pub(crate) fn try_enter(&self) -> Result<bool, Closed> {
        let mut state = self.lock();
        if state.closed {
            return Err(Closed);
        }
        let is_free = state.free > 0;
        state.free -= usize::from(is_free);
        Ok(is_free)
    }

    /// Occupies a slot and returns the request, or queues it if no slot is free.
    ///
    /// # Errors
    /// The queue is closed.
    pub(crate) fn enter(&self, group: Group, request: T) -> Result<Option<T>, Closed> {
        let mut state = self.lock();
        if state.closed {
            return Err(Closed);
        }
        if state.free > 0 {
            state.free -= 1;
            return Ok(Some(request));
        }
        let queue = state.waiting.entry(group).or_default();
        let is_new = queue.is_empty();
        // Remove requests that were cancelled: a flood of them would otherwise fill the memory until their group is
        // served.
        while queue.front().is_some_and(T::is_cancelled) {
            queue.pop_front();
        }
        queue.push_back(request);
        if is_new {
            state.circle.push_back(group);
        }
        Ok(None)
    }

    /// Passes an occupied slot to the next request and returns it, or frees the slot.
    pub(crate) fn leave(&self) -> Option<T> {
        let mut state = self.lock();
        let next = state.next();
        state.free += usize::from(next.is_none());
        next
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Each change is complete before the lock is released, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Waiting> State<T> {
    /// Removes the next request that was not cancelled. Its group is then last in the circle.
    fn next(&mut self) -> Option<T> {
        while let Some(group) = self.circle.pop_front() {
            let queue = self.waiting.entry(group).or_default();
            let next = std::iter::from_fn(|| queue.pop_front()).find(|request| !request.is_cancelled());
            if queue.is_empty() {
                self.waiting.remove(&group);
            } else {
                self.circle.push_back(group);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

/// Semaphore with a fixed number of permits, for which organizations wait in a [`FairQueue`].
#[derive(Clone, Debug)]
pub(crate) struct FairSemaphore(Arc<FairQueue<oneshot::Sender<Permit>>>);

/// Permit to use a connection. Dropping it releases the permit.
#[derive(Debug)]
pub(crate) struct Permit(Option<FairSemaphore>);

impl FairSemaphore {
    /// Creates a semaphore.
    pub(crate) fn new(permits: usize) -> Self {
        Self(Arc::new(FairQueue::new(permits)))
    }

    /// Returns the number of free permits.
    pub(crate) fn available(&self) -> usize {
        self.0.available()
    }

    /// Rejects all waiting and all later requests.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Returns a permit if one is free. While one is free, no request waits.
    ///
    /// # Errors
    /// The semaphore is closed.
    pub(crate) fn try_take(&self) -> Result<Option<Permit>, Closed> {
        Ok(self.0.try_enter()?.then(|| self.turn()))
    }

    /// Waits for a permit on behalf of `group`.
    ///
    /// # Errors
    /// The semaphore is closed.
    pub(crate) async fn take(&self, group: Group) -> Result<Permit, Closed> {
        if let Some(turn) = self.try_take()? {
            return Ok(turn);
        }
        let (sender, receiver) = oneshot::channel();
        if self.0.enter(group, sender)?.is_some() {
            return Ok(self.turn());
        }
        receiver.await.map_err(|_| Closed)
    }

    /// Passes a permit to the next request, or releases it if none waits.
    fn pass_on(self) {
        while let Some(sender) = self.0.leave() {
            match sender.send(self.turn()) {
                Ok(()) => return,
                // The request was cancelled. Forget the permit that it returned, because this loop passes it to the
                // next request.
                Err(mut turn) => drop(turn.0.take()),
            }
        }
    }

    fn turn(&self) -> Permit {
        Permit(Some(self.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use proptest::prelude::*;
    use std::future::Future;
    use std::pin::Pin;

    type Waiting = Pin<Box<dyn Future<Output = Result<Permit, Closed>>>>;

    fn organization(number: u8) -> Group {
        (number > 0).then(|| OrganizationId::from_bytes([number; 16]))
    }

    /// Queues requests of these groups in this order.
    fn ask(turns: &FairSemaphore, groups: &[u8]) -> Vec<(u8, Waiting)> {
        let mut callers = Vec::new();
        for &group in groups {
            let turns = turns.clone();
            let mut caller: Waiting = Box::pin(async move { turns.take(organization(group)).await });
            assert!(caller.as_mut().now_or_never().is_none(), "nothing is free");
            callers.push((group, caller));
        }
        callers
    }

    /// Returns the groups in the order in which they are served.
    fn served(first: Permit, callers: &mut Vec<(u8, Waiting)>) -> Vec<u8> {
        let (mut held, mut order) = (Some(first), Vec::new());
        while let Some(turn) = held.take() {
            drop(turn);
            let found = callers
                .iter_mut()
                .enumerate()
                .find_map(|(index, (group, caller))| caller.as_mut().now_or_never().map(|turn| (index, *group, turn)));
            if let Some((index, group, turn)) = found {
                drop(callers.remove(index));
                order.push(group);
                held = turn.ok();
            }
        }
        order
    }

    fn only(turns: &FairSemaphore) -> Permit {
        turns.try_take().ok().flatten().unwrap_or_else(|| panic!("one is free"))
    }

    #[test]
    fn organizations_are_served_round_robin() {
        let turns = FairSemaphore::new(1);
        let first = only(&turns);
        let mut callers = ask(&turns, &[1, 1, 1, 1, 1, 2, 2, 3, 0, 0]);
        assert_eq!(served(first, &mut callers), [1, 2, 3, 0, 1, 2, 0, 1, 1, 1]);
        assert_eq!(turns.available(), 1);
    }

    #[test]
    fn cancelled_waiters_consume_no_permit() {
        let turns = FairSemaphore::new(1);
        let first = only(&turns);
        let mut callers = ask(&turns, &[1, 2, 1, 2]);
        drop(callers.remove(0));
        assert_eq!(served(first, &mut callers), [1, 2, 2]);
        assert_eq!(turns.available(), 1);

        // The first request is dropped after it was served.
        let first = only(&turns);
        let mut callers = ask(&turns, &[1, 2]);
        drop(first);
        drop(callers.remove(0));
        assert!(callers.remove(0).1.now_or_never().is_some_and(|turn| turn.is_ok()));
        assert_eq!(turns.available(), 1);
        assert!(turns.0.lock().waiting.is_empty() && turns.0.lock().circle.is_empty());
    }

    #[test]
    fn cancelled_flood_leaves_no_waiters() {
        let turns = FairSemaphore::new(1);
        let first = only(&turns);
        for _ in 0..1_000 {
            drop(ask(&turns, &[1]));
        }
        assert!(turns.0.lock().waiting.values().map(VecDeque::len).sum::<usize>() <= 1);
        assert_eq!(turns.0.lock().circle.len(), 1);
        drop(first);
        assert_eq!(turns.available(), 1);
    }

    #[test]
    fn closing_refuses_all() {
        let turns = FairSemaphore::new(1);
        let first = only(&turns);
        let mut callers = ask(&turns, &[1]);
        turns.close();
        assert!(callers.remove(0).1.now_or_never().is_some_and(|turn| turn.is_err()));
        drop(first);
        assert_eq!(turns.try_take().err(), Some(Closed));
    }

    proptest! {
        /// While two groups wait, neither is served twice in a row. All requests are served.
        #[test]
        fn waiting_groups_are_served_alternately(groups in prop::collection::vec(0_u8..5, 0..60)) {
            let turns = FairSemaphore::new(1);
            let first = only(&turns);
            let mut callers = ask(&turns, &groups);
            let order = served(first, &mut callers);
            prop_assert_eq!(order.len(), groups.len());
            for (place, group) in order.iter().enumerate() {
                for other in (0..5).filter(|other| other != group && order[place..].contains(other)) {
                    let next = order[place + 1..].iter().position(|served| served == group);
                    let turn = order[place + 1..].iter().position(|served| *served == other);
                    prop_assert!(next.is_none() || turn < next, "{other} waits while {group} is served twice");
                }
            }
            prop_assert_eq!(turns.available(), 1);
        }
    }
}
