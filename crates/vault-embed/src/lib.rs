//! Opens a vault: root key, database key, schema, keyring and instance, in the one safe order, with the system's clock
//! and ids. For the program `orgvault` and for services that embed the vault.
//!
//! ```no_run
//! use vault_core::usecase::Vault;
//! use vault_embed::{Database, RootKey};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let opened = vault_embed::open_or_create(RootKey::file("/etc/us/root.key"), Database::sqlite("vault.db")).await?;
//! let vault: Vault = opened.vault(); // saves, lists, shows, deletes
//! opened.close().await?; // ends the upkeep and records what was counted
//! # Ok(())
//! # }
//! ```
//!
//! - The root key is proven before anything is written.
//! - A root key is made only where nothing of a vault is found: never where there is a database or a database key file.
//! - A root key, or a database key file, that is found without its database is refused, unless it was left by an
//!   interrupted first run of this crate. A lost database is thereby never taken for a new vault.
//!
//! Every operation is made of the vault's ports in one module, `wiring`. What opens the data of credentials comes from
//! [`Opening::with_opener`] alone, apart from the vault:
//!
//! ```no_run
//! # use vault_embed::{OpenVault, Opening};
//! # async fn with(opening: Opening) -> Result<(), Box<dyn std::error::Error>> {
//! let (opened, opener) = opening.with_opener().await?;
//! let activations = opened.activations(opener);
//! # Ok(())
//! # }
//! ```
//!
//! An [`OpenVault`] has none to give, so a listener that is made of one cannot open a credential. Neither the vault nor its
//! ports have one,
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
//! nothing that opens is made without one,
//!
//! ```compile_fail,E0061
//! # use vault_core::usecase::Activations;
//! # fn with(opened: &vault_embed::OpenVault) -> Activations {
//! opened.activations()
//! # }
//! ```
//!
//! and what seals, or opens what a list shows, is not one:
//!
//! ```compile_fail,E0308
//! # use vault_core::usecase::Activations;
//! # fn with(opened: &vault_embed::OpenVault) -> Activations {
//! opened.activations(opened.ports().information_opener.clone())
//! # }
//! ```
//!
//! ```compile_fail,E0308
//! # use vault_core::usecase::Activations;
//! # fn with(opened: &vault_embed::OpenVault) -> Activations {
//! opened.activations(opened.ports().sealer.clone())
//! # }
//! ```

mod ambient;
mod database;
mod error;
mod first_run;
mod opening;
mod root_key;
mod upkeep;
mod vault;
mod wiring;

pub use ambient::{LoggedEvents, SystemClock, SystemIds};
pub use database::Database;
pub use error::OpeningError;
pub use opening::{Opening, OpeningWithOpener, create, open, open_or_create};
pub use root_key::RootKey;
pub use vault::{OpenVault, Ports};
