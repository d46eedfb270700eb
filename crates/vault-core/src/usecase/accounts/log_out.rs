//! Logouts, which end the session immediately on every replica.

use super::Accounts;
use crate::error::Error;
use crate::principal::SessionPrincipal;

impl Accounts {
    /// Ends the principal's session.
    ///
    /// # Errors
    /// [`Error::Denied`] if the token was no longer valid.
    pub async fn log_out(&self, principal: &SessionPrincipal) -> Result<(), Error> {
        // An authorized principal has an active session.
        self.end(principal, principal.session).await.map(drop)
    }
}
