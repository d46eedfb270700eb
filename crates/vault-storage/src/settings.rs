//! How stores are reached.

use crate::EgressPolicy;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;
use vault_core::credential::KeyFile;

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
    /// Azure's directory. With `None`, each storage account uses the directory of its cloud.
    pub azure_directory: Option<String>,
    /// The storage of Google's own cloud.
    pub google_storage: String,
    /// The token exchange of Google's own cloud.
    pub google_exchange: String,
}

impl Places {
    /// The storage of the cloud with this domain.
    pub(crate) fn google_storage(&self, universe: &str) -> Cow<'_, str> {
        of_universe(&self.google_storage, "storage", universe)
    }

    /// The token exchange of the cloud with this domain.
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
        }
    }
}
