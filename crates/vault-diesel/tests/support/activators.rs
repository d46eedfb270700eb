//! A world's integrations, and what they ask for.

use super::world::{World, address, bytes};
use vault_core::activation::VendMode;
use vault_core::audit::{Actor, AuditAction, Subject};
use vault_core::id::{ActivationId, IntegrationId};
use vault_core::integration::{
    Integration, IntegrationName, IntegrationPrincipal, IntegrationState, NamespacePatterns, Overlap, StoredIntegration,
};
use vault_core::namespace::Namespace;
use vault_core::port::{
    ChangeIntegration, CreateIntegration, CreateIntegrationOutcome, CredentialRepository, EndActivation,
    FreezeNamespace, IntegrationChange, IntegrationRepository, NewActivation, SaveCredential, SaveOutcome,
    TakeCredentials,
};
use vault_core::principal::Principal;

/// How long an activation of these tests lasts, in seconds.
const ACTIVATION_SECONDS: i64 = 600;

/// The one namespace that is activated here.
pub(crate) fn activated() -> Namespace {
    Namespace::parse("activated", "").unwrap()
}

impl World {
    /// Makes one more integration.
    pub(crate) fn new_integration(&self, authority: &Principal) -> CreateIntegration {
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
            earlier: None,
            created_at: self.now(),
        };
        CreateIntegration {
            authority: authority.clone(),
            integration,
            digest: address(self.next()),
            now: self.now(),
            audit: self.audit(Actor::Operator, AuditAction::IntegrationCreated, Subject::Integration(id)),
        }
    }

    /// One more integration.
    pub(crate) async fn integration<S: IntegrationRepository>(&self, store: &S) -> StoredIntegration {
        let command = self.new_integration(&Principal::Operator);
        let made = StoredIntegration { integration: command.integration.clone(), digest: command.digest, version: 1 };
        assert_eq!(store.create_integration(command).await.unwrap(), CreateIntegrationOutcome::Created);
        made
    }

    /// The holder of its token.
    pub(crate) fn activator(&self, stored: &StoredIntegration) -> IntegrationPrincipal {
        stored.integration.principal(stored.integration.token, stored.digest, self.now()).unwrap()
    }

    /// Saves a credential that can be activated.
    pub(crate) async fn save_activated<S: CredentialRepository>(&self, store: &S) -> SaveCredential {
        let mut save = self.save();
        save.act.namespace = activated();
        assert_eq!(store.save_credential(save.clone()).await.unwrap(), SaveOutcome::Saved);
        save.act
    }

    pub(crate) fn take(&self, principal: &IntegrationPrincipal) -> TakeCredentials {
        let id = ActivationId::from_bytes(bytes(self.next()));
        let actor = Actor::Integration(principal.integration);
        TakeCredentials {
            principal: principal.clone(),
            namespace: activated(),
            activation: Some(NewActivation {
                id,
                expires_at: self.now().plus_seconds(ACTIVATION_SECONDS),
                vend: VendMode::Raw,
                limit: i64::MAX,
            }),
            most: 100,
            now: self.now(),
            audit: self.audit(actor, AuditAction::NamespaceActivated, Subject::Activation(id)),
        }
    }

    pub(crate) fn end(&self, principal: &IntegrationPrincipal, activation: ActivationId) -> EndActivation {
        let actor = Actor::Integration(principal.integration);
        let audit = self.audit(actor, AuditAction::ActivationEnded, Subject::Activation(activation));
        EndActivation { principal: principal.clone(), activation, now: self.now(), audit }
    }

    /// Gives an integration, as it was made, another token.
    pub(crate) fn rotate(&self, authority: &Principal, stored: &StoredIntegration) -> ChangeIntegration {
        let rotated = stored.integration.clone().rotated(address(self.next()), Overlap::DEFAULT, self.now());
        let change = IntegrationChange::Replace { integration: Box::new(rotated), digest: address(self.next()) };
        self.change(authority, stored, change)
    }

    pub(crate) fn change(
        &self,
        authority: &Principal,
        stored: &StoredIntegration,
        change: IntegrationChange,
    ) -> ChangeIntegration {
        let id = stored.integration.id;
        ChangeIntegration {
            authority: authority.clone(),
            organization: self.organization,
            integration: id,
            version: stored.version,
            change,
            now: self.now(),
            audit: self.audit(Actor::Operator, AuditAction::IntegrationRotated, Subject::Integration(id)),
        }
    }

    pub(crate) fn freeze(&self, authority: &Principal, frozen: bool) -> FreezeNamespace {
        let action = if frozen { AuditAction::NamespaceFrozen } else { AuditAction::NamespaceThawed };
        FreezeNamespace {
            authority: authority.clone(),
            organization: self.organization,
            namespace: activated(),
            frozen,
            now: self.now(),
            audit: self.audit(Actor::Operator, action, Subject::Organization(self.organization)),
        }
    }
}
