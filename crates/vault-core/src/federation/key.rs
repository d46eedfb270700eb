//! Signing keys and their states.

use super::{FederationIssuer, Jwk};
use crate::entity::DocumentSecret;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// State of a signing key.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    EnumString,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FederationKeyState {
    /// Published, so that providers read it before it signs.
    Next,
    /// Published, and signs.
    Current,
    /// Does not sign any more. Published until another key is added, unless a restore retired it.
    Retired,
}

named!(FederationKeyState);

/// A signing key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FederationKey {
    /// Issuer of the tokens that it signs.
    pub issuer: FederationIssuer,
    /// State.
    pub state: FederationKeyState,
    /// Public key, whose key ID is unique.
    pub jwk: Jwk,
    /// Private key: PKCS #8 in base64.
    pub private_key: DocumentSecret,
    /// Time of the addition.
    pub created_at: Timestamp,
    /// Time since which it signs or has signed.
    pub active_at: Option<Timestamp>,
    /// Time since which it no longer signs.
    pub retired_at: Option<Timestamp>,
    /// `false` if a restore retired it: it may have leaked and been removed since the backup.
    pub is_published: bool,
}

impl FederationKey {
    /// Creates a key in the state `next`.
    pub const fn new(issuer: FederationIssuer, jwk: Jwk, private_key: DocumentSecret, now: Timestamp) -> Self {
        Self {
            issuer,
            state: FederationKeyState::Next,
            jwk,
            private_key,
            created_at: now,
            active_at: None,
            retired_at: None,
            is_published: true,
        }
    }

    /// Returns its key ID.
    pub fn kid(&self) -> &str {
        self.jwk.kid()
    }

    /// Returns the time since which it is in its state.
    pub fn since(&self) -> Timestamp {
        let since = match self.state {
            FederationKeyState::Next => None,
            FederationKeyState::Current => self.active_at,
            FederationKeyState::Retired => self.retired_at,
        };
        since.unwrap_or(self.created_at)
    }

    pub(super) fn retire(&mut self, now: Timestamp) {
        (self.state, self.retired_at) = (FederationKeyState::Retired, self.retired_at.or(Some(now)));
    }
}
