//! Whose tokens are looked at.

use super::claims::ClaimPointer;
use crate::digest::{Digest, DigestPurpose};
use crate::field::{FieldCode, FieldError};
use crate::id::OrganizationId;
use crate::port::{KeyUse, KeyedDigester};
use crate::time::Timestamp;
use std::fmt;
use url::{Host, Url};

/// How old keys may be that could not be fetched again, in seconds: 24 h.
pub const MAX_KEY_AGE_SECONDS: i64 = 86_400;
/// How old keys may be before they are fetched again, in seconds: 1 h. A key that its issuer withdraws ends with that.
const FRESH_SECONDS: i64 = 3_600;
/// How long to wait before keys are fetched again, in seconds.
const FETCH_EVERY_SECONDS: i64 = 60;
const MAX_URL: usize = 1_024;

/// The name by which trusts name an issuer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IssuerName(String);

impl IssuerName {
    /// A name; `field` is where it was read.
    ///
    /// # Errors
    /// [`FieldCode::Malformed`].
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

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IssuerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where an issuer's keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// Named by its OpenID discovery document, on this origin (`https://host:port`); empty until it was asked the first time.
    Discovery(String),
    /// At this URL.
    Url(String),
    /// As the operator pasted them; they are never fetched.
    Pasted,
}

/// What stands before the origin of discovered keys.
const DISCOVERY: &str = "discovery ";

impl KeySource {
    /// The source as a store keeps it.
    pub fn to_stored(&self) -> String {
        match self {
            Self::Discovery(origin) => format!("{DISCOVERY}{origin}"),
            Self::Pasted => "pasted".to_owned(),
            Self::Url(url) => url.clone(),
        }
    }

    /// The source that [`KeySource::to_stored`] wrote.
    pub fn from_stored(text: &str) -> Self {
        match (text, text.strip_prefix(DISCOVERY)) {
            ("pasted", _) => Self::Pasted,
            (_, Some(origin)) => Self::Discovery(origin.to_owned()),
            (url, None) => Self::Url(url.to_owned()),
        }
    }
}

/// Who makes tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// Its name.
    pub name: IssuerName,
    /// What its tokens have as `iss`, exactly; or `spiffe://DOMAIN`.
    pub url: String,
    /// Where its keys are.
    pub source: KeySource,
    /// Certificates (PEM) that vouch for it beside those that the system trusts; or empty.
    pub ca: String,
    /// Claims that every trust must say exactly.
    pub required: Vec<ClaimPointer>,
    /// The organizations that may trust it; empty: all.
    pub organizations: Vec<OrganizationId>,
    /// Time of the addition.
    pub created_at: Timestamp,
}

impl Issuer {
    /// Judges the URL of an issuer.
    ///
    /// # Errors
    /// [`FieldCode::Malformed`].
    pub fn check_url(text: &str, field: &str) -> Result<(), FieldError> {
        let flaw = |detail: &str| Err(FieldError::new(field, FieldCode::Malformed, detail.to_owned()));
        let Some(url) = Url::parse(text).ok().filter(|_| text.len() <= MAX_URL) else {
            return flaw("must be a URL, such as https://token.actions.githubusercontent.com");
        };
        let is_bare =
            url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
        match url.scheme() {
            _ if !is_bare => flaw("must be a URL without user, query and fragment"),
            "spiffe" if matches!(url.path(), "" | "/") && url.port().is_none() => Ok(()),
            "spiffe" => flaw("must be spiffe://DOMAIN, without a path"),
            "https" => Ok(()),
            "http" if is_loopback(&url) => Ok(()),
            "http" => flaw("must be https: over http, anybody in between could exchange the keys"),
            _ => flaw("must be https, or spiffe://DOMAIN"),
        }
    }

    /// Whether the issuer makes tokens of a SPIFFE trust domain.
    pub fn is_spiffe(&self) -> bool {
        self.url.starts_with("spiffe://")
    }

    /// The `use` of its keys that verify tokens.
    pub fn key_use(&self) -> KeyUse {
        if self.is_spiffe() { KeyUse::JwtSvid } else { KeyUse::Signature }
    }

    /// Whether an organization may trust it.
    pub fn serves(&self, organization: OrganizationId) -> bool {
        self.organizations.is_empty() || self.organizations.contains(&organization)
    }

    /// Whether it made a token with these claims. A SPIFFE token needs no `iss`: the trust domain of its subject counts.
    pub fn made(&self, iss: Option<&str>, sub: Option<&str>) -> bool {
        if self.is_spiffe() {
            sub.and_then(issuer_of_subject).as_deref() == Some(self.url.trim_end_matches('/'))
        } else {
            iss == Some(self.url.as_str())
        }
    }
}

/// The trust domain of a SPIFFE subject, as an issuer's URL.
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

/// An issuer as stored, with its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredIssuer {
    /// The issuer.
    pub issuer: Issuer,
    /// Its keys: a JSON Web Key Set (RFC 7517).
    pub keys: String,
    /// When these were fetched.
    pub fetched_at: Timestamp,
    /// When they were last asked for.
    pub asked_at: Timestamp,
    /// Why they could not be fetched then; empty: they could.
    pub failure: String,
    /// The code over all but `asked_at` and `failure`; where it does not fit, the issuer vouches for nothing.
    pub code: Digest,
}

impl StoredIssuer {
    /// The issuer with its keys, as fetched at `now`, under the code that its row is to carry.
    pub fn sign(issuer: Issuer, keys: String, now: Timestamp, digester: &dyn KeyedDigester) -> Self {
        let code = Digest::from_bytes([0; 32]);
        let unsigned = Self { issuer, keys, fetched_at: now, asked_at: now, failure: String::new(), code };
        unsigned.signed(digester)
    }

    /// The same under the code that its row gets from now on.
    #[must_use]
    pub fn signed(self, digester: &dyn KeyedDigester) -> Self {
        let code = self.with_parts(|parts| digester.digest(DigestPurpose::IssuerGrant, parts));
        Self { code, ..self }
    }

    /// Returns whether the row's MAC verifies.
    pub fn is_sound(&self, digester: &dyn KeyedDigester) -> bool {
        self.with_parts(|parts| digester.fits(DigestPurpose::IssuerGrant, parts, &self.code))
    }

    fn with_parts<T>(&self, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
        let Issuer { name, url, source, ca, required, organizations, created_at } = &self.issuer;
        let millis = |at: &Timestamp| at.as_millis().to_be_bytes();
        let (created_at, fetched_at) = (millis(created_at), millis(&self.fetched_at));
        let source = source.to_stored();
        let count = (required.len() as u64).to_be_bytes();
        let mut parts: Vec<&[u8]> = vec![
            name.as_str().as_bytes(),
            url.as_bytes(),
            source.as_bytes(),
            ca.as_bytes(),
            self.keys.as_bytes(),
            &created_at,
            &fetched_at,
            &count,
        ];
        parts.extend(required.iter().map(|pointer| pointer.as_str().as_bytes()));
        parts.extend(organizations.iter().map(|organization| organization.as_bytes().as_slice()));
        digest(&parts)
    }

    /// Whether its keys may still be used at `now`.
    pub fn is_usable(&self, now: Timestamp) -> bool {
        self.issuer.source == KeySource::Pasted || age(self.fetched_at, now) <= MAX_KEY_AGE_SECONDS
    }

    /// Whether its keys are to be fetched again at `now`: they are an hour old, or a key is `missing`; at most once a minute.
    pub fn is_due(&self, now: Timestamp, missing: bool) -> bool {
        self.issuer.source != KeySource::Pasted
            && age(self.asked_at, now) >= FETCH_EVERY_SECONDS
            && (missing || age(self.fetched_at, now) >= FRESH_SECONDS)
    }
}

fn age(at: Timestamp, now: Timestamp) -> i64 {
    now.as_millis().saturating_sub(at.as_millis()) / 1_000
}
