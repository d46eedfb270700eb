//! Metadata of a credential that users set: labels, a description and the expiries of versions. It is sealed like
//! information, because names of systems and customers are valuable to an attacker.

use crate::digest::{Digest, DigestPurpose, LookupDigests};
use crate::field::{FieldCode, FieldError, child};
use crate::id::OrganizationId;
use crate::integration::is_printable;
use crate::json::Node;
use crate::port::KeyedDigester;
use crate::time::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// A credential's labels: at most [`Labels::MAX`] names, each with one value.
///
/// A name has 1 to 63 characters of `a-z 0-9 . _ - /`, a value 0 to 63 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Maximum number of labels of a credential.
    pub const MAX: usize = 16;
    /// Maximum length of names and values, in characters.
    pub const MAX_LENGTH: usize = 63;

    /// Parses the labels in the object `node` at `pointer`.
    ///
    /// # Errors
    /// All violations. A pointer contains a label's name only if it is valid.
    pub fn parse(node: Node, pointer: &str) -> Result<Self, Vec<FieldError>> {
        let patch = LabelPatch::parse(node, pointer)?;
        if patch.0.as_ref().is_none_or(|changes| changes.values().any(Option::is_none)) {
            return Err(vec![FieldError::new(pointer, FieldCode::WrongType, "must be an object of strings")]);
        }
        Self::default().patched(&patch, pointer).map_err(|violation| vec![violation])
    }

    /// Returns these labels after `patch`, which was at `pointer`.
    ///
    /// # Errors
    /// The result has too many labels.
    pub fn patched(&self, patch: &LabelPatch, pointer: &str) -> Result<Self, FieldError> {
        let Some(changes) = &patch.0 else { return Ok(Self::default()) };
        let mut labels = self.0.clone();
        for (name, value) in changes {
            match value {
                Some(value) => _ = labels.insert(name.clone(), value.clone()),
                None => _ = labels.remove(name),
            }
        }
        if labels.len() > Self::MAX {
            return Err(FieldError::new(pointer, FieldCode::TooLong, "must have at most 16 labels"));
        }
        Ok(Self(labels))
    }

    /// Iterates over names and values, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Creates labels from their stored names and values.
    pub(crate) fn from_stored(labels: Vec<(&str, &str)>) -> Self {
        Self(labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the digests by which a store finds the labels, within one organization. They disclose only which labels
    /// are equal.
    pub fn digests(&self, digester: &dyn KeyedDigester, organization: OrganizationId) -> Vec<Digest> {
        let parts =
            |(name, value)| with_parts(organization, name, value, |parts| digester.digest(DigestPurpose::Label, parts));
        self.iter().map(parts).collect()
    }

    /// Returns whether these are the digests of the labels, in any order.
    pub(crate) fn have(&self, digester: &dyn KeyedDigester, organization: OrganizationId, digests: &[Digest]) -> bool {
        let is_among = |(name, value)| {
            let fits =
                |parts: &[&[u8]]| digests.iter().any(|digest| digester.fits(DigestPurpose::Label, parts, digest));
            with_parts(organization, name, value, fits)
        };
        self.0.len() == digests.len() && self.iter().all(is_among)
    }
}

fn with_parts<T>(organization: OrganizationId, name: &str, value: &str, digest: impl FnOnce(&[&[u8]]) -> T) -> T {
    digest(&[organization.as_bytes(), name.as_bytes(), value.as_bytes()])
}

/// A merge patch of labels (RFC 7396): a string sets a label, `null` removes it, and other labels are unchanged. `null`
/// instead of the object removes all labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPatch(Option<BTreeMap<String, Option<String>>>);

impl LabelPatch {
    /// Parses the patch `node` at `pointer`.
    ///
    /// # Errors
    /// All violations. A pointer contains a label's name only if it is valid.
    pub fn parse(node: Node, pointer: &str) -> Result<Self, Vec<FieldError>> {
        let members = match node {
            Node::Object(members) => members,
            Node::Null => return Ok(Self(None)),
            _ => return Err(vec![FieldError::new(pointer, FieldCode::WrongType, "must be an object of strings")]),
        };
        let (mut changes, mut violations) = (BTreeMap::new(), Vec::new());
        for member in members {
            if !is_name(&member.name) {
                violations.push(FieldError::new(pointer, FieldCode::Malformed, NAME_RULE));
                continue;
            }
            match member.value {
                Node::Null => _ = changes.insert(member.name, None),
                // Labels are not secret, so they may be copied.
                Node::String(value) if is_label_value(value.expose()) => {
                    changes.insert(member.name, Some(value.expose().to_owned()));
                }
                Node::String(_) => {
                    violations.push(FieldError::new(child(pointer, &member.name), FieldCode::Malformed, VALUE_RULE));
                }
                _ => {
                    let detail = "must be a string, or null to remove the label";
                    violations.push(FieldError::new(child(pointer, &member.name), FieldCode::WrongType, detail));
                }
            }
        }
        violations.dedup();
        if violations.is_empty() { Ok(Self(Some(changes))) } else { Err(violations) }
    }
}

const NAME_RULE: &str = "a label's name must have 1 to 63 characters of a-z 0-9 . _ - /";
const VALUE_RULE: &str = "must have at most 63 characters of A-Z a-z 0-9 . _ -";

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/".contains(&byte);
    (1..=Labels::MAX_LENGTH).contains(&text.len()) && text.bytes().all(fits)
}

pub(crate) fn is_label_value(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.len() <= Labels::MAX_LENGTH && text.bytes().all(fits)
}

/// A label by which a list is filtered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LabelFilter {
    /// Name of the label.
    pub name: String,
    /// Value of the label.
    pub value: String,
}

impl LabelFilter {
    /// Parses a filter in the format `name:value`. Neither can contain a colon.
    ///
    /// # Errors
    /// The text does not have this format.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let (name, value) = text.split_once(':').unwrap_or((text, ":"));
        if is_name(name) && is_label_value(value) {
            return Ok(Self { name: name.to_owned(), value: value.to_owned() });
        }
        let detail = "must be name:value, as the label was set";
        Err(FieldError::new(pointer, FieldCode::Malformed, detail))
    }

    pub(crate) fn lookup(&self, digester: &dyn KeyedDigester, organization: OrganizationId) -> LookupDigests {
        with_parts(organization, &self.name, &self.value, |parts| digester.lookup(DigestPurpose::Label, parts))
    }
}

/// Description of a credential's use: 1 to 500 printable characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Description(String);

impl Description {
    /// Maximum length of a description, in characters.
    pub const MAX_LENGTH: usize = 500;

    /// Parses the description `text` of the field at `pointer`.
    ///
    /// # Errors
    /// Returns the rule that the text violates.
    pub fn parse(text: &str, pointer: &str) -> Result<Self, FieldError> {
        let violation = |code, detail: &'static str| Err(FieldError::new(pointer, code, detail));
        if text.trim().is_empty() {
            return violation(FieldCode::Blank, "must not be empty or blank; leave it out instead");
        }
        if text.chars().count() > Self::MAX_LENGTH {
            return violation(FieldCode::TooLong, "must be at most 500 characters");
        }
        if !text.chars().all(is_printable) {
            return violation(FieldCode::ControlCharacter, "must not contain control or invisible characters");
        }
        Ok(Self(text.to_owned()))
    }

    /// Creates a description from stored text.
    pub(crate) fn from_stored(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the text of the description.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Metadata of a credential that users set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// Labels.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Description of its use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
    /// Declared expiries by version number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    expires: BTreeMap<i64, i64>,
}

impl Metadata {
    /// Creates metadata from its stored parts, which were validated when they were written.
    pub(crate) fn from_stored(
        labels: Labels,
        description: Option<Description>,
        expires: impl Iterator<Item = (i64, Timestamp)>,
    ) -> Self {
        Self { labels, description, expires: expires.map(|(number, at)| (number, at.as_millis())).collect() }
    }

    /// Returns the declared expiry of the version `number`.
    pub fn expires_at(&self, number: i64) -> Option<Timestamp> {
        self.expires.get(&number).map(|millis| Timestamp::from_millis(*millis))
    }

    /// Iterates over the declared expiries, ordered by version number.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = (i64, Timestamp)> {
        self.expires.iter().map(|(number, millis)| (*number, Timestamp::from_millis(*millis)))
    }

    /// Sets the declared expiry of the version `number`, or removes it with `None`.
    pub fn set_expires_at(&mut self, number: i64, expires_at: Option<Timestamp>) {
        match expires_at {
            Some(at) => _ = self.expires.insert(number, at.as_millis()),
            None => _ = self.expires.remove(&number),
        }
    }

    /// Removes the expiries of other versions.
    pub(crate) fn keep_expiries_of(&mut self, numbers: &[i64]) {
        self.expires.retain(|number, _| numbers.contains(number));
    }

    /// Returns JSON text, from which the digest of an idempotent request is computed.
    pub fn to_json(&self) -> String {
        // It contains only texts and integers, so serialization cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}
