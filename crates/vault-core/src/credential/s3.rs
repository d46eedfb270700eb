//! Buckets of S3-style stores.

use super::SecretText;
use super::information::Fact;
use super::table::credential_table;

credential_table! {
    /// A bucket of an S3-style store, opened by an access key.
    S3 {
        /// The access key's id.
        access_key_id: required Id AccessKeyId -> SecretText,
        /// The access key's secret.
        secret_access_key: required Secret Secret -> SecretText,
        /// The bucket.
        bucket: required Place Bucket -> String,
        /// The store's region.
        region: optional Place Region -> String,
        /// The store's address, where it is not Amazon's.
        endpoint: optional Place Endpoint -> String,
        /// The beginning of the names of all objects concerned.
        key_prefix: optional Place KeyPrefix -> String,
        /// Whether the bucket is part of the path instead of the host.
        path_style_access: optional Place Flag -> bool,
        /// ARN of the role to assume.
        role_arn: optional Place RoleArn -> String,
        /// The session token that belongs to temporary keys.
        session_token: optional Secret Secret -> SecretText,
        /// The external id that the role asks for.
        external_id: optional Secret Secret -> SecretText,
    }
}

impl S3 {
    pub(super) fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}
