//! Trusts: the workloads that may use an integration.

use super::claims::{ClaimPattern, ClaimPointer};
use super::issuer::{Issuer, IssuerName};
use crate::field::{FieldCode, FieldError, Invalid};
use crate::id::IssuerId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Maximum number of trusts of an integration.
pub const MAX_TRUSTS: usize = 10;
/// Maximum number of claims of a trust.
pub const MAX_CLAIMS: usize = 16;
/// Default maximum lifetime of a token from its issue, in seconds.
pub const DEFAULT_LIFETIME_SECONDS: i64 = 3_600;
/// Highest permitted maximum lifetime of a trust, in seconds.
pub const MAX_LIFETIME_SECONDS: i64 = 86_400;
const MIN_LIFETIME_SECONDS: i64 = 60;

/// ID of a trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrustId(Uuid);

impl TrustId {
    /// Creates an ID from its bits.
    pub const fn from_uuid(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for TrustId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for TrustId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let id = Uuid::try_parse(text).map_err(|_| Invalid("not an id"))?;
        if id.hyphenated().to_string() == text { Ok(Self(id)) } else { Err(Invalid("not an id")) }
    }
}

/// A kind of workload: an issuer with the required claims of its tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// ID of the trust.
    pub id: TrustId,
    /// Name of the issuer of the tokens.
    pub issuer: IssuerName,
    /// ID of the issuer. An issuer that was added later under the same name does not match.
    pub issuer_id: IssuerId,
    /// Required claims, including [`ClaimPointer::SUBJECT`].
    pub claims: BTreeMap<ClaimPointer, ClaimPattern>,
    /// Maximum lifetime of a token, in seconds.
    pub max_lifetime: i64,
}

/// A requested trust, validated without its issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustRequest {
    /// Issuer of the tokens.
    pub issuer: IssuerName,
    /// Required claims.
    pub claims: BTreeMap<ClaimPointer, ClaimPattern>,
    /// Maximum lifetime of a token, in seconds.
    pub max_lifetime: i64,
}

impl TrustRequest {
    /// Parses the trust in a JSON object `{"issuer", "claims", "max_lifetime"?}` at `field`.
    ///
    /// # Errors
    /// All violations.
    pub fn parse(value: &Value, field: &str) -> Result<Self, Vec<FieldError>> {
        let at = |name: &str| format!("{field}/{name}");
        let error = |name: &str, code, detail: &str| FieldError::new(at(name), code, detail.to_owned());
        let Value::Object(members) = value else {
            return Err(vec![FieldError::new(field, FieldCode::WrongType, "must be an object")]);
        };
        let mut errors: Vec<_> = members
            .keys()
            .filter(|name| !matches!(name.as_str(), "issuer" | "claims" | "max_lifetime"))
            .map(|name| error(name, FieldCode::Unknown, "unknown field; expected one of issuer, claims, max_lifetime"))
            .collect();
        let issuer = match members.get("issuer") {
            None => Err(error("issuer", FieldCode::Required, "is required")),
            Some(Value::String(name)) => IssuerName::parse(name, &at("issuer")),
            Some(_) => Err(error("issuer", FieldCode::WrongType, "must be a string")),
        };
        let issuer = issuer.map_err(|error| errors.push(error)).ok();
        let claims = match members.get("claims") {
            None => Err(vec![error("claims", FieldCode::Required, "is required")]),
            Some(Value::Object(claims)) => parse_claims(claims, &at("claims")),
            Some(_) => Err(vec![error("claims", FieldCode::WrongType, "must be an object")]),
        };
        let claims = claims.map_err(|violations| errors.extend(violations)).ok();
        let max_lifetime = match members.get("max_lifetime").map(Value::as_i64) {
            None => Some(DEFAULT_LIFETIME_SECONDS),
            Some(Some(seconds)) if (MIN_LIFETIME_SECONDS..=MAX_LIFETIME_SECONDS).contains(&seconds) => Some(seconds),
            Some(found) => {
                let code = if found.is_some() { FieldCode::OutOfRange } else { FieldCode::WrongType };
                errors.push(error("max_lifetime", code, "must be 60 to 86400 seconds"));
                None
            }
        };
        match (issuer, claims, max_lifetime) {
            (Some(issuer), Some(claims), Some(max_lifetime)) if errors.is_empty() => {
                Ok(Self { issuer, claims, max_lifetime })
            }
            _ => Err(errors),
        }
    }

    /// Checks that it specifies every claim that trusts of the issuer must specify.
    ///
    /// # Errors
    /// [`FieldCode::Required`] at a claim that it must specify exactly.
    pub fn satisfies(&self, issuer: &Issuer, field: &str) -> Result<(), Vec<FieldError>> {
        let is_exact = |pointer: &&ClaimPointer| matches!(self.claims.get(pointer), Some(ClaimPattern::Exact(_)));
        let violation = |pointer: &ClaimPointer| {
            let detail = format!("must specify {pointer} exactly: the issuer is shared with others");
            FieldError::new(format!("{field}/claims"), FieldCode::Required, detail)
        };
        let violations: Vec<_> = issuer.required.iter().filter(|pointer| !is_exact(pointer)).map(violation).collect();
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// Returns the trust with its ID and the ID of its issuer.
    pub fn with_ids(self, id: TrustId, issuer_id: IssuerId) -> Trust {
        let Self { issuer, claims, max_lifetime } = self;
        Trust { id, issuer, issuer_id, claims, max_lifetime }
    }
}

fn parse_claims(
    claims: &Map<String, Value>,
    field: &str,
) -> Result<BTreeMap<ClaimPointer, ClaimPattern>, Vec<FieldError>> {
    let (mut read, mut errors) = (BTreeMap::new(), Vec::new());
    for (name, value) in claims {
        let place = format!("{field}/{}", name.replace('~', "~0").replace('/', "~1"));
        match (ClaimPointer::parse(name, &place), ClaimPattern::parse(value, &place)) {
            (Ok(pointer), Ok(pattern)) => drop(read.insert(pointer, pattern)),
            (pointer, pattern) => errors.extend(pointer.err().into_iter().chain(pattern.err())),
        }
    }
    let has_subject = claims.get(ClaimPointer::SUBJECT).is_some_and(Value::is_string);
    if !has_subject {
        errors.push(FieldError::new(field, FieldCode::Required, "must specify /sub, as a string"));
    }
    if claims.len() > MAX_CLAIMS {
        errors.push(FieldError::new(field, FieldCode::TooLong, "may have at most 16 claims"));
    }
    if errors.is_empty() { Ok(read) } else { Err(errors) }
}

impl Trust {
    /// Returns it as JSON, with the IDs of trust and issuer.
    pub fn to_value(&self) -> Value {
        let claims: Map<_, _> =
            self.claims.iter().map(|(pointer, pattern)| (pointer.to_string(), pattern.to_value())).collect();
        json!({
            "id": self.id.to_string(),
            "issuer": self.issuer.as_str(),
            "issuer_id": self.issuer_id.to_string(),
            "claims": claims,
            "max_lifetime": self.max_lifetime,
        })
    }
}

/// Trusts of an integration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusts(Vec<Trust>);

impl Trusts {
    /// Creates the list of trusts.
    ///
    /// # Errors
    /// [`FieldCode::TooLong`] at `field` if there are too many.
    pub fn new(trusts: Vec<Trust>, field: &str) -> Result<Self, FieldError> {
        if trusts.len() > MAX_TRUSTS {
            return Err(FieldError::new(field, FieldCode::TooLong, "an integration may have at most 10 trusts"));
        }
        Ok(Self(trusts))
    }

    /// Iterates over all trusts.
    pub fn iter(&self) -> impl Iterator<Item = &Trust> {
        self.0.iter()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the trusts without the trust `id`, or `None` if it does not exist.
    pub fn without(&self, id: TrustId) -> Option<Self> {
        let rest: Vec<_> = self.0.iter().filter(|trust| trust.id != id).cloned().collect();
        (rest.len() < self.0.len()).then_some(Self(rest))
    }
}
