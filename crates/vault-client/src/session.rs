//! What a token is needed for.

use crate::base::encode;
use crate::client::{Answer, RequestParts, json};
use crate::list::{Credentials, ListFilter, Page, next_cursor};
use crate::{Client, ClientError};
use secrecy::SecretString;
use serde::Serialize;
use std::fmt;
use ureq::http::{Method, header};
use vault_api::{CredentialItem, SaveRequest, SavedCredential};

const VAULT: &str = "/organization-vault";

/// A login, and all that it permits.
pub struct Session {
    client: Client,
    token: SecretString,
    expires_at: Option<String>,
}

impl Session {
    pub(crate) fn new(client: Client, token: SecretString, expires_at: Option<String>) -> Self {
        Self { client, token, expires_at }
    }

    /// The access token, to be kept for [`Client::resume`].
    pub fn token(&self) -> &SecretString {
        &self.token
    }

    /// When the token stops working, RFC 3339 in UTC, if this session logged in.
    pub fn expires_at(&self) -> Option<&str> {
        self.expires_at.as_deref()
    }

    /// Saves a credential. With an idempotency key (1 to 255 visible ASCII characters), the same request has one
    /// effect however often it is sent within 24 h.
    ///
    /// # Errors
    /// [`ClientError::Problem`] with all flaws of the request at once.
    pub fn save(&self, request: &SaveRequest, idempotency_key: Option<&str>) -> Result<SavedCredential, ClientError> {
        let mut parts = self.request(Method::PATCH, VAULT)?;
        if let Some(key) = idempotency_key {
            parts = parts.header("idempotency-key", key)?;
        }
        self.client.send(parts, Some(&json(request)?))?.json()
    }

    /// The page of a list that begins at `cursor`, newest first.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the filter or the cursor is refused.
    pub fn page(&self, filter: &ListFilter, cursor: Option<&str>) -> Result<Page, ClientError> {
        let answer = self.send(Method::GET, &[VAULT, &filter.query(cursor)].concat())?;
        let next = answer.header(header::LINK).find_map(next_cursor);
        Ok(Page { credentials: answer.json()?, next })
    }

    /// All credentials of a list, newest first, page by page as they are taken.
    pub fn list(&self, filter: ListFilter) -> Credentials<'_> {
        Credentials::new(self, filter)
    }

    /// Shows a credential as lists do.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if there is none of this id.
    pub fn show(&self, id: &str) -> Result<CredentialItem, ClientError> {
        self.send(Method::GET, &credential(id))?.json()
    }

    /// Deletes a credential for good.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if there is none of this id.
    pub fn delete(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &credential(id)).map(|_| ())
    }

    /// Ends the session: the token is dead at once.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if it was dead before.
    pub fn log_out(self) -> Result<(), ClientError> {
        self.send(Method::POST, "/logout").map(|_| ())
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestParts, ClientError> {
        self.client.request(method, path).bearer(&self.token)
    }

    pub(crate) fn send(&self, method: Method, path: &str) -> Result<Answer, ClientError> {
        self.client.send(self.request(method, path)?, None)
    }

    pub(crate) fn send_json(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Answer, ClientError> {
        self.client.send(self.request(method, path)?, Some(&json(body)?))
    }
}

fn credential(id: &str) -> String {
    [VAULT, "/", &encode(id)].concat()
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("client", &self.client)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
