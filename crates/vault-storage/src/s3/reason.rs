//! Interpretation of errors of S3-compatible storage.
//!
//! Codes: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html> and
//! <https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html>.

use crate::guard::Answer;
use vault_core::check::CheckReason;

/// Returns the reason for an unambiguous `code`.
pub(super) fn of_code(code: &str) -> Option<CheckReason> {
    Some(match code {
        "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "UnrecognizedClientException"
        | "InvalidToken"
        | "NotSignedUp"
        | "OptInRequired" => CheckReason::UnknownKey,
        "SignatureDoesNotMatch" => CheckReason::SignatureMismatch,
        "RequestTimeTooSkewed" | "RequestExpired" => CheckReason::ClockSkew,
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" => CheckReason::TokenExpired,
        "AuthorizationHeaderMalformed"
        | "PermanentRedirect"
        | "TemporaryRedirect"
        | "RegionDisabledException"
        | "IllegalLocationConstraintException" => CheckReason::WrongRegion,
        "PackedPolicyTooLarge" => CheckReason::PolicyTooLarge,
        "NoSuchBucket" => CheckReason::BucketMissing,
        "NoSuchKey" | "NoSuchVersion" => CheckReason::ObjectMissing,
        "AccessDenied" | "AccessDeniedException" | "AllAccessDisabled" | "AccountProblem" | "InvalidObjectState" => {
            CheckReason::Denied
        }
        "InternalError"
        | "InternalFailure"
        | "ServiceUnavailable"
        | "SlowDown"
        | "Throttling"
        | "ThrottlingException"
        | "OperationAborted" => CheckReason::StoreError,
        _ => return None,
    })
}

/// Returns the reason of an unsuccessful response.
pub(super) fn of(answer: &Answer) -> CheckReason {
    if let Some(reason) = of_code(&answer.stated().code) {
        return reason;
    }
    // Some responses have no document, but contain the region in the head.
    let elsewhere = answer.header("x-amz-bucket-region").is_some() && matches!(answer.status.as_u16(), 301 | 307 | 400);
    if elsewhere { CheckReason::WrongRegion } else { answer.plain_reason() }
}
