//! Links that contain their own authorization.

use super::information::Fact;
use super::table::credential_table;
use super::{Headers, Link};

credential_table! {
    /// A link that contains its own authorization, usually a signed URL.
    DirectLink {
        /// URL.
        url: required Secret Link -> Link,
        /// Header fields to send with requests.
        headers: optional Secret Headers -> Headers,
    }
}

impl DirectLink {
    /// Returns `scheme`, `host` (with its port unless it is the scheme's default) and, if the signature contains it,
    /// `expires_at`. Returns nothing of user, path or query.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let Some(origin) = self.url.origin() else { return Vec::new() };
        let expiry = self.url.expires_at().map(|expiry| Fact::text("expires_at", expiry));
        [Fact::text("scheme", origin.scheme), Fact::text("host", origin.host)].into_iter().chain(expiry).collect()
    }
}
