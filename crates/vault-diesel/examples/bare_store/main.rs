//! The rows of the vault on its databases, and nothing else: what bounds saves and lists. Commits and reads as fast
//! as it can, with the tables and the settings of the vault. Prints `{"rate": …}`.
//!
//! ```text
//! cargo run --release -p vault-diesel --example bare_store -- save --file=/var/tmp/bare.db --callers=64 --seconds=5
//! … fill --file=/var/tmp/bare.db --rows=1000000
//! … list --file=/var/tmp/bare.db --callers=64 --seconds=5
//! … save --postgres=postgres://… --callers=64 --seconds=5
//! ```
//!
//! `save`: rows a second, where each commit holds one row of each caller; on PostgreSQL of 64 callers at most. `fill`:
//! the same in large commits, for `list`: ranges of 100 rows a second.

mod postgres;
mod row;
mod sqlite;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

type Failure = Box<dyn Error + Send + Sync>;

/// Rows that a commit of `fill` holds.
const FILLED_AT_ONCE: u64 = 1_000;
/// Rows of one read.
const PAGE: usize = 100;

/// The organization that is filled and listed.
const LISTED: &str = "01939f3c-0000-7cc3-9d1e-6f1b2a3c4d5e";
/// The organization into which is saved.
const SAVED: &str = "01939f3c-1111-7cc3-9d1e-6f1b2a3c4d5e";

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let mut options = Options { place: None, callers: 64, length: Duration::from_secs(5), rows: 1_000_000 };
    for argument in arguments {
        match argument.split_once('=') {
            Some(("--file", path)) => options.place = Some(Place::File(path.into())),
            Some(("--postgres", url)) => options.place = Some(Place::Postgres(url.to_owned())),
            Some(("--callers", count)) => options.callers = count.parse()?,
            Some(("--seconds", seconds)) => options.length = Duration::try_from_secs_f64(seconds.parse()?)?,
            Some(("--rows", count)) => options.rows = count.parse()?,
            _ => return Err(format!("what is {argument}?").into()),
        }
    }
    let rate = match &options.place {
        Some(Place::File(path)) => sqlite::run(&command, path, &options)?,
        Some(Place::Postgres(url)) => postgres::run(&command, url, &options)?,
        None => return Err("where? --file=PATH or --postgres=URL".into()),
    };
    writeln!(std::io::stdout(), "{{\"rate\": {rate:.1}}}")?;
    Ok(())
}

/// What is asked for.
struct Options {
    place: Option<Place>,
    callers: usize,
    length: Duration,
    rows: u64,
}

/// Where the rows lie.
enum Place {
    File(PathBuf),
    Postgres(String),
}
