//! Integrations of a world, and their commands.

use super::saving::Saving;
use super::tools::{Settled as _, namespace};
use super::world::{NO_LIMIT, World};
use crate::commands::CredentialCommands as _;
use crate::crypto::FakeDigester;
use uuid::Uuid;
use vault_core::activation::{
    Activation, EndActivation, FetchCredentials, FetchedCredential, FindActivation, ForIntegration, IssueCredentials,
    IssuedCredential, ListActivations, NewActivation, VendMode, VendedForm,
};
use vault_core::audit::AuditAction;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::id::{ActivationId, CredentialId, IntegrationId, IssuerId};
use vault_core::identity::{ClaimPattern, ClaimPointer, IssuerName, Trust, TrustId, Trusts};
use vault_core::integration::{
    ChangeIntegration, CreateIntegration, DeleteIntegration, FindByToken, FindIntegration, FoundIntegration,
    Integration, IntegrationChange, IntegrationName, IntegrationPrincipal, IntegrationRef, IntegrationState,
    ListIntegrations, ManagedBy, NamespacePatterns, Overlap, StoredIntegration,
};
use vault_core::namespace::{ListNamespaces, SetFrozen};
use vault_core::port::{IdGenerator, KeyedDigester};
use vault_core::principal::{Principal, Scope};
use vault_core::{Command, Refusal};

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
            name: IntegrationName::parse(name, "").unwrap(),
            patterns: NamespacePatterns::parse(&["contract", "below/*"], "").unwrap(),
            expires_at: Some(self.now().plus_seconds(86_400)),
            state: IntegrationState::Active,
            token: self.token(),
            previous: None,
            trusts: trusts(),
            managed_by: Some(ManagedBy::parse("etl", "").unwrap()),
            created_at: self.now(),
        }
    }

    pub(super) fn create_integration(&self, integration: Integration) -> CreateIntegration {
        let id = IntegrationId::from_uuid(self.ids.ordered(self.now()));
        CreateIntegration { organization: self.organization, id, integration, limit: NO_LIMIT }
    }

    pub(super) fn change_integration(&self, id: IntegrationId, change: IntegrationChange) -> ChangeIntegration {
        ChangeIntegration { organization: self.organization, integration: IntegrationRef::Id(id), change }
    }

    pub(super) fn rotation(&self, overlap: Overlap) -> IntegrationChange {
        IntegrationChange::Rotate { token: self.token(), overlap }
    }

    pub(super) fn find_integration(&self, id: IntegrationId) -> FindIntegration {
        FindIntegration { organization: self.organization, integration: IntegrationRef::Id(id) }
    }

    pub(super) fn delete_of_integration(&self, id: IntegrationId) -> DeleteIntegration {
        DeleteIntegration { organization: self.organization, integration: IntegrationRef::Id(id) }
    }

    /// Returns the principal of the integration's current token.
    pub(super) fn activator(&self, found: &FoundIntegration) -> IntegrationPrincipal {
        found.principal(found.stored.integration.token, self.now()).expect("the token works")
    }

    pub(super) fn freeze(&self, name: &str, frozen: bool) -> SetFrozen {
        SetFrozen { organization: self.organization, namespace: namespace(name), frozen, id: self.ids.random() }
    }

    pub(super) fn list_namespaces(&self) -> ListNamespaces {
        ListNamespaces { organization: self.organization, after: None, limit: 1_000, only: None }
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
    pub(super) async fn integration(&self) -> FoundIntegration {
        let integration = self.new_integration(&self.ids.random().to_string());
        let token = integration.token;
        self.operate(&Principal::Operator, self.create_integration(integration)).await.unwrap();
        self.find_by_token(token).await.expect("the integration is there")
    }

    pub(super) async fn read_integration(&self, id: IntegrationId) -> Option<StoredIntegration> {
        match self.operate(&Principal::Operator, self.find_integration(id)).await.decided() {
            Err(Refusal::NotFound) => None,
            found => Some(found.unwrap()),
        }
    }

    pub(super) async fn integrations(&self, principal: &Principal, scope: Scope) -> Vec<StoredIntegration> {
        self.operate(principal, ListIntegrations { scope, after: None, limit: 1_000 }).await.unwrap()
    }

    /// Changes an integration, and returns it as its token finds it.
    pub(super) async fn changed_integration(
        &self,
        found: &FoundIntegration,
        change: IntegrationChange,
    ) -> FoundIntegration {
        let changed =
            self.operate(&Principal::Operator, self.change_integration(found.stored.id, change)).await.unwrap();
        self.find_by_token(changed.integration.token).await.expect("the integration is there")
    }

    pub(super) async fn delete_integration(&self, found: &FoundIntegration) {
        self.operate(&Principal::Operator, self.delete_of_integration(found.stored.id)).await.unwrap();
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
        (id, self.taken(command).await.into_iter().map(|fetched| fetched.row.id).collect())
    }

    pub(super) async fn activations(&self, principal: &IntegrationPrincipal) -> Vec<Activation> {
        self.store.list_activations(self.list_activations(principal)).await.unwrap()
    }

    pub(super) async fn find_by_token(&self, token: Digest) -> Option<FoundIntegration> {
        self.operate(&Principal::Operator, FindByToken(token)).await.unwrap()
    }

    /// Saves a credential in a namespace and returns the command.
    pub(super) async fn saved_in(&self, name: &str) -> Saving {
        let command = self.save_in(name);
        self.store.save_credential(command.clone()).await.unwrap();
        command.payload
    }

    pub(super) async fn delete_credential(&self, id: CredentialId) {
        self.delete(&self.embedder(), id).await.unwrap();
    }
}

/// Returns the change of only the state.
pub(super) const fn set_state(state: IntegrationState) -> IntegrationChange {
    IntegrationChange::Edit { state: Some(state), patterns: None, expires_at: None, managed_by: None }
}

/// Returns trusts that a store must return unchanged.
fn trusts() -> Trusts {
    let trust = Trust {
        id: TrustId::from_uuid(Uuid::from_u128(7)),
        issuer: IssuerName::parse("github", "").unwrap(),
        issuer_id: IssuerId::from_uuid(Uuid::from_u128(8)),
        claims: [(ClaimPointer::parse("/sub", "").unwrap(), ClaimPattern::Prefix("repo:acme/etl:".to_owned()))].into(),
        max_lifetime: 600,
    };
    Trusts::new(vec![trust], "").unwrap()
}
