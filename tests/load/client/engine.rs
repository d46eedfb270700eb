//! The event loop for all connections of a load.

use super::Sample;
use super::connection::{Answer, Connection, Progress};
use crate::Result;
use crate::process::Reading;
use rustix::event::{Timespec, epoll};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Time limit for a response.
const PATIENCE: Duration = Duration::from_secs(60);
/// A load with this number of failures and no success is aborted.
const HOPELESS: u64 = 1_000;

/// The next action of a connection.
pub(crate) enum Next {
    /// Send the request in the buffer.
    Ask,
    /// Wait until this time.
    Wait(Instant),
    /// Send no more requests.
    End,
}

/// The classification of a response.
pub(crate) enum Verdict {
    /// The request succeeded.
    Good,
    /// The request was rejected for now. The connection waits for this time.
    Throttled(Duration),
    /// The response was unexpected.
    Bad,
}

/// Creates requests and classifies their responses.
pub(crate) trait Workload {
    /// Writes the next request of connection `slot` into `request`, which is empty.
    fn next(&mut self, slot: usize, request: &mut Vec<u8>, now: Instant) -> Next;

    /// Classifies the response to the connection's latest request.
    fn answered(&mut self, slot: usize, answer: &Answer<'_>) -> Verdict;

    /// Reports that the connection's latest request gets no response.
    fn lost(&mut self, _slot: usize) {}
}

/// The length of a load.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    /// A fixed time, after a warm-up that is not counted.
    For { warm_up: Duration, counted: Duration },
    /// Until the workload has no more requests.
    UntilEnd,
}

/// The parameters of a load.
#[derive(Clone)]
pub(crate) struct Plan {
    /// The address of the server.
    pub(crate) address: SocketAddr,
    /// Number of parallel connections.
    pub(crate) connections: usize,
    pub(crate) length: Length,
    /// The processes of the server. Their processor time is counted, with that of their children.
    pub(crate) watched: Vec<u32>,
}

/// Runs `workload` until all requests have a response.
pub(crate) fn run(plan: &Plan, workload: &mut impl Workload) -> Result<Sample> {
    let mut engine = Engine {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        address: plan.address,
        connections: Vec::with_capacity(plan.connections),
        waiting: BinaryHeap::new(),
        in_flight: 0,
        stopping: false,
        sample: Sample::empty()?,
    };
    for slot in 0..plan.connections {
        let connection = Connection::open(plan.address, slot)?;
        epoll::add(&engine.epoll, &connection.stream, epoll::EventData::new_u64(slot as u64), epoll::EventFlags::IN)?;
        engine.connections.push(connection);
    }
    engine.drive(plan, workload)?;
    Ok(engine.sample)
}

struct Engine {
    epoll: OwnedFd,
    address: SocketAddr,
    connections: Vec<Connection>,
    /// Waiting connections with the end of their wait.
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
    in_flight: usize,
    stopping: bool,
    sample: Sample,
}

impl Engine {
    fn drive(&mut self, plan: &Plan, workload: &mut impl Workload) -> Result<()> {
        let mut buffer = vec![0; 128 * 1024];
        let mut events = Vec::with_capacity(plan.connections);
        let started = Instant::now();
        let (count_from, mut until) = match plan.length {
            Length::For { warm_up, counted } => (Some(started + warm_up), Some(started + warm_up + counted)),
            Length::UntilEnd => (None, None),
        };
        let mut counting = (started, Reading::take(&plan.watched)?);
        let mut warm = count_from.is_none();
        for slot in 0..self.connections.len() {
            self.ask(slot, workload, started)?;
        }
        let mut heard = started;
        loop {
            let now = Instant::now();
            if !warm && count_from.is_some_and(|from| now >= from) {
                warm = true;
                self.sample = Sample::empty()?;
                counting = (Instant::now(), Reading::take(&plan.watched)?);
                until = until.map(|until| until + counting.0.elapsed());
            }
            if !self.stopping && (until.is_some_and(|until| now >= until) || self.is_quiet()) {
                self.stopping = true;
                self.sample.elapsed = counting.0.elapsed();
                self.sample.work = Reading::take(&plan.watched)?.since(&counting.1);
            }
            if self.stopping && self.in_flight == 0 {
                return Ok(());
            }
            self.resume(now, workload)?;
            self.wait(&mut events, now)?;
            if events.is_empty() && now.duration_since(heard) > PATIENCE && self.in_flight > 0 {
                return Err(format!("{} requests were not answered in {PATIENCE:?}", self.in_flight).into());
            }
            for event in events.drain(..) {
                let flags = event.flags;
                let slot = usize::try_from(event.data.u64())?;
                heard = now;
                if let Err(error) = self.attend(slot, flags, &mut buffer, workload)? {
                    self.fail(slot, &error, workload)?;
                }
            }
        }
    }

    /// Returns `true` if no request is in flight and no connection waits.
    fn is_quiet(&self) -> bool {
        self.in_flight == 0 && self.waiting.is_empty()
    }

    fn wait(&self, events: &mut Vec<epoll::Event>, now: Instant) -> Result<()> {
        let soon = Duration::from_millis(20);
        let wait = self.waiting.peek().map_or(soon, |Reverse((at, _))| at.saturating_duration_since(now).min(soon));
        let wait = Timespec::try_from(wait)?;
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Continues connections whose wait has ended.
    fn resume(&mut self, now: Instant, workload: &mut impl Workload) -> Result<()> {
        while let Some(Reverse((at, slot))) = self.waiting.peek().copied()
            && at <= now
        {
            self.waiting.pop();
            self.ask(slot, workload, now)?;
        }
        Ok(())
    }

    fn ask(&mut self, slot: usize, workload: &mut impl Workload, now: Instant) -> Result<()> {
        if self.stopping {
            return Ok(());
        }
        let connection = &mut self.connections[slot];
        // A connection that was closed while it waited has two entries.
        if connection.asked.is_some() {
            return Ok(());
        }
        connection.request.clear();
        match workload.next(slot, &mut connection.request, now) {
            Next::End => Ok(()),
            Next::Wait(until) => {
                self.waiting.push(Reverse((until, slot)));
                Ok(())
            }
            Next::Ask => {
                self.in_flight += 1;
                match connection.begin(now) {
                    Ok(true) => Ok(()),
                    Ok(false) => self.listen_for(slot, epoll::EventFlags::IN | epoll::EventFlags::OUT),
                    Err(error) => self.fail(slot, &error, workload),
                }
            }
        }
    }

    /// Handles the events of a connection. The inner error is an error of the connection.
    fn attend(
        &mut self,
        slot: usize,
        flags: epoll::EventFlags,
        buffer: &mut [u8],
        workload: &mut impl Workload,
    ) -> Result<io::Result<()>> {
        let connection = &mut self.connections[slot];
        if flags.contains(epoll::EventFlags::OUT) {
            match connection.send() {
                Ok(true) => self.listen_for(slot, epoll::EventFlags::IN)?,
                Ok(false) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        let connection = &mut self.connections[slot];
        let length = match connection.receive(buffer) {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        };
        let verdict = match connection.incoming.feed(&buffer[..length]) {
            Ok(Progress::Partial) => return Ok(Ok(())),
            Ok(Progress::Complete(answer)) => (workload.answered(slot, &answer), answer.status),
            Err(error) => return Ok(Err(error)),
        };
        connection.incoming.clear();
        let now = Instant::now();
        let Some(asked) = connection.asked.take() else {
            return Ok(Err(io::Error::other("an answer to nothing")));
        };
        self.in_flight -= 1;
        let mut wait = Duration::ZERO;
        if !self.stopping {
            match verdict {
                (Verdict::Good, _) => self.sample.good(now.duration_since(asked)),
                (Verdict::Bad, status) => self.sample.error(format!("status {status}")),
                (Verdict::Throttled(pause), _) => {
                    self.sample.turn_away(now.duration_since(asked));
                    wait = pause;
                }
            }
            self.check_hope()?;
        }
        if wait.is_zero() {
            self.ask(slot, workload, now)?;
        } else {
            self.waiting.push(Reverse((now + wait, slot)));
        }
        Ok(Ok(()))
    }

    /// Counts a broken connection and opens another one in its place.
    fn fail(&mut self, slot: usize, error: &io::Error, workload: &mut impl Workload) -> Result<()> {
        let connection = &mut self.connections[slot];
        if connection.asked.is_some() {
            self.in_flight -= 1;
            workload.lost(slot);
            if !self.stopping {
                self.sample.error(format!("connection: {error}"));
            }
        }
        self.check_hope()?;
        let connection = &mut self.connections[slot];
        connection.reopen(self.address)?;
        epoll::add(&self.epoll, &connection.stream, epoll::EventData::new_u64(slot as u64), epoll::EventFlags::IN)?;
        // After a delay, because the next connection may fail as fast.
        if !self.stopping {
            self.waiting.push(Reverse((Instant::now() + Duration::from_millis(10), slot)));
        }
        Ok(())
    }

    fn check_hope(&self) -> Result<()> {
        if self.sample.error_count() >= HOPELESS && self.sample.count() == 0 {
            return Err(format!("nothing but errors: {:?}", self.sample.errors).into());
        }
        Ok(())
    }

    fn listen_for(&self, slot: usize, flags: epoll::EventFlags) -> Result<()> {
        let stream = &self.connections[slot].stream;
        Ok(epoll::modify(&self.epoll, stream, epoll::EventData::new_u64(slot as u64), flags)?)
    }
}
