//! Access tokens: PASETO v4.local.
//!
//! The caller supplies the time: the library's high-level verification would read the system clock.

mod claims;
mod instant;
pub(crate) mod key;

use crate::error::fault;
use crate::instance_keys::InstanceKeyring;
use claims::Audience;
use pasetors::token::{Local, UntrustedToken};
use pasetors::version4::{LocalToken, V4};
use secrecy::SecretString;
use std::fmt;
use std::sync::Arc;
use vault_core::port::{SealError, TokenIssuer, TokenRefusal};
use vault_core::session::{AccessToken, SessionClaims};
use vault_core::time::Timestamp;

/// Issues and verifies access tokens of one instance. The PASETO library generates the nonces.
pub struct PasetoIssuer {
    audience: Audience,
    /// Data authenticated with every token but not part of it: a token of another instance or for another purpose does
    /// not open, even under the same key.
    assertion: String,
    keys: Arc<InstanceKeyring>,
}

impl PasetoIssuer {
    /// Maximum length of a token that is parsed, in bytes. Issued tokens have about 700.
    pub(crate) const LONGEST: usize = 2_048;

    pub(crate) fn new(keys: Arc<InstanceKeyring>, epoch: u64) -> Self {
        let instance = keys.instance();
        let assertion = format!("orgvault:{instance}:access-token");
        Self { audience: Audience::new(instance, epoch), assertion, keys }
    }

    /// Checks length, header and key id, then authenticates: no content of the token is interpreted before that.
    ///
    /// The key is found by comparing the whole footer, which is never parsed.
    fn open(&self, token: &str) -> Result<String, TokenRefusal> {
        if token.len() > Self::LONGEST {
            return Err(TokenRefusal::Malformed);
        }
        let parts = token.strip_prefix(LocalToken::HEADER).and_then(|rest| rest.split_once('.'));
        let (_, footer) = parts.ok_or(TokenRefusal::Malformed)?;
        let purposes = self.keys.purposes();
        let mut keys = purposes.token.all().map(|entry| &entry.key);
        let key = keys.find(|key| key.encoded_footer == footer).ok_or(TokenRefusal::UnknownKey)?;
        let untrusted = UntrustedToken::<Local, V4>::try_from(token).map_err(|_| TokenRefusal::Malformed)?;
        let footer = Some(key.footer.as_bytes());
        let opened = LocalToken::decrypt(&key.key, &untrusted, footer, Some(self.assertion.as_bytes()))
            .map_err(|_| TokenRefusal::NotAuthentic)?;
        Ok(opened.payload().to_owned())
    }
}

#[cfg(any(test, fuzzing))]
impl PasetoIssuer {
    /// Returns the claims of an authentic token with this payload.
    pub(crate) fn read_payload(&self, payload: &str, now: Timestamp) -> Result<SessionClaims, TokenRefusal> {
        self.audience.read(payload, now)
    }

    /// Returns the payload of a token with these claims.
    pub(crate) fn write_payload(&self, claims: &SessionClaims) -> Option<String> {
        self.audience.write(claims)
    }
}

impl TokenIssuer for PasetoIssuer {
    fn issue(&self, claims: &SessionClaims) -> Result<AccessToken, SealError> {
        let payload = self.audience.write(claims).ok_or_else(|| fault("claims that no token can carry"))?;
        let purposes = self.keys.purposes();
        let key = &purposes.token.settled_at(claims.issued_at).key;
        let (footer, assertion) = (Some(key.footer.as_bytes()), Some(self.assertion.as_bytes()));
        let token = LocalToken::encrypt(&key.key, payload.as_bytes(), footer, assertion).map_err(fault)?;
        Ok(AccessToken(SecretString::from(token)))
    }

    fn verify(&self, token: &str, now: Timestamp) -> Result<SessionClaims, TokenRefusal> {
        self.audience.read(&self.open(token)?, now)
    }
}

impl fmt::Debug for PasetoIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PasetoIssuer({})", self.keys.purposes().token.active().key.footer)
    }
}

#[cfg(test)]
mod tests;
