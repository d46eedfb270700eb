//! Tests of the client: one program with a module for each file, so that dependencies are linked only once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod activation;
mod activation_tls;
mod client;

use std::io::{Read, Write};
use std::thread::JoinHandle;

/// Sends the responses in order, each on a separate connection that `accept` returns. The thread returns the requests.
fn serve<S: Read + Write>(accept: impl Fn() -> S + Send + 'static, answers: Vec<String>) -> JoinHandle<Vec<String>> {
    let answered = move |answer: String| {
        let (mut stream, mut request) = (accept(), Vec::new());
        while !is_whole(&request) {
            let mut buffer = [0; 4096];
            let read = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    };
    std::thread::spawn(move || answers.into_iter().map(answered).collect())
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}
