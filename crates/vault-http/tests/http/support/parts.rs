//! The parts of servers, from a vault on fakes.

use super::World;
use tokio::runtime::Handle;
use vault_http::{ActivationParts, Readiness, ServerParts};
use vault_testkit::fake::FakeVault;

pub(super) fn server_parts(fake: &FakeVault, runtime: &Handle) -> ServerParts {
    ServerParts {
        runtime: runtime.clone(),
        vault: fake.vault(),
        accounts: fake.accounts(),
        integrations: fake.integrations(),
        receivers: fake.receivers(),
        audit: fake.audit_reader(),
        federation: None,
        ids: fake.ids.clone(),
        readiness: ready(),
    }
}

impl World {
    pub(crate) fn server_parts(&self) -> ServerParts {
        server_parts(self, self.runtime().handle())
    }

    pub(crate) fn activation_parts(&self) -> ActivationParts {
        ActivationParts {
            runtime: self.runtime().handle().clone(),
            activations: self
                .activations()
                .vendor(Some(self.storage.clone()))
                .probe(Some(self.storage.clone()))
                .trust(Some(self.storage.clone())),
            ids: self.ids.clone(),
            readiness: ready(),
        }
    }
}

fn ready() -> Readiness {
    Readiness::new(|| std::future::ready(Ok(())))
}
