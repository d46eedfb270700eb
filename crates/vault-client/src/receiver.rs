//! Receivers of the organization, which get notifications.

use crate::account::below;
use crate::{ClientError, Session};
use ureq::http::Method;
use vault_api::{AddReceiverRequest, ChangeReceiverRequest, DeliveryItem, IssuedReceiver, ReceiverItem};

const RECEIVERS: &str = "/receivers";

/// Operations of admins on the receivers of their organization.
///
/// # Errors
/// [`ClientError::Problem`] of each: the role does not permit it, the receiver does not exist, or the address is
/// refused.
impl Session {
    /// Returns all receivers.
    pub fn receivers(&self) -> Result<Vec<ReceiverItem>, ClientError> {
        self.send(Method::GET, RECEIVERS)?.json()
    }

    /// Adds a receiver. The signing secret of a webhook is returned only once.
    pub fn add_receiver(&self, request: &AddReceiverRequest) -> Result<IssuedReceiver, ClientError> {
        self.send_json(Method::POST, RECEIVERS, request)?.json()
    }

    /// Changes the events or state of a receiver.
    pub fn change_receiver(&self, id: &str, request: &ChangeReceiverRequest) -> Result<ReceiverItem, ClientError> {
        self.send_json(Method::PATCH, &below(RECEIVERS, id), request)?.json()
    }

    /// Removes a receiver and its pending deliveries.
    pub fn remove_receiver(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &below(RECEIVERS, id)).map(|_| ())
    }

    /// Replaces the signing secret of a webhook. The new one is returned only once.
    pub fn rotate_receiver_secret(&self, id: &str) -> Result<IssuedReceiver, ClientError> {
        self.send(Method::POST, &[&below(RECEIVERS, id), "/rotate-secret"].concat())?.json()
    }

    /// Returns up to `limit` deliveries to a receiver, 1 to 1,000, newest first.
    pub fn deliveries(&self, id: &str, limit: usize) -> Result<Vec<DeliveryItem>, ClientError> {
        self.send(Method::GET, &format!("{}/deliveries?limit={limit}", below(RECEIVERS, id)))?.json()
    }

    /// Queues a test for a receiver.
    pub fn test_receiver(&self, id: &str) -> Result<DeliveryItem, ClientError> {
        self.send(Method::POST, &[&below(RECEIVERS, id), "/test"].concat())?.json()
    }
}
