//! Copies the embedded database into an empty PostgreSQL database, completely or not at all.
//!
//! The tables are read from the catalogue of the embedded database, so a table that a migration adds is copied too.
//! Rows are copied unchanged: sealed data is bound to the instance, the organization and the object, never to the
//! database.

mod source;
mod target;
mod value;

pub use target::{Transfer, Transferred};

use crate::postgres::ConnectError;
use std::error::Error;

/// A table of both databases.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    name: String,
    columns: Vec<String>,
    /// The columns of the primary key, in its order.
    key: Vec<String>,
}

impl Table {
    fn columns(&self) -> String {
        quoted(&self.columns)
    }

    /// Returns the query for all rows, in an order that is the same in both databases: numbers by value, text and bytes
    /// by their bytes.
    fn select(&self) -> String {
        format!("SELECT {} FROM \"{}\" ORDER BY {}", self.columns(), self.name, quoted(&self.key))
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// Step of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Copying rows.
    Copying,
    /// Reading rows back and comparing them.
    Comparing,
}

/// Progress of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The current step.
    pub step: Step,
    /// The current table.
    pub table: &'a str,
    /// Number of rows of all tables that this step has processed.
    pub done: u64,
    /// Number of rows of all tables.
    pub total: u64,
}

/// A table with the same rows in both databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Name of the table.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of the rows in the order of the primary key. It is the same in both databases.
    pub digest: [u8; 32],
}

/// Error of a transfer. The target is unchanged, unless the error states otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The target cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The target already contains tables or rows.
    #[error("the target database is not empty: it has {0}")]
    NotEmpty(String),
    /// The target contains another vault.
    #[error("the target database contains another vault (instance {0})")]
    OtherVault(String),
    /// The target contains this vault, with other rows.
    #[error("the target database already contains this vault, with other rows in table {table}")]
    Differs {
        /// The first table that differs.
        table: String,
    },
    /// An older build created the schema of the target.
    #[error("the target database has a schema that lacks {0} of this version's migrations")]
    OlderSchema(usize),
    /// A newer build created the schema of the target.
    #[error("the target database has schema version {0}, which this version of OrgVault does not support")]
    NewerSchema(String),
    /// An unreleased build created the schema of the target.
    #[error("the target database has schema version {0}, created by an unreleased build, which no release supports")]
    UnreleasedSchema(String),
    /// The tables of the target differ from those of the embedded database.
    #[error("table {0} is not the same in both databases")]
    Tables(String),
    /// The rows that were read back differ from the copied rows.
    #[error("table {0} was not copied correctly: the rows in the target differ")]
    Unfaithful(String),
    /// The embedded database cannot be read.
    #[error("the embedded database cannot be read")]
    Source(#[source] Box<dyn Error + Send + Sync>),
    /// The target returned an error.
    #[error("cannot {doing} in the target database")]
    Target {
        /// The failed operation.
        doing: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The response to the commit is missing, so the target contains either all rows or none.
    #[error("the target database did not confirm the transfer, so it contains everything or nothing")]
    Unconfirmed(#[source] Box<dyn Error + Send + Sync>),
}
