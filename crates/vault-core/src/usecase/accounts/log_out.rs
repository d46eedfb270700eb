//! Log out: the session ends, on every replica, at once.

use super::Accounts;
use crate::error::Error;
use crate::principal::SessionPrincipal;

impl Accounts {
    /// Ends the principal's session.
    ///
    /// # Errors
    /// [`Error::Denied`]: the token no longer worked.
    pub async fn log_out(&self, principal: &SessionPrincipal) -> Result<(), Error> {
        // A principal that may act has a session to end.
        self.end(principal, principal.session).await.map(drop)
    }
}
