//! One connection and the answer that is arriving on it.

use rustix::net;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Instant;

/// Bytes of a body that are kept while the rest is counted: enough for an id or a problem document.
const KEPT_BODY: usize = 4 * 1024;
/// The longest head that is taken.
const LONGEST_HEAD: usize = 16 * 1024;

/// An answer.
pub(crate) struct Answer<'a> {
    /// Its status.
    pub(crate) status: u16,
    /// Status line and headers.
    pub(crate) head: &'a [u8],
    /// Its body, or the beginning of a long one.
    pub(crate) body: &'a [u8],
    /// The length of the whole body, in bytes.
    pub(crate) body_length: usize,
}

impl<'a> Answer<'a> {
    /// The value of the header `name`, which is given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name)
    }
}

/// What came of some bytes.
pub(crate) enum Progress<'a> {
    /// More are needed.
    Partial,
    /// The answer is complete.
    Complete(Answer<'a>),
}

/// The answer that is arriving.
pub(crate) struct Incoming {
    /// What arrived before the bytes at hand: head and the kept part of the body.
    held: Vec<u8>,
    /// Bytes of the body that arrived and were not kept.
    skipped: usize,
    /// How much of a body is kept.
    keep: usize,
}

struct Head {
    status: u16,
    length: usize,
    body_length: usize,
}

impl Incoming {
    /// Nothing yet; at most `keep` bytes of a body that comes in pieces will be kept.
    pub(crate) const fn keeping(keep: usize) -> Self {
        Self { held: Vec::new(), skipped: 0, keep }
    }

    /// Takes `bytes`. After a complete answer it must be [cleared](Self::clear).
    pub(crate) fn feed<'a>(&'a mut self, bytes: &'a [u8]) -> io::Result<Progress<'a>> {
        if self.held.is_empty() {
            // The common case: all of it in one piece.
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

    /// Holds `bytes`, or counts them where the body grows too long to be kept.
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

    /// Makes room for the next answer.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.skipped = 0;
    }
}

impl Head {
    /// The head at the beginning of `bytes`, once it is all there.
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
    /// The request being sent or answered.
    pub(super) request: Vec<u8>,
    /// How much of it has been sent.
    sent: usize,
    /// When it was begun; `None`: nothing is asked.
    pub(super) asked: Option<Instant>,
}

impl Connection {
    /// The connection of `slot`: each comes from a network of its own, up to 250, because one network may hold only a
    /// quarter of the seats that wait for a hash.
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

    /// Begins to send the request. `false`: the rest must wait for room.
    pub(super) fn begin(&mut self, now: Instant) -> io::Result<bool> {
        self.asked = Some(now);
        self.sent = 0;
        self.send()
    }

    /// Sends what is left of the request. `false`: the rest must wait for room.
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

    /// Reads what is there, once. `None`: nothing.
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
    fn an_answer_is_read_however_it_is_cut() {
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
    fn an_answer_without_a_length_has_no_body() {
        let mut incoming = Incoming::keeping(4);
        let Ok(Progress::Complete(answer)) = incoming.feed(b"HTTP/1.1 204 No Content\r\n\r\n") else { panic!() };
        assert_eq!((answer.status, answer.body_length), (204, 0));
    }

    #[test]
    fn what_is_not_an_answer_is_refused() {
        for text in [
            &b"SSH-2.0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            &[ANSWER, b"x"].concat(),
        ] {
            assert!(Incoming::keeping(4).feed(text).is_err());
        }
    }
}
