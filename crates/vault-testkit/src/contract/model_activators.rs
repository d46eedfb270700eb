//! Random histories of integrations, run on two stores.

use super::Store;
use super::activators::replacement;
use super::model::{Difference, numbered, pick, same};
use super::tools::{evaluated, with};
use super::world::World;
use crate::strategy::ActivatorCommand;
use std::fmt::Debug;
use std::sync::Arc;
use vault_core::Error;
use vault_core::audit::AuditAction;
use vault_core::id::{ActivationId, CredentialId, IntegrationId};
use vault_core::integration::{Integration, IntegrationPrincipal, IntegrationState, Overlap, StoredIntegration};
use vault_core::namespace::{ListFrozen, Namespace, SetFrozen};
use vault_core::operation::Operation;
use vault_core::port::{AbortActivation, Find, IntegrationChange, IntegrationKey};
use vault_core::principal::{Principal, Scope};

/// Maximum number of credentials in a namespace and of active activations of an integration. Low, so that histories
/// reach the limits.
const MOST: usize = 3;
const LIMIT: i64 = 2;

/// The store under test with its world, and the store that it is compared with.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) world: &'a World<'a>,
    pub(super) model: &'a Arc<dyn Store>,
}

impl Pair<'_> {
    /// Runs the same operation on both stores, which must agree.
    async fn both<O: Operation<Outcome: PartialEq + Debug> + Clone>(
        self,
        principal: &Principal,
        operation: O,
    ) -> Result<(), Difference> {
        let decided = |outcome: Result<O::Outcome, Error>| match outcome {
            Err(error @ (Error::Denied(_) | Error::Refused(_))) => Err(error.to_string()),
            outcome => Ok(outcome.expect("the store works")),
        };
        let actual = self.world.operate(principal, operation.clone()).await;
        let expected = self.world.operate_on(self.model, principal, operation).await;
        same(Ok(decided(actual)), Ok(decided(expected))).map(drop)
    }
}

/// Runs the same command on both stores. Returns its result if both agree, or `None` if both denied it.
macro_rules! both {
    ($pair:expr, $method:ident($command:expr)) => {{
        let command = $command;
        let actual = $pair.world.store.$method(command.clone()).await;
        same(Ok(evaluated(actual)), Ok(evaluated($pair.model.$method(command).await))).map(Result::ok)
    }};
}

/// The state of integrations in a history.
#[derive(Default)]
pub(super) struct Activators {
    integrations: Vec<IntegrationId>,
    /// The principals of all tokens, as they were verified.
    principals: Vec<IntegrationPrincipal>,
    activations: Vec<Started>,
}

/// A started activation.
struct Started {
    id: ActivationId,
    namespace: Namespace,
    taken: Vec<CredentialId>,
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
                let freeze = SetFrozen { namespace: numbered(namespace), ..pair.world.freeze("contract", frozen) };
                pair.both(authority, freeze).await
            }
            ActivatorCommand::Take(token, namespace, dry) => self.take(pair, token, namespace, dry).await,
            ActivatorCommand::List(token) => {
                let Some(principal) = self.principal(token) else { return Ok(()) };
                both!(pair, list_activations(pair.world.list_activations(principal))).map(drop)
            }
            ActivatorCommand::End(token, activation) => {
                let (Some(principal), false) = (self.principal(token), self.activations.is_empty()) else {
                    return Ok(());
                };
                let command = pair.world.end_activation(principal, pick(&self.activations, activation).id);
                both!(pair, end_activation(command)).map(drop)
            }
            ActivatorCommand::IssueCredentials(token, activation) => {
                self.issue_credentials(pair, token, activation, false).await
            }
            ActivatorCommand::Renew(token, activation) => self.issue_credentials(pair, token, activation, true).await,
            ActivatorCommand::Abort(activation) => {
                if self.activations.is_empty() {
                    return Ok(());
                }
                let command = AbortActivation {
                    organization: pair.world.organization,
                    activation: pick(&self.activations, activation).id,
                    audit: pair.world.audit(AuditAction::ActivationFailed),
                };
                both!(pair, abort_activation(command)).map(drop)
            }
        }
    }

    fn principal(&self, token: usize) -> Option<&IntegrationPrincipal> {
        (!self.principals.is_empty()).then(|| pick(&self.principals, token))
    }

    async fn create(&mut self, pair: Pair<'_>, authority: &Principal, name: usize) -> Result<(), Difference> {
        let command = pair.world.create_integration(authority, &pair.world.new_integration(&format!("i{name}")));
        let (integration, digest) = (command.payload.integration.clone(), command.payload.digest);
        if both!(pair, create_integration(command))?.is_some() {
            self.integrations.push(integration.id);
            self.learn(pair, &StoredIntegration { integration, digest, last_used_at: None });
        }
        Ok(())
    }

    /// Changes or deletes an integration in both stores.
    async fn change(
        &mut self,
        pair: Pair<'_>,
        authority: &Principal,
        which: usize,
        latest: bool,
        change: impl FnOnce(Integration) -> Option<Integration>,
    ) -> Result<(), Difference> {
        let Some(before) = self.find(pair, which).await? else { return Ok(()) };
        let version = before.integration.next_version();
        let after = change(before.integration.clone()).map(|after| Integration { version, ..after });
        let change = after.as_ref().map_or(IntegrationChange::Delete, replacement);
        let command = with(pair.world.change_integration(authority, &before, change), |payload| {
            payload.version -= i64::from(!latest);
        });
        if both!(pair, change_integration(command))?.is_some()
            && let Some(after) = self.find(pair, which).await?
        {
            self.learn(pair, &after);
        }
        Ok(())
    }

    /// Returns an integration from both stores.
    async fn find(&self, pair: Pair<'_>, which: usize) -> Result<Option<StoredIntegration>, Difference> {
        if self.integrations.is_empty() {
            return Ok(None);
        }
        let query = Find {
            principal: Principal::Operator,
            of: pair.world.organization,
            key: IntegrationKey::Id(*pick(&self.integrations, which)),
            now: pair.world.now(),
        };
        let found = both!(pair, find_integration(query))?.flatten();
        if let Some(found) = &found {
            both!(pair, find_integration_by_token(found.integration.token))?;
        }
        Ok(found)
    }

    /// Verifies the latest token and stores its principal if the token is valid.
    fn learn(&mut self, pair: Pair<'_>, stored: &StoredIntegration) {
        let Integration { token, .. } = stored.integration;
        self.principals.extend(stored.integration.principal(token, stored.digest.code, pair.world.now()));
    }

    async fn take(&mut self, pair: Pair<'_>, token: usize, namespace: usize, dry: bool) -> Result<(), Difference> {
        let Some(principal) = self.principal(token) else { return Ok(()) };
        let mut started = None;
        let command = with(pair.world.take(principal, "contract"), |payload| {
            (payload.namespace, payload.most) = (numbered(namespace), MOST);
            payload.activation = payload.activation.take().filter(|_| !dry);
            if let Some(activation) = &mut payload.activation {
                activation.limit = LIMIT;
                started = Some(activation.id);
            }
        });
        if let Some(taken) = both!(pair, fetch_credentials(command))? {
            let taken = taken.into_iter().map(|row| row.id).collect();
            self.activations.extend(started.map(|id| Started { id, namespace: numbered(namespace), taken }));
        }
        Ok(())
    }

    async fn issue_credentials(
        &self,
        pair: Pair<'_>,
        token: usize,
        activation: usize,
        renewal: bool,
    ) -> Result<(), Difference> {
        let (Some(principal), false) = (self.principal(token), self.activations.is_empty()) else { return Ok(()) };
        let Started { id, namespace, taken } = pick(&self.activations, activation);
        let command = with(pair.world.issue_credentials(principal, "contract", *id, taken), |payload| {
            payload.namespace = namespace.clone();
            payload.renewal = renewal;
        });
        both!(pair, issue_credentials(command)).map(drop)
    }

    /// Compares the rows that no command read.
    pub(super) async fn compare_rest(&self, pair: Pair<'_>) -> Result<(), Difference> {
        let principal = Principal::Operator;
        let scope = Scope::One(pair.world.organization);
        both!(pair, list_integrations(pair.world.list_integrations(&principal, scope)))?;
        pair.both(&principal, ListFrozen { scope, after: None, limit: 1_000 }).await?;
        pair.both(&principal, pair.world.list_namespaces()).await?;
        for principal in &self.principals {
            both!(pair, list_activations(pair.world.list_activations(principal)))?;
        }
        Ok(())
    }
}
