//! Where the next page of a list begins: opaque to its holder, and bound to the list it came from.

use crate::credential::CredentialType;
use crate::digest::{Digest, DigestPurpose};
use crate::error::Refusal;
use crate::id::{CredentialId, OrganizationId};
use crate::namespace::Namespace;
use crate::port::KeyedDigester;
use crate::principal::Scope;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Which credentials a list holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only those of this namespace.
    pub namespace: Option<Namespace>,
    /// Only those of this type.
    pub kind: Option<CredentialType>,
}

/// The cursor for the page after `last`.
pub fn encode(
    digester: &dyn KeyedDigester,
    organization: OrganizationId,
    filter: &ListFilter,
    last: CredentialId,
) -> String {
    let mut bytes = [0; 48];
    bytes[..16].copy_from_slice(last.as_bytes());
    bytes[16..].copy_from_slice(digest(digester, organization, filter, last).as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The credential after which the page of `text` begins.
///
/// # Errors
/// The text is not a cursor, or one of another organization or of other filters.
pub fn decode(
    digester: &dyn KeyedDigester,
    organization: OrganizationId,
    filter: &ListFilter,
    text: &str,
) -> Result<CredentialId, Refusal> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Cursor)?;
    let (id, code) = bytes.split_first_chunk::<16>().ok_or(Refusal::Cursor)?;
    let last = CredentialId::from_bytes(*id);
    let code = Digest::from_bytes(code.try_into().map_err(|_| Refusal::Cursor)?);
    if code == digest(digester, organization, filter, last) { Ok(last) } else { Err(Refusal::Cursor) }
}

fn digest(
    digester: &dyn KeyedDigester,
    organization: OrganizationId,
    filter: &ListFilter,
    last: CredentialId,
) -> Digest {
    // An empty part stands for "no filter": neither a namespace nor a type is ever empty.
    let namespace = filter.namespace.as_ref().map_or("", Namespace::as_str);
    let kind = filter.kind.map_or("", CredentialType::as_str);
    let parts: [&[u8]; 4] = [organization.as_bytes(), namespace.as_bytes(), kind.as_bytes(), last.as_bytes()];
    digester.digest(DigestPurpose::Cursor, &parts)
}

/// Which page of a list to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// At most so many rows.
    pub limit: usize,
    /// Where to begin, as the previous page said.
    pub cursor: Option<String>,
}

impl Default for PageRequest {
    /// The first page, of 1,000.
    fn default() -> Self {
        Self { limit: 1_000, cursor: None }
    }
}

impl PageRequest {
    /// How many rows to read: one more than the page holds tells whether there is a next page.
    pub(crate) const fn rows(&self) -> usize {
        self.limit.saturating_add(1)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// In the order of the list.
    pub items: Vec<T>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The page of `rows`, of which [`PageRequest::rows`] were asked for; `cursor` makes the cursor of what follows a row.
    pub(crate) fn of(mut rows: Vec<T>, request: &PageRequest, cursor: impl FnOnce(&T) -> String) -> Self {
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let next = rows.last().filter(|_| more).map(cursor);
        Self { items: rows, next }
    }
}

/// A list whose cursor says a position of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListName {
    /// Accounts and open invitations, by organization, in it the newest first.
    Accounts,
    /// Integrations, by organization and name.
    Integrations,
    /// An organization's namespaces, by name.
    Namespaces,
    /// An integration's live activations, newest first.
    Activations,
}

impl ListName {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Accounts => "accounts",
            Self::Integrations => "integrations",
            Self::Namespaces => "namespaces",
            Self::Activations => "activations",
        }
    }
}

/// The cursor for the page of `list` in `scope` that begins after `position`.
pub(crate) fn encode_position(digester: &dyn KeyedDigester, list: ListName, scope: Scope, position: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode([position_digest(digester, list, scope, position).as_bytes(), position].concat())
}

/// The position that [`encode_position`] wrote.
///
/// # Errors
/// The text is not a cursor, or one of another list or scope.
pub(crate) fn decode_position(
    digester: &dyn KeyedDigester,
    list: ListName,
    scope: Scope,
    text: &str,
) -> Result<Vec<u8>, Refusal> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::Cursor)?;
    let (code, position) = bytes.split_first_chunk::<32>().ok_or(Refusal::Cursor)?;
    let sound = Digest::from_bytes(*code) == position_digest(digester, list, scope, position);
    if sound { Ok(position.to_vec()) } else { Err(Refusal::Cursor) }
}

fn position_digest(digester: &dyn KeyedDigester, list: ListName, scope: Scope, position: &[u8]) -> Digest {
    // Five parts, so that no cursor of a list of credentials, which has four, is one of these.
    let (kind, organization): (&[u8], &[u8]) = match &scope {
        Scope::One(organization) => (b"one", organization.as_bytes()),
        Scope::All => (b"all", &[]),
    };
    let parts: [&[u8]; 5] = [b"position", list.as_str().as_bytes(), kind, organization, position];
    digester.digest(DigestPurpose::Cursor, &parts)
}
