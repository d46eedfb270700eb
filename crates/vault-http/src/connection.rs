//! A connection, with features that the framework lacks. The framework limits the time of only a connection's first
//! head, and not of writes, and it reads ahead of the request in progress (see
//! [`request_framing`](crate::request_framing)).

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

/// Maximum number of bytes to discard per poll after the last request.
const DISCARDED_PER_POLL: usize = 64 * 1024;

const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The state of a connection. Request processing updates it, and [`Connection`] reads it.
#[derive(Default)]
pub(crate) struct Phase {
    turn: Cell<Turn>,
    /// Set if the request in progress is the last one.
    closing: Cell<bool>,
    /// The part of the stream that the framework may read now.
    request_framing: RefCell<RequestFraming>,
    body_deadline: Duration,
}

/// The state of a connection's request cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// Waiting for the peer's first request.
    #[default]
    First,
    /// Processing a request.
    Answering,
    /// Waiting for another request.
    Next,
    /// Closed: the last response was sent, and further requests are discarded.
    Closed,
}

impl Phase {
    /// Starts the processing of a request. It ends when the returned value is dropped.
    pub(crate) fn begin(self: Rc<Self>) -> Answering {
        self.turn.set(Turn::Answering);
        Answering(self)
    }

    /// Allows the framework to read the body of the current request: `length` bytes, or chunks. Returns the time limit.
    pub(crate) fn read_body(&self, length: Option<u64>) -> Duration {
        *self.request_framing.borrow_mut() = length.map_or(RequestFraming::CHUNKED, RequestFraming::Bytes);
        self.body_deadline
    }

    /// Makes the current request the last one. Data after it is discarded.
    pub(crate) fn close(&self) {
        self.closing.set(true);
    }

    /// Allows the framework to read the next head, if it has consumed the previous part.
    fn expect_head(&self) {
        let mut request_framing = self.request_framing.borrow_mut();
        if matches!(self.turn.get(), Turn::First | Turn::Next) && *request_framing == RequestFraming::Nothing {
            *request_framing = RequestFraming::HEAD;
        }
    }

    /// Returns whether the framework may currently not read.
    fn is_held(&self) -> bool {
        *self.request_framing.borrow() == RequestFraming::Nothing
    }
}

/// A request in progress.
pub(crate) struct Answering(Rc<Phase>);

impl Drop for Answering {
    fn drop(&mut self) {
        let phase = &self.0;
        phase.turn.set(if phase.closing.get() { Turn::Closed } else { Turn::Next });
        // The framework gets no more of a body that was not read completely.
        *phase.request_framing.borrow_mut() = RequestFraming::Nothing;
    }
}

/// A connection with time limits for each head and for reading each response.
pub(crate) struct Connection {
    stream: Transport,
    phase: Rc<Phase>,
    /// Bytes that were read but that the framework may not process yet.
    ahead: Vec<u8>,
    /// Set if the framework was asked to wait without registering its task with the socket.
    paused: bool,
    deadlines: Deadlines,
    reading: Deadline,
    writing: Deadline,
    unwritten: bool,
    /// Set after the write side was shut down.
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

    /// Returns the connection's state, for updates by request processing.
    pub(crate) fn phase(&self) -> Rc<Phase> {
        Rc::clone(&self.phase)
    }

    /// Reads at most the part that the framework may process.
    fn poll_portion(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut request_framing = self.phase.request_framing.borrow_mut();
        if !self.ahead.is_empty() {
            let most = self.ahead.len().min(buffer.remaining());
            let taken = request_framing.take(&self.ahead[..most]);
            buffer.put_slice(&self.ahead[..taken]);
            self.ahead.drain(..taken);
            if self.ahead.is_empty() {
                self.ahead = Vec::new(); // may have contained a body: freed memory is overwritten
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

    /// Shuts down the write side after the last response, then reads and discards what the peer still sends. Otherwise,
    /// a reset could discard the response before the peer has read it (RFC 9112, section 9.6). An empty read means that
    /// the peer has closed.
    fn poll_discard(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ahead = Vec::new();
        if !self.unwritten && !self.shut {
            self.shut = Pin::new(&mut self.stream).poll_shutdown(context)?.is_ready();
        }
        let mut scratch = [0; 4 * 1024];
        for _ in 0..DISCARDED_PER_POLL / scratch.len() {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                ended_or_pending => return ended_or_pending,
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Returns whether the time limit of a head has expired.
    fn is_overdue(&mut self, context: &mut Context<'_>) -> bool {
        if self.reading.poll(context).is_pending() {
            return false;
        }
        if !self.unwritten {
            // Either fits into the socket's empty buffer, or is not needed.
            let _ = Pin::new(&mut self.stream).poll_write(context, TIMED_OUT);
            let _ = Pin::new(&mut self.stream).poll_flush(context);
        }
        true
    }

    /// Returns `outcome` of a write, unless the time limit for reading the response has expired.
    fn in_time<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_pending() {
            // Partial progress does not extend the limit: a peer that reads byte by byte is as harmful as one that does
            // not read.
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
        // The framework limits the time of the first head, and the idle time until a head starts.
        if this.phase.turn.get() != Turn::Next || this.phase.is_held() {
            this.reading.clear();
        } else if buffer.filled().len() > before {
            let deadline = this.deadlines.head;
            this.reading.set_once(|| Instant::now() + deadline);
        } else if read.is_pending() && this.is_overdue(context) {
            return Poll::Ready(Ok(())); // an empty read: the framework handles it like a close by the peer
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

    /// The framework flushes after it has passed all output to the transport, which TLS may still buffer. It also
    /// flushes after each call of the request handler, so this is where reading can resume.
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
