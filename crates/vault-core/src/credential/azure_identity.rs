//! Credentials for Azure storage, by an application's identity or by the key or signature in a connection string.

use super::information::{Fact, FactValue};
use super::reader::FieldReader;
use super::table::credential_table;
use super::{ConnectionString, SecretText};
use crate::field::FieldCode;
use crate::time::Timestamp;

credential_table! {
    /// Azure storage, accessed with an application's identity or with the connection string itself.
    AzureIdentity {
        /// Directory of the application: a GUID or a domain. Set together with `client_id` and `client_secret`, or
        /// absent if the connection string contains an account key or a shared access signature.
        tenant_id: optional Location Tenant -> String,
        /// ID of the application.
        client_id: optional Id ClientId -> SecretText,
        /// Secret of the application.
        client_secret: optional Secret Secret -> SecretText,
        /// Connection string of the storage account.
        connection_string: required Secret ConnectionString -> ConnectionString,
        /// Name of the container.
        container: optional Location Container -> String,
        /// Prefix of the names of all affected objects.
        key_prefix: optional Location KeyPrefix -> String,
    }
}

/// The identity of an application in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Application<'a> {
    /// Directory: a GUID or a domain.
    pub tenant_id: &'a str,
    /// ID of the application.
    pub client_id: &'a SecretText,
    /// Secret of the application.
    pub client_secret: &'a SecretText,
}

impl AzureIdentity {
    /// Returns the application, if all of its fields are set.
    pub fn application(&self) -> Option<Application<'_>> {
        Some(Application {
            tenant_id: self.tenant_id.as_deref()?,
            client_id: self.client_id.as_ref()?,
            client_secret: self.client_secret.as_ref()?,
        })
    }

    /// Reports missing fields of the application, unless all are absent and the connection string gives access to the
    /// account.
    pub(super) fn check_together(&self, source: &mut FieldReader) {
        let fields = [
            ("tenant_id", self.tenant_id.is_some()),
            ("client_id", self.client_id.is_some()),
            ("client_secret", self.client_secret.is_some()),
        ];
        let opens = self.connection_string.has_account_key() || self.connection_string.has_signature();
        if opens && fields.iter().all(|(_, is_set)| !is_set) {
            return;
        }
        let detail = if opens {
            "is required with the other fields of the application; leave out tenant_id, client_id and client_secret \
             to use the connection string only"
        } else {
            "is required, or include AccountKey or SharedAccessSignature in connection_string and leave out \
             tenant_id, client_id and client_secret"
        };
        for (name, _) in fields.into_iter().filter(|(_, is_set)| !is_set) {
            source.refuse(name, FieldCode::Required, detail);
        }
    }

    /// Returns `account_name` and `expires_at`, if the connection string contains them, and `has_account_key`.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let expiry = self.connection_string.signature_expiry().and_then(Timestamp::to_rfc3339);
        let expiry = expiry.map(|expiry| Fact::text("expires_at", expiry));
        let account = self.connection_string.account_name().map(|name| Fact::text("account_name", name));
        let has_key = FactValue::Flag(self.connection_string.has_account_key());
        account.into_iter().chain(expiry).chain([Fact { name: "has_account_key", value: has_key }]).collect()
    }
}
