//! Authorization of requests to a storage account.

use object_store::azure::AzureCredential;
use vault_core::credential::SecretText;

pub(super) enum Access {
    /// A token or key, which authorizes each request.
    Signed(AzureCredential),
    /// A shared access signature, which is appended to the URL.
    Signature(SecretText),
}

impl Access {
    pub(super) const fn is_token(&self) -> bool {
        matches!(self, Self::Signed(AzureCredential::BearerToken(_)))
    }
}
