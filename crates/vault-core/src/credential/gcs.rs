//! Buckets of Google Cloud Storage.

use super::KeyFile;
use super::information::{Fact, FactValue};
use super::table::credential_table;

credential_table! {
    /// A bucket of Google Cloud Storage, opened by a service account's key.
    Gcs {
        /// The service account's key file.
        service_account_key: required Secret KeyFile -> KeyFile,
        /// The bucket.
        bucket: required Location Bucket -> String,
        /// The beginning of the names of all objects concerned.
        key_prefix: optional Location KeyPrefix -> String,
    }
}

impl Gcs {
    /// `client_email` and `project_id` in full, `private_key_id` masked.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let key = &self.service_account_key;
        let email = key.client_email().map(|email| Fact::text("client_email", email));
        let project = key.project_id().map(|project| Fact::text("project_id", project));
        let id = key.private_key_id().map(|id| Fact { name: "private_key_id", value: FactValue::Masked(id.into()) });
        email.into_iter().chain(project).chain(id).collect()
    }
}
