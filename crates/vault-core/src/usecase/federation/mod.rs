//! Signing keys of federation tokens: commands of operators, and the tasks of servers.

mod check;
mod manage;
mod publish;

pub use check::PublicationReport;
pub use manage::FederationStatus;
pub use publish::{FederationPublisher, PublishedKeys};

use super::Environment;
use crate::error::Error;
use crate::federation::{ChangeSigningKeys, KeyActions, SigningKeyChange};
use crate::operation::{Operation, Operations};
use crate::port::FederationKeyImporter;
use crate::principal::Principal;
use std::sync::Arc;

/// Signing keys.
#[derive(Clone)]
pub struct Federation {
    environment: Environment,
    operations: Operations,
    importer: Arc<dyn FederationKeyImporter>,
}

impl Federation {
    /// Creates the context on these ports.
    pub fn new(environment: Environment, operations: Operations, importer: Arc<dyn FederationKeyImporter>) -> Self {
        Self { environment, operations, importer }
    }

    async fn run<O: Operation>(&self, operation: O) -> Result<O::Outcome, Error> {
        self.operations.run(&self.environment, &Principal::Operator, operation).await
    }

    async fn change(&self, change: SigningKeyChange, by_system: bool) -> Result<KeyActions, Error> {
        let id = self.environment.ids.random();
        self.run(ChangeSigningKeys { change, id, by_system }).await
    }
}
