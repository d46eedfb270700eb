//! Integrations of a world and their requests.

use super::world::{World, address, bytes, row_code};
use std::sync::Arc;
use uuid::Uuid;
use vault_core::Command;
use vault_core::activation::{IssuedCredential, VendMode, VendedForm};
use vault_core::audit::{Actor, AuditAction, Origin, Subject};
use vault_core::digest::RowMac;
use vault_core::id::{ActivationId, CredentialId, IntegrationId};
use vault_core::integration::{
    Integration, IntegrationName, IntegrationPrincipal, IntegrationState, NamespacePatterns, Overlap, StoredIntegration,
};
use vault_core::namespace::{Namespace, SetFrozen};
use vault_core::operation::Operations;
use vault_core::port::{
    ChangeIntegration, CreateIntegration, CredentialRepository, DeleteCredential, EndActivation, FetchCredentials,
    ForIntegration, IntegrationChange, IntegrationRepository, IssueCredentials, NewActivation, RowStore,
    SaveCredential,
};
use vault_core::principal::Principal;
use vault_core::usecase::Environment;
use vault_testkit::clock::{RecordingEvents, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester};

/// How long an activation of these tests lasts, in seconds.
const ACTIVATION_SECONDS: i64 = 600;

/// The only namespace that these tests activate.
pub(crate) fn activated() -> Namespace {
    Namespace::parse("activated", "").unwrap()
}

impl World {
    /// Returns the command that creates another integration.
    pub(crate) fn new_integration(&self, principal: &Principal) -> Command<CreateIntegration> {
        let number = self.next();
        let id = IntegrationId::from_bytes(bytes(number));
        let integration = Integration {
            id,
            organization: self.organization,
            name: IntegrationName::parse(&format!("Integration {number}"), "").unwrap(),
            patterns: NamespacePatterns::parse(&["activated"], "").unwrap(),
            expires_at: None,
            state: IntegrationState::Active,
            token: address(number),
            previous: None,
            trusts: Default::default(),
            managed_by: None,
            version: Integration::FIRST_VERSION,
            created_at: self.now(),
        };
        let payload = CreateIntegration {
            integration,
            digest: RowMac { code: address(self.next()), ..row_code(1) },
            limit: i64::MAX,
        };
        self.command(principal, AuditAction::IntegrationCreated, Subject::Integration(id), payload)
    }

    fn command<A>(&self, principal: &Principal, action: AuditAction, subject: Subject, payload: A) -> Command<A> {
        let audit = self.audit(Actor::Operator, action, subject);
        Command { principal: principal.clone(), now: self.now(), audit, payload }
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
    pub(crate) async fn integration<S: IntegrationRepository>(&self, store: &S) -> StoredIntegration {
        let command = self.new_integration(&Principal::Operator);
        let CreateIntegration { integration, digest, .. } = command.payload.clone();
        let made = StoredIntegration { integration, digest, last_used_at: None };
        store.create_integration(command).await.unwrap();
        made
    }

    /// Returns the principal that presents the integration's token.
    pub(crate) fn activator(&self, stored: &StoredIntegration) -> IntegrationPrincipal {
        stored.integration.principal(stored.integration.token, stored.digest.code, self.now()).unwrap()
    }

    /// Saves a credential that can be activated.
    pub(crate) async fn save_activated<S: CredentialRepository>(&self, store: &S) -> SaveCredential {
        let mut save = self.save();
        save.payload.namespace = activated();
        store.save_credential(save.clone()).await.unwrap();
        save.payload
    }

    /// Deletes a credential.
    pub(crate) fn delete(&self, id: CredentialId) -> Command<DeleteCredential> {
        let (save, organization) = (self.save(), self.organization);
        Command {
            principal: save.principal,
            now: save.now,
            audit: save.audit,
            payload: DeleteCredential { organization, id, revision: None },
        }
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

    /// Returns the command that replaces the token of an unchanged integration.
    pub(crate) fn rotate(&self, principal: &Principal, stored: &StoredIntegration) -> Command<ChangeIntegration> {
        let version = stored.integration.next_version();
        let rotated = stored.integration.clone().rotated(address(self.next()), Overlap::DEFAULT, self.now());
        let integration = Box::new(Integration { version, ..rotated });
        self.change(
            principal,
            stored,
            IntegrationChange::Replace { integration, digest: RowMac { code: address(self.next()), ..row_code(1) } },
        )
    }

    pub(crate) fn change(
        &self,
        principal: &Principal,
        stored: &StoredIntegration,
        change: IntegrationChange,
    ) -> Command<ChangeIntegration> {
        let Integration { id, organization, version, .. } = stored.integration;
        let payload = ChangeIntegration { organization, integration: id, version, change };
        self.command(principal, AuditAction::IntegrationRotated, Subject::Integration(id), payload)
    }

    /// Freezes or thaws the namespace. Returns whether that changed it.
    pub(crate) async fn set_frozen<S: RowStore + 'static>(
        &self,
        store: &Arc<S>,
        principal: &Principal,
        frozen: bool,
    ) -> bool {
        let keys = Arc::new(FakeDigester::default());
        let operations =
            Operations { store: Arc::clone(store) as Arc<dyn RowStore>, sealer: keys.clone(), digester: keys };
        let environment = Environment {
            clock: Arc::new(self.now()),
            ids: Arc::new(SequentialIds::seeded(self.next())),
            events: Arc::new(RecordingEvents::default()),
            audit: Arc::new(FakeAuditSealer),
            awaited: Arc::default(),
            origin: Origin::default(),
        };
        let (organization, id) = (self.organization, Uuid::from_bytes(bytes(self.next())));
        let freeze = SetFrozen { organization, namespace: activated(), frozen, id };
        operations.run(&environment, principal, freeze).await.unwrap().changed
    }
}
