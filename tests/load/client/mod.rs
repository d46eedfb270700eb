//! An HTTP/1.1 client for measuring: one thread, non-blocking sockets, prepared requests. It shares the machine with
//! the server it measures, so it does as little as it can.
//!
//! The load is a closed loop: each connection asks again as soon as it is answered.

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

/// One request and its answer on a connection of its own: status, head, body.
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
