//! A connection and its incoming response.

use rustix::net;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Instant;

/// Maximum number of bytes of a body to keep, enough for an ID or a problem document. The others are only counted.
const KEPT_BODY: usize = 4 * 1024;
/// Maximum size of a response head.
const LONGEST_HEAD: usize = 16 * 1024;

/// A response.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: &'a [u8],
    /// The body, or the beginning of a long one.
    pub(crate) body: &'a [u8],
    /// Length of the whole body, in bytes.
    pub(crate) body_length: usize,
}

impl<'a> Answer<'a> {
    /// Returns the value of the header `name`, given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name)
    }
}

/// The state of a response after new bytes.
pub(crate) enum Progress<'a> {
    /// More bytes are needed.
    Partial,
    /// The response is complete.
    Complete(Answer<'a>),
}

/// An incoming response.
pub(crate) struct Incoming {
    /// Bytes that arrived earlier: the head and the kept part of the body.
    held: Vec<u8>,
    /// Number of bytes of the body that arrived and were not kept.
    skipped: usize,
    /// Maximum number of bytes of a body to keep.
    keep: usize,
}

struct Head {
    status: u16,
    length: usize,
    body_length: usize,
}

impl Incoming {
    /// Creates an empty response that keeps at most `keep` bytes of a body that arrives in pieces.
    pub(crate) const fn keeping(keep: usize) -> Self {
        Self { held: Vec::new(), skipped: 0, keep }
    }

    /// Adds `bytes`. After a complete response, call [`clear`](Self::clear).
    pub(crate) fn feed<'a>(&'a mut self, bytes: &'a [u8]) -> io::Result<Progress<'a>> {
        if self.held.is_empty() {
            // The common case: the response arrives in one piece.
            match Head::parse(bytes)? {
                Some(head) if bytes.len() == head.length + head.body_length => {
                    return Ok(Progress::Complete(head.answer(bytes)));
                }
                Some(head) => self.hold(&head, bytes)?,
                None => self.held.extend_from_slice(bytes),
            }
            return Ok(Progress::Partial);
        }
        let head = match Head::parse(&self.held)? {
            Some(head) => {
                self.hold(&head, bytes)?;
                head
            }
            None => {
                let mut held = std::mem::take(&mut self.held);
                held.extend_from_slice(bytes);
                let Some(head) = Head::parse(&held)? else {
                    self.held = held;
                    return Ok(Progress::Partial);
                };
                self.hold(&head, &held)?;
                head
            }
        };
        let arrived = self.held.len() - head.length + self.skipped;
        if arrived < head.body_length {
            return Ok(Progress::Partial);
        }
        Ok(Progress::Complete(head.answer(&self.held)))
    }

    /// Stores `bytes`, and only counts those beyond the kept part of the body.
    fn hold(&mut self, head: &Head, bytes: &[u8]) -> io::Result<()> {
        let room = (head.length + head.body_length.min(self.keep)).saturating_sub(self.held.len());
        let (kept, rest) = bytes.split_at(room.min(bytes.len()));
        self.held.extend_from_slice(kept);
        self.skipped += rest.len();
        if self.held.len() + self.skipped > head.length + head.body_length {
            return Err(io::Error::new(ErrorKind::InvalidData, "more arrived than the answer's Content-Length"));
        }
        Ok(())
    }

    /// Prepares for the next response.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.skipped = 0;
    }
}

impl Head {
    /// Parses the head at the beginning of `bytes`, if it is complete.
    fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let broken = |text| io::Error::new(ErrorKind::InvalidData, text);
        let Some(end) = end_of_head(bytes) else {
            let too_long = bytes.len() > LONGEST_HEAD;
            return if too_long { Err(broken("an endless head")) } else { Ok(None) };
        };
        let head = &bytes[..end];
        let digits = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = digits.and_then(number).ok_or_else(|| broken("not an HTTP/1.1 answer"))?;
        let body_length = match header(head, "content-length") {
            Some(text) => number(text.as_bytes()).ok_or_else(|| broken("not a Content-Length"))?,
            None if header(head, "transfer-encoding").is_some() => {
                return Err(broken("an answer in chunks, which this client does not read"));
            }
            None => 0,
        };
        let status = u16::try_from(status).map_err(|_| broken("not a status"))?;
        Ok(Some(Self { status, length: end, body_length }))
    }

    fn answer<'a>(&self, bytes: &'a [u8]) -> Answer<'a> {
        let (head, body) = bytes.split_at(self.length);
        Answer { status: self.status, head, body, body_length: self.body_length }
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = bytes.get(from..)?.iter().position(|byte| *byte == b'\n') {
        let next = from + found + 1;
        if bytes.get(next..next + 2) == Some(b"\r\n") {
            return Some(next + 2);
        }
        from = next;
    }
    None
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (key, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":").filter(|_| key.eq_ignore_ascii_case(name.as_bytes()))?;
        std::str::from_utf8(value).ok().map(str::trim)
    })
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// One connection of a load.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    source: Ipv4Addr,
    pub(super) incoming: Incoming,
    /// The request that is being sent or waits for its response.
    pub(super) request: Vec<u8>,
    /// Number of sent bytes of the request.
    sent: usize,
    /// The start of the request, or `None` without a request.
    pub(super) asked: Option<Instant>,
}

impl Connection {
    /// Opens the connection of `slot`. Up to 250 connections come from different networks, because one network can use
    /// only a quarter of the slots in the hash queue.
    pub(super) fn open(address: SocketAddr, slot: usize) -> io::Result<Self> {
        let source = Ipv4Addr::new(127, 0, (slot % 250 + 1) as u8, 1);
        let incoming = Incoming::keeping(KEPT_BODY);
        Ok(Self { stream: connect(address, source)?, source, incoming, request: Vec::new(), sent: 0, asked: None })
    }

    pub(super) fn reopen(&mut self, address: SocketAddr) -> io::Result<()> {
        self.stream = connect(address, self.source)?;
        self.incoming.clear();
        self.asked = None;
        Ok(())
    }

    /// Starts to send the request. Returns `false` if the rest must wait until the socket is writable.
    pub(super) fn begin(&mut self, now: Instant) -> io::Result<bool> {
        self.asked = Some(now);
        self.sent = 0;
        self.send()
    }

    /// Sends the rest of the request. Returns `false` if the socket is not writable before the end.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads available bytes once. Returns `None` if there are none.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.stream.read(buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(length)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn connect(address: SocketAddr, source: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None)?;
    net::bind(&socket, &SocketAddrV4::new(source, 0))?;
    net::connect(&socket, &address)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\nLocation: /x\r\ncontent-length: 12\r\n\r\n{\"id\":\"abc\"}";

    #[test]
    fn response_is_parsed_however_it_is_split() {
        for cut in 1..ANSWER.len() {
            let mut incoming = Incoming::keeping(4);
            let (first, second) = ANSWER.split_at(cut);
            assert!(matches!(incoming.feed(first), Ok(Progress::Partial)), "cut at {cut}");
            let Ok(Progress::Complete(answer)) = incoming.feed(second) else { panic!("cut at {cut}") };
            assert_eq!((answer.status, answer.body_length), (201, 12));
            assert_eq!(answer.body, b"{\"id", "cut at {cut}");
            assert_eq!(answer.header("location"), Some("/x"));
        }
        let mut incoming = Incoming::keeping(4);
        let Ok(Progress::Complete(answer)) = incoming.feed(ANSWER) else { panic!("in one piece") };
        assert_eq!(answer.body, b"{\"id\":\"abc\"}");
    }

    #[test]
    fn answer_without_a_length_has_no_body() {
        let mut incoming = Incoming::keeping(4);
        let Ok(Progress::Complete(answer)) = incoming.feed(b"HTTP/1.1 204 No Content\r\n\r\n") else { panic!() };
        assert_eq!((answer.status, answer.body_length), (204, 0));
    }

    #[test]
    fn invalid_response_is_refused() {
        for text in [
            &b"SSH-2.0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            &[ANSWER, b"x"].concat(),
        ] {
            assert!(Incoming::keeping(4).feed(text).is_err());
        }
    }
}
