//! Authentication of access tokens.

use super::Accounts;
use crate::error::Error;
use crate::principal::SessionPrincipal;

impl Accounts {
    /// Returns the principal of `token`. Checks only the token and the clock: the store checks whether the session is
    /// active, in the transaction of the operation that the principal requests.
    ///
    /// # Errors
    /// [`Refusal::Token`](crate::Refusal::Token) if the token belongs to another instance, is not authentic or is not
    /// valid now.
    pub fn authenticate(&self, token: &str) -> Result<SessionPrincipal, Error> {
        let now = self.environment.now();
        let claims = self.tokens.verify(token, now)?;
        self.uses.note(claims.organization, claims.session, now);
        Ok(SessionPrincipal {
            organization: claims.organization,
            account: claims.account,
            session: claims.session,
            role: claims.role,
            version: claims.version,
        })
    }
}
