//! Integrations of a world, and their commands.

use super::tools::{namespace, request_digest};
use super::world::{NO_LIMIT, World};
use crate::crypto::FakeDigester;
use vault_core::Command;
use vault_core::activation::{Activation, IssuedCredential, VendMode, VendedForm};
use vault_core::audit::AuditAction;
use vault_core::credential::VersionList;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::id::{ActivationId, CredentialId, IntegrationId};
use vault_core::identity::Trusts;
use vault_core::integration::{
    Integration, IntegrationName, IntegrationPrincipal, IntegrationState, ManagedBy, NamespacePatterns, Overlap,
    StoredIntegration,
};
use vault_core::namespace::{ListNamespaces, SetFrozen};
use vault_core::port::{
    ChangeCredential, ChangeIntegration, CreateIntegration, CredentialChange, EndActivation, FetchCredentials,
    FetchedCredential, Find, FindActivation, ForIntegration, FoundIntegration, IdGenerator, IntegrationChange,
    IntegrationKey, IssueCredentials, KeyedDigester, List, ListActivations, NamePosition, NewActivation,
    SaveCredential, StoredMetadata,
};
use vault_core::principal::{Principal, Scope};

/// Duration of activations in cases, in seconds.
pub(super) const ACTIVATION_SECONDS: i64 = 600;

impl World<'_> {
    /// Returns the digest of an unused token.
    pub(super) fn token(&self) -> Digest {
        FakeDigester::default().digest(DigestPurpose::IntegrationToken, &[self.ids.random().as_bytes()])
    }

    /// Returns an integration that has not been created yet.
    pub(super) fn new_integration(&self, name: &str) -> Integration {
        Integration {
            id: IntegrationId::from_uuid(self.ids.ordered(self.now())),
            organization: self.organization,
            name: IntegrationName::parse(name, "").unwrap(),
            patterns: NamespacePatterns::parse(&["contract", "below/*"], "").unwrap(),
            expires_at: Some(self.now().plus_seconds(86_400)),
            state: IntegrationState::Active,
            token: self.token(),
            previous: None,
            trusts: trusts(),
            managed_by: Some(ManagedBy::parse("etl", "").unwrap()),
            version: Integration::FIRST_VERSION,
            created_at: self.now(),
        }
    }

    pub(super) fn create_integration(
        &self,
        principal: &Principal,
        integration: &Integration,
    ) -> Command<CreateIntegration> {
        let digest = integration.digest(&FakeDigester::default());
        let payload = CreateIntegration { integration: integration.clone(), digest, limit: NO_LIMIT };
        Command {
            audit: self.audit_in(integration.organization, AuditAction::IntegrationCreated),
            ..self.command(principal, AuditAction::IntegrationCreated, payload)
        }
    }

    pub(super) fn list_integrations(&self, principal: &Principal, scope: Scope) -> List<NamePosition> {
        List { principal: principal.clone(), of: scope, after: None, limit: 1_000, now: self.now() }
    }

    pub(super) fn change_integration(
        &self,
        principal: &Principal,
        stored: &StoredIntegration,
        change: IntegrationChange,
    ) -> Command<ChangeIntegration> {
        let action = match &change {
            IntegrationChange::Replace { .. } => AuditAction::IntegrationRotated,
            IntegrationChange::Delete => AuditAction::IntegrationDeleted,
        };
        let Integration { id, organization, version, .. } = stored.integration;
        let payload = ChangeIntegration { organization, integration: id, version, change };
        Command { audit: self.audit_in(organization, action), ..self.command(principal, action, payload) }
    }

    /// Returns the integration with a new token and version.
    pub(super) fn rotated(&self, stored: &StoredIntegration) -> Integration {
        let version = stored.integration.next_version();
        let rotated = stored.integration.clone().rotated(self.token(), Overlap::DEFAULT, self.now());
        Integration { version, ..rotated }
    }

    /// Returns the command that replaces `stored` with `integration` as its next version.
    fn replacing(
        &self,
        stored: &StoredIntegration,
        integration: Integration,
    ) -> (Integration, Command<ChangeIntegration>) {
        let integration = Integration { version: stored.integration.next_version(), ..integration };
        let command = self.change_integration(&Principal::Operator, stored, replacement(&integration));
        (integration, command)
    }

    pub(super) fn deletion(&self, stored: &StoredIntegration) -> Command<ChangeIntegration> {
        self.change_integration(&Principal::Operator, stored, IntegrationChange::Delete)
    }

    /// Returns the principal of the integration's current token.
    pub(super) fn activator(&self, stored: &StoredIntegration) -> IntegrationPrincipal {
        stored.integration.principal(stored.integration.token, stored.digest.code, self.now()).expect("the token works")
    }

    pub(super) fn freeze(&self, name: &str, frozen: bool) -> SetFrozen {
        SetFrozen { organization: self.organization, namespace: namespace(name), frozen, id: self.ids.random() }
    }

    pub(super) fn list_namespaces(&self) -> ListNamespaces {
        ListNamespaces { organization: self.organization, after: None, limit: 1_000 }
    }

    /// Returns a command of an integration.
    pub(super) fn by<A>(&self, principal: &IntegrationPrincipal, action: AuditAction, payload: A) -> ForIntegration<A> {
        Command { principal: principal.clone(), now: self.now(), audit: self.audit(action), payload }
    }

    /// Returns the command that reads the credentials of a namespace for an activation.
    pub(super) fn take(&self, principal: &IntegrationPrincipal, name: &str) -> ForIntegration<FetchCredentials> {
        let payload = FetchCredentials {
            namespace: namespace(name),
            activation: Some(NewActivation {
                id: ActivationId::from_uuid(self.ids.ordered(self.now())),
                expires_at: self.now().plus_seconds(ACTIVATION_SECONDS),
                vend: VendMode::PreferShort,
                limit: NO_LIMIT,
            }),
            most: 100,
        };
        self.by(principal, AuditAction::ActivationStarted, payload)
    }

    /// Returns the command that returns the first versions of `credentials`.
    pub(super) fn issue_credentials(
        &self,
        principal: &IntegrationPrincipal,
        name: &str,
        activation: ActivationId,
        credentials: &[CredentialId],
    ) -> ForIntegration<IssueCredentials> {
        let first = |credential: &CredentialId| IssuedCredential {
            credential: *credential,
            version: 1,
            form: VendedForm::Raw,
            expires_at: None,
        };
        let payload = IssueCredentials {
            activation,
            renewal: false,
            expires_at: self.now().plus_seconds(ACTIVATION_SECONDS),
            namespace: namespace(name),
            credentials: credentials.iter().map(first).collect(),
            purpose: None,
            refused: self.audit(AuditAction::ActivationFailed),
        };
        self.by(principal, AuditAction::NamespaceActivated, payload)
    }

    /// Returns the command that returns the first versions of `credentials` again, with a new end as for a new
    /// activation.
    pub(super) fn renew(
        &self,
        principal: &IntegrationPrincipal,
        activation: ActivationId,
        credentials: &[CredentialId],
    ) -> ForIntegration<IssueCredentials> {
        let refused = self.audit(AuditAction::ActivationRenewalFailed);
        let issued_credentials = self.issue_credentials(principal, "contract", activation, credentials).payload;
        let payload = IssueCredentials { renewal: true, refused, ..issued_credentials };
        self.by(principal, AuditAction::ActivationRenewed, payload)
    }

    pub(super) fn find_activation(&self, principal: &IntegrationPrincipal, activation: ActivationId) -> FindActivation {
        FindActivation { principal: principal.clone(), activation, now: self.now() }
    }

    pub(super) fn list_activations(&self, principal: &IntegrationPrincipal) -> ListActivations {
        ListActivations { principal: principal.clone(), after: None, limit: 1_000, now: self.now() }
    }

    pub(super) fn end_activation(
        &self,
        principal: &IntegrationPrincipal,
        activation: ActivationId,
    ) -> ForIntegration<EndActivation> {
        self.by(principal, AuditAction::ActivationEnded, EndActivation { activation })
    }

    /// Creates an integration as an operator, with a unique name.
    pub(super) async fn integration(&self) -> StoredIntegration {
        let integration = self.new_integration(&self.ids.random().to_string());
        let outcome = self.store.create_integration(self.create_integration(&Principal::Operator, &integration)).await;
        outcome.unwrap();
        self.read_integration(&integration).await.expect("the integration is there")
    }

    pub(super) async fn read_integration(&self, integration: &Integration) -> Option<StoredIntegration> {
        self.find_integration(&Principal::Operator, IntegrationKey::Id(integration.id)).await
    }

    pub(super) async fn find_integration(
        &self,
        principal: &Principal,
        key: IntegrationKey,
    ) -> Option<StoredIntegration> {
        let (principal, organization) = (principal.clone(), self.organization);
        self.store.find_integration(Find { principal, of: organization, key, now: self.now() }).await.unwrap()
    }

    pub(super) async fn integrations(&self, principal: &Principal, scope: Scope) -> Vec<StoredIntegration> {
        self.store.list_integrations(self.list_integrations(principal, scope)).await.unwrap()
    }

    /// Replaces `stored` with `integration`, and returns it as stored.
    pub(super) async fn replace_integration(
        &self,
        stored: &StoredIntegration,
        integration: Integration,
    ) -> StoredIntegration {
        let (integration, command) = self.replacing(stored, integration);
        self.store.change_integration(command).await.unwrap();
        self.read_integration(&integration).await.expect("the integration is there")
    }

    pub(super) async fn delete_integration(&self, stored: &StoredIntegration) {
        self.store.change_integration(self.deletion(stored)).await.unwrap();
    }

    pub(super) async fn set_frozen(&self, name: &str, frozen: bool) {
        let freezing = self.operate(&Principal::Operator, self.freeze(name, frozen)).await.unwrap();
        assert!(freezing.changed);
    }

    pub(super) async fn taken(&self, command: ForIntegration<FetchCredentials>) -> Vec<FetchedCredential> {
        self.store.fetch_credentials(command).await.unwrap()
    }

    /// Starts an activation of a namespace; returns the activation and its credentials.
    pub(super) async fn activate(
        &self,
        principal: &IntegrationPrincipal,
        name: &str,
    ) -> (ActivationId, Vec<CredentialId>) {
        let command = self.take(principal, name);
        let id = command.payload.activation.as_ref().expect("it begins one").id;
        (id, self.taken(command).await.into_iter().map(|row| row.id).collect())
    }

    pub(super) async fn activations(&self, principal: &IntegrationPrincipal) -> Vec<Activation> {
        self.store.list_activations(self.list_activations(principal)).await.unwrap()
    }

    /// Returns the integration as its token finds it.
    pub(super) async fn as_stored(&self, integration: &Integration) -> StoredIntegration {
        self.find_by_token(integration.token).await.expect("the integration is there").stored
    }

    pub(super) async fn find_by_token(&self, token: Digest) -> Option<FoundIntegration> {
        self.store.find_integration_by_token(token).await.unwrap()
    }

    /// Saves a credential in a namespace and returns the command.
    pub(super) async fn saved_in(&self, name: &str) -> SaveCredential {
        let command = self.save_in(name);
        self.store.save_credential(command.clone()).await.unwrap();
        command.payload
    }

    /// Changes a credential or its metadata at a revision.
    pub(super) async fn change_credential(
        &self,
        id: CredentialId,
        revision: i64,
        change: CredentialChange,
        description: Option<StoredMetadata>,
    ) {
        let (organization, expires_at) = (self.organization, None);
        let (listed, code) = (change.listed_after(1, &VersionList::default()), request_digest("changed"));
        let payload = ChangeCredential { organization, id, revision, change, listed, description, code, expires_at };
        let command = self.command(&self.embedder(), AuditAction::CredentialReplaced, payload);
        self.store.change_credential(command).await.unwrap();
    }

    pub(super) async fn delete_credential(&self, id: CredentialId) {
        assert!(self.store.delete_credential(self.delete(&self.embedder(), id)).await.unwrap());
    }
}

/// Returns the change that replaces the stored integration with `integration`.
pub(super) fn replacement(integration: &Integration) -> IntegrationChange {
    let digest = integration.digest(&FakeDigester::default());
    IntegrationChange::Replace { integration: Box::new(integration.clone()), digest }
}

/// Returns trusts that a store must return unchanged.
fn trusts() -> Trusts {
    let stored = r#"[{"id":"00000000-0000-0000-0000-000000000007","issuer":"github","issuer_id":"00000000-0000-0000-0000-000000000008","claims":{"/sub":"repo:acme/etl:*","/environment":"prod","/count":7},"max_lifetime":600}]"#;
    Trusts::from_stored(stored).unwrap()
}
