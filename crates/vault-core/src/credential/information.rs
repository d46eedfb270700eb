//! Information of a credential, which lists show.

use super::reader::Entry;
use super::spec::FieldClass;
use super::{CredentialType, Gcs, SecretText};
use crate::check::CheckReason;
use crate::field::Invalid;
use crate::json::{ObjectWriter, write_text};
use crate::time::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::fmt;

/// Distinguishes equal data from other data within one organization: 12 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 6]);

impl Fingerprint {
    /// Returns the fingerprint of data with this keyed digest.
    pub const fn from_digest(digest: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, ..] = *digest;
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The `information` object of a list as JSON text, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Information(String);

/// Fields that are read back from it.
#[derive(Default, Deserialize)]
struct Facts<'a> {
    #[serde(borrow)]
    expires_at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    fingerprint: Option<Cow<'a, str>>,
    role_arn: Option<IgnoredAny>,
    endpoint: Option<IgnoredAny>,
    sts_endpoint: Option<IgnoredAny>,
    tenant_id: Option<IgnoredAny>,
    container: Option<IgnoredAny>,
    bucket: Option<BucketFact>,
    account_name: Option<IgnoredAny>,
}

/// A bucket, or a list of buckets.
#[derive(Deserialize)]
#[serde(untagged)]
enum BucketFact {
    Several(Vec<IgnoredAny>),
    One(IgnoredAny),
}

const INVALID: Invalid = Invalid("not a JSON object");

impl BucketFact {
    const fn len(&self) -> usize {
        match self {
            Self::Several(names) => names.len(),
            Self::One(_) => 1,
        }
    }
}

impl Information {
    /// Creates the information from the text of a JSON object.
    ///
    /// # Errors
    /// The text is not a JSON object, so it must not be inserted into a response.
    pub fn from_json(text: String) -> Result<Self, Invalid> {
        serde_json::from_str::<IgnoredAny>(&text).map_err(|_| INVALID)?;
        Self::from_authenticated(text)
    }

    /// Creates the information from text of [`Information::as_json`] that was sealed and has been opened. Because the cipher
    /// authenticates it, the text is not parsed again, which would be a tenth of the time of a list.
    ///
    /// # Errors
    /// The text is not enclosed in braces, so it was sealed as something else.
    pub fn from_authenticated(text: String) -> Result<Self, Invalid> {
        if text.starts_with('{') && text.ends_with('}') { Ok(Self(text)) } else { Err(INVALID) }
    }

    /// Returns the expiry in the version's data.
    pub fn expires_at(&self) -> Option<Timestamp> {
        Timestamp::from_rfc3339(&self.facts().expires_at?)
    }

    /// Returns the fingerprint, which distinguishes equal data within the organization.
    pub fn fingerprint(&self) -> Option<String> {
        self.facts().fingerprint.map(Cow::into_owned)
    }

    /// Checks whether data of type `kind` with this information has a short-lived form.
    ///
    /// # Errors
    /// Those of [`allows_short`](crate::activation::allows_short), which checks the data itself.
    pub fn allows_short(&self, kind: CredentialType) -> Result<(), CheckReason> {
        let facts = self.facts();
        match kind {
            CredentialType::DirectLink => Err(CheckReason::TypeHasNone),
            CredentialType::S3
                if facts.role_arn.is_none() && facts.endpoint.is_none() && facts.sts_endpoint.is_none() =>
            {
                Err(CheckReason::NoRole)
            }
            CredentialType::AzureIdentity if facts.tenant_id.is_none() => Err(CheckReason::NoApplication),
            CredentialType::AzureIdentity if facts.container.is_none() => Err(CheckReason::NoContainer),
            CredentialType::AzureIdentity if facts.account_name.is_none() => Err(CheckReason::NoAccount),
            CredentialType::Gcs | CredentialType::GcsFederated
                if facts.bucket.as_ref().is_some_and(|bucket| bucket.len() > Gcs::MAX_NARROWED) =>
            {
                Err(CheckReason::TooManyBuckets)
            }
            _ => Ok(()),
        }
    }

    fn facts(&self) -> Facts<'_> {
        serde_json::from_str(self.as_json()).unwrap_or_default()
    }

    /// Returns the JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// A fact derived from secret fields that is not secret, shown in lists.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: FactValue,
}

pub(super) enum FactValue {
    /// Shown in full.
    Text(String),
    /// Shown masked.
    Masked(SecretText),
    Flag(bool),
}

impl Fact {
    pub(super) fn text(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: FactValue::Text(value.into()) }
    }
}

/// Returns the information of a credential: locations, masked IDs, facts, names of secrets and fingerprint. This is the
/// only function that decides by class which values are visible.
pub(super) fn assemble(entries: &[Entry<'_>], facts: &[Fact], fingerprint: Fingerprint) -> Information {
    let mut text = String::new();
    let of = |class| entries.iter().filter(move |entry| entry.spec.class == class);
    let mut sink = |piece: &str| text.push_str(piece);
    let mut object = ObjectWriter::new(&mut sink);
    for entry in of(FieldClass::Location) {
        entry.value.write(object.member(entry.spec.name));
    }
    for entry in of(FieldClass::Id) {
        let mut masked = String::new();
        entry.value.texts(&mut |id| masked = mask(id));
        write_text(&masked, object.member(entry.spec.name));
    }
    for fact in facts {
        let sink = object.member(fact.name);
        match &fact.value {
            FactValue::Text(text) => write_text(text, sink),
            FactValue::Masked(id) => write_text(&mask(id.expose()), sink), // Shown masked, like an ID.
            FactValue::Flag(flag) => sink(if *flag { "true" } else { "false" }),
        }
    }
    let sink = object.member("secrets");
    sink("[");
    for (index, entry) in of(FieldClass::Secret).enumerate() {
        if index > 0 {
            sink(",");
        }
        write_text(entry.spec.name, sink);
    }
    sink("]");
    write_text(&fingerprint.to_string(), object.member("fingerprint"));
    object.end();
    Information(text)
}

/// Returns an ellipsis and the last characters of `id`: at most four, and at most a quarter of them.
fn mask(id: &str) -> String {
    let length = id.chars().count();
    let shown = (length / 4).min(4);
    std::iter::once('\u{2026}').chain(id.chars().skip(length - shown)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_shows_a_quarter_and_at_most_four_characters() {
        assert_eq!(mask(""), "\u{2026}");
        assert_eq!(mask("abc"), "\u{2026}");
        assert_eq!(mask("abcd"), "\u{2026}d");
        assert_eq!(mask("äöüßäöüß"), "\u{2026}üß");
        assert_eq!(mask("AKIA2TESTONLY7SAMPLE"), "\u{2026}MPLE");
    }

    #[test]
    fn information_of_data_is_read_back() {
        let information = |text: &str| Information::from_json(text.into()).unwrap();
        let link = information("{\"expires_at\":\"1970-01-01T00:01:40Z\",\"fingerprint\":\"9f1c\"}");
        assert_eq!(link.expires_at(), Some(Timestamp::from_millis(100_000)));
        assert_eq!(link.fingerprint().as_deref(), Some("9f1c"));
        assert_eq!((information("{}").expires_at(), information("{}").fingerprint()), (None, None));
        assert_eq!(link.allows_short(CredentialType::S3), Err(CheckReason::NoRole));
        for place in ["role_arn", "endpoint", "sts_endpoint"] {
            assert_eq!(information(&format!("{{\"{place}\":\"a\"}}")).allows_short(CredentialType::S3), Ok(()));
        }
    }

    #[test]
    fn only_an_object_is_information() {
        assert!(Information::from_json("{}".into()).is_ok());
        for text in ["", "[]", "{", "{} {}", "1", "{\"a\"}", " {}", "{} "] {
            assert_eq!(Information::from_json(text.into()), Err(INVALID));
        }
        for text in ["", "[]", "{", "}", "1", " {}"] {
            assert_eq!(Information::from_authenticated(text.into()), Err(INVALID));
        }
    }
}
