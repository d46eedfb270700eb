//! Credentials for buckets of Google Cloud Storage.

use super::information::{Fact, FactValue};
use super::table::credential_table;
use super::{Buckets, KeyFile};

credential_table! {
    /// Buckets of Google Cloud Storage, accessed with a service account key.
    Gcs {
        /// Key file of the service account.
        service_account_key: required Secret KeyFile -> KeyFile,
        /// The bucket, or a list of buckets.
        bucket: required Location Bucket -> Buckets,
        /// Prefix of the names of all affected objects.
        key_prefix: optional Location KeyPrefix -> String,
    }
}

impl Gcs {
    /// How many buckets a token can be narrowed to: the rules of a credential access boundary
    /// (<https://cloud.google.com/iam/docs/downscoping-short-lived-credentials>).
    pub const MAX_NARROWED: usize = 10;

    /// Returns the domain of the bucket's cloud, unless it is Google's own.
    pub fn universe_domain(&self) -> Option<String> {
        let universe = self.service_account_key.universe_domain();
        (universe != KeyFile::GOOGLE).then(|| universe.to_owned())
    }

    /// Returns `client_email`, `project_id` and a `universe_domain` other than Google's in full, and `private_key_id`
    /// masked.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let key = &self.service_account_key;
        let email = key.client_email().map(|email| Fact::text("client_email", email));
        let project = key.project_id().map(|project| Fact::text("project_id", project));
        let id = key.private_key_id().map(|id| Fact { name: "private_key_id", value: FactValue::Masked(id.into()) });
        let universe = self.universe_domain().map(|universe| Fact::text("universe_domain", universe));
        email.into_iter().chain(project).chain(universe).chain(id).collect()
    }
}
