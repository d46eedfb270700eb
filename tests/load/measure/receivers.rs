//! Cost of reporting every replacement to a receiver, and delay of the deliveries.

use super::Ground;
use super::life::replacements_of;
use crate::Result;
use crate::account::{Account, Organization};
use crate::client::{Sample, exchange, run};
use crate::report::{Bound, Rate, Report, Target};
use crate::request;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Number of credentials that are replaced, round-robin.
const SUBJECTS: u64 = 1_000;
/// Number of events.
const EVENTS: usize = 100_000;
/// Time limit for the delivery of all events.
const LIMIT: Duration = Duration::from_secs(540);
/// Number of clients that replace.
const CONNECTIONS: usize = 64;

/// Deliveries to the receiver.
#[derive(Default)]
struct Reported {
    ids: HashSet<String>,
    /// The last event of each credential. IDs of events increase with time.
    last: HashMap<String, String>,
    out_of_order: usize,
    repeated: usize,
}

impl Reported {
    fn note(&mut self, id: String, subject: String) {
        if !self.ids.insert(id.clone()) {
            self.repeated += 1;
            return;
        }
        if self.last.get(&subject).is_some_and(|last| *last > id) {
            self.out_of_order += 1;
        }
        self.last.insert(subject, id);
    }
}

/// Measures replacements without a receiver, then with one, then the delivery of the remaining events.
pub(crate) fn receivers(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let organization = Organization::create(ground.vault, ground.server, "Receivers")?;
    let mut replacements = replacements_of(ground, &organization, SUBJECTS)?;
    replacements.left(EVENTS / 2);
    let alone = run(&ground.to_the_end(CONNECTIONS), &mut replacements)?;
    let (address, reported) = listen()?;
    let body = format!(r#"{{"kind":"webhook","url":"http://{address}/","events":["credential.replaced"]}}"#);
    let server = ground.server.address;
    let mut admin = Account::create_as(ground.vault, &organization.name, "admin@receivers.example.com", "admin")?;
    let token = admin.log_in(ground.server)?;
    let (status, _, answer) = exchange(server, &request::add_receiver(server, &token, &body))?;
    if status != 201 {
        return Err(format!("no receiver: {status} {}", String::from_utf8_lossy(&answer)).into());
    }
    // A new receiver gets only events from the next second on.
    thread::sleep(Duration::from_secs(3));
    let started = Instant::now();
    replacements.left(EVENTS);
    let under_load = run(&ground.to_the_end(CONNECTIONS), &mut replacements)?;
    let (made, soon) = (started.elapsed(), count(&reported));
    while count(&reported) < EVENTS && started.elapsed() < LIMIT {
        thread::sleep(Duration::from_millis(50));
    }
    let took = started.elapsed();
    row(report, "replace, no receiver", alone, None);
    let rate = under_load.rate();
    row(report, "replace, each notified", under_load, Some(Bound::new("replacements", rate)));
    let reported = reported.lock().map_err(|_| "the receiver failed")?;
    let all = Target::new("100,000", reported.ids.len() == EVENTS);
    report.quantity("events delivered", reported.ids.len() as f64, "", Some(all));
    report.quantity("of them while replacements went on", soon as f64, "", None);
    report.quantity("replacements took", made.as_secs_f64(), "s", None);
    report.quantity("until all were delivered", took.as_secs_f64(), "s", None);
    report.quantity("events delivered per second", reported.ids.len() as f64 / took.as_secs_f64(), "/s", None);
    let ordered = Target::new("0", reported.out_of_order == 0);
    report.quantity("events out of order", reported.out_of_order as f64, "", Some(ordered));
    report.quantity("events delivered twice", reported.repeated as f64, "", None);
    Ok(())
}

fn row(report: &mut Report, what: &str, sample: Sample, bound: Option<Bound>) {
    let references = bound.into_iter().collect();
    report.rate(Rate { what: what.to_owned(), connections: CONNECTIONS, sample, references, target: None });
}

fn count(reported: &Mutex<Reported>) -> usize {
    reported.lock().map_or(0, |reported| reported.ids.len())
}

/// Starts a receiver that accepts everything.
fn listen() -> Result<(SocketAddr, Arc<Mutex<Reported>>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (address, reported) = (listener.local_addr()?, Arc::new(Mutex::new(Reported::default())));
    let noted = Arc::clone(&reported);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reported = Arc::clone(&noted);
            thread::spawn(move || take(stream, &reported));
        }
    });
    Ok((address, reported))
}

/// Accepts messages until the connection is closed.
fn take(stream: TcpStream, reported: &Mutex<Reported>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut id) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "webhook-id" => value.trim().clone_into(&mut id),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
        reported.lock().ok()?.note(id, body["data"]["id"].as_str()?.to_owned());
        reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()?;
    }
}
