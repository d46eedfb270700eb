//! Expiry of the signatures in signed URLs: the schemes of storage providers and content delivery networks.

use super::instant;
use crate::time::Timestamp;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use std::borrow::Cow;
use url::Url;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Providers whose links contain a date and a number of seconds: `X-Amz-Date` and `X-Amz-Expires`.
const DATED: [&str; 5] = ["x-amz", "x-goog", "x-oss", "x-obs", "x-tos"];
/// Parameters with the expiry of a link.
const ENDS: [&str; 7] = ["temp_url_expires", "x-oss-expires", "expires", "expire", "expiry", "exp", "e"];
/// Parameters with a signature. Without one, a parameter such as `expires` may have any meaning.
const SIGNATURES: [&str; 9] =
    ["temp_url_sig", "x-oss-signature", "signature", "sig", "sign", "token", "hmac", "md5", "hash"];

/// Returns the expiry of the signature in the query of `url`.
pub(super) fn expiry(url: &Url) -> Option<Timestamp> {
    let query = Query(url);
    DATED
        .iter()
        .find_map(|provider| {
            lasting(&query.one(&format!("{provider}-date"))?, &query.one(&format!("{provider}-expires"))?)
        })
        .or_else(|| query.tencent())
        .or_else(|| query.cloud_front())
        .or_else(|| query.stated_end())
        .or_else(|| query.one("sig").and_then(|_| instant::parse(&query.one("se")?)))
        .or_else(|| query.baidu())
        .or_else(|| query.akamai())
        .or_else(|| query.web_token())
}

struct Query<'a>(&'a Url);

impl<'a> Query<'a> {
    /// Returns the value of `wanted`, which is in lower case. Returns `None` if it occurs twice, because providers
    /// differ in which value they use.
    fn one(&self, wanted: &str) -> Option<Cow<'a, str>> {
        let mut values =
            self.0.query_pairs().filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }

    /// Returns the value of `Expires` next to a signature: Amazon's and Google's older signatures, Swift, Alibaba,
    /// Huawei, CloudFront, Cloudflare, Qiniu, Bunny.
    fn stated_end(&self) -> Option<Timestamp> {
        SIGNATURES.iter().find_map(|name| self.one(name))?;
        let end = ENDS.iter().find_map(|name| self.one(name))?;
        unix(&end).or_else(|| if end.contains('T') { instant::parse(&end) } else { None })
    }

    /// Returns the end in `q-sign-time=start;end`, or that of the signing key if it is earlier.
    fn tencent(&self) -> Option<Timestamp> {
        let end = |name| unix(self.one(name)?.split_once(';')?.1);
        self.one("q-signature")?;
        [end("q-sign-time")?].into_iter().chain(end("q-key-time")).min_by_key(|end| end.as_seconds())
    }

    /// Returns the expiry in a CloudFront policy, in base64 with other characters.
    fn cloud_front(&self) -> Option<Timestamp> {
        self.one("key-pair-id")?;
        let policy = self.one("policy")?.replace('_', "=").replace('~', "_");
        let policy: Value = serde_json::from_slice(&BASE64.decode(policy).ok()?).ok()?;
        let statements = policy.get("Statement")?;
        let statement = statements.get(0).unwrap_or(statements);
        seconds(statement.pointer("/Condition/DateLessThan/AWS:EpochTime")?.as_i64()?)
    }

    /// Returns the expiry in `authorization=bce-auth-v1/key/date/seconds/…`.
    fn baidu(&self) -> Option<Timestamp> {
        let authorization = self.one("authorization")?;
        let mut parts = authorization.strip_prefix("bce-auth-v1/")?.split('/').skip(1);
        lasting(parts.next()?, parts.next()?)
    }

    /// Returns the expiry in Akamai's `exp=…~acl=…~hmac=…`, in a parameter of any name.
    fn akamai(&self) -> Option<Timestamp> {
        let mut tokens = self.0.query_pairs().filter(|(_, value)| value.contains("~hmac="));
        let (_, token) = tokens.next()?;
        unix(token.split('~').find_map(|part| part.strip_prefix("exp="))?)
    }

    /// Returns the expiry in a JSON Web Token, as in links of Supabase.
    fn web_token(&self) -> Option<Timestamp> {
        let token = self.one("token")?;
        let mut parts = token.split('.');
        let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
        let claims: Value = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
        seconds(claims.get("exp")?.as_i64()?)
    }
}

fn lasting(start: &str, lifetime: &str) -> Option<Timestamp> {
    Some(instant::parse(start)?.plus_seconds(lifetime.parse::<u32>().ok()?.into()))
}

fn unix(text: &str) -> Option<Timestamp> {
    seconds(text.parse().ok()?)
}

fn seconds(since_epoch: i64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(since_epoch.checked_mul(1_000)?))
}
