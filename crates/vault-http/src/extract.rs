//! Extractors of the head of a request. The framework polls all extractors of a handler concurrently and returns the first
//! error in parameter order, so each of them is ready immediately. Only [`Body`](crate::body::Body) waits.

use uuid::Uuid;
use vault_core::id::{AccountId, ActivationId, CredentialId, EventId, IntegrationId, ReceiverId, SessionId};
use vault_core::identity::TrustId;

/// Implements an extractor that needs only the head of a request.
macro_rules! from_request {
    ($extractor:ty, $read:expr) => {
        impl actix_web::FromRequest for $extractor {
            type Error = crate::problem_response::ProblemResponse;
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
