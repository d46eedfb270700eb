//! Where an act came from.

use crate::network::Network;
use uuid::Uuid;

/// The request that an act was done by. Acts of commands and of the service itself have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The network that it came from, if it came over one.
    pub network: Option<Network>,
    /// Its id, which its sender was told.
    pub request: Option<Uuid>,
}

impl Origin {
    /// [`Origin::request`] as it is stored.
    pub fn request_text(&self) -> Option<String> {
        self.request.map(|id| id.hyphenated().to_string())
    }
}
