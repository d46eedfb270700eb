//! How stores are reached.

use crate::EgressPolicy;
use std::path::PathBuf;
use std::time::Duration;

/// How stores are reached.
#[derive(Clone, Debug, Default)]
pub struct StorageSettings {
    /// Which addresses may be connected to.
    pub egress: EgressPolicy,
    /// A file of certificates (PEM) whose owners may vouch for stores, beside those the operating system trusts.
    pub ca_file: Option<PathBuf>,
    /// How long things may take.
    pub deadlines: Deadlines,
    /// Where the clouds' own services are.
    pub places: Places,
    /// Whether sessions of roles are tagged with organization, namespace and integration. The role must allow
    /// `sts:TagSession`.
    pub session_tags: bool,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// One connection to one address.
    pub connect: Duration,
    /// One request and its answer.
    pub exchange: Duration,
    /// All that is done with one credential, but for the removal of what a check wrote.
    pub whole: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), exchange: Duration::from_secs(10), whole: Duration::from_secs(30) }
    }
}

/// Where the clouds' own services are, without a last slash. Other than the default for private clouds and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Azure's directory; `None`: the one that belongs to the storage account's address.
    pub azure_directory: Option<String>,
    /// Google's storage.
    pub google_storage: String,
    /// Google's exchange of tokens.
    pub google_exchange: String,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            azure_directory: None,
            google_storage: "https://storage.googleapis.com".to_owned(),
            google_exchange: "https://sts.googleapis.com".to_owned(),
        }
    }
}
