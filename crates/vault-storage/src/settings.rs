//! Settings of connections to storage providers.

use crate::Egress;
use std::borrow::Cow;
use std::time::Duration;
use vault_core::credential::KeyFile;

/// Settings of connections to storage providers.
#[derive(Clone, Debug, Default)]
pub struct StorageSettings {
    /// Proxy, permitted destinations and trusted CAs.
    pub egress: Egress,
    /// Time limits.
    pub deadlines: Deadlines,
    /// Addresses of the cloud providers' services.
    pub places: Places,
    /// Tags role sessions with organization, namespace and integration. The role must allow `sts:TagSession`.
    pub session_tags: bool,
}

/// Time limits of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Connection to one address.
    pub connect: Duration,
    /// One request with its response.
    pub exchange: Duration,
    /// All requests for one credential, except the removal of an object that a check has written.
    pub whole: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), exchange: Duration::from_secs(10), whole: Duration::from_secs(30) }
    }
}

/// Addresses of the cloud providers' services, without a trailing slash. The defaults can be changed for private clouds
/// and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Azure's directory. With `None`, each storage account uses the directory of its cloud.
    pub azure_directory: Option<String>,
    /// Storage service of Google's public cloud.
    pub google_storage: String,
    /// Token exchange of Google's public cloud.
    pub google_exchange: String,
    /// Impersonation of service accounts in Google's public cloud.
    pub google_impersonation: String,
    /// Blobs of keyless Azure credentials, below the name of the account. With `None`, each account has its own host.
    pub azure_blobs: Option<String>,
}

impl Places {
    /// Returns the storage service of the cloud with this domain.
    pub(crate) fn google_storage(&self, universe: &str) -> Cow<'_, str> {
        of_universe(&self.google_storage, "storage", universe)
    }

    /// Returns the token exchange of the cloud with this domain.
    pub(crate) fn google_exchange(&self, universe: &str) -> Cow<'_, str> {
        of_universe(&self.google_exchange, "sts", universe)
    }
}

fn of_universe<'a>(googles: &'a str, service: &str, universe: &str) -> Cow<'a, str> {
    if universe == KeyFile::GOOGLE { googles.into() } else { format!("https://{service}.{universe}").into() }
}

impl Default for Places {
    fn default() -> Self {
        Self {
            azure_directory: None,
            google_storage: "https://storage.googleapis.com".to_owned(),
            google_exchange: "https://sts.googleapis.com".to_owned(),
            google_impersonation: "https://iamcredentials.googleapis.com".to_owned(),
            azure_blobs: None,
        }
    }
}
