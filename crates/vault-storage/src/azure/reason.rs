//! Interpretation of Azure Storage errors.
//!
//! Codes: <https://learn.microsoft.com/en-us/rest/api/storageservices/common-rest-api-error-codes> and
//! <https://learn.microsoft.com/en-us/rest/api/storageservices/blob-service-error-codes>.

use super::access::Access;
use crate::guard::Answer;
use vault_core::check::CheckReason;

/// Maximum clock skew that Azure accepts, in seconds.
const MAX_SKEW: u64 = 15 * 60;

/// Returns the reason of an unsuccessful response to a request with `access`. `now` is in seconds.
pub(super) fn of(answer: &Answer, access: &Access, now: i64) -> CheckReason {
    let text = answer.text().unwrap_or_default();
    let code = answer.header("x-ms-error-code").map(str::to_owned).unwrap_or_else(|| answer.stated().code);
    let code = match &*code {
        // Azurite responds to an unknown client with the code that Azure uses for a client without permission.
        "AuthorizationFailure" if text.contains("failed to authenticate") => "AuthenticationFailed",
        code => code,
    };
    match code {
        "AuthenticationFailed" if text.contains("not valid in the specified time frame") => CheckReason::SecretExpired,
        "AuthenticationFailed" if answer.skew(now).is_some_and(|skew| skew > MAX_SKEW) => CheckReason::ClockSkew,
        // For a token, this means that its directory is not that of the account.
        "AuthenticationFailed" | "InvalidAuthenticationInfo" if access.is_token() => CheckReason::UnknownKey,
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
        "ServerBusy" | "InternalError" | "OperationTimedOut" => CheckReason::StoreError,
        _ => answer.plain_reason(),
    }
}
