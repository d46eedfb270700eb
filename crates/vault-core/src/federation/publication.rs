//! Publication check: whether providers can read the keys.

use super::{FederationIssuer, Jwk};
use crate::strict_url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Documents as fetched from the URL of the issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedDocuments {
    /// The discovery document.
    pub discovery: Vec<u8>,
    /// The key set.
    pub key_set: Vec<u8>,
    /// `Cache-Control` header of the key set, if any.
    pub cache_control: Option<String>,
}

/// Finding of a publication check, most severe first.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    EnumString,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PublicationFailure {
    /// A document cannot be fetched or parsed.
    Unreachable,
    /// The discovery document names another issuer, or a key set outside of it.
    IssuerDiffers,
    /// The key set lacks a key, or contains it with other fields.
    KeyMissing,
    /// The key set contains a retired key that the vault does not publish any more.
    KeyRetired,
    /// The key set contains a key that is no signing key of this vault.
    UnknownKey,
    /// The key set must not be cached. AWS refuses it.
    NotCacheable,
}

named!(PublicationFailure);

impl PublicationFailure {
    /// Returns whether providers can read the expected keys in spite of the finding.
    pub const fn finds_keys(self) -> bool {
        matches!(self, Self::KeyRetired | Self::UnknownKey)
    }

    /// Returns the finding about `issuer` with the next step. `kid` is the affected key, if one is known.
    pub fn explain(self, issuer: &FederationIssuer, kid: Option<&str>) -> String {
        let publish = "Publish the files of `orgvault federation documents DIR`";
        let key = kid.map(|kid| format!(" {kid}")).unwrap_or_default();
        match self {
            Self::Unreachable => format!("the documents of {issuer} cannot be read. {publish} at this URL"),
            Self::IssuerDiffers => format!("{issuer} publishes another issuer or key set URL. {publish}"),
            Self::KeyMissing => format!("{issuer} does not publish signing key{key}. {publish}"),
            Self::KeyRetired => format!("{issuer} still publishes the retired signing key{key}. {publish}"),
            Self::UnknownKey => format!(
                "{issuer} publishes a key that is no signing key of this vault{}. Anyone who has its private key can sign \
                 tokens. If you have not removed it, find out who changed the documents. Then {}",
                kid.map(|kid| format!(": {kid}")).unwrap_or_default(),
                publish.replacen('P', "p", 1)
            ),
            Self::NotCacheable => {
                format!(
                    "{issuer} sends the key set with `Cache-Control: no-store`, which AWS refuses. Remove this header"
                )
            }
        }
    }
}

impl fmt::Display for PublicationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FederationIssuer {
    /// Returns the URL of the key set in a discovery document, if it is below the issuer.
    pub fn published_key_set_url(&self, discovery: &[u8]) -> Option<String> {
        let document: Value = serde_json::from_slice(discovery).ok()?;
        let text = document.get("jwks_uri")?.as_str()?;
        // Accepts only the canonical spelling, because the parser resolves dot segments.
        let url = strict_url::parse(text).filter(|url| url.as_str() == text)?;
        let is_below = text.strip_prefix(self.as_str()).is_some_and(|rest| rest.starts_with('/'));
        is_below.then(|| url.into())
    }
}

/// A finding with the affected key, if one is known.
pub type PublicationFinding = (PublicationFailure, Option<String>);

/// Compares the documents below `issuer`, which must contain the keys `expected` and none of `retired`. Returns all findings,
/// most severe first.
pub fn check_publication(
    issuer: &FederationIssuer,
    expected: &[&Jwk],
    retired: &[&Jwk],
    documents: &PublishedDocuments,
) -> Vec<PublicationFinding> {
    let parsed = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let keys = |set: Value| Some(set.get("keys")?.as_array()?.clone());
    let (Some(discovery), Some(published)) = (parsed(&documents.discovery), parsed(&documents.key_set).and_then(keys))
    else {
        return vec![(PublicationFailure::Unreachable, None)];
    };
    let mut findings = Vec::new();
    let text = |name: &str| discovery.get(name).and_then(Value::as_str);
    if text("issuer") != Some(issuer.as_str()) || issuer.published_key_set_url(&documents.discovery).is_none() {
        findings.push((PublicationFailure::IssuerDiffers, None));
    }
    for key in expected {
        if !published.iter().any(|value| key.is(value)) {
            findings.push((PublicationFailure::KeyMissing, Some(key.kid().to_owned())));
        }
    }
    for value in &published {
        let is_any = |keys: &[&Jwk]| keys.iter().any(|key| key.is(value));
        if is_any(expected) {
            continue;
        }
        let failure = if is_any(retired) { PublicationFailure::KeyRetired } else { PublicationFailure::UnknownKey };
        let kid = value.get("kid").and_then(Value::as_str).map(str::to_owned);
        findings.push((failure, kid.filter(|kid| Jwk::is_kid(kid))));
    }
    if documents.cache_control.as_deref().is_some_and(|header| header.to_ascii_lowercase().contains("no-store")) {
        findings.push((PublicationFailure::NotCacheable, None));
    }
    findings.sort();
    findings
}
