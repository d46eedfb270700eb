//! Operations that require an access token.

use crate::base::encode;
use crate::client::{Answer, RequestParts, json};
use crate::list::{Credentials, Page, next_cursor, query};
use crate::{AuditFilter, ListFilter};
use crate::{Client, ClientError};
use secrecy::SecretString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use ureq::http::{Method, header};
use vault_api::{
    AuditItem, CheckCredentialRequest, CredentialHolder, CredentialItem, CredentialUse, DescribeRequest,
    FindKeyRequest, FoundKey, MatchRequest, MatchedCredential, PromoteRequest, ProviderTrust, ReplaceRequest,
    ReplacedCredential, SaveRequest, SavedCredential, VersionItem, WireJson, WireSecret,
};

const VAULT: &str = "/organization-vault";
const VERSIONS: &str = "/versions";

/// Options of a request that changes a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// Idempotency key (1 to 255 visible ASCII characters): repeated requests with the same key have one effect within
    /// 24 h.
    pub idempotency_key: Option<String>,
    /// Entity tag that the credential must still have. See [`Session::show_tagged`].
    pub if_match: Option<String>,
    /// Whether the credential is checked with its storage first, and saved only if the storage accepts it.
    pub verify: bool,
}

/// A session after a login. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    client: Client,
    token: SecretString,
    expires_at: Option<String>,
}

impl Session {
    pub(crate) fn new(client: Client, token: SecretString, expires_at: Option<String>) -> Self {
        Self { client, token, expires_at }
    }

    /// Returns the access token, which can be passed to [`Client::resume`].
    pub fn token(&self) -> &SecretString {
        &self.token
    }

    /// Returns the expiry of the token, RFC 3339 in UTC, if this session logged in.
    pub fn expires_at(&self) -> Option<&str> {
        self.expires_at.as_deref()
    }

    /// Saves a credential. With an idempotency key (1 to 255 visible ASCII characters), repeated requests have one
    /// effect within 24 h.
    ///
    /// # Errors
    /// [`ClientError::Problem`] with all violations of the request.
    pub fn save(&self, request: &SaveRequest, idempotency_key: Option<&str>) -> Result<SavedCredential, ClientError> {
        let idempotency_key = idempotency_key.map(str::to_owned);
        self.save_with(request, &RequestOptions { idempotency_key, ..RequestOptions::default() })
    }

    /// Saves a credential with other options. An entity tag never matches, because a save only creates.
    ///
    /// # Errors
    /// Those of [`Session::save`].
    pub fn save_with(&self, request: &SaveRequest, options: &RequestOptions) -> Result<SavedCredential, ClientError> {
        self.change(Method::PATCH, VAULT.to_owned(), Some(&json(request)?), options)?.json()
    }

    /// Replaces a credential's data, or stages the new data.
    ///
    /// # Errors
    /// [`ClientError::Problem`] with all violations of the request.
    pub fn replace(
        &self,
        id: &str,
        request: &ReplaceRequest,
        options: &RequestOptions,
    ) -> Result<ReplacedCredential, ClientError> {
        self.change(Method::POST, credential(id) + VERSIONS, Some(&json(request)?), options)?.json()
    }

    /// Changes the metadata of a credential. With an entity tag, only if it still matches.
    ///
    /// # Errors
    /// [`ClientError::Problem`] with all violations of the request.
    pub fn describe(
        &self,
        id: &str,
        request: &DescribeRequest,
        if_match: Option<&str>,
    ) -> Result<CredentialItem, ClientError> {
        self.change(Method::PATCH, credential(id), Some(&json(request)?), &only_if(if_match))?.json()
    }

    /// Returns whether the credential's current data equals `data`. The number of comparisons is limited.
    ///
    /// # Errors
    /// [`ClientError::Problem`] with all violations of the data.
    pub fn matches(&self, id: &str, data: WireJson) -> Result<bool, ClientError> {
        let answer = self.send_json(Method::POST, &(credential(id) + "/match"), &MatchRequest { data })?;
        Ok(answer.json::<MatchedCredential>()?.same)
    }

    /// Requests a check of a version with its storage: `version`, otherwise the staged one, otherwise the current one.
    /// The result appears with the credential's versions.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if no process runs checks, or the limit is exceeded.
    pub fn request_check(&self, id: &str, version: Option<i64>) -> Result<(), ClientError> {
        let path = credential(id) + "/check";
        self.send_json(Method::POST, &path, &CheckCredentialRequest { version }).map(|_| ())
    }

    /// Returns a page of the activations of the last 30 days that issued a credential, newest first, starting at
    /// `cursor`, and the cursor of the next page, if any.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the credential does not exist, or the cursor is refused.
    pub fn uses(&self, id: &str, cursor: Option<&str>) -> Result<(Vec<CredentialUse>, Option<String>), ClientError> {
        let answer = self.send(Method::GET, &[&credential(id), "/activations", &*query((), cursor)].concat())?;
        let next = answer.header(header::LINK).find_map(next_cursor);
        Ok((answer.json()?, next))
    }

    /// Searches a key in all versions that are kept: its ID or the end of it, a fingerprint, or a text with the whole key.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the text is too short.
    pub fn find_key(&self, text: WireSecret) -> Result<Vec<FoundKey>, ClientError> {
        let path = "/organization-vault/find";
        self.send_json(Method::POST, path, &FindKeyRequest { text })?.json()
    }

    /// Returns the integrations that used a credential in the last 30 days, by version, and until when each may use it.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the credential does not exist.
    pub fn holders(&self, id: &str) -> Result<Vec<CredentialHolder>, ClientError> {
        self.send(Method::GET, &(credential(id) + "/holders"))?.json()
    }

    /// Returns a page of audit entries of the organization, starting at `cursor`, and the cursor of the next page, if
    /// any. A page may be short or empty although another one follows. For admins.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the role does not permit it, or a filter or the cursor is refused.
    pub fn audit(
        &self,
        filter: &AuditFilter,
        cursor: Option<&str>,
    ) -> Result<(Vec<AuditItem>, Option<String>), ClientError> {
        let answer = self.send(Method::GET, &["/audit", &query(filter, cursor)].concat())?;
        let next = answer.header(header::LINK).find_map(next_cursor);
        Ok((answer.json()?, next))
    }

    /// Returns the versions of a credential: the current one first, then the others by descending number.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the credential does not exist.
    pub fn versions(&self, id: &str) -> Result<Vec<VersionItem>, ClientError> {
        self.send(Method::GET, &(credential(id) + VERSIONS))?.json()
    }

    /// Makes a version the current one. With an entity tag, only if it still matches.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the version does not exist, or the credential was changed concurrently.
    pub fn promote(&self, id: &str, version: i64, if_match: Option<&str>) -> Result<CredentialItem, ClientError> {
        let path = credential(id) + "/promote";
        self.change(Method::POST, path, Some(&json(&PromoteRequest { version })?), &only_if(if_match))?.json()
    }

    /// Permanently destroys a staged or previous version. With an entity tag, only if it still matches.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the version does not exist or is current, or the credential was changed
    /// concurrently.
    pub fn destroy_version(&self, id: &str, version: i64, if_match: Option<&str>) -> Result<(), ClientError> {
        let path = format!("{}{VERSIONS}/{version}", credential(id));
        self.change(Method::DELETE, path, None, &only_if(if_match)).map(|_| ())
    }

    /// Returns the page of a list that starts at `cursor`, newest first.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the filter or the cursor is refused.
    pub fn page(&self, filter: &ListFilter, cursor: Option<&str>) -> Result<Page, ClientError> {
        let answer = self.send(Method::GET, &[VAULT, &query(filter, cursor)].concat())?;
        let next = answer.header(header::LINK).find_map(next_cursor);
        Ok(Page { credentials: answer.json()?, next })
    }

    /// Returns all items of a list without a filter, reading all pages.
    pub(crate) fn all<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, ClientError> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let answer = self.send(Method::GET, &[path, &query((), cursor.as_deref())].concat())?;
            cursor = answer.header(header::LINK).find_map(next_cursor);
            all.extend(answer.json::<Vec<T>>()?);
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// Returns all credentials of a list, newest first. Pages are read as they are needed.
    pub fn list(&self, filter: ListFilter) -> Credentials<'_> {
        Credentials::new(self, filter)
    }

    /// Returns a credential as in lists.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if it does not exist.
    pub fn show(&self, id: &str) -> Result<CredentialItem, ClientError> {
        self.send(Method::GET, &credential(id))?.json()
    }

    /// Returns what the provider of a keyless credential must trust, and how to configure it.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the credential does not exist or has a saved secret, or the feature is off.
    pub fn provider_trust(&self, id: &str) -> Result<ProviderTrust, ClientError> {
        self.send(Method::GET, &(credential(id) + "/trust"))?.json()
    }

    /// Returns a credential with its entity tag, which each change by a client replaces.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if it does not exist.
    pub fn show_tagged(&self, id: &str) -> Result<(CredentialItem, Option<String>), ClientError> {
        let answer = self.send(Method::GET, &credential(id))?;
        let tag = answer.header(header::ETAG).next().map(str::to_owned);
        Ok((answer.json()?, tag))
    }

    /// Permanently deletes a credential.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if it does not exist.
    pub fn delete(&self, id: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &credential(id)).map(|_| ())
    }

    /// Ends the session. The token is invalid immediately.
    ///
    /// # Errors
    /// [`ClientError::Problem`] if the token was already invalid.
    pub fn log_out(self) -> Result<(), ClientError> {
        self.send(Method::POST, "/logout").map(|_| ())
    }

    fn change(
        &self,
        method: Method,
        mut path: String,
        body: Option<&[u8]>,
        options: &RequestOptions,
    ) -> Result<Answer, ClientError> {
        if options.verify {
            path += "?verify=true";
        }
        let mut parts = self.request(method, &path)?;
        for (name, value) in [("idempotency-key", &options.idempotency_key), ("if-match", &options.if_match)] {
            if let Some(value) = value {
                parts = parts.header(name, value)?;
            }
        }
        self.client.send(parts, body)
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

fn only_if(if_match: Option<&str>) -> RequestOptions {
    RequestOptions { if_match: if_match.map(str::to_owned), ..RequestOptions::default() }
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
