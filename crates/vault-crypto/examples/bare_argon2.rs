//! How many password hashes a second this machine makes, and nothing else: what bounds logins.
//!
//! The parameters are those of the vault (m = 19,456 KiB, t = 2, p = 1), each thread keeps its memory, and threads
//! run at the niceness of the vault's. Prints `{"rate": …, "cost_us": …}`: hashes a second, and the processor time of one
//! in microseconds.
//!
//! ```text
//! cargo run --release -p vault-crypto --example bare_argon2 -- --threads=2 --seconds=5
//! ```

use argon2::{Algorithm, Argon2, Block, Params, Version};
use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// The niceness of the vault's hashing threads.
const NICENESS: i32 = 19;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut threads = thread::available_parallelism()?.get();
    let mut length = Duration::from_secs(5);
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("--threads", count)) => threads = count.parse()?,
            Some(("--seconds", seconds)) => length = Duration::try_from_secs_f64(seconds.parse()?)?,
            _ => return Err("usage: bare_argon2 [--threads=COUNT] [--seconds=SECONDS]".into()),
        }
    }
    let rates = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| rate(length))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?).collect::<Result<Vec<_>, _>>()
    })?;
    let rate: f64 = rates.iter().map(|(rate, _)| rate).sum();
    let cost = rates.iter().map(|(_, cost)| cost).sum::<f64>() / threads as f64;
    let figures =
        serde_json::json!({"threads": threads, "seconds": length.as_secs_f64(), "rate": rate, "cost_us": cost});
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

/// Hashes a second of one thread, and the processor time of one in microseconds.
fn rate(length: Duration) -> Result<(f64, f64), Failure> {
    rustix::process::setpriority_process(None, NICENESS)?;
    let params = Params::new(19_456, 2, 1, Some(32)).map_err(|error| error.to_string())?;
    let mut memory = vec![Block::default(); params.block_count()];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut hash = [0; 32];
    let started = Instant::now();
    let mut hashes = 0_u64;
    while started.elapsed() < length {
        argon2
            .hash_password_into_with_memory(b"correct horse battery", &hashes.to_be_bytes(), &mut hash, &mut memory)
            .map_err(|error| error.to_string())?;
        black_box(&hash);
        hashes += 1;
    }
    let hashes = hashes as f64;
    Ok((hashes / started.elapsed().as_secs_f64(), processor_time()? / hashes))
}

/// The processor time of this thread so far, in microseconds.
fn processor_time() -> Result<f64, Failure> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = times.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1000.0)
}
