//! Lists that are read page by page.

use crate::base::encode;
use crate::{ClientError, CredentialItem, ListFilter, Session};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// Returns the query with the fields of `filter` and a cursor, with a leading question mark, or an empty text.
pub(crate) fn query(filter: impl Serialize, cursor: Option<&str>) -> String {
    let fields = match serde_json::to_value(filter) {
        Ok(Value::Object(fields)) => fields.into_iter().collect(),
        _ => Vec::new(),
    };
    let mut query = String::new();
    for (name, value) in fields.into_iter().chain(cursor.map(|cursor| ("cursor".to_owned(), cursor.into()))) {
        let values = match value {
            Value::Null => Vec::new(),
            Value::Array(values) => values,
            one => vec![one],
        };
        for value in values {
            let mark = if query.is_empty() { '?' } else { '&' };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(query, "{mark}{name}={}", encode(&text)); // writing to a String cannot fail
        }
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
        assert_eq!(query(ListFilter::default(), None), "");
        let filter = ListFilter {
            namespace: Some("a/b&c".into()),
            kind: Some("s3".into()),
            labels: vec!["a:b".into(), "c:".into()],
            page_size: Some(2),
            ..ListFilter::default()
        };
        let expected = "?label=a%3Ab&label=c%3A&limit=2&namespace=a%2Fb%26c&type=s3&cursor=x-_";
        assert_eq!(query(filter, Some("x-_")), expected);
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
