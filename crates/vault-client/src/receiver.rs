//! Receivers of the organization: where the vault reports what happens.

use crate::account::below;
use crate::{ClientError, Session};
use ureq::http::Method;
use vault_api::{AddReceiverRequest, ChangeReceiverRequest, DeliveryItem, IssuedReceiver, ReceiverItem};

const RECEIVERS: &str = "/receivers";

/// What admins do with their organization's receivers.
///
/// # Errors
/// [`ClientError::Problem`], each: the role does not permit it, there is no such receiver, or the address is refused.
impl Session {
    /// All receivers.
    pub fn receivers(&self) -> Result<Vec<ReceiverItem>, ClientError> {
        self.send(Method::GET, RECEIVERS)?.json()
    }

    /// Adds one. The signing secret of a webhook is shown this once.
    pub fn add_receiver(&self, request: &AddReceiverRequest) -> Result<IssuedReceiver, ClientError> {
        self.send_json(Method::POST, RECEIVERS, request)?.json()
    }

    /// Changes what one is told, or whether it is told anything.
    pub fn change_receiver(&self, id: &str, request: &ChangeReceiverRequest) -> Result<ReceiverItem, ClientError> {
        self.send_json(Method::PATCH, &below(RECEIVERS, id), request)?.json()
    }

    /// Removes one, with what waits for it.
    pub fn remove_receiver(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(RECEIVERS, id)).map(|_| ())
    }

    /// Sends one a test.
    pub fn test_receiver(&self, id: &str) -> Result<DeliveryItem, ClientError> {
        self.send(Method::POST, &[&below(RECEIVERS, id), "/test"].concat())?.json()
    }
}
