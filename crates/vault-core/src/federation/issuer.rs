//! Issuer of federation tokens.

use crate::field::Invalid;
use crate::strict_url;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use url::Host;

/// URL in the `iss` claim of federation tokens, below which providers read the public keys: `https` and a host name in
/// lower case, optionally with a path of letters, digits and `-._~`. Without port, user, query, fragment and trailing
/// slash, at most 255 bytes. Compared exactly.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FederationIssuer(String);

const INVALID: Invalid =
    Invalid("must be an https URL without port, query and trailing slash, such as https://vault.example.com");

impl FederationIssuer {
    /// Maximum length, in bytes. AWS refuses longer URLs.
    pub const MAX_LENGTH: usize = 255;
    /// Path of the discovery document, below the issuer (OpenID Connect Discovery 1.0, section 4).
    pub const DISCOVERY_PATH: &'static str = "/.well-known/openid-configuration";
    /// Path of the key set, below the issuer.
    pub const KEY_SET_PATH: &'static str = "/federation/jwks.json";

    /// Parses the setting.
    ///
    /// # Errors
    /// The rule for the URL.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let url = strict_url::parse(text).filter(|_| text.len() <= Self::MAX_LENGTH).ok_or(INVALID)?;
        let is_name = matches!(url.host(), Some(Host::Domain(name)) if !name.ends_with('.'));
        // The parser rewrites a port, an upper-case host, dot segments and other ambiguous spellings. Providers compare
        // the issuer byte for byte, so only the canonical spelling is accepted.
        let is_canonical = url.as_str().trim_end_matches('/') == text;
        let path = url.path().strip_prefix('/').unwrap_or_default();
        let is_plain = |segment: &str| {
            !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        let has_plain_path = path.is_empty() || path.split('/').all(is_plain);
        let is_bare = url.scheme() == "https"
            && url.port().is_none()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if is_name && is_canonical && has_plain_path && is_bare { Ok(Self(text.to_owned())) } else { Err(INVALID) }
    }

    /// Returns the URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URL without `https://`. AWS uses it as the name of the identity provider and in condition keys.
    pub fn without_scheme(&self) -> &str {
        self.0.strip_prefix("https://").unwrap_or(&self.0)
    }

    /// Returns the host name.
    pub fn host(&self) -> &str {
        self.without_scheme().split('/').next().unwrap_or_default()
    }

    /// Returns the URL of the discovery document.
    pub fn discovery_url(&self) -> String {
        [&self.0, Self::DISCOVERY_PATH].concat()
    }

    /// Returns the URL of the key set.
    pub fn key_set_url(&self) -> String {
        [&self.0, Self::KEY_SET_PATH].concat()
    }
}

impl fmt::Display for FederationIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for FederationIssuer {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}
