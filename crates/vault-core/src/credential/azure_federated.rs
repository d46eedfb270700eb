//! Keyless credentials for containers of Azure storage.

use super::AzureCloud;
use super::table::credential_table;
use crate::federation::FederationAudience;

credential_table! {
    /// A container of Azure storage, accessed with an application or managed identity that trusts the federation issuer.
    AzureFederated {
        /// Directory of the application: a GUID or a domain.
        tenant_id: required Location Tenant -> String,
        /// ID of the application or of the user-assigned managed identity.
        client_id: required Location ClientId -> String,
        /// Name of the storage account.
        account_name: required Location AccountName -> String,
        /// Name of the container.
        container: required Location Container -> String,
        /// Prefix of the names of all affected objects.
        key_prefix: optional Location KeyPrefix -> String,
        /// Cloud of the account and the directory. The default is the public cloud.
        cloud: optional Location AzureCloud -> String,
    }
}

impl AzureFederated {
    /// Returns the cloud, or `None` for an unknown name.
    pub fn cloud(&self) -> Option<AzureCloud> {
        self.cloud.as_deref().map_or(Some(AzureCloud::Public), AzureCloud::of_name)
    }

    /// Returns the URL of the account's blobs, without a trailing slash.
    pub fn endpoint(&self) -> Option<String> {
        Some(format!("https://{}.blob.{}", self.account_name, self.cloud()?.endpoint_suffix()))
    }

    /// Returns the address that receives the token, with the audience that follows from it.
    pub fn recipient(&self) -> Option<(String, FederationAudience)> {
        let cloud = self.cloud()?;
        let address = format!("{}/{}", cloud.authority_host(), self.tenant_id);
        Some((address, FederationAudience::of_entra(cloud)?))
    }
}
