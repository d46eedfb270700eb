//! An HTTP/1.1 client for measurements with one thread, non-blocking sockets and prepared requests. It shares the host
//! with the measured server, so it uses as little processor time as possible.
//!
//! The load is a closed loop: each connection sends its next request as soon as it has a response.

mod connection;
mod engine;
mod sample;

pub(crate) use connection::Answer;
pub(crate) use engine::{Length, Next, Plan, Verdict, Workload, run};
pub(crate) use sample::Sample;

use crate::Result;
use connection::{Incoming, Progress};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Sends a request on a new connection. Returns the status, the head and the body of the response.
pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> Result<(u16, String, Vec<u8>)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(request)?;
    let mut incoming = Incoming::keeping(usize::MAX);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Err("the server closed the connection".into());
        }
        if let Progress::Complete(answer) = incoming.feed(&buffer[..length])? {
            let head = String::from_utf8_lossy(answer.head).into_owned();
            return Ok((answer.status, head, answer.body.to_vec()));
        }
    }
}
