//! The key file of a Google service account.

use super::shape::{is_domain, is_token, web_address};
use super::spec::FieldClass;
use super::value::{Checks, FieldAt, FieldValue};
use super::violation::Violation;
use super::{SecretBytes, SecretText, hygiene};
use crate::field::{FieldCode, FieldError};
use crate::json::{self, Document, Limits, Member, Node};
use std::borrow::Cow;

const UNIVERSE_DOMAIN: &str = "universe_domain";

/// A key file as a JSON object, including members that Google may add later. An object and its text result in the same
/// value.
#[derive(Debug)]
pub struct KeyFile(Vec<Member>);

impl KeyFile {
    /// Returns the address of the service account, if it is well-formed.
    pub fn client_email(&self) -> Option<&str> {
        self.plain("client_email", is_email)
    }

    /// Returns the project ID, if it is well-formed.
    pub fn project_id(&self) -> Option<&str> {
        self.plain("project_id", is_project)
    }

    /// Returns the key ID, if it is well-formed. Show it only masked.
    pub fn private_key_id(&self) -> Option<&str> {
        self.plain("private_key_id", is_key_id)
    }

    /// Domain of Google's own cloud.
    pub const GOOGLE: &'static str = "googleapis.com";

    /// Returns the domain of the cloud that issued the key: [`KeyFile::GOOGLE`], unless the file names another.
    ///
    /// <https://google.aip.dev/auth/4100>
    pub fn universe_domain(&self) -> &str {
        match self.value(UNIVERSE_DOMAIN) {
            None => Self::GOOGLE,
            // Saved before this field was validated. Use a name that never resolves (RFC 2606).
            Some(_) => self.plain(UNIVERSE_DOMAIN, is_domain).unwrap_or("invalid"),
        }
    }

    /// Returns the URL that issues tokens for the key: the one in the file, or the default of its universe. Returns
    /// `None` if the file names another universe and a URL outside of it.
    pub fn token_uri(&self) -> Option<Cow<'_, str>> {
        let universe = self.universe_domain();
        let Some(stated) = self.member("token_uri").map(SecretText::expose) else {
            return Some(format!("https://oauth2.{universe}/token").into()); // A URL is not secret.
        };
        if universe == Self::GOOGLE {
            return Some(stated.into());
        }
        let (scheme, url) = web_address(stated)?;
        let host = url.host_str()?;
        let is_inside = host.strip_suffix(universe).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        (scheme == "https" && is_inside).then_some(stated.into())
    }

    /// Returns the string member `name`. Every call that exposes it states in a comment why it needs it.
    pub fn member(&self, name: &str) -> Option<&SecretText> {
        match self.value(name)? {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    fn value(&self, name: &str) -> Option<&Node> {
        self.0.iter().find(|member| member.name == name).map(|member| &member.value)
    }

    /// Returns the text of the file: its object in canonical JSON.
    pub fn to_json(&self) -> SecretBytes {
        let mut length = 0;
        self.write(&mut |piece| length += piece.len());
        let mut bytes = Vec::with_capacity(length);
        self.write(&mut |piece| bytes.extend_from_slice(piece.as_bytes()));
        SecretBytes::from(bytes)
    }

    fn plain(&self, name: &str, shape: fn(&str) -> bool) -> Option<&str> {
        // A member that is not secret. Its format ensures that it does not contain a secret by mistake.
        self.member(name).map(SecretText::expose).filter(|text| shape(text))
    }

    /// Returns the violations of a new key file.
    fn violations(&self) -> Vec<Violation> {
        let malformed = |detail: &'static str| Violation::new(FieldCode::Malformed, detail);
        let mut violations = Vec::new();
        let mut length = 0;
        self.write(&mut |piece| length += piece.len());
        if length > hygiene::MAX_LENGTH {
            violations.push(Violation::new(FieldCode::TooLong, "must be at most 16,384 bytes"));
        }
        if self.0.iter().any(|member| has_fraction(&member.value)) {
            // Such a number has no unique encoding, so equal key files could have different fingerprints.
            violations.push(malformed("must not contain numbers other than 64-bit integers"));
        }
        let mut check = |name: &'static str, class: FieldClass, shape: fn(&str) -> bool, detail: &'static str| {
            // Read only by the rule, whose messages contain only fixed text.
            let violation = match self.member(name).map(SecretText::expose) {
                None => Some(malformed("must be present and a string")),
                Some(text) => {
                    let content = hygiene::check_content(text, class).err();
                    content.or_else(|| (!shape(text)).then(|| malformed(detail)))
                }
            };
            violations.extend(violation.map(|violation| violation.of(&format!("{name} in the key file"))));
        };
        check("type", FieldClass::Location, |text| text == "service_account", "must be service_account");
        check("project_id", FieldClass::Location, is_project, "must be a project id");
        check("private_key_id", FieldClass::Id, is_key_id, "must be a key id");
        check("client_email", FieldClass::Location, is_email, "must be the e-mail address of the service account");
        let pem = "must be a private key in PEM with its BEGIN and END lines; line ends are written as \\n in JSON";
        check("private_key", FieldClass::Secret, is_pem, pem);
        if self.value(UNIVERSE_DOMAIN).is_some() {
            let detail = "must be a domain in lower case, such as googleapis.com";
            check(UNIVERSE_DOMAIN, FieldClass::Location, is_domain, detail);
        }
        if violations.is_empty() && self.token_uri().is_none() {
            violations
                .push(malformed("must be an https URL in the domain universe_domain").of("token_uri in the key file"));
        }
        violations
    }
}

fn is_email(text: &str) -> bool {
    text.len() <= 320
        && text.split_once('@').is_some_and(|(local, domain)| {
            is_token(local, 64, b"._%+-") && domain.contains('.') && is_token(domain, 255, b".-")
        })
}

fn is_project(text: &str) -> bool {
    is_token(text, 128, b".:_-")
}

fn is_key_id(text: &str) -> bool {
    is_token(text, 128, b"_-")
}

/// Returns whether the text is a private key between its BEGIN and END lines. Only the provider can verify the key.
fn is_pem(text: &str) -> bool {
    let body = ["PRIVATE KEY", "RSA PRIVATE KEY"].iter().find_map(|label| {
        let rest = text.trim().strip_prefix(&*format!("-----BEGIN {label}-----"))?;
        rest.strip_suffix(&*format!("-----END {label}-----"))
    });
    let in_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=_-".contains(&byte);
    body.is_some_and(|body| body.bytes().all(in_alphabet) && body.bytes().any(|byte| byte.is_ascii_alphanumeric()))
}

fn has_fraction(node: &Node) -> bool {
    match node {
        Node::Number(number) => number.is_f64(),
        Node::Array(elements) => elements.iter().any(has_fraction),
        Node::Object(members) => members.iter().any(|member| has_fraction(&member.value)),
        Node::Null | Node::Bool(_) | Node::String(_) => false,
    }
}

/// Parses the object in `text`.
fn unpack(text: &SecretText, checks: Checks) -> Result<Vec<Member>, Violation> {
    // White space around the file's content is permitted.
    let text = text.expose().trim_matches([' ', '\t', '\r', '\n']);
    let limits = match checks {
        Checks::Stored => Limits::STORED,
        Checks::New => {
            hygiene::length(text)?;
            Limits::REQUEST
        }
    };
    match json::parse(text.as_bytes(), limits) {
        Ok(Document { root: Node::Object(members), duplicates }) if duplicates.is_empty() => Ok(members),
        Ok(Document { root: Node::Object(_), .. }) => {
            Err(Violation::new(FieldCode::Malformed, "must not repeat a field"))
        }
        _ => {
            hygiene::check_content(text, FieldClass::Secret)?;
            let detail = "must be the whole key file, as a JSON object or as text in a JSON string";
            Err(Violation::new(FieldCode::Malformed, detail))
        }
    }
}

impl FieldValue for KeyFile {
    fn read(node: Node, field: &FieldAt<'_>) -> Result<Self, Vec<FieldError>> {
        let file = match node {
            Node::Object(members) => Self(members),
            Node::String(text) => Self(unpack(&text, field.checks).map_err(|violation| field.refuse(violation))?),
            _ => return Err(field.wrong_type("must be the key file, as a JSON object or as text in a JSON string")),
        };
        let violations = match field.checks {
            Checks::Stored => Vec::new(),
            Checks::New => file.violations(),
        };
        if violations.is_empty() {
            Ok(file)
        } else {
            Err(violations.into_iter().flat_map(|violation| field.refuse(violation)).collect())
        }
    }

    fn write(&self, sink: &mut dyn FnMut(&str)) {
        json::write_members(&self.0, sink);
    }

    fn texts(&self, each: &mut dyn FnMut(&str)) {
        // For comparison with the fields that are not secret.
        if let Some(key) = self.member("private_key") {
            each(key.expose());
        }
    }
}
