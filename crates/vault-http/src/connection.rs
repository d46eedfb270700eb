//! One connection, with the deadlines that the framework lacks: it times the first head of a connection only,
//! and no writing at all.

use crate::peers::Admission;
use crate::transport::Transport;
use crate::watch::Watch;
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How long a head may take.
pub(crate) const HEAD_DEADLINE: Duration = Duration::from_secs(5);
/// How long a connection may be idle.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// How long a peer may take to read an answer, once it no longer fits into the socket's buffer.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// How far a connection is, as those who answer its requests tell it.
#[derive(Default)]
pub(crate) struct Phase {
    busy: Cell<bool>,
    answered: Cell<u64>,
}

impl Phase {
    /// A request is being answered until what is returned is dropped.
    pub(crate) fn begin(self: Rc<Self>) -> Busy {
        self.busy.set(true);
        Busy(self)
    }
}

/// A request is being answered.
pub(crate) struct Busy(Rc<Phase>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.set(false);
        self.0.answered.set(self.0.answered.get() + 1);
    }
}

/// A connection whose peer must send each head and read each answer in time.
pub(crate) struct Connection {
    stream: Transport,
    phase: Rc<Phase>,
    /// How many answers had been given when `reading` was last set anew.
    seen: u64,
    /// Whether bytes have come since, so that a head has begun.
    head_begun: bool,
    reading: Watch,
    writing: Watch,
    unwritten: bool,
    _admission: Admission,
}

impl Connection {
    pub(crate) fn new(stream: Transport, admission: Admission) -> Self {
        Self {
            stream,
            phase: Rc::default(),
            seen: 0,
            head_begun: false,
            reading: Watch::default(),
            writing: Watch::default(),
            unwritten: false,
            _admission: admission,
        }
    }

    /// Where to tell that a request is being answered.
    pub(crate) fn phase(&self) -> Rc<Phase> {
        Rc::clone(&self.phase)
    }

    /// Whether the peer is between two requests. The framework times the head of the first.
    fn is_between(&self) -> bool {
        !self.phase.busy.get() && self.phase.answered.get() > 0
    }

    fn note_bytes(&mut self) {
        if !self.head_begun {
            self.head_begun = true;
            self.reading.set(Instant::now() + HEAD_DEADLINE);
        }
    }

    /// Whether the peer has been waited for too long.
    fn is_overdue(&mut self, context: &mut Context<'_>) -> bool {
        // Somewhat later than the framework gives up an idle connection: this one is for the beginning of a head
        // that came together with the request before, which the framework holds and does not time.
        self.reading.begin(|| Instant::now() + KEEP_ALIVE + HEAD_DEADLINE);
        if self.reading.poll(context).is_pending() {
            return false;
        }
        if self.head_begun && !self.unwritten {
            // Fits into the empty buffer of the socket, or nobody misses it.
            let _ = Pin::new(&mut self.stream).poll_write(context, TIMED_OUT);
            let _ = Pin::new(&mut self.stream).poll_flush(context);
        }
        true
    }

    /// `outcome` of writing, unless the peer has been waited for too long.
    fn in_time<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_pending() {
            // Kept through partial progress: a peer that reads byte by byte is as slow as one that does not read.
            self.unwritten = true;
            self.writing.begin(|| Instant::now() + WRITE_DEADLINE);
            if self.writing.poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        outcome
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let answered = this.phase.answered.get();
        if answered != this.seen || this.phase.busy.get() {
            this.seen = answered;
            this.head_begun = false;
            this.reading.lift();
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        if this.is_between() {
            if read.is_pending() && this.is_overdue(context) {
                return Poll::Ready(Ok(())); // nothing read: as if the peer had closed
            }
            if buffer.filled().len() > before {
                this.note_bytes();
            }
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.in_time(written, context)
    }

    /// The framework flushes when all it had to write was taken; by TLS, perhaps, which then still holds it.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_ready() {
            this.unwritten = false;
            this.writing.lift();
        }
        this.in_time(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.in_time(shut, context)
    }
}
