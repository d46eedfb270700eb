//! Root keys in PKCS#11 tokens: an AES-256 key that seals and opens in the token with AES-GCM, and never leaves it.
//!
//! [`TokenKey`] is the [`KeyService`](vault_core::port::KeyService) of such a key, named by a [`TokenUri`]. Each use loads
//! the module, logs in, seals or opens, logs out and unloads the module again: so a token that was removed or a session that
//! timed out in between does not matter, and nothing of the token stays in the process.
//!
//! Tried against SoftHSM 2.6.

mod failure;
mod token;
mod uri;

pub use failure::TokenError;
pub use token::{Pin, TokenKey};
pub use uri::{InvalidUri, TokenUri};
