//! Integrations of a world and their requests.

use super::world::{World, bytes, digest};
use std::sync::Arc;
use uuid::Uuid;
use vault_core::activation::{
    EndActivation, FetchCredentials, ForIntegration, IssueCredentials, IssuedCredential, NewActivation, VendMode,
    VendedForm,
};
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::credential::{DeleteCredential, SaveCredential};
use vault_core::id::{ActivationId, CredentialId, IntegrationId};
use vault_core::integration::{
    ChangeIntegration, CreateIntegration, DeleteIntegration, FindByToken, FoundIntegration, Integration,
    IntegrationChange, IntegrationName, IntegrationPrincipal, IntegrationRef, IntegrationState, NamespacePatterns,
    Overlap,
};
use vault_core::namespace::{Namespace, SetFrozen};
use vault_core::port::RowStore;
use vault_core::principal::Principal;
use vault_core::{Command, Error};

/// How long an activation of these tests lasts, in seconds.
const ACTIVATION_SECONDS: i64 = 600;

/// The only namespace that these tests activate.
pub(crate) fn activated() -> Namespace {
    Namespace::parse("activated", "").unwrap()
}

impl World {
    /// Returns the operation that creates another integration.
    pub(crate) fn new_integration(&self) -> CreateIntegration {
        let number = self.next();
        let integration = Integration {
            name: IntegrationName::parse(&format!("Integration {number}"), "").unwrap(),
            patterns: NamespacePatterns::parse(&["activated"], "").unwrap(),
            expires_at: None,
            state: IntegrationState::Active,
            token: digest(number),
            previous: None,
            trusts: Default::default(),
            managed_by: None,
            created_at: self.now(),
        };
        let (organization, id) = (self.organization, IntegrationId::from_bytes(bytes(number)));
        CreateIntegration { organization, id, integration, limit: i64::MAX }
    }

    fn by<A>(
        &self,
        principal: &IntegrationPrincipal,
        action: AuditAction,
        id: ActivationId,
        payload: A,
    ) -> ForIntegration<A> {
        let audit = self.audit(Actor::Integration(principal.integration), action, Subject::Activation(id));
        Command { principal: principal.clone(), now: self.now(), audit, payload }
    }

    /// Creates another integration.
    pub(crate) async fn integration<S: RowStore + 'static>(&self, store: &Arc<S>) -> FoundIntegration {
        let create = self.new_integration();
        let find = FindByToken(create.integration.token);
        self.operate(store, &Principal::Operator, create).await.unwrap();
        self.operate(store, &Principal::Operator, find).await.unwrap().unwrap()
    }

    /// Returns the principal that presents the integration's token.
    pub(crate) fn activator(&self, found: &FoundIntegration) -> IntegrationPrincipal {
        found.principal(found.stored.integration.token, self.now()).unwrap()
    }

    /// Saves a credential that can be activated.
    pub(crate) async fn save_activated<S: RowStore + 'static>(&self, store: &Arc<S>) -> CredentialId {
        let save = SaveCredential { namespace: activated(), ..self.save() };
        self.by_account(store, save).await.unwrap()
    }

    /// Deletes a credential.
    pub(crate) async fn delete<S: RowStore + 'static>(&self, store: &Arc<S>, id: CredentialId) -> Result<(), Error> {
        let deletion = DeleteCredential { organization: self.organization, id, revision: None };
        self.by_account(store, deletion).await
    }

    pub(crate) fn take(&self, principal: &IntegrationPrincipal) -> ForIntegration<FetchCredentials> {
        let id = ActivationId::from_bytes(bytes(self.next()));
        let payload = FetchCredentials {
            namespace: activated(),
            activation: Some(NewActivation {
                id,
                expires_at: self.now().plus_seconds(ACTIVATION_SECONDS),
                vend: VendMode::Raw,
                limit: i64::MAX,
            }),
            most: 100,
        };
        self.by(principal, AuditAction::ActivationStarted, id, payload)
    }

    /// Returns the command that issues first versions.
    pub(crate) fn issue_credentials(
        &self,
        principal: &IntegrationPrincipal,
        activation: ActivationId,
        credentials: &[CredentialId],
    ) -> ForIntegration<IssueCredentials> {
        let first = |credential: &CredentialId| IssuedCredential {
            credential: *credential,
            version: 1,
            form: VendedForm::Raw,
            expires_at: None,
        };
        let actor = Actor::Integration(principal.integration);
        let payload = IssueCredentials {
            activation,
            renewal: false,
            expires_at: self.now().plus_seconds(ACTIVATION_SECONDS),
            namespace: activated(),
            credentials: credentials.iter().map(first).collect(),
            purpose: None,
            refused: self.audit(actor, AuditAction::ActivationFailed, Subject::Activation(activation)),
        };
        self.by(principal, AuditAction::NamespaceActivated, activation, payload)
    }

    pub(crate) fn end(
        &self,
        principal: &IntegrationPrincipal,
        activation: ActivationId,
    ) -> ForIntegration<EndActivation> {
        self.by(principal, AuditAction::ActivationEnded, activation, EndActivation { activation })
    }

    /// Returns the operation that replaces the token of an integration.
    pub(crate) fn rotate(&self, found: &FoundIntegration) -> ChangeIntegration {
        let change = IntegrationChange::Rotate { token: digest(self.next()), overlap: Overlap::DEFAULT };
        let integration = IntegrationRef::Id(found.stored.id);
        ChangeIntegration { organization: self.organization, integration, change }
    }

    pub(crate) fn delete_integration(&self, found: &FoundIntegration) -> DeleteIntegration {
        DeleteIntegration { organization: self.organization, integration: IntegrationRef::Id(found.stored.id) }
    }

    /// Freezes or thaws the namespace. Returns whether that changed it.
    pub(crate) async fn set_frozen<S: RowStore + 'static>(
        &self,
        store: &Arc<S>,
        principal: &Principal,
        frozen: bool,
    ) -> bool {
        let (organization, id) = (self.organization, Uuid::from_bytes(bytes(self.next())));
        let freeze = SetFrozen { organization, namespace: activated(), frozen, id };
        self.operate(store, principal, freeze).await.unwrap().changed
    }
}
