//! Closed-loop clients: each connection sends its next request as soon as it has a response.

use crate::report::{COST, Row};
use hdrhistogram::Histogram;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vault_tests::{Answer, Client};

/// Time before a timed measurement, which is not counted.
const WARM_UP: Duration = Duration::from_millis(300);

/// A listener with the processes whose processor time counts as that of its server.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) processes: Vec<u32>,
}

/// One connection.
pub(crate) struct Caller<'a> {
    client: Client,
    /// Number of the connection, from 0.
    pub(crate) number: usize,
    has_ended: &'a AtomicBool,
    latencies: &'a Mutex<Histogram<u64>>,
}

impl Caller<'_> {
    /// Sends a request. Returns `None` at the end of the measurement.
    pub(crate) fn send(&self, method: &str, path: &str, token: &str, body: Option<&Value>) -> Option<Answer> {
        if self.has_ended.load(Ordering::Relaxed) {
            return None;
        }
        let mut call = self.client.request(method, path);
        if !token.is_empty() {
            call = call.bearer(token);
        }
        if let Some(body) = body {
            call = call.json(body);
        }
        let started = Instant::now();
        let answer = call.try_send().unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let microseconds = u64::try_from(started.elapsed().as_micros()).unwrap();
        self.latencies.lock().unwrap().saturating_record(microseconds.max(1));
        Some(answer)
    }
}

/// The result of a measurement.
pub(crate) struct Sample {
    latencies: Histogram<u64>,
    elapsed: Duration,
    server: Duration,
}

impl Sample {
    /// Returns the responses per second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the processor time of the server for each response, in microseconds.
    pub(crate) fn cost(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / self.latencies.len().max(1) as f64
    }

    /// Returns a quantile of the response time, in milliseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        self.latencies.value_at_quantile(share) as f64 / 1000.0
    }

    pub(crate) fn row(&self, name: impl Into<String>) -> Row {
        let (p50, p99) = (self.quantile(0.5), self.quantile(0.99));
        Row::new(name, vec![("per s", self.rate()), ("p50 ms", p50), ("p99 ms", p99), (COST, self.cost())])
    }
}

/// Runs `script` on each of `connections`, for `length` or until all have ended.
pub(crate) fn run<F>(target: &Target, connections: usize, length: Option<Duration>, script: F) -> Sample
where
    F: Fn(&Caller<'_>) -> Option<()> + Sync,
{
    let empty = Histogram::new_with_bounds(1, 120_000_000, 3).expect("valid bounds");
    let (latencies, has_ended) = (Mutex::new(empty.clone()), AtomicBool::new(false));
    thread::scope(|scope| {
        let clients = (0..connections).map(|number| {
            let client = Client::new(target.address);
            let caller = Caller { client, number, has_ended: &has_ended, latencies: &latencies };
            let script = &script;
            scope.spawn(move || script(&caller))
        });
        let mut started = Instant::now();
        let mut before = processor_time(&target.processes);
        let clients: Vec<_> = clients.collect();
        if let Some(length) = length {
            thread::sleep(WARM_UP);
            latencies.lock().unwrap().reset();
            (started, before) = (Instant::now(), processor_time(&target.processes));
            thread::sleep(length);
        } else {
            for client in clients {
                client.join().expect("a client succeeds");
            }
        }
        let latencies = std::mem::replace(&mut *latencies.lock().unwrap(), empty);
        let server = processor_time(&target.processes).saturating_sub(before);
        let sample = Sample { latencies, elapsed: started.elapsed(), server };
        has_ended.store(true, Ordering::Relaxed);
        sample
    })
}

/// Returns the processor time of these processes and their descendants.
fn processor_time(of: &[u32]) -> Duration {
    let ids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: BTreeMap<u32, (u32, u64)> = ids.filter_map(|id| Some((id, parent_and_ticks(id)?))).collect();
    let belongs = |mut id: u32| loop {
        match all.get(&id) {
            _ if of.contains(&id) => break true,
            Some((parent, _)) => id = *parent,
            None => break false,
        }
    };
    let ticks: u64 = all.iter().filter(|(id, _)| belongs(**id)).map(|(_, (_, ticks))| ticks).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn parent_and_ticks(id: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may contain anything. The fields are counted after it.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((fields.get(1)?.parse().ok()?, ticks))
}
