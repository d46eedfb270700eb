//! One connection, with what the framework lacks: it times the first head of a connection only and no writing at all, and
//! it reads requests ahead of the one it is answering (see [`request_framing`](crate::request_framing)).

use crate::deadline::Deadline;
use crate::peers::Admission;
use crate::request_framing::RequestFraming;
use crate::settings::Deadlines;
use crate::transport::Transport;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How much is read and dropped at once of what was sent behind the last request.
const DISCARDED_AT_ONCE: usize = 64 * 1024;

const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// How far a connection is. Told by those who answer its requests, read by [`Connection`].
#[derive(Default)]
pub(crate) struct Phase {
    turn: Cell<Turn>,
    /// Whether the request that is being answered is the last one.
    closing: Cell<bool>,
    /// What the framework may be given now.
    request_framing: RefCell<RequestFraming>,
    body_deadline: Duration,
}

/// Who acts next on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// The peer, with its first request.
    #[default]
    First,
    /// The server, with an answer.
    Answering,
    /// The peer, with another request.
    Next,
    /// Nobody: the last answer was given, and nothing more is carried out.
    Closed,
}

impl Phase {
    /// A request is being answered until what is returned is dropped.
    pub(crate) fn begin(self: Rc<Self>) -> Answering {
        self.turn.set(Turn::Answering);
        Answering(self)
    }

    /// The body of the request that is being answered is wanted now: so many bytes, or chunks. How long it may take.
    pub(crate) fn read_body(&self, length: Option<u64>) -> Duration {
        *self.request_framing.borrow_mut() = length.map_or(RequestFraming::CHUNKED, RequestFraming::Bytes);
        self.body_deadline
    }

    /// Makes the request that is being answered the last one: nothing that was sent behind it is carried out.
    pub(crate) fn close(&self) {
        self.closing.set(true);
    }

    /// Lets the framework have the next head, if it is the peer's turn and it has all of what it had before.
    fn expect_head(&self) {
        let mut request_framing = self.request_framing.borrow_mut();
        if matches!(self.turn.get(), Turn::First | Turn::Next) && *request_framing == RequestFraming::Nothing {
            *request_framing = RequestFraming::HEAD;
        }
    }

    /// Whether there is nothing that the framework may be given now.
    fn is_held(&self) -> bool {
        *self.request_framing.borrow() == RequestFraming::Nothing
    }
}

/// A request is being answered.
pub(crate) struct Answering(Rc<Phase>);

impl Drop for Answering {
    fn drop(&mut self) {
        let phase = &self.0;
        phase.turn.set(if phase.closing.get() { Turn::Closed } else { Turn::Next });
        // Of a body that was not read whole nothing more is given to the framework.
        *phase.request_framing.borrow_mut() = RequestFraming::Nothing;
    }
}

/// A connection whose peer must send each head and read each answer in time.
pub(crate) struct Connection {
    stream: Transport,
    phase: Rc<Phase>,
    /// What was read, and is not the framework's to have yet.
    ahead: Vec<u8>,
    /// Whether the framework was told to wait, though the socket was not asked to wake it.
    paused: bool,
    deadlines: Deadlines,
    reading: Deadline,
    writing: Deadline,
    unwritten: bool,
    /// Whether the peer was told that nothing more will be written.
    shut: bool,
    _admission: Admission,
}

impl Connection {
    pub(crate) fn new(stream: Transport, admission: Admission, deadlines: Deadlines) -> Self {
        let phase = Phase { body_deadline: deadlines.body, ..Phase::default() };
        phase.expect_head();
        Self {
            stream,
            phase: Rc::new(phase),
            ahead: Vec::new(),
            paused: false,
            deadlines,
            reading: Deadline::default(),
            writing: Deadline::default(),
            unwritten: false,
            shut: false,
            _admission: admission,
        }
    }

    /// Where to tell how far the connection is.
    pub(crate) fn phase(&self) -> Rc<Phase> {
        Rc::clone(&self.phase)
    }

    /// Reads what the framework may have, no more.
    fn poll_portion(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut request_framing = self.phase.request_framing.borrow_mut();
        if !self.ahead.is_empty() {
            let most = self.ahead.len().min(buffer.remaining());
            let taken = request_framing.take(&self.ahead[..most]);
            buffer.put_slice(&self.ahead[..taken]);
            self.ahead.drain(..taken);
            if self.ahead.is_empty() {
                self.ahead = Vec::new(); // a body may have been in it: freed memory is wiped
            }
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let taken = request_framing.take(&buffer.filled()[before..]);
        self.ahead.extend_from_slice(&buffer.filled()[before + taken..]);
        buffer.set_filled(before + taken);
        read
    }

    /// Says that no answer will follow the last one, then reads and drops what was sent behind its request, so that the peer
    /// is not cut off before it has read the answer (RFC 9112, 9.6). Nothing read means that the peer has closed.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ahead = Vec::new();
        if !self.unwritten && !self.shut {
            self.shut = Pin::new(&mut self.stream).poll_shutdown(context)?.is_ready();
        }
        let mut scratch = [0; 4 * 1024];
        for _ in 0..DISCARDED_AT_ONCE / scratch.len() {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                ended_or_pending => return ended_or_pending,
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether the peer has been waited for too long.
    fn is_overdue(&mut self, context: &mut Context<'_>) -> bool {
        if self.reading.poll(context).is_pending() {
            return false;
        }
        if !self.unwritten {
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
            let deadline = self.deadlines.answer;
            self.writing.set_once(|| Instant::now() + deadline);
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
        if this.phase.turn.get() == Turn::Closed {
            return this.poll_discard(context);
        }
        if this.phase.is_held() {
            this.paused = true;
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = this.poll_portion(context, buffer);
        // The framework times the first head, and idleness until a head begins.
        if this.phase.turn.get() != Turn::Next || this.phase.is_held() {
            this.reading.clear();
        } else if buffer.filled().len() > before {
            let deadline = this.deadlines.head;
            this.reading.set_once(|| Instant::now() + deadline);
        } else if read.is_pending() && this.is_overdue(context) {
            return Poll::Ready(Ok(())); // nothing read: as if the peer had closed
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

    /// The framework flushes when all it had to write was taken; by TLS, perhaps, which then still holds it. It flushes also
    /// at the end of each turn, after it has called whoever answers: the place to let it read again.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.paused {
            this.phase.expect_head();
            if !this.phase.is_held() || this.phase.turn.get() == Turn::Closed {
                this.paused = false;
                context.waker().wake_by_ref();
            }
        }
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_ready() {
            this.unwritten = false;
            this.writing.clear();
        }
        this.in_time(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.in_time(shut, context)
    }
}
