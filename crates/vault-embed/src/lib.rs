//! Opens a vault: root key, database key, schema, keyring and instance, in the only safe order, with the system's clock
//! and IDs. For the program `orgvault` and for services that embed the vault.
//!
//! ```no_run
//! use vault_core::usecase::Vault;
//! use vault_embed::{Database, RootKey};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let opened = vault_embed::open_or_create(RootKey::file("/etc/us/root.key"), Database::sqlite("vault.db")).await?;
//! let vault: Vault = opened.vault(); // saves, lists, shows, deletes
//! opened.close().await?; // stops maintenance and writes counted audit entries
//! # Ok(())
//! # }
//! ```
//!
//! - The root key is verified before anything is written.
//! - A root key is created only if no part of a vault is found: no database and no database key file.
//! - A root key or database key file without its database is refused, unless it was left by an interrupted first run of
//!   this crate. A lost database is therefore never mistaken for a new vault.
//!
//! The module `wiring` creates the contexts. Only [`Opening::with_opener`] returns the opener, which decrypts
//! credential data, and returns it separately:
//!
//! ```no_run
//! # use vault_embed::Opening;
//! # async fn with(opening: Opening) -> Result<(), Box<dyn std::error::Error>> {
//! let (opened, opener) = opening.with_opener().await?;
//! let activations = opened.activations(opener);
//! # Ok(())
//! # }
//! ```
//!
//! An [`OpenVault`] has no opener, so a listener built from it cannot decrypt a credential. Neither the vault nor its ports
//! have one,
//!
//! ```compile_fail,E0599
//! # fn with(opened: &vault_embed::OpenVault) {
//! opened.opener();
//! # }
//! ```
//!
//! ```compile_fail,E0609
//! # fn with(opened: &vault_embed::OpenVault) {
//! &opened.ports().opener;
//! # }
//! ```
//!
//! [`OpenVault::activations`] requires one,
//!
//! ```compile_fail,E0061
//! # use vault_core::usecase::Activations;
//! # fn with(opened: &vault_embed::OpenVault) -> Activations {
//! opened.activations()
//! # }
//! ```
//!
//! and the port that seals credentials is none:
//!
//! ```compile_fail,E0308
//! # use vault_core::usecase::Activations;
//! # fn with(opened: &vault_embed::OpenVault) -> Activations {
//! opened.activations(opened.ports().operations.ports.credentials.clone())
//! # }
//! ```

/// Compiles the examples of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/EMBEDDING.md")]
mod page {}

mod anchor;
mod backup;
mod database;
mod environment;
mod error;
mod first_run;
mod maintenance;
mod migration;
mod opening;
mod restore;
mod root_key;
mod root_rotation;
mod vault;
mod wiring;

pub use backup::{
    Backup, BackupProgress, BackupStep, BackupTarget, backup, keep_newest, newest_backup, newest_scheduled,
};
pub use database::Database;
pub use environment::LoggedEvents;
pub use error::Error;
pub use migration::migrate_to;
pub use opening::{Opening, create, open, open_or_create};
pub use restore::{Present, Restored, restore};
pub use root_key::RootKey;
pub use root_rotation::{RootRotation, RootState, RootStep};
pub use vault::{Load, OpenVault, Ports, VaultFailure};
pub use vault_crypto::{SystemClock, SystemIds};
