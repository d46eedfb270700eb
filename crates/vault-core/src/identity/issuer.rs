//! Issuers whose identity tokens are accepted.

use super::claims::ClaimPointer;
use crate::audit::{Affected, Subject};
use crate::entity::{Entity, Index, Kind, Lookup};
use crate::field::{FieldCode, FieldError};
use crate::id::{IssuerId, OrganizationId};
use crate::port::KeyUse;
use crate::strict_url;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use url::{Host, Url};
use uuid::Uuid;

/// Maximum age of keys that could not be fetched again, in seconds: 24 h.
pub const MAX_KEY_AGE_SECONDS: i64 = 86_400;
/// Age at which keys are fetched again, in seconds: 1 h. A key that its issuer withdraws is no longer accepted after
/// that.
const FRESH_SECONDS: i64 = 3_600;
/// Minimum time between two requests for keys, in seconds.
const FETCH_EVERY_SECONDS: i64 = 60;
const MAX_URL: usize = 1_024;

/// Name of an issuer, by which users and documents refer to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IssuerName(String);

impl IssuerName {
    /// Parses a name. `field` is its position in the request.
    ///
    /// # Errors
    /// [`FieldCode::Malformed`] if the name has other characters or a wrong length.
    pub fn parse(text: &str, field: &str) -> Result<Self, FieldError> {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
        if (1..=63).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            let detail = "must be 1 to 63 characters of a-z, 0-9, -, _ and .";
            Err(FieldError::new(field, FieldCode::Malformed, detail))
        }
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IssuerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Location of an issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// Specified by its OpenID discovery document, on this origin (`https://host:port`). Empty before the first
    /// request.
    Discovery(String),
    /// Fetched from this URL.
    Url(String),
    /// Pasted by the operator, and never fetched.
    Pasted,
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discovery(origin) => write!(f, "discovery {origin}"),
            Self::Url(url) => f.write_str(url),
            Self::Pasted => f.write_str("pasted"),
        }
    }
}

/// An issuer of identity tokens. No operation changes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuer {
    /// ID, which trusts contain.
    pub id: IssuerId,
    /// Name of the issuer.
    pub name: IssuerName,
    /// Exact value of `iss` in its tokens, or `spiffe://DOMAIN`.
    pub url: String,
    /// Location of its keys.
    pub source: KeySource,
    /// Additional CA certificates (PEM) for connections to it, in addition to those of the system. May be empty.
    pub ca: String,
    /// Claims that every trust must specify exactly.
    pub required: Vec<ClaimPointer>,
    /// Organizations that may trust it. Empty allows all.
    pub organizations: Vec<OrganizationId>,
    /// Time of the addition.
    pub created_at: Timestamp,
}

impl Issuer {
    /// Validates the URL of an issuer.
    ///
    /// # Errors
    /// [`FieldCode::Malformed`] if the URL is malformed, or not permitted for an issuer.
    pub fn check_url(text: &str, field: &str) -> Result<(), FieldError> {
        let violation = |detail: &str| Err(FieldError::new(field, FieldCode::Malformed, detail.to_owned()));
        let Some(url) = strict_url::parse(text).filter(|_| text.len() <= MAX_URL) else {
            return violation("must be a URL, such as https://token.actions.githubusercontent.com");
        };
        let is_bare =
            url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
        match url.scheme() {
            _ if !is_bare => violation("must be a URL without user, query and fragment"),
            "spiffe" if matches!(url.path(), "" | "/") && url.port().is_none() => Ok(()),
            "spiffe" => violation("must be spiffe://DOMAIN, without a path"),
            "https" => Ok(()),
            "http" if is_loopback(&url) => Ok(()),
            "http" => violation("must be https: over http, anybody in between could exchange the keys"),
            _ => violation("must be https, or spiffe://DOMAIN"),
        }
    }

    /// Returns whether the issuer is a SPIFFE trust domain.
    pub fn is_spiffe(&self) -> bool {
        self.url.starts_with("spiffe://")
    }

    /// Returns the `use` of its keys that verify tokens.
    pub fn key_use(&self) -> KeyUse {
        if self.is_spiffe() { KeyUse::JwtSvid } else { KeyUse::Signature }
    }

    /// Returns whether an organization may trust it.
    pub fn serves(&self, organization: OrganizationId) -> bool {
        self.organizations.is_empty() || self.organizations.contains(&organization)
    }

    /// Returns whether it issued a token with these claims. A SPIFFE token requires no `iss`, because the trust domain
    /// of its subject identifies the issuer.
    pub fn made(&self, iss: Option<&str>, sub: Option<&str>) -> bool {
        if self.is_spiffe() {
            sub.and_then(issuer_of_subject).as_deref() == Some(self.url.trim_end_matches('/'))
        } else {
            iss == Some(self.url.as_str())
        }
    }
}

/// Returns the trust domain of a SPIFFE subject, as an issuer's URL.
pub fn issuer_of_subject(subject: &str) -> Option<String> {
    let rest = subject.strip_prefix("spiffe://")?;
    let (domain, path) = rest.split_once('/')?;
    (!domain.is_empty() && !path.is_empty()).then(|| format!("spiffe://{domain}"))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl Entity for Issuer {
    const KIND: Kind = Kind::Issuer;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        vec![Lookup::new(Index::IssuerName, self.name.as_str())]
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Issuer(IssuerId::from_uuid(id)).into()
    }
}

/// Keys of an issuer, with the last request for them. Entries do not record its versions, because keys are fetched without an
/// operation of a principal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerKeySet {
    /// A JSON Web Key Set (RFC 7517).
    pub keys: String,
    /// Time at which the keys were fetched.
    pub fetched_at: Timestamp,
    /// Time of the last request for keys.
    pub asked_at: Timestamp,
    /// Reason why that request failed. Empty if it succeeded.
    pub failure: String,
}

impl IssuerKeySet {
    /// Creates the set of keys that were fetched at `now`.
    pub const fn fetched(keys: String, now: Timestamp) -> Self {
        Self { keys, fetched_at: now, asked_at: now, failure: String::new() }
    }
}

impl Entity for IssuerKeySet {
    const KIND: Kind = Kind::IssuerKeys;

    fn lookups(&self, _id: Uuid) -> Vec<Lookup> {
        Vec::new()
    }

    fn subject(&self, id: Uuid) -> Affected {
        Subject::Issuer(IssuerId::from_uuid(id)).into()
    }
}

/// A stored issuer with its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIssuer {
    /// The issuer.
    pub issuer: Issuer,
    /// Its keys.
    pub set: IssuerKeySet,
    /// Version of the keys.
    pub version: i64,
}

impl StoredIssuer {
    /// Returns whether its keys may still be used at `now`.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.issuer.source == KeySource::Pasted || age(self.set.fetched_at, now) <= MAX_KEY_AGE_SECONDS
    }

    /// Returns whether its keys should be fetched again at `now`: if they are an hour old or a key is `missing`, at
    /// most once a minute.
    pub fn is_due(&self, now: Timestamp, missing: bool) -> bool {
        // A request by a server whose clock is ahead must not keep replaced keys in use.
        self.issuer.source != KeySource::Pasted
            && age(self.set.asked_at, now).abs() >= FETCH_EVERY_SECONDS
            && (missing || age(self.set.fetched_at, now) >= FRESH_SECONDS)
    }
}

fn age(at: Timestamp, now: Timestamp) -> i64 {
    now.as_millis().saturating_sub(at.as_millis()) / 1_000
}
