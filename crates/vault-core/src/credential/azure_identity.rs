//! Azure storage by an application's identity.

use super::information::{Fact, FactValue};
use super::table::credential_table;
use super::{ConnectionString, SecretText};
use crate::time::Timestamp;

credential_table! {
    /// Azure storage, opened by an application's identity.
    AzureIdentity {
        /// The directory: a GUID or a domain.
        tenant_id: required Location Tenant -> String,
        /// The application.
        client_id: required Id ClientId -> SecretText,
        /// The application's secret.
        client_secret: required Secret Secret -> SecretText,
        /// The storage account's connection string.
        connection_string: required Secret ConnectionString -> ConnectionString,
        /// The container.
        container: optional Location Container -> String,
        /// The beginning of the names of all objects concerned.
        key_prefix: optional Location KeyPrefix -> String,
    }
}

impl AzureIdentity {
    /// `account_name` and `expires_at`, if the connection string contains them, and `has_account_key`.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let expiry = self.connection_string.signature_expiry().and_then(Timestamp::to_rfc3339);
        let expiry = expiry.map(|expiry| Fact::text("expires_at", expiry));
        let account = self.connection_string.account_name().map(|name| Fact::text("account_name", name));
        let has_key = FactValue::Flag(self.connection_string.has_account_key());
        account.into_iter().chain(expiry).chain([Fact { name: "has_account_key", value: has_key }]).collect()
    }
}
