//! Random histories of integrations, run on two stores.

use super::Store;
use super::activators::set_state;
use super::commands::ActivatorCommand;
use super::model::{Difference, numbered, pick, same};
use super::tools::{evaluated, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use std::fmt::Debug;
use std::sync::Arc;
use vault_core::Error;
use vault_core::activation::AbortActivation;
use vault_core::audit::AuditAction;
use vault_core::digest::Digest;
use vault_core::id::{ActivationId, CredentialId, IntegrationId};
use vault_core::integration::{
    FindByToken, IntegrationChange, IntegrationPrincipal, IntegrationState, ListIntegrations, Overlap,
};
use vault_core::namespace::{Namespace, SetFrozen};
use vault_core::operation::Operation;

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
    pub(super) async fn both<O: Operation<Outcome: PartialEq + Debug> + Clone>(
        self,
        principal: &Principal,
        operation: O,
    ) -> Result<Option<O::Outcome>, Difference> {
        self.both_in(principal, || operation.clone(), |outcome| outcome).await
    }

    /// Likewise, for a part of the outcome.
    pub(super) async fn both_in<O: Operation, T: PartialEq + Debug>(
        self,
        principal: &Principal,
        operation: impl Fn() -> O,
        part: impl Fn(O::Outcome) -> T,
    ) -> Result<Option<T>, Difference> {
        let decided = |outcome: Result<O::Outcome, Error>| match outcome {
            Err(error @ (Error::Denied(_) | Error::Refused(_))) => Err(error.to_string()),
            outcome => Ok(part(outcome.expect("the store works"))),
        };
        let actual = self.world.operate(principal, operation()).await;
        let expected = self.world.operate_on(self.model, principal, operation()).await;
        same(Ok(decided(actual)), Ok(decided(expected))).map(Result::ok)
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
            ActivatorCommand::Rotate(which) => {
                self.change(pair, authority, which, pair.world.rotation(Overlap::DEFAULT)).await
            }
            ActivatorCommand::SetState(which, active) => {
                let state = if active { IntegrationState::Active } else { IntegrationState::Disabled };
                self.change(pair, authority, which, set_state(state)).await
            }
            ActivatorCommand::Delete(which) => {
                let Some(id) = self.integration(which) else { return Ok(()) };
                pair.both(authority, pair.world.delete_of_integration(id)).await.map(drop)
            }
            ActivatorCommand::Freeze(namespace, frozen) => {
                let freeze = SetFrozen { namespace: numbered(namespace), ..pair.world.freeze("contract", frozen) };
                pair.both(authority, freeze).await.map(drop)
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

    fn integration(&self, which: usize) -> Option<IntegrationId> {
        (!self.integrations.is_empty()).then(|| *pick(&self.integrations, which))
    }

    async fn create(&mut self, pair: Pair<'_>, authority: &Principal, name: usize) -> Result<(), Difference> {
        let create = pair.world.create_integration(pair.world.new_integration(&format!("i{name}")));
        let (id, token) = (create.id, create.integration.token);
        if pair.both(authority, create).await?.is_some() {
            self.integrations.push(id);
            self.learn(pair, token).await?;
        }
        Ok(())
    }

    /// Changes an integration in both stores.
    async fn change(
        &mut self,
        pair: Pair<'_>,
        authority: &Principal,
        which: usize,
        change: IntegrationChange,
    ) -> Result<(), Difference> {
        let Some(id) = self.integration(which) else { return Ok(()) };
        pair.both(&Principal::Operator, pair.world.find_integration(id)).await?;
        if let Some(changed) = pair.both(authority, pair.world.change_integration(id, change)).await? {
            self.learn(pair, changed.integration.token).await?;
        }
        Ok(())
    }

    /// Finds an integration by its token, and stores its principal if the token is valid.
    async fn learn(&mut self, pair: Pair<'_>, token: Digest) -> Result<(), Difference> {
        let found = pair.both(&Principal::Operator, FindByToken(token)).await?.flatten();
        self.principals.extend(found.and_then(|found| found.principal(token, pair.world.now()).ok()));
        Ok(())
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
            let taken = taken.into_iter().map(|fetched| fetched.row.id).collect();
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
        pair.both(&principal, ListIntegrations { scope, after: None, limit: 1_000 }).await?;
        pair.both(&principal, pair.world.list_namespaces()).await?;
        for principal in &self.principals {
            both!(pair, list_activations(pair.world.list_activations(principal)))?;
        }
        Ok(())
    }
}
