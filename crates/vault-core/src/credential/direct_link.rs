//! Links that carry their own permission.

use super::information::Fact;
use super::table::credential_table;
use super::{Headers, Link};

credential_table! {
    /// A link that carries its own permission, mostly a signed URL.
    DirectLink {
        /// The address.
        url: required Secret Link -> Link,
        /// Header fields to send with a request for it.
        headers: optional Secret Headers -> Headers,
    }
}

impl DirectLink {
    /// `scheme`, `host` (with its port where that is not the scheme's own) and, where the signature says so,
    /// `expires_at`. Never anything of user, path or query.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let Some(origin) = self.url.origin() else { return Vec::new() };
        let expiry = self.url.expires_at().map(|expiry| Fact::text("expires_at", expiry));
        [Fact::text("scheme", origin.scheme), Fact::text("host", origin.host)].into_iter().chain(expiry).collect()
    }
}
