//! Search for secrets in all encodings: plain, hexadecimal, Base64 at any alignment, escaped for URLs or JSON, and
//! UTF-16.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Shorter encodings would match by chance.
const SHORTEST: usize = 8;

/// The secrets to search for.
#[derive(Default)]
pub struct Canaries {
    forms: Vec<Form>,
    /// Indexes of encodings by their first two bytes.
    starts: BTreeMap<[u8; 2], Vec<usize>>,
}

struct Form {
    name: String,
    bytes: Vec<u8>,
}

impl Canaries {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a secret under a name for findings.
    pub fn add(&mut self, name: &str, secret: impl AsRef<[u8]>) {
        let secret = secret.as_ref();
        assert!(secret.len() >= SHORTEST, "{name} is too short to be searched for");
        for (form, bytes) in forms(secret) {
            if bytes.len() >= SHORTEST && !self.forms.iter().any(|known| known.bytes == bytes) {
                self.starts.entry([bytes[0], bytes[1]]).or_default().push(self.forms.len());
                self.forms.push(Form { name: format!("{name} {form}"), bytes });
            }
        }
    }

    /// Returns the number of encodings.
    pub fn forms(&self) -> usize {
        self.forms.len()
    }

    /// Returns the names of the secrets in `text`.
    pub fn find(&self, text: &[u8]) -> Vec<&str> {
        // A single pass for all encodings: at most positions, this table rules out a match.
        let mut begins = vec![false; 1 << 16];
        for [first, second] in self.starts.keys() {
            begins[usize::from(u16::from_be_bytes([*first, *second]))] = true;
        }
        let mut found = Vec::new();
        for position in 0..text.len().saturating_sub(1) {
            let start = [text[position], text[position + 1]];
            if begins[usize::from(u16::from_be_bytes(start))] {
                for &form in &self.starts[&start] {
                    let Form { name, bytes } = &self.forms[form];
                    if text[position..].starts_with(bytes) && !found.contains(&name.as_str()) {
                        found.push(name.as_str());
                    }
                }
            }
        }
        found
    }

    /// Asserts that `text`, which findings call `place`, contains none of the secrets.
    #[track_caller]
    pub fn assert_absent(&self, place: &str, text: &[u8]) {
        let found = self.find(text);
        assert!(found.is_empty(), "{place} contains {found:?}");
    }
}

/// Returns all encodings of `secret`.
pub fn forms(secret: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut forms = vec![
        ("as it is".to_owned(), secret.to_vec()),
        ("in hexadecimal".to_owned(), hex::encode(secret).into_bytes()),
        ("in upper-case hexadecimal".to_owned(), hex::encode_upper(secret).into_bytes()),
    ];
    for (name, engine) in [("Base64", &STANDARD_NO_PAD), ("URL-safe Base64", &URL_SAFE_NO_PAD)] {
        for before in 0..3 {
            // After other bytes. Omits the characters that encode other bytes too, and the last ones.
            let shifted = engine.encode([&vec![0; before], secret].concat());
            let whole = (before + secret.len()) / 3 * 4;
            forms.push((format!("in {name} at {before}"), shifted[[0, 2, 3][before]..whole].into()));
        }
    }
    let Ok(text) = std::str::from_utf8(secret) else { return forms };
    let escape = |keep: &dyn Fn(u8) -> bool, write: &dyn Fn(&mut String, u8)| {
        let mut escaped = String::new();
        for &byte in secret {
            if keep(byte) { escaped.push(char::from(byte)) } else { write(&mut escaped, byte) }
        }
        escaped.into_bytes()
    };
    let percent = |out: &mut String, byte: u8| write!(out, "%{byte:02X}").unwrap();
    let lower_percent = |out: &mut String, byte: u8| write!(out, "%{byte:02x}").unwrap();
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    forms.push(("escaped for an address".into(), escape(&unreserved, &percent)));
    forms.push(("escaped for an address in lower case".into(), escape(&unreserved, &lower_percent)));
    forms.push(("wholly escaped for an address".into(), escape(&|_| false, &percent)));
    let json = serde_json::to_string(text).unwrap();
    forms.push(("escaped for JSON".into(), json.as_bytes()[1..json.len() - 1].to_vec()));
    forms.push(("escaped for JSON with its slashes".into(), json[1..json.len() - 1].replace('/', "\\/").into_bytes()));
    let units: String = text.encode_utf16().fold(String::new(), |mut out, unit| {
        write!(out, "\\u{unit:04x}").unwrap();
        out
    });
    forms.push(("wholly escaped for JSON".into(), units.into_bytes()));
    forms.push(("escaped twice for JSON".into(), {
        let twice = serde_json::to_string(&json[1..json.len() - 1]).unwrap();
        twice.as_bytes()[1..twice.len() - 1].to_vec()
    }));
    forms.push(("in UTF-16, little end first".into(), text.encode_utf16().flat_map(u16::to_le_bytes).collect()));
    forms.push(("in UTF-16, big end first".into(), text.encode_utf16().flat_map(u16::to_be_bytes).collect()));
    forms
}
