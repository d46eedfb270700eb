//! Cursors for the next page of a list. They are opaque to clients and bound to the list that issued them.

use crate::credential::{ListFilter, ListPosition};
use crate::digest::{Digest, DigestPurpose, RowMac};
use crate::error::{Error, Refusal};
use crate::id::{CredentialId, KeyId, OrganizationId};
use crate::port::KeyedDigester;
use crate::principal::Scope;
use crate::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

/// Creates the cursor for the page of a list of credentials after `last`.
pub fn encode(
    digester: &dyn KeyedDigester,
    organization: OrganizationId,
    filter: &ListFilter,
    last: ListPosition,
) -> String {
    let position =
        [last.expires_at.map_or(0, Timestamp::as_millis).to_be_bytes().as_slice(), last.id.as_bytes()].concat();
    encode_filtered(digester, ListName::Credentials, Scope::One(organization), filter, &position)
}

/// Returns the position after which the page of a cursor starts.
///
/// # Errors
/// The text is not a cursor, or belongs to another organization or other filters.
pub async fn decode(
    digester: &dyn KeyedDigester,
    organization: OrganizationId,
    filter: &ListFilter,
    text: &str,
) -> Result<ListPosition, Error> {
    let position = decode_filtered(digester, ListName::Credentials, Scope::One(organization), filter, text).await?;
    let (millis, id) = position.split_first_chunk::<8>().ok_or(Refusal::Cursor)?;
    let expires_at = Timestamp::from_millis(i64::from_be_bytes(*millis));
    Ok(ListPosition {
        expires_at: filter.expires_before.map(|_| expires_at),
        id: CredentialId::from_bytes(id.try_into().map_err(|_| Refusal::Cursor)?),
    })
}

/// Encodes a cursor: the key of its MAC, the MAC and the position.
fn write(mac: &RowMac, position: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode([mac.key.as_bytes().as_slice(), mac.mac.as_bytes(), position].concat())
}

/// Decodes the MAC and the position of a cursor.
fn read(text: &str) -> Result<(RowMac, Vec<u8>), Error> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Cursor)?;
    let (key, rest) = bytes.split_first_chunk::<16>().ok_or(Refusal::Cursor)?;
    let (mac, position) = rest.split_first_chunk::<32>().ok_or(Refusal::Cursor)?;
    let mac = RowMac { key: KeyId::from_bytes(*key), mac: Digest::from_bytes(*mac) };
    Ok((mac, position.to_vec()))
}

/// Ensures that a cursor `is_genuine`, also if another process signed it with a new key. Anyone can send any text as a
/// cursor, so the keys are read at most once a second.
async fn ensure_genuine(digester: &dyn KeyedDigester, is_genuine: impl Fn() -> bool) -> Result<(), Error> {
    if !is_genuine() {
        digester.refresh().await?;
        if !is_genuine() {
            return Err(Refusal::Cursor.into());
        }
    }
    Ok(())
}

/// Request for a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// Maximum number of rows.
    pub limit: usize,
    /// Cursor from the previous page.
    pub cursor: Option<String>,
}

impl Default for PageRequest {
    /// Requests the first page, with at most 1,000 rows.
    fn default() -> Self {
        Self { limit: 1_000, cursor: None }
    }
}

impl PageRequest {
    /// Returns the number of rows to read: one more than the page contains, to detect whether there is a next page.
    pub(crate) const fn rows(&self) -> usize {
        self.limit.saturating_add(1)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Rows in the order of the list.
    pub items: Vec<T>,
    /// Cursor of the next page, if any.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Creates the page from `rows`, for which [`PageRequest::rows`] were requested. `cursor` creates the cursor after
    /// a row.
    pub(crate) fn of(mut rows: Vec<T>, request: &PageRequest, cursor: impl FnOnce(&T) -> String) -> Self {
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let next = rows.last().filter(|_| more).map(cursor);
        Self { items: rows, next }
    }
}

/// A list whose cursors contain its own kind of position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ListName {
    /// Credentials of an organization, newest first or ordered by expiry.
    Credentials,
    /// Accounts and open invitations, ordered by organization and within it newest first.
    Accounts,
    /// Integrations, ordered by organization and name.
    Integrations,
    /// Namespaces of an organization, ordered by name.
    Namespaces,
    /// Active activations of an integration, newest first.
    Activations,
    /// Uses of a credential, newest first.
    Uses,
    /// Entries of the audit log, ordered by ID.
    Audit,
    /// Deliveries to a receiver, newest first.
    Deliveries,
}

impl ListName {
    fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Creates the cursor for the page of `list` in `scope` after `position`.
pub(crate) fn encode_position(digester: &dyn KeyedDigester, list: ListName, scope: Scope, position: &[u8]) -> String {
    encode_filtered(digester, list, scope, &(), position)
}

/// Creates the cursor like [`encode_position`], for a list with the filter `filter`. The cursor is valid for no other filter.
pub(crate) fn encode_filtered(
    digester: &dyn KeyedDigester,
    list: ListName,
    scope: Scope,
    filter: &impl Serialize,
    position: &[u8],
) -> String {
    let mac = with_parts(list, scope, filter, position, |parts| digester.sign(DigestPurpose::Cursor, parts));
    write(&mac, position)
}

/// Returns the position in a cursor of [`encode_position`].
///
/// # Errors
/// The text is not a cursor, or belongs to another list or scope.
pub(crate) async fn decode_position(
    digester: &dyn KeyedDigester,
    list: ListName,
    scope: Scope,
    text: &str,
) -> Result<Vec<u8>, Error> {
    decode_filtered(digester, list, scope, &(), text).await
}

/// Returns the position in a cursor of [`encode_filtered`].
///
/// # Errors
/// The text is not a cursor, or belongs to another list, scope or filter.
pub(crate) async fn decode_filtered(
    digester: &dyn KeyedDigester,
    list: ListName,
    scope: Scope,
    filter: &(impl Serialize + Sync),
    text: &str,
) -> Result<Vec<u8>, Error> {
    let (mac, position) = read(text)?;
    let is_signed = |parts: &[&[u8]]| digester.is_signed(DigestPurpose::Cursor, parts, &mac);
    ensure_genuine(digester, || with_parts(list, scope, filter, &position, is_signed)).await?;
    Ok(position)
}

fn with_parts<T>(
    list: ListName,
    scope: Scope,
    filter: &impl Serialize,
    position: &[u8],
    digest: impl FnOnce(&[&[u8]]) -> T,
) -> T {
    let (kind, organization): (&[u8], &[u8]) = match &scope {
        Scope::One(organization) => (b"one", organization.as_bytes()),
        Scope::All => (b"all", &[]),
    };
    // Serializing texts, numbers and lists of them cannot fail.
    let filter = serde_json::to_vec(filter).unwrap_or_default();
    let parts: [&[u8]; 6] = [b"position", list.as_str().as_bytes(), kind, organization, &filter, position];
    digest(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row more than the page contains is read. It is not returned, but shows that there is a next page.
    #[test]
    fn page_has_cursor_if_more_rows_exist() {
        for (limit, stored) in (0_usize..5).flat_map(|limit| (0_usize..8).map(move |stored| (limit, stored))) {
            let request = PageRequest { limit, cursor: None };
            let read: Vec<_> = (0..stored).take(request.rows()).collect();
            let page = Page::of(read, &request, |last| format!("after {last}"));
            assert_eq!(page.items, (0..stored.min(limit)).collect::<Vec<_>>());
            let next = (stored > limit && limit > 0).then(|| format!("after {}", limit - 1));
            assert_eq!(page.next, next);
        }
    }
}
