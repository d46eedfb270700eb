//! Session policies, which limit a session to the bucket and its prefix.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session>

use serde_json::{Value, json};
use vault_core::check::CheckReason;
use vault_core::credential::{AwsPartition, S3Location};

/// The longest policy of a session, in characters
/// (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>).
const MAX_LENGTH: usize = 2_048;

/// Returns the policy for a session of the role, or of the saved keys themselves.
pub(super) fn narrowed_to(location: &S3Location<'_>) -> Result<String, CheckReason> {
    if location.bucket.iter().any(|bucket| location.is_directory(bucket)) {
        return Err(CheckReason::DirectoryBucket);
    }
    let own = AwsPartition::of(&location.signing_region());
    let partition =
        location.role_arn.and_then(|role| role.split(':').nth(1)).filter(|partition| partition.starts_with("aws"));
    let partition = partition.unwrap_or(if location.is_amazon() { own.name } else { "aws" });
    let of_each = |end: &str| {
        let mut resources =
            location.bucket.iter().map(|bucket| Value::from(format!("arn:{partition}:s3:::{}{end}", literal(bucket))));
        match (resources.next(), resources.collect::<Vec<_>>()) {
            (Some(only), others) if others.is_empty() => only,
            (first, others) => first.into_iter().chain(others).collect(),
        }
    };
    let prefix = literal(location.key_prefix.unwrap_or_default());
    let mut statements = vec![
        allow(&["s3:ListBucket"], of_each(""), Some(json!({"StringLike": {"s3:prefix": format!("{prefix}*")}}))),
        allow(&["s3:GetBucketLocation"], of_each(""), None),
        allow(
            &[
                "s3:GetObject",
                "s3:PutObject",
                "s3:DeleteObject",
                "s3:AbortMultipartUpload",
                "s3:ListMultipartUploadParts",
            ],
            of_each(&format!("/{prefix}*")),
            None,
        ),
    ];
    if location.is_amazon() {
        // Objects may be encrypted with the owner's KMS key, which S3 uses on behalf of the caller.
        let domain = if own.domain.starts_with("amazonaws.com") { "amazonaws.com*" } else { own.domain };
        let through_s3 = json!({"StringLike": {"kms:ViaService": format!("s3.*.{domain}")}});
        statements.push(allow(&["kms:Decrypt", "kms:GenerateDataKey"], "*".into(), Some(through_s3)));
    }
    let policy = json!({"Version": "2012-10-17", "Statement": statements}).to_string();
    // One bucket is left to the store, which knows its own limit.
    if location.bucket.len() > 1 && policy.len() > MAX_LENGTH { Err(CheckReason::TooManyBuckets) } else { Ok(policy) }
}

fn allow(actions: &[&str], resource: Value, condition: Option<Value>) -> Value {
    let mut statement = json!({"Effect": "Allow", "Action": actions, "Resource": resource});
    if let (Some(condition), Some(members)) = (condition, statement.as_object_mut()) {
        members.insert("Condition".to_owned(), condition);
    }
    statement
}

/// Escapes the wildcards and variables of policies (`*`, `?` and `$`).
fn literal(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '*' | '?' | '$' => plain.extend(['$', '{', character, '}']),
            character => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vault_core::credential::{CredentialData, CredentialType};

    #[test]
    fn wildcards_are_escaped() {
        assert_eq!(literal("a*b?c${d}/"), "a${*}b${?}c${$}{d}/");
    }

    #[test]
    fn policy_names_bucket_and_prefix() {
        let data = json!({
            "access_key_id": "a", "secret_access_key": "s", "bucket": "b", "key_prefix": "in/", "region": "cn-north-1",
            "role_arn": "arn:aws-cn:iam::123456789012:role/exporter",
        });
        let data = CredentialData::from_canonical_json(CredentialType::S3, data.to_string().as_bytes()).unwrap();
        let CredentialData::S3(data) = data else { panic!("of another type") };
        let policy: Value = serde_json::from_str(&narrowed_to(&data.location()).unwrap()).unwrap();
        let on_objects = ["GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts"]
            .map(|action| format!("s3:{action}"));
        let expected = json!({"Version": "2012-10-17", "Statement": [
            {
                "Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": "arn:aws-cn:s3:::b",
                "Condition": {"StringLike": {"s3:prefix": "in/*"}},
            },
            {"Effect": "Allow", "Action": ["s3:GetBucketLocation"], "Resource": "arn:aws-cn:s3:::b"},
            {"Effect": "Allow", "Action": on_objects, "Resource": "arn:aws-cn:s3:::b/in/*"},
            {
                "Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": "*",
                "Condition": {"StringLike": {"kms:ViaService": "s3.*.amazonaws.com*"}},
            },
        ]});
        assert_eq!(policy, expected);
    }

    proptest! {
        /// No prefix permits access outside itself.
        #[test]
        fn prefix_wildcards_do_not_widen_policy(text in "\\PC{0,40}") {
            let mut rest = literal(&text);
            for pattern in ["${*}", "${?}", "${$}"] {
                rest = rest.replace(pattern, "");
            }
            prop_assert!(!rest.contains(['*', '?', '$']));
        }
    }
}
