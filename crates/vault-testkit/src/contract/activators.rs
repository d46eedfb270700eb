//! A world's integrations, and what they ask for.

use super::tools::{namespace, with};
use super::world::{NO_LIMIT, World};
use crate::crypto::FakeDigester;
use vault_core::activation::{Activation, VendMode};
use vault_core::audit::AuditAction;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::id::{ActivationId, CredentialId, IntegrationId};
use vault_core::integration::{
    Integration, IntegrationName, IntegrationPrincipal, IntegrationState, NamespacePatterns, StoredIntegration,
};
use vault_core::port::{
    ChangeIntegration, ChangeIntegrationOutcome, CreateIntegration, CreateIntegrationOutcome, EndActivation,
    FindIntegration, FreezeNamespace, FreezeOutcome, IdGenerator, IntegrationChange, IntegrationKey, IntegrationScope,
    KeyedDigester, ListActivations, ListIntegrations, NewActivation, SaveCredential, SaveOutcome, TakeCredentials,
    TakeOutcome, TakenCredential,
};
use vault_core::principal::Principal;

/// How long the activations of cases last, in seconds.
pub(super) const ACTIVATION_SECONDS: i64 = 600;

impl World<'_> {
    // Integrations

    /// The digest of a token that nothing has yet.
    pub(super) fn token(&self) -> Digest {
        FakeDigester::default().digest(DigestPurpose::IntegrationToken, &[self.ids.random().as_bytes()])
    }

    /// An integration that nobody has made yet.
    pub(super) fn new_integration(&self, name: &str) -> Integration {
        Integration {
            id: IntegrationId::from_uuid(self.ids.ordered(self.now())),
            organization: self.organization,
            name: IntegrationName::parse(name, "").unwrap(),
            patterns: NamespacePatterns::parse(&["contract", "below/*"], "").unwrap(),
            expires_at: Some(self.now().plus_seconds(86_400)),
            state: IntegrationState::Active,
            token: self.token(),
            earlier: None,
            created_at: self.now(),
        }
    }

    pub(super) fn create_integration(&self, authority: &Principal, integration: &Integration) -> CreateIntegration {
        CreateIntegration {
            authority: authority.clone(),
            digest: integration.digest(&FakeDigester::default()),
            integration: integration.clone(),
            now: self.now(),
            audit: self.audit_in(integration.organization, AuditAction::IntegrationCreated),
        }
    }

    /// An integration that an operator made, under a name of its own.
    pub(super) async fn integration(&self) -> StoredIntegration {
        let integration = self.new_integration(&self.ids.random().to_string());
        let outcome = self.store.create_integration(self.create_integration(&Principal::Operator, &integration)).await;
        assert_eq!(outcome.unwrap(), CreateIntegrationOutcome::Created);
        self.read_integration(&integration).await.expect("the integration is there")
    }

    pub(super) async fn read_integration(&self, integration: &Integration) -> Option<StoredIntegration> {
        self.find_integration(&Principal::Operator, IntegrationKey::Id(integration.id)).await
    }

    pub(super) async fn find_integration(
        &self,
        authority: &Principal,
        key: IntegrationKey,
    ) -> Option<StoredIntegration> {
        let query =
            FindIntegration { authority: authority.clone(), organization: self.organization, key, now: self.now() };
        self.store.find_integration(query).await.unwrap().expect("the authority may act")
    }

    pub(super) async fn integrations(&self, scope: IntegrationScope) -> Vec<StoredIntegration> {
        let query = ListIntegrations { scope, now: self.now() };
        self.store.list_integrations(query).await.unwrap().expect("the session may act")
    }

    pub(super) fn change_integration(
        &self,
        authority: &Principal,
        stored: &StoredIntegration,
        change: IntegrationChange,
    ) -> ChangeIntegration {
        let action = match &change {
            IntegrationChange::Replace { .. } => AuditAction::IntegrationRotated,
            IntegrationChange::Delete => AuditAction::IntegrationDeleted,
        };
        let Integration { id, organization, .. } = stored.integration;
        ChangeIntegration {
            authority: authority.clone(),
            organization,
            integration: id,
            version: stored.version,
            change,
            now: self.now(),
            audit: self.audit_in(organization, action),
        }
    }

    /// Puts `integration` in the place of `stored`; as it is stored then.
    pub(super) async fn replace_integration(
        &self,
        stored: &StoredIntegration,
        integration: Integration,
    ) -> StoredIntegration {
        let command = self.change_integration(&Principal::Operator, stored, replacement(&integration));
        assert_eq!(self.store.change_integration(command).await.unwrap(), ChangeIntegrationOutcome::Changed);
        self.read_integration(&integration).await.expect("the integration is there")
    }

    pub(super) async fn delete_integration(&self, stored: &StoredIntegration) {
        let command = self.change_integration(&Principal::Operator, stored, IntegrationChange::Delete);
        assert_eq!(self.store.change_integration(command).await.unwrap(), ChangeIntegrationOutcome::Changed);
    }

    /// The holder of its current token.
    pub(super) fn activator(&self, stored: &StoredIntegration) -> IntegrationPrincipal {
        stored.integration.principal(stored.integration.token, stored.digest, self.now()).expect("the token works")
    }

    // Frozen namespaces

    pub(super) fn freeze(&self, authority: &Principal, name: &str, frozen: bool) -> FreezeNamespace {
        let action = if frozen { AuditAction::NamespaceFrozen } else { AuditAction::NamespaceThawed };
        FreezeNamespace {
            authority: authority.clone(),
            organization: self.organization,
            namespace: namespace(name),
            frozen,
            now: self.now(),
            audit: self.audit(action),
        }
    }

    pub(super) async fn set_frozen(&self, name: &str, frozen: bool) {
        let command = self.freeze(&Principal::Operator, name, frozen);
        assert_eq!(self.store.freeze_namespace(command).await.unwrap(), FreezeOutcome::Changed);
    }

    // Activations

    /// Saves a credential under a namespace; the command that did.
    pub(super) async fn saved_in(&self, name: &str) -> SaveCredential {
        let command = with(self.save(&self.embedder()), |save| save.namespace = namespace(name));
        assert_eq!(self.store.save_credential(command.clone()).await.unwrap(), SaveOutcome::Saved);
        command.act
    }

    /// Takes the credentials of a namespace for an activation.
    pub(super) fn take(&self, principal: &IntegrationPrincipal, name: &str) -> TakeCredentials {
        TakeCredentials {
            principal: principal.clone(),
            namespace: namespace(name),
            activation: Some(NewActivation {
                id: ActivationId::from_uuid(self.ids.ordered(self.now())),
                expires_at: self.now().plus_seconds(ACTIVATION_SECONDS),
                vend: VendMode::PreferShort,
                limit: NO_LIMIT,
            }),
            most: 100,
            now: self.now(),
            audit: self.audit(AuditAction::NamespaceActivated),
        }
    }

    pub(super) async fn taken(&self, command: TakeCredentials) -> Vec<TakenCredential> {
        match self.store.take_credentials(command).await.unwrap() {
            TakeOutcome::Taken(taken) => taken,
            other => panic!("{other:?}"),
        }
    }

    /// Activates a namespace; the activation and the credentials that it took.
    pub(super) async fn activate(
        &self,
        principal: &IntegrationPrincipal,
        name: &str,
    ) -> (ActivationId, Vec<CredentialId>) {
        let command = self.take(principal, name);
        let id = command.activation.as_ref().expect("it begins one").id;
        (id, self.taken(command).await.into_iter().map(|row| row.id).collect())
    }

    pub(super) async fn activations(&self, principal: &IntegrationPrincipal) -> Vec<Activation> {
        let query = ListActivations { principal: principal.clone(), now: self.now() };
        self.store.list_activations(query).await.unwrap().expect("the integration may act")
    }

    pub(super) fn end_activation(&self, principal: &IntegrationPrincipal, activation: ActivationId) -> EndActivation {
        let audit = self.audit(AuditAction::ActivationEnded);
        EndActivation { principal: principal.clone(), activation, now: self.now(), audit }
    }
}

/// The change that puts `integration` in the place of what is there.
pub(super) fn replacement(integration: &Integration) -> IntegrationChange {
    let digest = integration.digest(&FakeDigester::default());
    IntegrationChange::Replace { integration: Box::new(integration.clone()), digest }
}
