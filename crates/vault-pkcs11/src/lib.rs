//! Root keys in PKCS#11 tokens: an AES-256 key that wraps keys with AES-GCM in the token, and never leaves it.
//!
//! [`TokenKey`] is the [`KeyService`](vault_core::port::KeyService) of such a key, which a [`TokenUri`] names. Each use
//! loads the module, logs in, wraps or unwraps, logs out and unloads the module. A token may therefore be removed, or a
//! session may time out, between two uses, and no state of the token remains in the process.
//!
//! Tested with SoftHSM 2.6.
//!
//! ```
//! use vault_pkcs11::TokenUri;
//!
//! let text = "pkcs11:token=vault;id=%11%22%33%44%55%66%77%88?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=/etc/us/pin";
//! let uri: TokenUri = text.parse()?;
//! assert_eq!(uri.pin(), std::path::Path::new("/etc/us/pin"));
//!
//! // A PIN in the settings is rejected.
//! let refused = text.replace("pin-source=/etc/us/pin", "pin-value=1234").parse::<TokenUri>().unwrap_err();
//! assert!(refused.to_string().contains("write it to a file"));
//! # Ok::<(), vault_pkcs11::InvalidUri>(())
//! ```
//!
//! `vault-embed` opens a vault with such a key through `vault_crypto::ServiceRootKey`. `docs/operate/root-key.md` of the
//! repository describes how to create one.

mod failure;
mod token;
mod uri;

pub use failure::TokenError;
pub use token::{Pin, TokenKey};
pub use uri::{InvalidUri, TokenUri};
