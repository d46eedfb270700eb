//! Issuers whose identity tokens are accepted.

use super::claims::ClaimPointer;
use crate::audit::{RecordedRights, RecordedRow, RowState};
use crate::digest::{Digest, DigestPurpose};
use crate::field::{FieldCode, FieldError};
use crate::id::{IssuerId, OrganizationId};
use crate::port::{KeyUse, KeyedDigester};
use crate::strict_url;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use url::{Host, Url};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// Specified by its OpenID discovery document, on this origin (`https://host:port`). Empty before the first
    /// request.
    Discovery(String),
    /// Fetched from this URL.
    Url(String),
    /// Pasted by the operator, and never fetched.
    Pasted,
}

/// Prefix of the origin of discovered keys.
const DISCOVERY: &str = "discovery ";

impl KeySource {
    /// Returns the source as stored.
    pub fn to_stored(&self) -> String {
        match self {
            Self::Discovery(origin) => format!("{DISCOVERY}{origin}"),
            Self::Pasted => "pasted".to_owned(),
            Self::Url(url) => url.clone(),
        }
    }

    /// Parses the stored form of [`KeySource::to_stored`].
    pub fn from_stored(text: &str) -> Self {
        match (text, text.strip_prefix(DISCOVERY)) {
            ("pasted", _) => Self::Pasted,
            (_, Some(origin)) => Self::Discovery(origin.to_owned()),
            (url, None) => Self::Url(url.to_owned()),
        }
    }
}

/// An issuer of identity tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// A stored issuer with its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIssuer {
    /// The issuer.
    pub issuer: Issuer,
    /// Its keys in a JSON Web Key Set (RFC 7517).
    pub keys: String,
    /// Time at which these keys were fetched.
    pub fetched_at: Timestamp,
    /// Time of the last request for keys.
    pub asked_at: Timestamp,
    /// Reason why that request failed. Empty if it succeeded.
    pub failure: String,
    /// MAC of all fields except `asked_at` and `failure`. If it does not verify, no token of the issuer is accepted.
    pub code: Digest,
}

impl StoredIssuer {
    /// Signs the issuer and its keys, fetched at `now`, and returns the row with its MAC.
    pub fn sign(issuer: Issuer, keys: String, now: Timestamp, digester: &dyn KeyedDigester) -> Self {
        let code = Digest::from_bytes([0; 32]);
        let unsigned = Self { issuer, keys, fetched_at: now, asked_at: now, failure: String::new(), code };
        unsigned.signed(digester)
    }

    /// Returns the same row, signed with the current key.
    #[must_use]
    pub fn signed(self, digester: &dyn KeyedDigester) -> Self {
        let code = self.with_parts(|parts| digester.digest(DigestPurpose::IssuerGrant, parts));
        Self { code, ..self }
    }

    /// Returns whether the row's MAC verifies.
    pub fn mac_is_valid(&self, digester: &dyn KeyedDigester) -> bool {
        self.with_parts(|parts| digester.fits(DigestPurpose::IssuerGrant, parts, &self.code))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let fetched_at = self.fetched_at.as_millis().to_be_bytes();
        self.issuer.with_parts(|issuer| {
            let own = [self.keys.as_bytes(), &fetched_at];
            let parts: Vec<&[u8]> = own.into_iter().chain(issuer.iter().copied()).collect();
            digest(&parts)
        })
    }
}

impl Issuer {
    /// Version of every issuer, because no operation changes one.
    const VERSION: i64 = 1;

    /// Returns the state of the row, as the audit log records it: without the keys, which are fetched without an entry.
    pub fn states(&self, digester: &dyn KeyedDigester) -> RecordedRights {
        self.with_parts(|parts| RowState::of_grant(RecordedRow::Issuer, Self::VERSION, parts, digester))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let Self { id, name, url, source, ca, required, organizations, created_at } = self;
        let created_at = created_at.as_millis().to_be_bytes();
        let source = source.to_stored();
        let count = (required.len() as u64).to_be_bytes();
        let mut parts: Vec<&[u8]> = vec![
            id.as_bytes(),
            name.as_str().as_bytes(),
            url.as_bytes(),
            source.as_bytes(),
            ca.as_bytes(),
            &created_at,
            &count,
        ];
        parts.extend(required.iter().map(|pointer| pointer.as_str().as_bytes()));
        parts.extend(organizations.iter().map(|organization| organization.as_bytes().as_slice()));
        digest(&parts)
    }
}

impl StoredIssuer {
    /// Returns whether its keys may still be used at `now`.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.issuer.source == KeySource::Pasted || age(self.fetched_at, now) <= MAX_KEY_AGE_SECONDS
    }

    /// Returns whether its keys should be fetched again at `now`: if they are an hour old or a key is `missing`, at
    /// most once a minute.
    pub fn is_due(&self, now: Timestamp, missing: bool) -> bool {
        // The MAC does not cover the time of the last request: one in the future would keep replaced keys in use.
        self.issuer.source != KeySource::Pasted
            && age(self.asked_at, now).abs() >= FETCH_EVERY_SECONDS
            && (missing || age(self.fetched_at, now) >= FRESH_SECONDS)
    }
}

fn age(at: Timestamp, now: Timestamp) -> i64 {
    now.as_millis().saturating_sub(at.as_millis()) / 1_000
}
