//! Raw bytes on a connection, for requests that no ordinary client sends.

use crate::answer::Answer;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum time to wait for a response.
const LIMIT: Duration = Duration::from_secs(60);

/// A connection over a socket, or over TLS.
pub struct Wire<S = TcpStream> {
    reader: BufReader<S>,
}

impl Wire {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    /// Sends one request on a new connection. Returns `None` if it closes without a response.
    pub fn once(address: SocketAddr, request: impl AsRef<[u8]>) -> Option<Answer> {
        let mut wire = Self::connect(address);
        wire.send(request);
        wire.answer()
    }

    /// Returns the socket.
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Closes the write side of the connection.
    pub fn finish(&self) {
        let _ = self.stream().shutdown(Shutdown::Write);
    }
}

impl<S: Read + Write> Wire<S> {
    /// Creates a connection over `stream`.
    pub fn over(stream: S) -> Self {
        Self { reader: BufReader::new(stream) }
    }

    /// Sends bytes. Ignores that the server may have closed the connection, because its response shows the reason.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.try_send(bytes);
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The connection was closed.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())
    }

    /// Sends a request and returns the response.
    #[track_caller]
    pub fn exchange(&mut self, request: impl AsRef<[u8]>) -> Answer {
        self.send(request);
        self.answer().expect("an answer")
    }

    /// Reads the next response. Returns `None` if the connection closes first.
    pub fn answer(&mut self) -> Option<Answer> {
        let mut answer = self.head()?;
        if matches!(answer.status, 100..=199) {
            return self.answer();
        }
        let chunked = answer.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let length = answer.header("content-length").map(|length| length.parse::<usize>().expect("a length"));
        match length {
            _ if chunked => self.chunks(&mut answer.body)?,
            Some(length) => {
                answer.body.resize(length, 0);
                self.reader.read_exact(&mut answer.body).ok()?;
            }
            None if matches!(answer.status, 204 | 304) => {}
            None => panic!("an answer that does not say where it ends: {answer:?}"),
        }
        Some(answer)
    }

    /// Reads the head of the next response, without its body.
    pub fn head(&mut self) -> Option<Answer> {
        let status = self.line()?;
        let mut parts = status.split(' ');
        assert!(matches!(parts.next(), Some("HTTP/1.1" | "HTTP/1.0")), "{status}");
        let status = parts.next().and_then(|status| status.parse().ok()).expect("a status");
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Some(Answer { status, headers, body: Vec::new() });
            }
            let (name, value) = line.split_once(':').expect("a header field");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Returns whether the server closes the connection without sending more.
    pub fn is_closed(&mut self) -> bool {
        match self.reader.fill_buf() {
            Ok(more) => more.is_empty(),
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    /// Returns whether the server closes the connection. Discards what it still sends.
    pub fn ends(&mut self) -> bool {
        while !self.is_closed() {
            match self.reader.buffer().len() {
                0 => return false,
                length => self.reader.consume(length),
            }
        }
        true
    }

    /// Returns everything until the server closes the connection.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        let _ = self.reader.read_to_end(&mut rest); // it may be reset
        String::from_utf8_lossy(&rest).into_owned()
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let length = usize::from_str_radix(&self.line()?, 16).expect("the length of a chunk");
            let start = body.len();
            body.resize(start + length, 0);
            self.reader.read_exact(&mut body[start..]).ok()?;
            self.line()?;
            if length == 0 {
                return Some(());
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.reader.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => {
                let text = line.strip_suffix(b"\r\n").unwrap_or_else(|| panic!("half a line: {line:?}"));
                Some(String::from_utf8(text.to_vec()).expect("heads are ASCII"))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no answer within {LIMIT:?}")
            }
            Err(_) => None,
        }
    }
}

/// Formats a request: method and target, `Host`, header lines, an empty line and the body. States the length of a
/// non-empty body.
pub fn request(line: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut text = format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}
