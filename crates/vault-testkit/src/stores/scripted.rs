//! HTTP server whose responses a test defines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Request to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header fields, with names in lower case.
    pub fields: HashMap<String, String>,
    /// The body.
    pub body: String,
}

type Script = dyn Fn(&Asked) -> (u16, Vec<(&'static str, String)>, String) + Send + Sync;

/// Server with scripted responses. It stops when it is dropped.
pub struct Scripted {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_stopped: Arc<AtomicBool>,
}

impl Scripted {
    /// Starts a server that answers with the status, header fields and body that `script` returns for a request.
    ///
    /// # Panics
    /// No port is available.
    pub fn start(
        script: impl Fn(&Asked) -> (u16, Vec<(&'static str, String)>, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (script, reported, over): (Arc<Script>, _, _) =
            (Arc::new(script), Arc::clone(&asked), Arc::clone(&is_stopped));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (script, reported) = (Arc::clone(&script), Arc::clone(&reported));
                thread::spawn(move || serve(stream, &*script, &reported));
            }
        });
        Self { address, asked, is_stopped }
    }

    /// Returns the server's URL: `http://127.0.0.1:port`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far.
    ///
    /// # Panics
    /// The script panicked.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // A connection wakes the thread, so that it checks the flag.
        drop(TcpStream::connect(self.address));
    }
}

/// Handles one request with one response, and closes the connection on any other input.
fn serve(stream: TcpStream, script: &Script, reported: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut fields = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = fields.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let asked = Asked { method, path, fields, body: String::from_utf8_lossy(&body).into_owned() };
    reported.lock().ok()?.push(asked.clone());
    let (status, fields, body) = script(&asked);
    let mut answer = format!("HTTP/1.1 {status} Scripted\r\nConnection: close\r\n");
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("Content-Length")) {
        answer.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in fields {
        answer.push_str(&format!("{name}: {value}\r\n"));
    }
    answer.push_str("\r\n");
    if asked.method != "HEAD" {
        answer.push_str(&body);
    }
    reader.get_mut().write_all(answer.as_bytes()).ok()
}
