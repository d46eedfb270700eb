//! Port for access tokens.

use super::{SealError, TokenRefusal};
use crate::session::{AccessToken, SessionClaims};
use crate::time::Timestamp;

/// Issuer and verifier of access tokens.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait TokenIssuer: Send + Sync {
    /// Issues a token that contains `claims`.
    ///
    /// # Errors
    /// [`SealError::Fault`] if the claims cannot be encoded or the token cannot be encrypted.
    fn issue(&self, claims: &SessionClaims) -> Result<AccessToken, SealError>;

    /// Returns the claims of a token that is authentic and valid at `now`. Reads only the token: whether the session was
    /// ended is not checked.
    ///
    /// # Errors
    /// [`TokenRefusal`] with the reason. It is for the log only: every reason gets the same response.
    fn verify(&self, token: &str, now: Timestamp) -> Result<SessionClaims, TokenRefusal>;
}
