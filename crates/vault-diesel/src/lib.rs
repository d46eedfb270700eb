//! The store of OrgVault through Diesel, on an embedded SQLite file encrypted by SQLCipher or on PostgreSQL.
//!
//! `rows/` has the rows of operations, written and compiled once for both databases with the Diesel backend in `db/`. `port/`
//! implements the ports. A database adds what differs: how connections are opened and shared, and what its errors mean.
//!
//! ```
//! use std::sync::Arc;
//! use vault_core::{port::KeyRepository, time::Timestamp};
//! use vault_diesel::{SqliteKey, SqliteSettings, SqliteStore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! # let directory = tempfile::tempdir()?;
//! # let bytes = zeroize::Zeroizing::new([7; 32]);
//! let key = SqliteKey::from_bytes(bytes); // 32 random bytes
//! let settings = SqliteSettings { create: true, ..SqliteSettings::new(directory.path().join("vault.db"), key) };
//! let store = SqliteStore::open(settings)?;
//! store.migrate(Timestamp::from_millis(1_893_456_000_000), &mut |_| {}).await?;
//!
//! let port: Arc<dyn KeyRepository> = store.clone();
//! assert!(port.instance().await?.is_none());
//! store.close().await;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! Most programs have `vault-embed` open a store together with its keys. [`Store`] is either database, chosen when the process
//! starts; [`StorePorts`] are its ports.

mod db;
mod failure;
mod load;
mod migration;
mod new_row;
mod port;
mod postgres;
mod rows;
mod schema;
mod sqlite;
mod stored;
mod transfer;
mod turns;
mod work;

pub use load::StoreLoad;
pub use migration::{MIGRATIONS, MigrateError, Migration, SchemaState, are_rolling};
pub use port::{DieselStore, Store, StorePorts};
pub use postgres::{ConnectError, Distribution, DistributionError, PostgresSettings, PostgresStore, TableDistribution};
pub use sqlite::{
    CopyError, FileContent, LockError, LockFileErrorKind, OpenError, Replayed, ServerLock, SinceCredential, SinceNamed,
    SinceState, SqliteKey, SqliteSettings, SqliteStore, TableRows, check_file, check_pages, copy_file, replay,
};
pub use transfer::{CopiedTable, Progress, Step, Transfer, TransferError, Transferred};
