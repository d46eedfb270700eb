//! What a refusal of Azure's storage means.
//!
//! Codes: <https://learn.microsoft.com/en-us/rest/api/storageservices/common-rest-api-error-codes> and
//! <https://learn.microsoft.com/en-us/rest/api/storageservices/blob-service-error-codes>.

use super::blobs::Opener;
use crate::guard::Answer;
use crate::text::element;
use object_store::azure::AzureCredential;
use vault_core::check::CheckReason;

/// How far clocks may differ before Azure refuses, in seconds.
const MAX_SKEW: u64 = 15 * 60;

/// Why an answer other than the one hoped for came to a request that `opener` opened. `now` is in seconds.
pub(super) fn of(answer: &Answer, opener: &Opener, now: i64) -> CheckReason {
    let text = answer.text().unwrap_or_default();
    let code = answer.header("x-ms-error-code").map(str::to_owned).or_else(|| element(text, "Code"));
    let is_token = matches!(opener, Opener::Signed(AzureCredential::BearerToken(_)));
    let code = match code.as_deref().unwrap_or_default() {
        // Azurite says of whom it does not know what Azure says of whom it does not let in.
        "AuthorizationFailure" if text.contains("failed to authenticate") => "AuthenticationFailed",
        code => code,
    };
    match code {
        "AuthenticationFailed" if text.contains("not valid in the specified time frame") => CheckReason::SecretExpired,
        "AuthenticationFailed" if answer.skew(now).is_some_and(|skew| skew > MAX_SKEW) => CheckReason::ClockSkew,
        // Of a token: its directory is not the account's.
        "AuthenticationFailed" | "InvalidAuthenticationInfo" if is_token => CheckReason::UnknownKey,
        "AuthenticationFailed" | "InvalidAuthenticationInfo" => CheckReason::SignatureMismatch,
        "AuthorizationPermissionMismatch"
        | "AuthorizationFailure"
        | "AuthorizationProtocolMismatch"
        | "AuthorizationResourceTypeMismatch"
        | "AuthorizationServiceMismatch"
        | "AuthorizationSourceIPMismatch"
        | "InsufficientAccountPermissions"
        | "KeyBasedAuthenticationNotPermitted"
        | "PublicAccessNotPermitted"
        | "AccountIsDisabled"
        | "ContainerDisabled"
        | "BlobArchived" => CheckReason::Denied,
        "ContainerNotFound" | "ContainerBeingDeleted" => CheckReason::BucketMissing,
        "BlobNotFound" | "ResourceNotFound" => CheckReason::ObjectMissing,
        "ServerBusy" | "InternalError" | "OperationTimedOut" => CheckReason::StoreTrouble,
        _ => answer.plain_reason(),
    }
}
