//! Raw bytes on a socket, for requests that no ordinary client sends.

use crate::answer::Answer;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum time to wait for a response.
const LIMIT: Duration = Duration::from_secs(60);

/// A connection.
pub struct Wire {
    reader: BufReader<TcpStream>,
}

impl Wire {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    /// Sends one request and reads the response. Returns `None` if the connection closes without one.
    pub fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Option<Answer> {
        let mut wire = Self::connect(address);
        wire.send(request);
        wire.answer()
    }

    /// Returns the socket.
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
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

    /// Closes the write side of the connection.
    pub fn finish(&self) {
        let _ = self.stream().shutdown(Shutdown::Write);
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
        assert_eq!(parts.next(), Some("HTTP/1.1"), "{status}");
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

    /// Returns whether the server closes the connection. Discards what it still sends.
    pub fn ends(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.reader.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
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

/// Formats a request: request line, `Host`, header lines, an empty line and the body. States the length of a non-empty
/// body.
pub fn request(method: &str, target: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n").into_bytes();
    for header in headers {
        text.extend_from_slice(header.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    if !body.is_empty() {
        text.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(body);
    text
}
