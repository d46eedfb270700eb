//! Tell whose token this is.

use crate::port::{Clock, TokenIssuer, TokenRefusal};
use crate::principal::SessionPrincipal;
use std::sync::Arc;

/// Reads an access token. Looks at nothing but the token and the clock: whether the session is still live
/// is decided by the store, in the transaction of whatever the principal then asks for.
pub struct Authenticate {
    tokens: Arc<dyn TokenIssuer>,
    clock: Arc<dyn Clock>,
}

impl Authenticate {
    /// The operation on these ports.
    pub fn new(tokens: Arc<dyn TokenIssuer>, clock: Arc<dyn Clock>) -> Self {
        Self { tokens, clock }
    }

    /// The principal that `token` names.
    ///
    /// # Errors
    /// The token is not ours, not authentic or not valid now.
    pub fn run(&self, token: &str) -> Result<SessionPrincipal, TokenRefusal> {
        let claims = self.tokens.verify(token, self.clock.now())?;
        Ok(SessionPrincipal {
            organization: claims.organization,
            account: claims.account,
            session: claims.session,
            role: claims.role,
        })
    }
}
