//! Root keys in PKCS#11 tokens: an AES-256 key that seals and opens in the token with AES-GCM, and never leaves it.
//!
//! [`TokenKey`] is the [`KeyService`](vault_core::port::KeyService) of such a key, named by a [`TokenUri`]. Each use loads
//! the module, logs in, seals or opens, logs out and unloads the module again: so a token that was removed or a session that
//! timed out in between does not matter, and nothing of the token stays in the process.
//!
//! Tried against SoftHSM 2.6.
//!
//! ```
//! use vault_pkcs11::TokenUri;
//!
//! let text = "pkcs11:token=vault;id=%11%22%33%44%55%66%77%88?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=/etc/us/pin";
//! let uri: TokenUri = text.parse()?;
//! assert_eq!(uri.pin(), std::path::Path::new("/etc/us/pin"));
//!
//! // A PIN does not belong into settings.
//! let refused = text.replace("pin-source=/etc/us/pin", "pin-value=1234").parse::<TokenUri>().unwrap_err();
//! assert!(refused.to_string().contains("write it to a file"));
//! # Ok::<(), vault_pkcs11::InvalidUri>(())
//! ```
//!
//! `vault-embed` opens a vault with such a key through `vault_crypto::ServiceRootKey`. `docs/operate/root-key.md` of the repository says
//! how to make one.

mod failure;
mod token;
mod uri;

pub use failure::TokenError;
pub use token::{Pin, TokenKey};
pub use uri::{InvalidUri, TokenUri};
