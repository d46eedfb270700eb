//! Copies the embedded database into an empty PostgreSQL database, wholly or not at all.
//!
//! What is copied follows from the catalogue of the embedded database, so a table that a migration adds is copied too.
//! Rows move unchanged: what is sealed is bound to the instance, the organization and the object, never to the database.

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

    /// Every row, in an order that both databases have: numbers, and text and bytes as bytes.
    fn select(&self) -> String {
        format!("SELECT {} FROM \"{}\" ORDER BY {}", self.columns(), self.name, quoted(&self.key))
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// What a transfer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Rows are copied.
    Copying,
    /// Rows are read back and compared.
    Comparing,
}

/// How far a transfer has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What it is doing.
    pub step: Step,
    /// With which table.
    pub table: &'a str,
    /// How many rows of all tables this step has behind it.
    pub done: u64,
    /// How many rows there are in all.
    pub total: u64,
}

/// A table with the same rows in both databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// Its name.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// SHA-256 of its rows in the order of the primary key, the same on both sides.
    pub digest: [u8; 32],
}

/// Why a transfer did not take place. The target is then as it was before, unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The target is not reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The target holds tables or rows already.
    #[error("the target database is not empty: it has {0}")]
    NotEmpty(String),
    /// The target holds another vault.
    #[error("the target database contains another vault (instance {0})")]
    OtherVault(String),
    /// The target holds this vault, with other rows.
    #[error("the target database already contains this vault, with other rows in table {table}")]
    Differs {
        /// The first table that differs.
        table: String,
    },
    /// An older build made the target's schema.
    #[error("the target database has a schema that lacks {0} migrations")]
    OlderSchema(usize),
    /// A newer build made the target's schema.
    #[error("the target database has schema version {0}, which this version of OrgVault does not support")]
    NewerSchema(String),
    /// A build from before the first release made the target's schema.
    #[error("the target database has schema version {0}, created by an unreleased build, which no release supports")]
    UnreleasedSchema(String),
    /// The target's tables are not those of the embedded database.
    #[error("table {0} is not the same in both databases")]
    Tables(String),
    /// What was read back is not what was copied.
    #[error("table {0} was not copied correctly: the rows in the target differ")]
    Unfaithful(String),
    /// The embedded database cannot be read.
    #[error("the embedded database cannot be read")]
    Source(#[source] Box<dyn Error + Send + Sync>),
    /// The target refused.
    #[error("cannot {doing} in the target database")]
    Target {
        /// What was being done.
        doing: String,
        /// Why it was refused.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The target's answer to the last statement is missing, so that it either holds everything or nothing.
    #[error("the target database did not confirm the transfer, so it contains everything or nothing")]
    Unconfirmed(#[source] Box<dyn Error + Send + Sync>),
}
