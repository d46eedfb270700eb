//! Options of the load program and the fault program.

use crate::Database;
use std::path::PathBuf;

/// Working directory, databases and output format.
#[derive(Clone, Debug, clap::Args)]
pub struct SharedOptions {
    /// Databases to use: the embedded database (sqlite), a PostgreSQL server started for this run (postgres), or both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sqlite,postgres", hide_possible_values = true)]
    pub database: Vec<Database>,
    /// Directory for the vaults, on a disk; they are removed at the end
    #[arg(long, default_value = "/var/tmp", value_name = "DIRECTORY", value_parser = directory)]
    pub dir: PathBuf,
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Parses the path of an existing directory.
///
/// # Errors
/// The path is not a directory.
pub fn directory(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("not an existing directory") }
}
