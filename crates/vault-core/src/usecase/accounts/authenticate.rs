//! Tell whose token this is.

use super::Accounts;
use crate::error::Error;
use crate::principal::SessionPrincipal;

impl Accounts {
    /// The principal that `token` names. Looks at nothing but the token and the clock: whether the session is still
    /// live is decided by the store, in the transaction of whatever the principal then asks for.
    ///
    /// # Errors
    /// [`Refusal::Token`](crate::Refusal::Token): the token is not ours, not authentic or not valid now.
    pub fn authenticate(&self, token: &str) -> Result<SessionPrincipal, Error> {
        let now = self.environment.now();
        let claims = self.tokens.verify(token, now)?;
        self.uses.note(claims.organization, claims.session, now);
        Ok(SessionPrincipal {
            organization: claims.organization,
            account: claims.account,
            session: claims.session,
            role: claims.role,
        })
    }
}
