//! Cuts the power of the embedded store on a simulated disk, seed by seed, and reports lost writes:
//!
//! ```text
//! cargo run --release -p vault-simulator -- --seeds 100000
//! ```

#![allow(clippy::expect_used, reason = "a campaign ends where its rig fails")]

use clap::{Parser, ValueEnum};
use std::io::{Write as _, stderr, stdout};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vault_simulator::{Ground, Lie, Outcome, Planted, play};

/// Cuts the power of the embedded store on a simulated disk, and checks that no acknowledged write is lost.
///
/// Exit status 1: a write was lost, or another check failed.
#[derive(Parser)]
#[command(name = "power-cuts", max_term_width = 110)]
struct Options {
    /// Number of seeds to play
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds to play concurrently
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Stop after this number of seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Play the seeds in this process, and print only the numbers
    #[arg(long, hide = true)]
    within: bool,
    /// Plant a fault, to check that it is found. Losses are then expected
    #[arg(long)]
    plant: Option<Plant>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Plant {
    /// Syncs do nothing
    Syncs,
    /// Syncs of the write-ahead log do nothing
    LogSyncs,
    /// Syncs of the database file do nothing
    DatabaseSyncs,
    /// SQLite is set to synchronous = OFF
    Synchronous,
    /// Writes are acknowledged before they are committed
    EarlyAnswers,
}

impl Plant {
    fn planted(self) -> Planted {
        let lie = match self {
            Self::Syncs => Lie::Syncs,
            Self::LogSyncs => Lie::SyncsOfTheLog,
            Self::DatabaseSyncs => Lie::SyncsOfTheDatabase,
            Self::Synchronous => Lie::Synchronous,
            Self::EarlyAnswers => Lie::None,
        };
        Planted { lie, early_answers: matches!(self, Self::EarlyAnswers) }
    }
}

/// Number of seeds per process: the store never closes a connection after a failure of the disk.
const CHUNK: u64 = 200;

fn main() -> ExitCode {
    let options = Options::parse();
    if options.within {
        let outcome = chunk(&options);
        let _ = writeln!(stdout(), "{}", outcome.numbers().map(|number| number.to_string()).join(" "));
        return ExitCode::SUCCESS;
    }
    let (began, next, end) = (Instant::now(), AtomicU64::new(options.seed), options.seed.saturating_add(options.seeds));
    let has_ended = || options.seconds.is_some_and(|seconds| began.elapsed() >= Duration::from_secs(seconds));
    let work = || {
        let mut all = [0; 10];
        while !has_ended() {
            let seed = next.fetch_add(CHUNK, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            let mut program = Command::new(std::env::current_exe().expect("this program"));
            program.arg("--within").args(["--seed", &seed.to_string()]);
            program.args(["--seeds", &CHUNK.min(end - seed).to_string()]);
            if let Some(plant) = options.plant.and_then(|plant| plant.to_possible_value()) {
                program.args(["--plant", plant.get_name()]);
            }
            let output = program.stderr(Stdio::inherit()).output().expect("a process");
            let line = String::from_utf8_lossy(&output.stdout);
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            assert_eq!(numbers.len(), all.len(), "seeds from {seed} on ended with {}: {line}", output.status);
            all.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
        all
    };
    let mut all = [0; 10];
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let numbers = worker.join().expect("its seeds end");
            all.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let [seeds, cuts, kills, failed_calls, stops, acknowledged, indeterminate, calls, syncs, violations] = all;
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = cuts as f64 / seconds;
    let _ = writeln!(
        stdout(),
        "{seeds} seeds, {cuts} power cuts, {kills} kills, {failed_calls} calls that failed, {stops} stops of the store, \
         {acknowledged} writes acknowledged, {indeterminate} indeterminate, {calls} calls that write ({syncs} syncs), {violations} lost or wrong; \
         {seconds:.0} s, {rate:.0} power cuts a second"
    );
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays the seeds in this process, one after the other.
fn chunk(options: &Options) -> Outcome {
    let planted = options.plant.map(Plant::planted).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ground = runtime.block_on(Ground::prepare());
    let mut all = Outcome::default();
    for seed in options.seed..options.seed.saturating_add(options.seeds) {
        let outcome = runtime.block_on(play(seed, planted, &ground));
        for violation in &outcome.violations {
            let _ = writeln!(stderr(), "LOST OR WRONG: {violation}"); // the pipe may be closed
        }
        all += outcome;
    }
    all
}
