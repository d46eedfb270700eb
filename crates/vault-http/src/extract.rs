//! Extractors of the head of a request: IDs in the path, and preconditions.

use crate::problem::ProblemResponse;
use actix_web::http::header::{self, HeaderMap};
use uuid::Uuid;
use vault_api::ProblemCode;
use vault_core::Error;
use vault_core::id::{AccountId, ActivationId, CredentialId, EventId, IntegrationId, ReceiverId, SessionId};
use vault_core::identity::TrustId;
use vault_core::principal::Principal;
use vault_core::usecase::{CredentialRef, IdempotencyKey, Vault};

/// Implements an extractor that needs only the head of a request.
macro_rules! from_request {
    ($extractor:ty, $read:expr) => {
        impl actix_web::FromRequest for $extractor {
            type Error = crate::problem::ProblemResponse;
            type Future = std::future::Ready<Result<Self, Self::Error>>;

            fn from_request(request: &actix_web::HttpRequest, _: &mut actix_web::dev::Payload) -> Self::Future {
                let read: fn(&actix_web::HttpRequest) -> Result<Self, Self::Error> = $read;
                std::future::ready(read(request))
            }
        }
    };
}
pub(crate) use from_request;

/// The ID of an object in the path. An invalid ID is handled like that of an object that does not exist, so that both get
/// the same response after the same steps.
pub(crate) struct Id<T>(pub(crate) T);

macro_rules! ids {
    ($($id:ty: $placeholder:literal, $none:expr;)*) => {
        $(from_request!(Id<$id>, |request| {
            Ok(Id(request.match_info().query($placeholder).parse().unwrap_or($none)))
        });)*
    };
}

ids! {
    AccountId: "id", AccountId::from_bytes(NO_ID);
    ActivationId: "id", ActivationId::from_bytes(NO_ID);
    CredentialId: "id", CredentialId::from_bytes(NO_ID);
    IntegrationId: "id", IntegrationId::from_bytes(NO_ID);
    ReceiverId: "id", ReceiverId::from_bytes(NO_ID);
    SessionId: "id", SessionId::from_bytes(NO_ID);
    TrustId: "trust", TrustId::from_uuid(Uuid::nil());
    EventId: "delivery", EventId::from_bytes(NO_ID);
}

/// The nil UUID. IDs have version 4 or 7, so no object has it.
const NO_ID: [u8; 16] = [0; 16];

/// The number of a version in the path, in canonical form. Other text is handled like a version that does not exist.
pub(crate) struct Version(pub(crate) i64);

from_request!(Version, |request| {
    let text = request.match_info().query("version");
    let digits = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    Ok(Version(text.parse().ok().filter(|_| digits).unwrap_or(NO_VERSION)))
});

/// Versions start at 1.
const NO_VERSION: i64 = 0;

/// Absence of a precondition: every `If-Match` except `*` is rejected, for objects without an entity tag.
pub(crate) struct NoEntityTag;
from_request!(NoEntityTag, |request| none_but_existence(request.headers()).map(|()| NoEntityTag));

/// The precondition of a request, from `If-Match`.
pub(crate) struct IfMatch(pub(crate) Permitted);
from_request!(IfMatch, |request| Permitted::by(request.headers()).map(IfMatch));

/// The optional key of a request that must not be executed twice, from `Idempotency-Key`.
pub(crate) struct Idempotency(pub(crate) Option<IdempotencyKey>);
from_request!(Idempotency, |request| idempotency_key(request.headers()).map(Idempotency));

/// Same as [`Idempotency`], for a request that creates an object: `If-Match` is rejected.
pub(crate) struct Creation(pub(crate) Option<IdempotencyKey>);
from_request!(Creation, |request| {
    if request.headers().contains_key(header::IF_MATCH) {
        let detail = "This operation creates a credential. Send the request without `If-Match`.";
        return Err(ProblemResponse::new(ProblemCode::PreconditionFailed, detail));
    }
    idempotency_key(request.headers()).map(Creation)
});

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ProblemResponse> {
    let mut values = headers.get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().and_then(|text| IdempotencyKey::parse(text).ok());
    match (key, values.next()) {
        (Some(key), None) => Ok(Some(key)),
        _ => Err(ProblemResponse::malformed("Send `Idempotency-Key` once, with 1 to 255 visible ASCII characters.")),
    }
}

fn none_but_existence(headers: &HeaderMap) -> Result<(), ProblemResponse> {
    if headers.get_all(header::IF_MATCH).all(|value| value.as_bytes().trim_ascii() == b"*") {
        return Ok(());
    }
    let detail = "This operation has no `ETag`. Send the request without `If-Match`.";
    Err(ProblemResponse::new(ProblemCode::PreconditionFailed, detail))
}

/// The revisions of a credential that `If-Match` accepts. `None` accepts all. Weak tags, and tags that no credential
/// has, match no revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permitted(Option<Vec<i64>>);

/// Revisions start at 1.
const NO_REVISION: i64 = 0;

impl Permitted {
    /// Parses the request's headers.
    pub(crate) fn by(headers: &HeaderMap) -> Result<Self, ProblemResponse> {
        let mut values = headers.get_all(header::IF_MATCH).map(|value| value.as_bytes()).peekable();
        if values.peek().is_none() {
            return Ok(Self(None));
        }
        // Several fields with the same name are equivalent to one comma-separated field (RFC 9110, section 5.3).
        Self::parse(&values.collect::<Vec<_>>().join(&b',')).ok_or_else(|| {
            ProblemResponse::malformed(
                "`If-Match` must be `*`, or entity tags in quotation marks with commas between them.",
            )
        })
    }

    fn parse(field: &[u8]) -> Option<Self> {
        if field.trim_ascii() == b"*" {
            return Some(Self(None));
        }
        let (mut revisions, mut tags) = (Vec::new(), 0);
        let mut rest = field.trim_ascii_start();
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix(b",") {
                rest = behind.trim_ascii_start(); // an empty element
                continue;
            }
            let strong = rest.strip_prefix(b"W/");
            let (opaque, behind) = quoted(strong.unwrap_or(rest))?;
            revisions.extend(revision(opaque).filter(|_| strong.is_none()));
            tags += 1;
            rest = behind.trim_ascii_start();
            if !rest.is_empty() && !rest.starts_with(b",") {
                return None;
            }
        }
        (tags > 0).then_some(Self(Some(revisions)))
    }

    /// Returns the credential `id` with its accepted revisions. Fails first if the credential does not exist.
    pub(crate) async fn of(
        self,
        vault: &Vault,
        principal: &Principal,
        id: CredentialId,
    ) -> Result<CredentialRef, Error> {
        let revision = match self.0.as_deref() {
            None => None,
            Some([]) => Some(NO_REVISION),
            Some([revision]) => Some(*revision),
            Some(several) => {
                let (_, current) = vault.type_and_revision(principal, id).await?;
                Some(if several.contains(&current) { current } else { NO_REVISION })
            }
        };
        Ok(CredentialRef { id, revision })
    }
}

/// Splits `text` into the content of the leading quotation marks and the rest.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let end = text.iter().position(|&byte| byte == b'"')?;
    let (opaque, behind) = text.split_at(end);
    let sound = opaque.iter().all(|&byte| byte == b'!' || (b'#'..=b'~').contains(&byte) || byte >= 0x80);
    sound.then_some((opaque, &behind[1..]))
}

/// Returns the revision with this entity tag, if the tag has the canonical form.
fn revision(opaque: &[u8]) -> Option<i64> {
    let digits = !opaque.starts_with(b"0") && opaque.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(opaque).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(field: &str) -> Option<Option<Vec<i64>>> {
        Permitted::parse(field.as_bytes()).map(|permitted| permitted.0)
    }

    #[test]
    fn strong_tags_permit_their_revisions() {
        for any in ["*", " * "] {
            assert_eq!(parsed(any), Some(None), "{any}");
        }
        for (field, revisions) in [
            ("\"1\"", vec![1]),
            (" \"1\" , \"23\"", vec![1, 23]),
            ("\"1\",,\"2\",", vec![1, 2]),
            ("W/\"1\"", vec![]),
            ("W/\"1\", \"2\"", vec![2]),
            ("\"\"", vec![]),
            ("\"0\"", vec![]),
            ("\"01\"", vec![]),
            ("\"-1\"", vec![]),
            ("\"+1\"", vec![]),
            ("\"1,2\"", vec![]),
            ("\"*\"", vec![]),
            ("\"W/1\"", vec![]),
            ("\"99999999999999999999\"", vec![]),
            ("\"9223372036854775807\"", vec![i64::MAX]),
            ("\"\u{e4}\"", vec![]),
        ] {
            assert_eq!(parsed(field), Some(Some(revisions)), "{field}");
        }
    }

    #[test]
    fn everything_else_is_malformed() {
        for field in [
            "",
            " ",
            ",",
            "1",
            "*, \"1\"",
            "\"1\", *",
            "**",
            "\"1",
            "1\"",
            "\"1\"2\"",
            "\"1\" \"2\"",
            "w/\"1\"",
            "W/1",
            "W/ \"1\"",
            "W/",
            "'1'",
            "\"1 2\"",
            "\"\t\"",
            "\"\u{7f}\"",
        ] {
            assert_eq!(parsed(field), None, "{field}");
        }
    }

    proptest! {
        #[test]
        fn any_field_is_read_or_refused(field in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Permitted::parse(&field);
        }

        #[test]
        fn every_tag_of_a_list_is_read(revisions in prop::collection::vec(1..i64::MAX, 1..10)) {
            let field: Vec<String> = revisions.iter().map(|revision| format!("\"{revision}\"")).collect();
            prop_assert_eq!(parsed(&field.join(", ")), Some(Some(revisions)));
        }
    }
}
