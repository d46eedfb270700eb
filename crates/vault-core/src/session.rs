//! Sessions: what a login makes and an access token names.

use crate::id::{AccountId, InstanceId, OrganizationId, SessionId};
use crate::role::Role;
use crate::time::Timestamp;
use secrecy::SecretString;

/// What an access token says. Every member is required (RFC 7519 names: `jti`, `sub`, `org`, `role`, `iat`, `exp`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionClaims {
    /// The deployment that issued the token.
    pub instance: InstanceId,
    /// The session.
    pub session: SessionId,
    /// The account.
    pub account: AccountId,
    /// The account's organization.
    pub organization: OrganizationId,
    /// The role at login; the rows can only take it away.
    pub role: Role,
    /// When it was issued, in whole seconds.
    pub issued_at: Timestamp,
    /// The first moment at which it no longer works, in whole seconds.
    pub expires_at: Timestamp,
}

/// An access token in its plain form, as handed to the account holder.
pub struct AccessToken(pub SecretString);

/// The longest name of a client that a session keeps, in characters.
pub const CLIENT_LENGTH: usize = 100;

/// A new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// ID of the session.
    pub id: SessionId,
    /// Start time.
    pub created_at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
    /// The network it was made from, as text for its owner.
    pub network: String,
    /// What the client that logged in said it is, as [`client_name`] keeps it.
    pub client: Option<String>,
}

/// A session as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The session as it was made.
    pub session: NewSession,
    /// Its latest use, to the minute; at first its beginning.
    pub last_used_at: Timestamp,
}

/// What a session keeps of the name that a client gives itself: its first [`CLIENT_LENGTH`] characters, without
/// control characters. Nothing of an empty name.
pub fn client_name(text: &str) -> Option<String> {
    let name: String = text.chars().filter(|character| !character.is_control()).take(CLIENT_LENGTH).collect();
    (!name.is_empty()).then_some(name)
}
