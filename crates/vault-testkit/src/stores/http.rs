//! A minimal HTTP client to prepare servers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The response of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Everything after the head.
    pub body: String,
}

impl Reply {
    /// Returns the content of the first XML element `name`.
    ///
    /// # Panics
    /// There is no such element.
    pub fn element(&self, name: &str) -> &str {
        let rest = self.body.split_once(&format!("<{name}>")).map(|(_, rest)| rest);
        let inside = rest.and_then(|rest| rest.split_once(&format!("</{name}>"))).map(|(inside, _)| inside);
        inside.unwrap_or_else(|| panic!("no {name} in {}", self.body))
    }
}

/// Sends a request, and reads until the server closes the connection.
pub(super) fn ask(address: SocketAddr, method: &str, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Reply { status: status.unwrap_or_else(|| panic!("no HTTP: {answer}")), body: body.to_owned() }
}

/// Sends a request as [`ask`] does, and requires success.
pub(super) fn have(address: SocketAddr, method: &str, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Reply {
    let reply = ask(address, method, path, fields, body);
    assert!((200..300).contains(&reply.status), "{method} {path}: {reply:?}");
    reply
}

/// Encodes pairs as a form.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    pairs.join("&")
}

pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
