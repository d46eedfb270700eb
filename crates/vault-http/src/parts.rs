//! The parts of the public listener.

use crate::readiness::Readiness;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::IdGenerator;
use vault_core::usecase::federation::PublishedKeys;
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
/// There is no field for anything that decrypts a credential,
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
/// nor for anything that signs federation tokens or changes their keys,
///
/// ```compile_fail,E0560
/// # use std::sync::Arc;
/// # use vault_core::port::FederationTokenSigner;
/// # use vault_http::ServerParts;
/// fn with(parts: ServerParts, signer: Arc<dyn FederationTokenSigner>) -> ServerParts {
///     ServerParts { signer, ..parts }
/// }
/// ```
///
/// ```compile_fail,E0308
/// # use std::sync::Arc;
/// # use vault_core::usecase::Federation;
/// # use vault_http::ServerParts;
/// fn with(parts: ServerParts, federation: Federation) -> ServerParts {
///     ServerParts { federation: Some(Arc::new(federation)), ..parts }
/// }
/// ```
///
/// and no other field accepts such a type:
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
    /// Runtime for use cases. It continues when a client disconnects.
    pub runtime: Handle,
    /// Use cases of users with credentials.
    pub vault: Vault,
    /// Use cases of logins, sessions, accounts and invitations.
    pub accounts: Accounts,
    /// Use cases of admins with integrations and namespaces.
    pub integrations: Integrations,
    /// Use cases of receivers.
    pub receivers: Receivers,
    /// Use cases of admins with the audit log.
    pub audit: AuditReader,
    /// Documents of the federation issuer, if the server has one. They contain no private key.
    pub federation: Option<Arc<PublishedKeys>>,
    /// Generator of request IDs.
    pub ids: Arc<dyn IdGenerator>,
    /// State for `/readyz`.
    pub readiness: Readiness,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks reviewed types: they contain no `Opener`, directly or indirectly.
    trait CannotOpen {}

    impl CannotOpen for Handle {}
    impl CannotOpen for Vault {}
    impl CannotOpen for Accounts {}
    impl CannotOpen for Integrations {}
    impl CannotOpen for AuditReader {}
    impl CannotOpen for Receivers {}
    impl CannotOpen for Readiness {}
    impl CannotOpen for Option<Arc<PublishedKeys>> {}
    impl CannotOpen for Arc<dyn IdGenerator> {}

    fn all(parts: &[&dyn CannotOpen]) -> usize {
        parts.len()
    }

    /// Destructures all parts, so that a new or unreviewed part does not compile.
    fn reviewed(parts: &ServerParts) -> usize {
        let ServerParts { runtime, vault, accounts, integrations, receivers, audit, federation, ids, readiness } =
            parts;
        all(&[runtime, vault, accounts, integrations, receivers, audit, federation, ids, readiness])
    }

    #[test]
    fn every_part_of_the_public_listener_was_reviewed() {
        // The test is that this compiles.
        let _: fn(&ServerParts) -> usize = reviewed;
    }
}
