//! Decides whether the claims of an identity token match a trust.

use super::claims::ClaimPointer;
use super::issuer::{Issuer, IssuerName};
use super::trust::{Trust, Trusts};
use crate::id::IssuerId;
use crate::integration::is_printable;
use crate::time::Timestamp;
use serde_json::Value;
use std::fmt;

/// Permitted difference between clocks, in seconds.
pub const TOKEN_LEEWAY_SECONDS: i64 = 30;
/// Maximum length of a claim's value in messages, in characters.
const SHOWN: usize = 200;

/// A claim that does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON pointer of the claim.
    pub pointer: String,
    /// Value in the token, as shown in messages. `None` if the token does not have the claim.
    pub found: Option<String>,
    /// Issuer of the token.
    pub issuer: IssuerName,
    /// Value that the closest trust requires. It is only for the audit log and the server's log: anyone can have a genuine
    /// token of a public issuer, and must not learn what the integration trusts.
    pub required: String,
}

impl Mismatch {
    /// Returns the reason for operators and admins.
    fn cause(&self) -> String {
        let Self { issuer, required, .. } = self;
        format!("{self}; the token is from issuer {issuer}, and the closest trust requires {required}")
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, found, .. } = self;
        match found {
            Some(found) => write!(f, "claim {pointer} is {found}, which no trust of this integration allows"),
            None => write!(f, "the token has no claim {pointer}, which every trust of this integration requires"),
        }
    }
}

/// Reason why an identity token does not authorize a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadRefusal {
    /// The token is malformed, names no integration, or was not signed by a trusted issuer. The reason is only for logs
    /// and the audit log, so that the sender learns nothing about an unverified token.
    Unverified(String),
    /// The keys of its issuer are more than a day old, because the issuer does not respond.
    NoKeys,
    /// The token is not valid at this time.
    Time(&'static str),
    /// The token is genuine, but matches no trust.
    NotTrusted(Mismatch),
}

impl WorkloadRefusal {
    /// Names of all reasons.
    pub const NAMES: [&str; 4] = ["unverified", "no-keys", "time", "claim"];

    /// Returns the name of the reason in metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unverified(_) => "unverified",
            Self::NoKeys => "no-keys",
            Self::Time(_) => "time",
            Self::NotTrusted(_) => "claim",
        }
    }

    /// Returns the reason for operators and admins. It may contain values of an unverified token, with limited length
    /// and without control characters.
    pub fn cause(&self) -> String {
        match self {
            Self::Unverified(reason) => reason.clone(),
            Self::NoKeys => {
                "the keys of its issuer are more than a day old, because the issuer does not respond".to_owned()
            }
            Self::Time(reason) => (*reason).to_owned(),
            Self::NotTrusted(mismatch) => mismatch.cause(),
        }
    }
}

impl fmt::Display for WorkloadRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unverified(_) => f.write_str(
                "The identity token is not accepted. Its audience must be urn:orgvault:integration:<id>, and the integration \
                 must trust its issuer. `orgvault identity inspect` shows its claims. The server's log contains the reason.",
            ),
            Self::NoKeys => f.write_str("The issuer of the token does not respond, so its keys are unknown. Retry later."),
            Self::Time(reason) => write!(f, "The identity token is not valid at this time: {reason}."),
            Self::NotTrusted(mismatch) => write!(f, "The identity token is genuine, but {mismatch}."),
        }
    }
}

/// Identity that a token proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Name of the issuer of the token.
    pub issuer: IssuerName,
    /// ID of the issuer.
    pub issuer_id: IssuerId,
    /// Subject of the token.
    pub subject: String,
    /// ID of the token, if any.
    pub token_id: Option<String>,
    /// Verified claims.
    pub claims: Value,
}

impl Workload {
    /// Creates the workload from verified claims.
    pub fn new(issuer: &Issuer, claims: Value) -> Self {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).map(reported);
        let (subject, token_id) = (text("sub").unwrap_or_default(), text("jti"));
        Self { issuer: issuer.name.clone(), issuer_id: issuer.id, subject, token_id, claims }
    }

    /// Returns its description for the audit log.
    pub fn describe(&self) -> String {
        let token = self.token_id.as_ref().map(|id| format!(" jti={id}")).unwrap_or_default();
        format!("{} {}{token}", self.issuer, self.subject)
    }
}

/// Validity of a token, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTimes {
    /// Value of `exp`.
    pub expires_at: i64,
    /// Validity from its issue, or from now if that is unknown.
    pub lifetime: i64,
}

/// Validates the times in verified claims (RFC 7519, 4.1).
///
/// # Errors
/// The reason why the token is not valid at `now`.
pub fn verify_times(claims: &Value, now: Timestamp) -> Result<TokenTimes, WorkloadRefusal> {
    let now = now.as_seconds();
    let seconds = |name: &str| match claims.get(name) {
        None => Ok(None),
        // A NumericDate may have a fraction.
        Some(value) => match value.as_f64().filter(|number| (0.0..1e12).contains(number)) {
            #[expect(clippy::cast_possible_truncation, reason = "it was bounded")]
            Some(number) => Ok(Some(number.floor() as i64)),
            None => Err(WorkloadRefusal::Time("exp, nbf and iat must be numbers of seconds")),
        },
    };
    let (expires_at, not_before, issued_at) = (seconds("exp")?, seconds("nbf")?, seconds("iat")?);
    let Some(expires_at) = expires_at else { return Err(WorkloadRefusal::Time("it has no exp")) };
    if now >= expires_at.saturating_add(TOKEN_LEEWAY_SECONDS) {
        return Err(WorkloadRefusal::Time("it has expired"));
    }
    if not_before.is_some_and(|at| at > now.saturating_add(TOKEN_LEEWAY_SECONDS)) {
        return Err(WorkloadRefusal::Time("its nbf is in the future"));
    }
    if issued_at.is_some_and(|at| at > now.saturating_add(TOKEN_LEEWAY_SECONDS)) {
        return Err(WorkloadRefusal::Time("its iat is in the future"));
    }
    Ok(TokenTimes { expires_at, lifetime: expires_at.saturating_sub(issued_at.unwrap_or(now)) })
}

/// Returns the trust in the workload's issuer that matches its claims.
///
/// # Errors
/// The reason why none matches: the first mismatch of the closest trust, with the value in the token.
pub fn match_trusts<'a>(
    trusts: &'a Trusts,
    workload: &Workload,
    times: TokenTimes,
) -> Result<&'a Trust, WorkloadRefusal> {
    let Workload { issuer, issuer_id, claims, .. } = workload;
    let mut nearest: Option<(usize, WorkloadRefusal)> = None;
    for trust in trusts.iter().filter(|trust| trust.issuer_id == *issuer_id) {
        let fits = |pointer: &ClaimPointer| {
            let pattern = trust.claims.get(pointer);
            let found = claims.pointer(pointer.as_str());
            pattern.zip(found).is_some_and(|(pattern, found)| pattern.fits(found))
        };
        let violation = match trust.claims.iter().find(|(pointer, _)| !fits(pointer)) {
            None if times.lifetime <= trust.max_lifetime => return Ok(trust),
            None => WorkloadRefusal::Time("it is valid for longer than the trust allows (max_lifetime)"),
            Some((pointer, pattern)) => {
                let found = claims.pointer(pointer.as_str()).map(reported_value);
                let (pointer, required) = (pointer.to_string(), reported_value(&pattern.to_value()));
                WorkloadRefusal::NotTrusted(Mismatch { pointer, found, issuer: issuer.clone(), required })
            }
        };
        let fitting = trust.claims.keys().filter(|pointer| fits(pointer)).count();
        if nearest.as_ref().is_none_or(|(most, _)| fitting > *most) {
            nearest = Some((fitting, violation));
        }
    }
    let untrusted = || WorkloadRefusal::Unverified(format!("the integration no longer trusts its issuer, {issuer}"));
    Err(nearest.map_or_else(untrusted, |(_, violation)| violation))
}

fn reported_value(value: &Value) -> String {
    match value {
        Value::String(text) => reported(text),
        other => reported(&other.to_string()),
    }
}

/// Makes foreign text safe for display: limits its length and removes control characters.
pub(crate) fn reported(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).map(|one| if is_printable(one) { one } else { '\u{fffd}' }).collect();
    if text.chars().count() > SHOWN { format!("{shown}…") } else { shown }
}
