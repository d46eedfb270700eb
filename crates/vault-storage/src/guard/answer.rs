//! What comes back, or why nothing does.

use hyper::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use vault_core::check::CheckReason;
use zeroize::Zeroizing;

/// An answer, its body read up to a limit. The body may hold secrets: no `Debug`.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The header fields.
    pub(crate) headers: HeaderMap,
    /// The body, or its beginning.
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// Whether the body is all there.
    pub(crate) is_whole: bool,
}

impl Answer {
    /// The body as text, if it is text and all there.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok().filter(|_| self.is_whole)
    }

    /// The body as JSON, if it is that.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok().filter(|_| self.is_whole)
    }

    /// A header field's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What the status alone says, where no document of the store's says more.
    pub(crate) fn plain_reason(&self) -> CheckReason {
        match self.status.as_u16() {
            300..=399 => CheckReason::Redirected,
            401 | 403 => CheckReason::Denied,
            408 | 429 | 500..=599 => CheckReason::StoreTrouble,
            _ => CheckReason::Unexpected,
        }
    }

    /// How far the store's clock is from `now`, in seconds, as far as it tells.
    pub(crate) fn skew(&self, now: i64) -> Option<u64> {
        let date = self.headers.get(header::DATE)?.to_str().ok()?;
        let date = crate::text::http_date(date)?;
        Some(date.abs_diff(now))
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    /// The address is none that could be asked.
    #[error("the address cannot be used")]
    Address,
    /// The address is not one that may be connected to.
    #[error("the address is not a public one")]
    Blocked,
    /// The host's name is not known.
    #[error("the host's name does not resolve")]
    Dns,
    /// The encrypted connection failed.
    #[error("the encrypted connection failed")]
    Tls,
    /// Not to be reached, or not in time.
    #[error("no answer in time")]
    Unreachable,
    /// What answers does not speak HTTP.
    #[error("the answer is not HTTP")]
    Protocol,
}

impl From<Trouble> for CheckReason {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Blocked => Self::BlockedEgress,
            Trouble::Dns => Self::Dns,
            Trouble::Tls => Self::Tls,
            Trouble::Unreachable => Self::Unreachable,
            Trouble::Address | Trouble::Protocol => Self::Unexpected,
        }
    }
}
