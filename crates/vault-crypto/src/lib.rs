//! Cryptography of OrgVault: encryption, the key hierarchy, passwords, passcodes and access tokens.
//!
//! The crate provides adapters for the crypto ports of `vault-core`. A program loads a [`LoadedRootKey`],
//! uses it to open the [`DatabaseKeyFile`] and the [`Keyring`], takes the adapters from the keyring, and then drops the
//! root key:
//!
//! | Port | Adapter |
//! |---|---|
//! | `Entropy` | [`OsEntropy`] |
//! | `Clock`, `IdGenerator` | [`SystemClock`], [`SystemIds`] |
//! | `Sealer`, `Opener` | [`Keyring::credentials`] |
//! | `KeyedDigester` | [`Keyring::digester`] |
//! | `AuditSealer` | [`Keyring::audit_sealer`] |
//! | `TokenIssuer` | [`Keyring::token_issuer`] |
//! | `PasscodeVerifier` | [`Keyring::passcodes`] |
//! | `PasswordHasher` | [`Keyring::password_hasher`] |
//! | `FederationKeyImporter` | [`FederationKeys`] |
//! | `FederationTokenSigner`, `FederationSigningKey` | [`FederationSigner`] |
//!
//! Primitives are private: the public API only seals, opens, issues and verifies complete objects. Every stored format
//! carries its version and the id of its key and is bound to its place. A test vector pins each format, and every later
//! version must open it.
//!
//! Two limits: a key that a library moves may leave a copy on the stack, and the working memory of argon2 is
//! overwritten by the next hash, not wiped after each hash.
//!
//! Most programs use `vault-embed`, which does these steps in the right order. Without it:
//!
//! ```
//! use std::sync::Arc;
//! use vault_core::digest::DigestPurpose;
//! use vault_core::{id::InstanceId, port::KeyedDigester, time::Timestamp};
//! use vault_crypto::{Keyring, OsEntropy, LoadedRootKey};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let path = directory.path().join("root.key");
//! let root = LoadedRootKey::generate(&path, Arc::new(OsEntropy))?;
//! let (id, now) = (InstanceId::from_bytes([7; 16]), Timestamp::from_millis(1_893_456_000_000));
//! let made = Keyring::create(&root, Arc::new(OsEntropy), id, now)?;
//!
//! // The keys that the database stores open under the same root key at every later start.
//! let root = LoadedRootKey::load(&path, Arc::new(OsEntropy))?;
//! let keyring = Keyring::open(&root, Arc::new(OsEntropy), &made.instance)?;
//! let clock = Arc::new(now);
//! let digest =
//!     |keyring: &Keyring| keyring.digester(clock.clone()).digest(DigestPurpose::Network, &[b"192.0.2.0/24"]);
//! assert_eq!(digest(&keyring), digest(&made.keyring));
//! # Ok(())
//! # }
//! ```
//!
//! `docs/stored-formats.md` in the repository describes the formats, and `docs/CRYPTO.md` the reasons for them.

mod aead;
mod anchor;
mod audit;
mod blob;
mod context;
mod credential;
mod database_key;
mod derive;
mod derived_keys;
mod digest;
mod durable;
mod entity;
mod entropy;
mod error;
mod federation;
// The file is in the tests directory; the module is declared here because the properties use private modules.
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
#[path = "../tests/fuzzing/mod.rs"]
pub mod fuzzing;
mod instance_key;
mod instance_keys;
mod instance_rewrapper;
mod jwt;
mod key;
mod keyring;
mod keyring_error;
mod mac;
mod organization_keys;
mod padding;
mod passcode;
mod password;
#[cfg(test)]
mod pinned;
mod purpose_keys;
mod root_key;
mod secret_file;
mod system;
#[cfg(test)]
mod testing;
mod token;

pub use aead::SealingError;
pub use anchor::{Anchor, AnchorError, AnchorErrorKind, AnchorFile, Anchors};
pub use audit::HmacAuditSealer;
pub use blob::OpenError;
pub use credential::CredentialCrypto;
pub use database_key::{DatabaseKey, DatabaseKeyError, DatabaseKeyFile};
pub use digest::HmacDigester;
pub use entity::EntityDocuments;
pub use entropy::OsEntropy;
pub use federation::{FederationKeys, FederationSigner};
pub use instance_key::{RewrappedInstance, rewrap_instance_key};
pub use instance_rewrapper::InstanceKeyRewrapper;
pub use jwt::JwtVerifier;
pub use keyring::{Keyring, NewInstance};
pub use keyring_error::KeyringError;
pub use passcode::{TotpVerifier, passcode_of};
pub use password::{Argon2Parameters, HashingPool};
pub use root_key::{LoadedRootKey, RootKeyError, RootKeyErrorKind};
pub use secret_file::{SecretFile, SecretFileError, SecretFileErrorKind};
pub use system::{SystemClock, SystemIds};
pub use token::PasetoIssuer;
