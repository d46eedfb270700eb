//! Identifiers: 128-bit UUIDs, with a separate type for each kind of object.

use crate::field::Invalid;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

const INVALID: Invalid = Invalid("not an id: expected a UUID in lower case, 36 characters");

fn parse(text: &str) -> Result<Uuid, Invalid> {
    // Only one spelling is valid: other cases, braces and plain digits would be alternative IDs of the same object.
    let id = Uuid::try_parse(text).map_err(|_| INVALID)?;
    let mut buffer = Uuid::encode_buffer();
    if id.hyphenated().encode_lower(&mut buffer) == text { Ok(id) } else { Err(INVALID) }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(Uuid);

        impl $name {
            /// Creates an identifier from its bits.
            pub const fn from_uuid(id: Uuid) -> Self { Self(id) }
            /// Returns the bits of the identifier.
            pub const fn as_uuid(&self) -> &Uuid { &self.0 }
            /// Returns the 16 bytes of the identifier, big-endian.
            pub const fn as_bytes(&self) -> &[u8; 16] { self.0.as_bytes() }
            /// Creates an identifier from its 16 bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self { Self(Uuid::from_bytes(bytes)) }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.hyphenated().fmt(f) }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> { parse(text).map(Self) }
        }
    )*};
}

ids! {
    /// ID of an instance: everything protected by one root key.
    InstanceId;
    /// ID of an organization.
    OrganizationId;
    /// ID of an account.
    AccountId;
    /// ID of a login's session, which is the token's `jti`.
    SessionId;
    /// ID of a credential.
    CredentialId;
    /// ID of a version of a credential: random, so that a version that was destroyed never returns under its number.
    VersionId;
    /// ID of an audit entry.
    AuditId;
    /// ID of a key that seals, wraps or authenticates.
    KeyId;
    /// ID of an account's password and TOTP secret: random, new with each change of one of them, and the same for each
    /// verifier of one password.
    SecretsId;
    /// ID of an integration.
    IntegrationId;
    /// ID of an issuer: random, so that an issuer that is added again under the same name has another one.
    IssuerId;
    /// ID of an activation.
    ActivationId;
    /// ID of a receiver.
    ReceiverId;
    /// ID of an event.
    EventId;
}

impl AuditId {
    /// Returns the smallest ID of a time: UUIDs of version 7 start with the milliseconds in 48 bits.
    pub fn first_at(moment: Timestamp) -> Self {
        let millis = moment.as_millis().clamp(0, (1 << 48) - 1).to_be_bytes();
        let mut id = [0; 16];
        id[..6].copy_from_slice(&millis[2..]);
        Self::from_bytes(id)
    }
}
