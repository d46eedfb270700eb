//! An HTTP/1.1 client that can send invalid requests, which a client library would refuse.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// Returns the header `name` (lower case), which may occur only once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| &**value);
        let value = values.next();
        assert_eq!(values.next(), None, "{name} stands twice");
        value
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// Returns the body with the request ID removed.
    pub(crate) fn text_without_id(&self) -> String {
        self.text().replace(self.header("x-request-id").expect("a request id"), "-")
    }

    /// Returns the headers that must be equal in indistinguishable responses.
    pub(crate) fn stable_headers(&self) -> Vec<(String, String)> {
        let stable = self.headers.iter().filter(|(name, _)| name != "date" && name != "x-request-id");
        // The framework does not define their order.
        let mut stable: Vec<_> = stable.cloned().collect();
        stable.sort();
        stable
    }
}

/// A byte stream.
pub(crate) trait Socket: Read + Write + Send {}

impl<S: Read + Write + Send> Socket for S {}

/// A connection.
pub(crate) struct Wire {
    stream: Box<dyn Socket>,
    pending: Vec<u8>,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        stream.set_write_timeout(Some(Duration::from_secs(20))).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        Self::over(stream)
    }

    pub(crate) fn over(stream: impl Socket + 'static) -> Self {
        Self { stream: Box::new(stream), pending: Vec::new() }
    }

    /// Returns a connection from which `read` was already read.
    pub(crate) fn with_read(mut self, read: &[u8]) -> Self {
        self.pending.extend_from_slice(read);
        self
    }

    /// Returns the response to `request`, unless the server closes the connection.
    pub(crate) fn try_exchange(&mut self, request: impl AsRef<[u8]>) -> Option<Response> {
        (self.try_send(request) && self.fill() > 0).then(|| self.receive())
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("sends");
    }

    /// Sends bytes that the peer may refuse. Returns `false` if it does.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    pub(crate) fn exchange(&mut self, bytes: impl AsRef<[u8]>) -> Response {
        self.send(bytes);
        self.receive()
    }

    pub(crate) fn receive(&mut self) -> Response {
        self.receive_for("GET")
    }

    /// Returns the response to a request with `method`.
    pub(crate) fn receive_for(&mut self, method: &str) -> Response {
        loop {
            let response = self.receive_one(method);
            if response.status != 100 {
                return response;
            }
        }
    }

    fn receive_one(&mut self, method: &str) -> Response {
        let head_end = loop {
            if let Some(end) = find(&self.pending, b"\r\n\r\n") {
                break end;
            }
            assert!(self.fill() > 0, "closed before an answer: {:?}", String::from_utf8_lossy(&self.pending));
        };
        let head = String::from_utf8(self.pending.drain(..head_end + 4).collect()).expect("an ASCII head");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
        let headers: Vec<_> = lines
            .map(|line| line.split_once(": ").expect("a header"))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
        let length = if method == "HEAD" { 0 } else { length };
        let is_chunked = headers.contains(&("transfer-encoding".to_owned(), "chunked".to_owned()));
        let body = if is_chunked && method != "HEAD" { self.chunks() } else { self.take(length) };
        Response { status, headers, body }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        while self.pending.len() < length {
            assert!(self.fill() > 0, "closed within a body");
        }
        self.pending.drain(..length).collect()
    }

    /// Reads the chunks of a body (RFC 9112, section 7.1).
    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                match find(&self.pending, b"\r\n") {
                    Some(end) => break end,
                    None => assert!(self.fill() > 0, "closed within a chunk"),
                }
            };
            let size = String::from_utf8(self.take(end)).expect("a size");
            let size = usize::from_str_radix(&size, 16).expect("a size");
            self.take(2);
            body.extend(self.take(size));
            self.take(2);
            if size == 0 {
                return body;
            }
        }
    }

    /// Returns everything until the peer closes.
    pub(crate) fn rest(&mut self) -> String {
        while self.fill() > 0 {}
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }

    /// Returns whether the peer closes without sending more bytes.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.pending.is_empty() && self.fill() == 0
    }

    /// Reads some bytes without buffering.
    pub(crate) fn read_some(&mut self, at_most: usize) -> usize {
        let mut buffer = vec![0; at_most];
        self.stream.read(&mut buffer).unwrap_or(0)
    }

    fn fill(&mut self) -> usize {
        let mut buffer = [0; 16 * 1024];
        let read = match self.stream.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("no answer: {error}"),
        };
        self.pending.extend_from_slice(&buffer[..read]);
        read
    }
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

/// Returns a request: method and target, header lines, and body with its length, unless it is empty.
pub(crate) fn request(line: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
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
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
