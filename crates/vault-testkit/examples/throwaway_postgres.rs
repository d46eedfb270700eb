//! Runs a command with a temporary PostgreSQL server and stops the server afterwards:
//!
//! ```text
//! cargo run -p vault-testkit --features servers --example throwaway_postgres -- cargo nextest run
//! ```
//!
//! Tests find the server by the variable `ORGVAULT_TEST_POSTGRES`. `THROWAWAY_FSYNC=on` flushes commits to the
//! disk. `ORGVAULT_TEST_CITUS_WORKERS=2` distributes it over two more servers with the extension Citus. The program
//! exits with the status of the command.

#![allow(clippy::print_stderr, reason = "a program for the terminal")]

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use vault_testkit::postgres::{Cluster, ENVIRONMENT, Options};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: throwaway_postgres COMMAND [ARGUMENT]...");
        return ExitCode::from(2);
    };
    let fsync = env::var("THROWAWAY_FSYNC").is_ok_and(|value| value == "on");
    let workers = Cluster::wanted_workers();
    let cluster = Cluster::start(Options { fsync, workers, ..Options::default() });
    let status = Command::new(&program).args(arguments).env(ENVIRONMENT, cluster.base_url()).status();
    drop(cluster);
    match status {
        // As a shell reports termination by a signal.
        Ok(status) => {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("{}: {error}", program.display());
            ExitCode::from(127)
        }
    }
}
