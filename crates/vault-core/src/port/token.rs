//! Access tokens.

use super::{SealError, TokenRefusal};
use crate::session::{AccessToken, SessionClaims};
use crate::time::Timestamp;

/// Issues and verifies access tokens.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait TokenIssuer: Send + Sync {
    /// A token that says `claims`.
    ///
    /// # Errors
    /// There is no token key, or no entropy.
    fn issue(&self, claims: &SessionClaims) -> Result<AccessToken, SealError>;

    /// What an authentic token says that holds at `now`. Looks at nothing but the token.
    ///
    /// # Errors
    /// Why it is refused.
    fn verify(&self, token: &str, now: Timestamp) -> Result<SessionClaims, TokenRefusal>;
}
