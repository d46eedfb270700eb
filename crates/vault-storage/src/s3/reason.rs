//! What an S3-style store's refusal means.
//!
//! Codes: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html> and
//! <https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html>.

use crate::guard::Answer;
use vault_core::check::CheckReason;

/// What `code` means, where it means one thing.
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
        | "OperationAborted" => CheckReason::StoreTrouble,
        _ => return None,
    })
}

/// Why an answer other than the one hoped for came.
pub(super) fn of(answer: &Answer) -> CheckReason {
    if let Some(reason) = of_code(&answer.stated().code) {
        return reason;
    }
    // To some requests there is no document: the region's name is then in the head.
    let elsewhere = answer.header("x-amz-bucket-region").is_some() && matches!(answer.status.as_u16(), 301 | 307 | 400);
    if elsewhere { CheckReason::WrongRegion } else { answer.plain_reason() }
}
