//! Origin of an audited action.

use crate::network::Network;
use uuid::Uuid;

/// The request of an action. Commands and the service itself have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Network of the request, if any.
    pub network: Option<Network>,
    /// ID of the request, which the response contained.
    pub request: Option<Uuid>,
}

impl Origin {
    /// Returns [`Origin::request`] as stored.
    pub fn request_text(&self) -> Option<String> {
        self.request.map(|id| id.hyphenated().to_string())
    }
}
