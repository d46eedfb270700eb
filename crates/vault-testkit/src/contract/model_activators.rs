//! What random histories do about integrations, in two stores.

use super::Store;
use super::activators::replacement;
use super::model::{Difference, numbered, pick, same};
use super::world::World;
use crate::strategy::ActivatorCommand;
use vault_core::audit::AuditAction;
use vault_core::id::{ActivationId, IntegrationId};
use vault_core::integration::{Integration, IntegrationPrincipal, IntegrationState, Overlap, StoredIntegration};
use vault_core::port::{
    AbortActivation, ChangeIntegrationOutcome, CreateIntegrationOutcome, FindIntegration, FreezeNamespace,
    IntegrationChange, IntegrationKey, IntegrationScope, ListActivations, ListFrozen, ListIntegrations, TakeOutcome,
};
use vault_core::principal::Principal;

/// How many credentials a namespace may have, and how many live activations an integration: few, so that histories
/// come to it.
const MOST: usize = 3;
const LIMIT: i64 = 2;

/// A world, whose store is under test, and the store that it is compared with.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) world: &'a World<'a>,
    pub(super) model: &'a dyn Store,
}

/// Gives both stores the same command; what it comes to, if it comes to the same.
macro_rules! both {
    ($pair:expr, $method:ident($command:expr)) => {{
        let command = $command;
        let actual = $pair.world.store.$method(command.clone()).await;
        same(actual, $pair.model.$method(command).await)
    }};
}

/// What a history has come to know of integrations.
#[derive(Default)]
pub(super) struct Activators {
    integrations: Vec<IntegrationId>,
    /// The holders of all tokens, as they were verified once.
    principals: Vec<IntegrationPrincipal>,
    activations: Vec<ActivationId>,
}

impl Activators {
    pub(super) async fn step(
        &mut self,
        pair: Pair<'_>,
        authority: &Principal,
        command: ActivatorCommand,
    ) -> Result<(), Difference> {
        match command {
            ActivatorCommand::Create(name) => self.create(pair, authority, name).await,
            ActivatorCommand::Rotate(which, latest) => {
                let now = pair.world.now();
                let rotate = |before: Integration| before.rotated(pair.world.token(), Overlap::DEFAULT, now);
                self.change(pair, authority, which, latest, |before| Some(rotate(before))).await
            }
            ActivatorCommand::SetState(which, active) => {
                let state = if active { IntegrationState::Active } else { IntegrationState::Disabled };
                self.change(pair, authority, which, true, |before| Some(Integration { state, ..before })).await
            }
            ActivatorCommand::Delete(which) => self.change(pair, authority, which, true, |_| None).await,
            ActivatorCommand::Freeze(namespace, frozen) => {
                let freeze = pair.world.freeze(authority, "contract", frozen);
                let command = FreezeNamespace { namespace: numbered(namespace), ..freeze };
                both!(pair, freeze_namespace(command)).map(drop)
            }
            ActivatorCommand::Take(token, namespace, dry) => self.take(pair, token, namespace, dry).await,
            ActivatorCommand::List(token) => {
                let Some(principal) = self.principal(token) else { return Ok(()) };
                let query = ListActivations { principal: principal.clone(), now: pair.world.now() };
                both!(pair, list_activations(query)).map(drop)
            }
            ActivatorCommand::End(token, activation) => {
                let (Some(principal), false) = (self.principal(token), self.activations.is_empty()) else {
                    return Ok(());
                };
                let command = pair.world.end_activation(principal, *pick(&self.activations, activation));
                both!(pair, end_activation(command)).map(drop)
            }
            ActivatorCommand::Abort(activation) => {
                if self.activations.is_empty() {
                    return Ok(());
                }
                let command = AbortActivation {
                    organization: pair.world.organization,
                    activation: *pick(&self.activations, activation),
                    audit: pair.world.audit(AuditAction::ActivationFailed),
                };
                both!(pair, abort_activation(command))
            }
        }
    }

    fn principal(&self, token: usize) -> Option<&IntegrationPrincipal> {
        (!self.principals.is_empty()).then(|| pick(&self.principals, token))
    }

    async fn create(&mut self, pair: Pair<'_>, authority: &Principal, name: usize) -> Result<(), Difference> {
        let command = pair.world.create_integration(authority, &pair.world.new_integration(&format!("i{name}")));
        let (integration, digest) = (command.integration.clone(), command.digest);
        if both!(pair, create_integration(command))? == CreateIntegrationOutcome::Created {
            self.integrations.push(integration.id);
            self.learn(pair, &StoredIntegration { integration, digest, version: 0 });
        }
        Ok(())
    }

    /// Changes an integration as both stores have it, or deletes it.
    async fn change(
        &mut self,
        pair: Pair<'_>,
        authority: &Principal,
        which: usize,
        latest: bool,
        change: impl FnOnce(Integration) -> Option<Integration>,
    ) -> Result<(), Difference> {
        let Some((before, in_model)) = self.find(pair, which).await? else { return Ok(()) };
        let after = change(before.integration.clone());
        let change = after.as_ref().map_or(IntegrationChange::Delete, replacement);
        let mut command = pair.world.change_integration(authority, &before, change);
        let mut model_command = command.clone();
        (command.version, model_command.version) = match latest {
            true => (before.version, in_model.version),
            false => (before.version - 1, in_model.version - 1),
        };
        let actual = pair.world.store.change_integration(command).await;
        let outcome = same(actual, pair.model.change_integration(model_command).await)?;
        if outcome == ChangeIntegrationOutcome::Changed
            && let Some((after, _)) = self.find(pair, which).await?
        {
            self.learn(pair, &after);
        }
        Ok(())
    }

    /// An integration, as the two stores have it. How they count its changes is their own.
    async fn find(
        &self,
        pair: Pair<'_>,
        which: usize,
    ) -> Result<Option<(StoredIntegration, StoredIntegration)>, Difference> {
        if self.integrations.is_empty() {
            return Ok(None);
        }
        let query = FindIntegration {
            authority: Principal::Operator,
            organization: pair.world.organization,
            key: IntegrationKey::Id(*pick(&self.integrations, which)),
            now: pair.world.now(),
        };
        let actual = pair.world.store.find_integration(query.clone()).await.map_err(|error| format!("{error:?}"))?;
        let expected = pair.model.find_integration(query).await.map_err(|error| format!("{error:?}"))?;
        match (actual, expected) {
            (Ok(Some(actual)), Ok(Some(expected))) if uncounted(&actual) == uncounted(&expected) => {
                let token = actual.integration.token;
                let by_token = pair.world.store.find_integration_by_token(token).await;
                let by_token = by_token.map(|found| found.as_ref().map(uncounted));
                let in_model = pair.model.find_integration_by_token(token).await;
                same(by_token, in_model.map(|found| found.as_ref().map(uncounted)))?;
                Ok(Some((actual, expected)))
            }
            (Ok(None), Ok(None)) => Ok(None),
            (actual, expected) => Err(format!("{actual:?}, not {expected:?}")),
        }
    }

    /// Verifies whoever holds the latest token, if it works.
    fn learn(&mut self, pair: Pair<'_>, stored: &StoredIntegration) {
        let Integration { token, .. } = stored.integration;
        self.principals.extend(stored.integration.principal(token, stored.digest, pair.world.now()));
    }

    async fn take(&mut self, pair: Pair<'_>, token: usize, namespace: usize, dry: bool) -> Result<(), Difference> {
        let Some(principal) = self.principal(token) else { return Ok(()) };
        let mut command = pair.world.take(principal, "contract");
        (command.namespace, command.most) = (numbered(namespace), MOST);
        command.activation = command.activation.filter(|_| !dry);
        let mut begun = None;
        if let Some(activation) = &mut command.activation {
            activation.limit = LIMIT;
            begun = Some(activation.id);
        }
        if matches!(both!(pair, take_credentials(command))?, TakeOutcome::Taken(_)) {
            self.activations.extend(begun);
        }
        Ok(())
    }

    /// What no command looked at.
    pub(super) async fn compare_rest(&self, pair: Pair<'_>) -> Result<(), Difference> {
        let (scope, now) = (IntegrationScope::Organization(pair.world.organization), pair.world.now());
        let all = |listed: Vec<StoredIntegration>| listed.iter().map(uncounted).collect::<Vec<_>>();
        let query = ListIntegrations { scope: scope.clone(), now };
        let actual = pair.world.store.list_integrations(query.clone()).await.map(|listed| listed.map(all));
        let expected = pair.model.list_integrations(query).await.map(|listed| listed.map(all));
        same(actual, expected)?.ok();
        both!(pair, list_frozen(ListFrozen { scope, now }))?.ok();
        for principal in &self.principals {
            both!(pair, list_activations(ListActivations { principal: principal.clone(), now }))?.ok();
        }
        Ok(())
    }
}

/// An integration without its version.
fn uncounted(stored: &StoredIntegration) -> StoredIntegration {
    StoredIntegration { version: 0, ..stored.clone() }
}
