//! Signing keys of federation tokens: import, and RS256 signatures (RFC 7515, 7518).

mod import;
mod sign;
#[cfg(test)]
mod tests;

pub use import::FederationKeys;
pub use sign::FederationSigner;
