//! What a list shows of a credential.

use super::SecretText;
use super::health::effective_expiry;
use super::reader::Entry;
use super::spec::FieldClass;
use crate::field::Invalid;
use crate::json::{ObjectWriter, write_text};
use crate::time::Timestamp;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Tells equal data from other data inside one organization: 12 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 6]);

impl Fingerprint {
    /// The fingerprint of data with this keyed digest.
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

/// The `information` object of a list, as ready JSON text, and what is sealed with it. Holds nothing secret.
#[derive(Clone, Debug)]
pub struct Information {
    json: Box<RawValue>,
    declared_expiry: Option<Timestamp>,
}

const INVALID: Invalid = Invalid("not a JSON object");

impl Information {
    /// The information that was written as `text` before.
    ///
    /// # Errors
    /// The text is not a JSON object, so it must not be spliced into an answer.
    pub fn from_json(text: String) -> Result<Self, Invalid> {
        // Past this byte, valid JSON can only be an object.
        if !text.starts_with('{') {
            return Err(INVALID);
        }
        let json = RawValue::from_string(text).map_err(|_| INVALID)?;
        Ok(Self { json, declared_expiry: None })
    }

    /// The information that [`Information::to_plaintext`] wrote.
    ///
    /// # Errors
    /// The text is not of that form.
    pub fn from_plaintext(mut text: String) -> Result<Self, Invalid> {
        let declared_expiry = match text.rfind('\n') {
            Some(end) => {
                let millis = text[end + 1..].parse().map_err(|_| INVALID)?;
                text.truncate(end);
                Some(Timestamp::from_millis(millis))
            }
            None => None,
        };
        Ok(Self { declared_expiry, ..Self::from_json(text)? })
    }

    /// What is sealed: the JSON text, which has no line feed, then, where an expiry was declared, a line feed and its
    /// milliseconds since 1970. Part of the stored formats: it never changes.
    pub fn to_plaintext(&self) -> Cow<'_, str> {
        match self.declared_expiry {
            Some(at) => Cow::Owned(format!("{}\n{}", self.as_json(), at.as_millis())),
            None => Cow::Borrowed(self.as_json()),
        }
    }

    /// The same information with another declared expiry.
    #[must_use]
    pub fn declaring(self, declared_expiry: Option<Timestamp>) -> Self {
        Self { declared_expiry, ..self }
    }

    /// When its owner said that this version expires.
    pub fn declared_expiry(&self) -> Option<Timestamp> {
        self.declared_expiry
    }

    /// When this version expires: the earlier of what its owner declared and what the data itself says.
    pub fn expires_at(&self) -> Option<Timestamp> {
        #[derive(serde::Deserialize)]
        struct Facts<'a> {
            #[serde(borrow)]
            expires_at: Option<Cow<'a, str>>,
        }
        // A list of a thousand asks a thousand times; few say when they expire.
        let says = self.as_json().contains("\"expires_at\"");
        let facts: Option<Facts<'_>> = says.then(|| serde_json::from_str(self.as_json()).ok()).flatten();
        let seen = facts.and_then(|facts| Timestamp::from_rfc3339(&facts.expires_at?));
        effective_expiry(self.declared_expiry, seen)
    }

    /// The JSON text.
    pub fn as_json(&self) -> &str {
        self.json.get()
    }

    /// The JSON text, to be made part of another without being parsed.
    pub fn as_raw(&self) -> &RawValue {
        &self.json
    }
}

impl PartialEq for Information {
    fn eq(&self, other: &Self) -> bool {
        (self.as_json(), self.declared_expiry) == (other.as_json(), other.declared_expiry)
    }
}

impl Eq for Information {}

/// A non-secret fact derived from secret fields, shown in lists.
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

/// The information on a credential: places, ids masked, facts, names of secrets, fingerprint. The only place
/// that decides by class what may be seen.
pub(super) fn assemble(entries: &[Entry<'_>], facts: &[Fact], fingerprint: Fingerprint) -> Information {
    let mut text = String::new();
    let of = |class| entries.iter().filter(move |entry| entry.spec.class == class);
    let mut sink = |piece: &str| text.push_str(piece);
    let mut object = ObjectWriter::new(&mut sink);
    for entry in of(FieldClass::Place) {
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
            FactValue::Masked(id) => write_text(&mask(id.expose()), sink), // Shown masked, as an id is.
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
    // What was just written is JSON.
    let json = RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    Information { json, declared_expiry: None }
}

/// An ellipsis and the last characters of `id`: at most four, and at most a quarter of them.
fn mask(id: &str) -> String {
    let length = id.chars().count();
    let shown = (length / 4).min(4);
    std::iter::once('\u{2026}').chain(id.chars().skip(length - shown)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shows_a_quarter_and_at_most_four_characters() {
        assert_eq!(mask(""), "\u{2026}");
        assert_eq!(mask("abc"), "\u{2026}");
        assert_eq!(mask("abcd"), "\u{2026}d");
        assert_eq!(mask("äöüßäöüß"), "\u{2026}üß");
        assert_eq!(mask("AKIA2TESTONLY7SAMPLE"), "\u{2026}MPLE");
    }

    #[test]
    fn a_declared_expiry_is_sealed_with_the_information() {
        let at = |seconds: i64| Some(Timestamp::from_millis(seconds * 1_000));
        let link = Information::from_json("{\"expires_at\":\"1970-01-01T00:01:40Z\"}".into()).unwrap();
        for (declared, effective) in [(None, at(100)), (at(99), at(99)), (at(101), at(100))] {
            let information = link.clone().declaring(declared);
            let opened = Information::from_plaintext(information.to_plaintext().into_owned()).unwrap();
            assert_eq!((&opened, opened.expires_at()), (&information, effective));
        }
        assert_eq!(Information::from_json("{}".into()).unwrap().expires_at(), None);
        for text in ["{}\n", "{}\nsoon", "\n1", "1\n1"] {
            assert_eq!(Information::from_plaintext(text.into()), Err(INVALID), "{text}");
        }
    }

    #[test]
    fn only_an_object_is_information() {
        assert!(Information::from_json("{}".into()).is_ok());
        for text in ["", "[]", "{", "{} {}", "1", "{\"a\"}"] {
            assert_eq!(Information::from_json(text.into()), Err(INVALID));
        }
    }
}
