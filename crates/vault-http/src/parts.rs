//! What the public listener is made of.

use crate::readiness::Readiness;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;
use vault_core::usecase::{Accounts, AuditReader, Integrations, Receivers, Vault};

/// The use cases behind the public listener. None of them can open a credential.
///
/// A part can be exchanged:
///
/// ```
/// # use std::sync::Arc;
/// # use vault_core::{port::IdGenerator, usecase::Vault};
/// # use vault_http::ServerParts;
/// fn with(parts: ServerParts, ids: Arc<dyn IdGenerator>) -> ServerParts {
///     ServerParts { ids, ..parts }
/// }
/// fn save(parts: ServerParts, vault: Vault) -> ServerParts {
///     ServerParts { vault, ..parts }
/// }
/// ```
///
/// But there is no place for what opens a credential,
///
/// ```compile_fail,E0560
/// # use std::sync::Arc;
/// # use vault_core::port::Opener;
/// # use vault_http::ServerParts;
/// fn with(parts: ServerParts, opener: Arc<dyn Opener>) -> ServerParts {
///     ServerParts { opener, ..parts }
/// }
/// ```
///
/// ```compile_fail,E0560
/// # use vault_core::usecase::Activations;
/// # use vault_http::ServerParts;
/// fn with(parts: ServerParts, activations: Activations) -> ServerParts {
///     ServerParts { activations, ..parts }
/// }
/// ```
///
/// nor does anything that opens fit in another part's place:
///
/// ```compile_fail,E0308
/// # use vault_core::usecase::Activations;
/// # use vault_http::ServerParts;
/// fn integrations(parts: ServerParts, integrations: Activations) -> ServerParts {
///     ServerParts { integrations, ..parts }
/// }
/// ```
#[derive(Clone)]
pub struct ServerParts {
    /// The runtime on which use cases run: one that goes on when a client goes away.
    pub runtime: Handle,
    /// What members do with credentials.
    pub vault: Vault,
    /// Logins and sessions, accounts and invitations.
    pub accounts: Accounts,
    /// What admins do with integrations and namespaces.
    pub integrations: Integrations,
    /// Receivers of events.
    pub receivers: Receivers,
    /// What admins read of the audit.
    pub audit: AuditReader,
    /// Request ids.
    pub ids: Arc<dyn IdGenerator>,
    /// For `/readyz`.
    pub readiness: Readiness,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was reviewed: it holds no `Opener`, nor anything that does.
    trait CannotOpen {}

    impl CannotOpen for Handle {}
    impl CannotOpen for Vault {}
    impl CannotOpen for Accounts {}
    impl CannotOpen for Integrations {}
    impl CannotOpen for AuditReader {}
    impl CannotOpen for Receivers {}
    impl CannotOpen for Readiness {}
    impl CannotOpen for Arc<dyn IdGenerator> {}

    fn all(parts: &[&dyn CannotOpen]) -> usize {
        parts.len()
    }

    /// Names every part: it does not compile with one more, nor with one that was not reviewed.
    fn reviewed(parts: &ServerParts) -> usize {
        let ServerParts { runtime, vault, accounts, integrations, receivers, audit, ids, readiness } = parts;
        all(&[runtime, vault, accounts, integrations, receivers, audit, ids, readiness])
    }

    #[test]
    fn every_part_of_the_public_listener_was_reviewed() {
        // That it compiles is the test.
        let _: fn(&ServerParts) -> usize = reviewed;
    }
}
