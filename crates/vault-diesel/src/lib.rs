//! The store of OrgVault through Diesel, on an embedded SQLite file encrypted by SQLCipher or on PostgreSQL.
//!
//! Every decision of the store ports is written once, in `decision/`, and compiled once per database. A
//! database adds what differs: how connections are opened and shared, how rows are locked, and what its
//! errors mean.

mod failure;
mod load;
mod migration;
mod new_row;
mod ports;
mod postgres;
mod schema;
mod sqlite;
mod stored;
mod transfer;

pub use load::StoreLoad;
pub use migration::{MIGRATIONS, MigrateError, Migration, SchemaState, are_rolling};
pub use ports::{Store, StorePorts};
pub use postgres::{ConnectError, PostgresSettings, PostgresStore};
pub use sqlite::{
    CopyError, FileContent, LockError, LockFileFlaw, OpenError, Replayed, ServerLock, SinceCredential, SinceNamed,
    SqliteKey, SqliteSettings, SqliteStore, TableRows, check_file, copy_file, replay,
};
pub use transfer::{CopiedTable, Progress, Step, Transfer, TransferError, Transferred};
