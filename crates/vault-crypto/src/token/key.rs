//! Keys of access tokens.

use crate::error::fault;
use crate::key::SymmetricKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pasetors::keys::SymmetricKey as TokenKeyBytes;
use pasetors::paserk::{FormatAsPaserk as _, Id};
use pasetors::version4::V4;
use vault_core::port::SealError;

/// Key of access tokens.
pub(crate) struct TokenKey {
    pub(super) key: TokenKeyBytes<V4>,
    /// `{"kid":"k4.lid.…"}`; the next field is its encoding in a token.
    pub(super) footer: String,
    pub(super) encoded_footer: String,
}

impl TokenKey {
    /// Prepares a token key.
    ///
    /// # Errors
    /// The key id cannot be computed.
    pub(crate) fn new(key: &SymmetricKey) -> Result<Self, SealError> {
        let key = TokenKeyBytes::<V4>::from(key.expose()).map_err(fault)?; // the token's key
        let mut kid = String::new();
        Id::from(&key).fmt(&mut kid).map_err(|_| fault("a token key has no kid"))?;
        let footer = format!("{{\"kid\":\"{kid}\"}}");
        let encoded_footer = URL_SAFE_NO_PAD.encode(&footer);
        Ok(Self { key, footer, encoded_footer })
    }
}
