//! The embedded database: an SQLite file that SQLCipher encrypts as a whole.

mod batch;
mod connection;
mod copy;
mod file;
mod lock;
mod pool;
mod replay;
mod settings;
mod severity;
mod statement;
mod store;
mod task;
mod writer;

pub(crate) use connection::{Purpose, Source, open};
pub use copy::{CopyError, FileContent, TableRows, check_file, check_pages, copy_file};
pub use lock::{LockError, LockFileErrorKind, ServerLock};
pub use replay::{Replayed, SinceCredential, SinceNamed, SinceState, replay};
pub use settings::{OpenError, SqliteKey, SqliteSettings};
pub use store::SqliteStore;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
