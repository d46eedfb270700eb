//! Identifiers: 128-bit UUIDs, each kind a type of its own.

use crate::field::Invalid;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

const INVALID: Invalid = Invalid("not an id: expected a UUID in lower case, 36 characters");

fn parse(text: &str) -> Result<Uuid, Invalid> {
    // One spelling only: other cases, braces and bare digits would be second names of the same object.
    let id = Uuid::try_parse(text).map_err(|_| INVALID)?;
    let mut buffer = Uuid::encode_buffer();
    if id.hyphenated().encode_lower(&mut buffer) == text { Ok(id) } else { Err(INVALID) }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// The identifier with these bits.
            pub const fn from_uuid(id: Uuid) -> Self { Self(id) }
            /// The identifier's bits.
            pub const fn as_uuid(&self) -> &Uuid { &self.0 }
            /// The identifier's 16 bytes, big-endian.
            pub const fn as_bytes(&self) -> &[u8; 16] { self.0.as_bytes() }
            /// The identifier with these 16 bytes.
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
    /// One deployment: everything under one root key.
    InstanceId;
    /// An organization.
    OrganizationId;
    /// An account.
    AccountId;
    /// A login's session; the token's `jti`.
    SessionId;
    /// A saved credential.
    CredentialId;
    /// An audit record.
    AuditId;
    /// A key that seals, wraps or authenticates.
    KeyId;
    /// One passcode seed; a new seed has a new id.
    SeedId;
    /// An integration: a program that activates.
    IntegrationId;
    /// One activation of a namespace.
    ActivationId;
    /// A receiver of events.
    ReceiverId;
    /// An event that receivers are told.
    EventId;
}
