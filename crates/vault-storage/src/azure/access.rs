//! What opens a storage account.

use object_store::azure::AzureCredential;
use vault_core::credential::SecretText;

pub(super) enum Access {
    /// A token or key, which signs each request.
    Signed(AzureCredential),
    /// A shared access signature, sent as it is.
    Signature(SecretText),
}

impl Access {
    pub(super) const fn is_token(&self) -> bool {
        matches!(self, Self::Signed(AzureCredential::BearerToken(_)))
    }
}
