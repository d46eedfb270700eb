//! Keyless credentials for buckets of Google Cloud Storage.

use super::reader::FieldReader;
use super::table::credential_table;
use super::{Buckets, Gcs};
use crate::federation::FederationAudience;
use crate::field::FieldCode;

credential_table! {
    /// Buckets of Google Cloud Storage, accessed as a service account whose workload identity provider trusts the
    /// federation issuer.
    GcsFederated {
        /// Resource name of the workload identity provider.
        provider: required Location WorkloadProvider -> String,
        /// E-mail address of the service account.
        service_account: required Location ServiceAccount -> String,
        /// The bucket, or a list of buckets.
        bucket: required Location Bucket -> Buckets,
        /// Prefix of the names of all affected objects.
        key_prefix: optional Location KeyPrefix -> String,
    }
}

impl GcsFederated {
    /// Address of Google's token exchange.
    const STS: &'static str = "https://sts.googleapis.com";

    /// Returns the address that receives the token, with the audience that follows from it.
    pub fn recipient(&self) -> (String, FederationAudience) {
        (Self::STS.to_owned(), FederationAudience::of_google(&self.provider))
    }

    /// Reports more buckets than a token can be narrowed to.
    pub(super) fn check_together(&self, source: &mut FieldReader) {
        if self.bucket.len() > Gcs::MAX_NARROWED {
            let detail = "must be at most 10 buckets, because a token cannot be limited to more";
            source.refuse("bucket", FieldCode::TooLong, detail);
        }
    }
}
