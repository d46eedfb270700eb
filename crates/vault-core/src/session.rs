//! Sessions, which logins create and access tokens identify.

mod end;
mod list;
mod uses;

pub use end::EndSession;
pub use list::ListSessions;
pub use uses::{RecordUses, SessionUse};

use crate::id::{AccountId, InstanceId, OrganizationId, SessionId};
use crate::role::Role;
use crate::time::Timestamp;
use secrecy::SecretString;

/// Claims of an access token. All are required (RFC 7519 names: `jti`, `sub`, `org`, `role`, `ver`, `iat`, `exp`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionClaims {
    /// Instance that issued the token.
    pub instance: InstanceId,
    /// ID of the session.
    pub session: SessionId,
    /// ID of the account.
    pub account: AccountId,
    /// Organization of the account.
    pub organization: OrganizationId,
    /// Role at login. The token is refused if the account's role has changed.
    pub role: Role,
    /// Version of the account at login. The token is refused if all sessions were revoked since.
    pub version: i64,
    /// Time of issue, in whole seconds.
    pub issued_at: Timestamp,
    /// Time from which it is expired, in whole seconds.
    pub expires_at: Timestamp,
}

/// An access token in plain text, as issued to its user.
pub struct AccessToken(pub SecretString);

/// Maximum length of a client's name in a session, in characters.
pub const CLIENT_LENGTH: usize = 100;

/// A new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// ID of the session.
    pub id: SessionId,
    /// Start time.
    pub created_at: Timestamp,
    /// Expiry of the session.
    pub expires_at: Timestamp,
    /// Network of the login, as text for its user.
    pub network: String,
    /// Name of the client that logged in, in the form of [`client_name`].
    pub client: Option<String>,
}

/// A session as its user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The session as created.
    pub session: NewSession,
    /// Time of the last use, truncated to the minute. Initially the time of the login.
    pub last_used_at: Timestamp,
}

/// Returns the stored form of a client's name: its first [`CLIENT_LENGTH`] characters, without control characters.
/// Returns `None` if it is empty.
pub fn client_name(text: &str) -> Option<String> {
    let name: String = text.chars().filter(|character| !character.is_control()).take(CLIENT_LENGTH).collect();
    (!name.is_empty()).then_some(name)
}
