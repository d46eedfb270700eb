//! Upper bounds for the rates of saves and lists on a host: the rows of the vault on its databases, without any service
//! or behind a minimal one. It has the tables and the settings of the vault, but no rules.
//!
//! ```text
//! cargo run --release -p vault-tests --example bare_vault -- save --file=/var/tmp/bare.db --callers=64 --seconds=5
//! … fill --file=/var/tmp/bare.db --rows=1000000
//! … list --file=/var/tmp/bare.db --callers=64 --seconds=5
//! … serve --file=/var/tmp/bare.db
//! … replace --file=/var/tmp/bare.db --callers=64 --seconds=5
//! … delete --file=/var/tmp/bare.db --callers=64 --seconds=5 --rows=100000
//! … save --postgres=postgres://… --callers=64 --seconds=5
//! ```
//!
//! - `save` prints `{"rate": …}` in rows per second. Each commit contains one row of each caller, on PostgreSQL of at
//!   most 64 callers.
//! - `fill` saves in large commits, for `list`.
//! - `list` measures ranges of 100 rows per second.
//! - `replace`, on a file, measures replacements per second of 2,000 credentials, each with four previous versions.
//! - `delete`, on a file, measures deletes per second in random order among `--rows` rows.
//! - `serve` accepts saves and lists over HTTP. It checks a token and its session, seals and unseals with AES-256-GCM,
//!   and responds when the row is committed. It prints its address and a token on one line, and runs until it is
//!   stopped.

mod postgres;
mod row;
mod seal;
mod service;
mod sqlite;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use uuid::{Uuid, uuid};

type Failure = Box<dyn Error + Send + Sync>;

/// Number of rows in a commit of `fill`.
const FILLED_PER_COMMIT: u64 = 1_000;
/// Rows of one read.
const PAGE: usize = 100;

/// The organization that is filled and listed.
const LISTED: Uuid = uuid!("01939f3c-0000-7cc3-9d1e-6f1b2a3c4d5e");
/// The organization into which is saved.
const SAVED: Uuid = uuid!("01939f3c-1111-7cc3-9d1e-6f1b2a3c4d5e");
/// The organization whose credentials are replaced and deleted.
const CHANGED: Uuid = uuid!("01939f3c-2222-7cc3-9d1e-6f1b2a3c4d5e");

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let mut options = Options { place: None, callers: 64, length: Duration::from_secs(5), rows: 1_000_000 };
    for argument in arguments {
        match argument.split_once('=') {
            Some(("--file", path)) => options.place = Some(Place::File(path.into())),
            Some(("--postgres", url)) => options.place = Some(Place::Postgres(url.to_owned())),
            Some(("--callers", count)) => options.callers = number(&argument, count)?,
            Some(("--seconds", seconds)) => {
                let length = Duration::try_from_secs_f64(number(&argument, seconds)?);
                options.length = length.map_err(|_| format!("{argument}: expected seconds, 0 or more"))?;
            }
            Some(("--rows", count)) => options.rows = number(&argument, count)?,
            _ => return Err(format!("there is no option {argument}").into()),
        }
    }
    let place = options.place.as_ref().ok_or("no database is named: add --file=PATH or --postgres=URL")?;
    if command == "serve" {
        return service::run(place);
    }
    let rate = match place {
        Place::File(path) => sqlite::run(&command, path, &options)?,
        Place::Postgres(url) => postgres::run(&command, url, &options)?,
    };
    writeln!(std::io::stdout(), "{{\"rate\": {rate:.1}}}")?;
    Ok(())
}

/// The number in an argument.
fn number<T: std::str::FromStr>(argument: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| format!("{argument}: expected a number").into())
}

/// The options.
struct Options {
    place: Option<Place>,
    callers: usize,
    length: Duration,
    rows: u64,
}

/// The location of the rows.
enum Place {
    File(PathBuf),
    Postgres(String),
}
