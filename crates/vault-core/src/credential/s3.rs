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
        bucket: required Location Bucket -> String,
        /// The store's region.
        region: optional Location Region -> String,
        /// The store's address, where it is not Amazon's.
        endpoint: optional Location Endpoint -> String,
        /// Where keys of a role's session are issued, where that is neither Amazon's service nor the endpoint.
        sts_endpoint: optional Location Endpoint -> String,
        /// The beginning of the names of all objects concerned.
        key_prefix: optional Location KeyPrefix -> String,
        /// Whether the bucket is part of the path instead of the host.
        path_style_access: optional Location Flag -> bool,
        /// ARN of the role to assume.
        role_arn: optional Location RoleArn -> String,
        /// The key of AWS KMS that new objects are encrypted under: an ARN, an id or an alias.
        sse_kms_key_id: optional Location KmsKeyId -> String,
        /// The session token that belongs to temporary keys.
        session_token: optional Secret Secret -> SecretText,
        /// The external id that the role asks for.
        external_id: optional Secret Secret -> SecretText,
    }
}

impl S3 {
    /// Whether a session can be asked for. Amazon issues one for a role only; others' services name none, as MinIO's.
    pub fn allows_session(&self) -> bool {
        self.role_arn.is_some() || self.endpoint.is_some() || self.sts_endpoint.is_some()
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}
