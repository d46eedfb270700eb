//! Lists that are read page by page.

use crate::base::encode;
use crate::{ClientError, CredentialItem, Session};
use std::fmt::Write as _;

/// Filter of a list of credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Filter: only credentials of this namespace.
    pub namespace: Option<String>,
    /// Filter: only credentials of this type.
    pub kind: Option<String>,
    /// Filter: only credentials with all of these labels, each in the format `name:value`.
    pub labels: Vec<String>,
    /// Filter: only credentials in this state: `unchecked`, `healthy`, `failing`, `expiring` or `expired`.
    pub health: Option<String>,
    /// Filter: only credentials that expire before this time in RFC 3339, ordered by expiry.
    pub expires_before: Option<String>,
    /// Maximum number of items per page, 1 to 1,000. `None` uses the maximum.
    pub page_size: Option<u32>,
}

impl ListFilter {
    /// Returns the query with a leading question mark, or an empty text.
    pub(crate) fn query(&self, cursor: Option<&str>) -> String {
        let limit = self.page_size.map(|size| size.to_string());
        let labels = self.labels.iter().map(|label| ("label", Some(label.as_str())));
        let parameters = [("namespace", self.namespace.as_deref()), ("type", self.kind.as_deref())];
        let more = [
            ("health", self.health.as_deref()),
            ("expires_before", self.expires_before.as_deref()),
            ("limit", limit.as_deref()),
            ("cursor", cursor),
        ];
        let all = parameters.into_iter().chain(labels).chain(more);
        query(all.filter_map(|(name, value)| Some((name, value?))))
    }
}

/// Filter of a list of audit entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Earliest time, RFC 3339.
    pub since: Option<String>,
    /// Exclusive latest time, RFC 3339.
    pub until: Option<String>,
    /// Actions, of which an entry must have one. Empty: all.
    pub actions: Vec<String>,
    /// Outcome: `denied`.
    pub outcome: Option<String>,
    /// Includes entries about reads. `None` includes them too.
    pub reads: Option<bool>,
    /// Subject: `credential:<id>`, or an ID.
    pub subject: Option<String>,
    /// Actor: a kind, or an ID.
    pub actor: Option<String>,
    /// Namespace that an entry is about.
    pub namespace: Option<String>,
    /// Whether the oldest entries come first, instead of the newest.
    pub oldest_first: bool,
    /// Maximum number of items per page, 1 to 1,000. `None` uses the maximum.
    pub page_size: Option<u32>,
}

impl AuditFilter {
    /// Returns the query with a leading question mark, or an empty text.
    pub(crate) fn query(&self, cursor: Option<&str>) -> String {
        let limit = self.page_size.map(|size| size.to_string());
        let parameters = [
            ("since", self.since.as_deref()),
            ("until", self.until.as_deref()),
            ("outcome", self.outcome.as_deref()),
            ("reads", self.reads.map(|reads| if reads { "true" } else { "false" })),
            ("subject", self.subject.as_deref()),
            ("actor", self.actor.as_deref()),
            ("namespace", self.namespace.as_deref()),
            ("order", self.oldest_first.then_some("oldest")),
            ("limit", limit.as_deref()),
            ("cursor", cursor),
        ];
        let actions = self.actions.iter().map(|action| ("action", Some(action.as_str())));
        query(actions.chain(parameters).filter_map(|(name, value)| Some((name, value?))))
    }
}

/// Returns the query of these parameters with a leading question mark, or an empty text.
pub(crate) fn query<'a>(parameters: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut query = String::new();
    for (name, value) in parameters {
        let mark = if query.is_empty() { '?' } else { '&' };
        let _ = write!(query, "{mark}{name}={}", encode(value)); // writing to a String cannot fail
    }
    query
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Credentials of the page, newest first.
    pub credentials: Vec<CredentialItem>,
    /// Cursor of the next page, if any.
    pub next: Option<String>,
}

/// Returns the cursor in a `Link` header with the relation `next`. Only the cursor is used: the URL of the request is
/// always the client's own.
pub(crate) fn next_cursor(link: &str) -> Option<String> {
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = parameters.split(';').any(|parameter| matches!(parameter.trim(), "rel=\"next\"" | "rel=next"));
    let (_, query) = target.split_once('?').filter(|_| is_next)?;
    let cursor = query.split('&').find_map(|pair| pair.strip_prefix("cursor="))?;
    let plain = !cursor.is_empty() && cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    plain.then(|| cursor.to_owned())
}

/// Iterator over all credentials of a list. It ends after an error.
pub struct Credentials<'a> {
    session: &'a Session,
    filter: ListFilter,
    page: std::vec::IntoIter<CredentialItem>,
    ahead: Ahead,
}

enum Ahead {
    First,
    From(String),
    Nothing,
}

impl<'a> Credentials<'a> {
    pub(crate) fn new(session: &'a Session, filter: ListFilter) -> Self {
        Self { session, filter, page: Vec::new().into_iter(), ahead: Ahead::First }
    }
}

impl Iterator for Credentials<'_> {
    type Item = Result<CredentialItem, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(credential) = self.page.next() {
                return Some(Ok(credential));
            }
            let page = match std::mem::replace(&mut self.ahead, Ahead::Nothing) {
                Ahead::First => self.session.page(&self.filter, None),
                Ahead::From(cursor) => self.session.page(&self.filter, Some(&cursor)),
                Ahead::Nothing => return None,
            };
            match page {
                Ok(page) => {
                    self.page = page.credentials.into_iter();
                    self.ahead = page.next.map_or(Ahead::Nothing, Ahead::From);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_contain_requested_filters() {
        assert_eq!(ListFilter::default().query(None), "");
        let filter = ListFilter {
            namespace: Some("a/b&c".into()),
            kind: Some("s3".into()),
            page_size: Some(2),
            ..ListFilter::default()
        };
        assert_eq!(filter.query(Some("x-_")), "?namespace=a%2Fb%26c&type=s3&limit=2&cursor=x-_");
    }

    #[test]
    fn only_cursor_is_read_from_next_link() {
        assert_eq!(
            next_cursor("</v1/organization-vault?limit=2&cursor=aB-_9>; rel=\"next\"").as_deref(),
            Some("aB-_9")
        );
        assert_eq!(next_cursor("<https://evil.example/?cursor=a>; rel=next").as_deref(), Some("a"));
        for other in [
            "",
            "</v1?cursor=a>; rel=\"prev\"",
            "</v1?limit=2>; rel=\"next\"",
            "/v1?cursor=a; rel=next",
            "</v1?cursor=>; rel=next",
            "</v1?cursor=a%26b>; rel=next",
        ] {
            assert_eq!(next_cursor(other), None, "{other}");
        }
    }
}
