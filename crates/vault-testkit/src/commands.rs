//! Operations on credentials and activations whose parts, times and audit entries a test has made itself.

use crate::clock::{ManualClock, RecordingEvents};
use crate::contract::Store;
use crate::contract::saving::{Changing, Saving};
use crate::crypto::{FakeAuditSealer, FakeDigester, PlainSealer};
use std::sync::Arc;
use uuid::Uuid;
use vault_core::activation::{
    AbortActivation, Activation, EndActivation, FetchCredentials, FetchedCredential, FindActivation, ForIntegration,
    IssuanceRefusal, IssueCredentials, ListActivations,
};
use vault_core::audit::Origin;
use vault_core::credential::{ChangeCredential, ChangedVersion, SaveCredential};
use vault_core::id::CredentialId;
use vault_core::operation::{Operation, Operations};
use vault_core::port::{IdGenerator, RowStore};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;
use vault_core::usecase::Environment;
use vault_core::{Command, Error};

/// Runs commands as operations, at their time, with the ID and action of their audit entry. Implemented by stores behind an
/// [`Arc`].
pub trait CredentialCommands {
    /// Returns the store.
    fn rows(&self) -> Arc<dyn RowStore>;

    /// Saves a credential.
    fn save_credential(
        &self,
        command: Command<Saving>,
    ) -> impl Future<Output = Result<CredentialId, Error>> + Send + 'static {
        run::<SaveCredential, _>(self.rows(), command)
    }

    /// Fetches the credentials of a namespace.
    fn fetch_credentials(
        &self,
        command: ForIntegration<FetchCredentials>,
    ) -> impl Future<Output = Result<Vec<FetchedCredential>, Error>> + Send + 'static {
        let fetched = by_integration(self.rows(), command);
        async move { Ok(fetched.await?.credentials) }
    }

    /// Issues credentials.
    fn issue_credentials(
        &self,
        command: ForIntegration<IssueCredentials>,
    ) -> impl Future<Output = Result<Option<IssuanceRefusal>, Error>> + Send + 'static {
        by_integration(self.rows(), command)
    }

    /// Reads a page of an integration's active activations.
    fn list_activations(
        &self,
        query: ListActivations,
    ) -> impl Future<Output = Result<Vec<Activation>, Error>> + Send + 'static {
        by_integration(self.rows(), query)
    }

    /// Reads an active activation of an integration.
    fn find_activation(
        &self,
        query: FindActivation,
    ) -> impl Future<Output = Result<Option<Activation>, Error>> + Send + 'static {
        by_integration(self.rows(), query)
    }

    /// Ends an activation.
    fn end_activation(
        &self,
        command: ForIntegration<EndActivation>,
    ) -> impl Future<Output = Result<bool, Error>> + Send + 'static {
        by_integration(self.rows(), command)
    }

    /// Removes an activation that issued nothing.
    fn abort_activation(&self, command: AbortActivation) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        by_integration(self.rows(), command)
    }

    /// Changes a credential.
    fn change_credential(
        &self,
        command: Command<Changing>,
    ) -> impl Future<Output = Result<ChangedVersion, Error>> + Send + 'static {
        run::<ChangeCredential, _>(self.rows(), command)
    }
}

impl<S: RowStore + 'static> CredentialCommands for Arc<S> {
    fn rows(&self) -> Arc<dyn RowStore> {
        self.clone()
    }
}

impl CredentialCommands for Arc<dyn Store> {
    fn rows(&self) -> Arc<dyn RowStore> {
        self.clone()
    }
}

/// Returns what runs operations on a store, with fakes.
pub(crate) fn operations(store: Arc<dyn RowStore>, ids: Arc<dyn IdGenerator>) -> Operations {
    let keys = Arc::new(FakeDigester::default());
    Operations::new(store, keys.clone(), Arc::new(PlainSealer::new(ids)), keys)
}

/// Generates the ID of one audit entry.
struct Given(Uuid);

impl IdGenerator for Given {
    fn ordered(&self, _now: Timestamp) -> Uuid {
        self.0
    }

    fn random(&self) -> Uuid {
        self.0
    }
}

async fn run<O: Operation + From<A>, A>(store: Arc<dyn RowStore>, command: Command<A>) -> Result<O::Outcome, Error> {
    let id = *command.audit.record.id.as_uuid();
    operate(store, &command.principal, (command.now, id), O::from(command.payload)).await
}

/// Runs an operation that contains its time and audit entry.
async fn by_integration<O: Operation>(store: Arc<dyn RowStore>, operation: O) -> Result<O::Outcome, Error> {
    operate(store, &Principal::Operator, (ManualClock::START, Uuid::nil()), operation).await
}

async fn operate<O: Operation>(
    store: Arc<dyn RowStore>,
    principal: &Principal,
    (now, id): (Timestamp, Uuid),
    operation: O,
) -> Result<O::Outcome, Error> {
    let environment = Environment {
        clock: Arc::new(ManualClock::at(now)),
        ids: Arc::new(Given(id)),
        events: Arc::new(RecordingEvents::default()),
        audit: Arc::new(FakeAuditSealer),
        awaited: Arc::default(),
        origin: Origin::default(),
    };
    let operations = operations(store, environment.ids.clone());
    operations.run(&environment, principal, operation).await
}
