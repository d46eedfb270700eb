//! Runs operations.

use super::{Access, Failure, KeyUses, Operation, Unit};
use crate::entity::EntityKey;
use crate::error::{Error, Refusal};
use crate::id::OrganizationId;
use crate::port::{
    EntitySealer, Event, KeyedDigester, RetryReason, RowStore, Rows, RowsError, SealError, Sealer, StoreError,
};
use crate::principal::Principal;
use crate::usecase::Environment;
use futures_util::future::BoxFuture;
use futures_util::try_join;
use quick_cache::sync::Cache;
use std::any::{Any, type_name};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// What it wrote is committed.
    Commit,
    /// What it wrote, if anything, is rolled back.
    RollBack,
}

/// An operation without its type, so that what runs it is compiled once.
pub trait Work: Send {
    /// Returns whether it writes.
    fn writes(&self) -> bool;

    /// Returns the organization whose rows it uses, if it is one.
    fn organization(&self) -> Option<OrganizationId>;

    /// Returns whether it sends all its statements together, and needs no transaction.
    fn is_one_exchange(&self) -> bool;

    /// Returns whether it may take long, because no request waits for it.
    fn is_long(&self) -> bool;

    /// Returns the name of the operation, for traces.
    fn name(&self) -> &'static str;

    /// Runs it in an open transaction. Run again, it replaces its outcome.
    fn run<'a>(&'a mut self, rows: &'a dyn Rows) -> BoxFuture<'a, Result<End, RowsError>>;

    /// Returns the work, to be downcast to its type.
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

struct Task<O: Operation> {
    operation: O,
    environment: Environment,
    ports: Arc<Ports>,
    principal: Principal,
    outcome: Option<Result<O::Outcome, Failure>>,
    keys_are_loaded: bool,
    events: Vec<Event>,
}

impl<O: Operation> Work for Task<O> {
    fn writes(&self) -> bool {
        matches!(O::ACCESS, Access::Write(_))
    }

    fn organization(&self) -> Option<OrganizationId> {
        let (Access::Read(organization) | Access::Write(organization)) = O::ACCESS;
        organization(&self.operation)
    }

    fn is_one_exchange(&self) -> bool {
        !self.writes() && (O::IS_ONE_EXCHANGE)(&self.operation)
    }

    fn is_long(&self) -> bool {
        O::IS_LONG
    }

    fn name(&self) -> &'static str {
        // The name of a command is that of its content.
        let name = type_name::<O>().split(['<', ',']).find(|name| !name.ends_with("Command"));
        name.and_then(|name| name.rsplit("::").next()).unwrap_or_default()
    }

    fn run<'a>(&'a mut self, rows: &'a dyn Rows) -> BoxFuture<'a, Result<End, RowsError>> {
        Box::pin(async move {
            let unit = Unit::new(rows, &self.ports, &self.environment, &self.principal, self.keys_are_loaded);
            // The lock and the first statements of the operation are one exchange with the database.
            let organization = self.organization().filter(|_| self.writes());
            let locked = async {
                match organization {
                    Some(organization) => Ok(rows.lock(organization).await?),
                    None => Ok(()),
                }
            };
            let outcome = match try_join!(locked, self.operation.run(&unit)) {
                Err(Failure::Rows(error)) => return Err(error),
                outcome => outcome.map(|((), outcome)| outcome),
            };
            let commits = self.writes() && outcome.is_ok() && unit.commits();
            self.events = unit.into_events();
            self.outcome = Some(outcome);
            Ok(if commits { End::Commit } else { End::RollBack })
        })
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// Number of runs of an operation whose keys are replaced meanwhile.
const ATTEMPTS: usize = 5;

/// Maximum number of organizations whose versions are remembered.
const COMPARED: usize = 10_000;

/// What operations may use in addition to rows.
pub struct Ports {
    /// Seals and opens the documents of entities.
    pub sealer: Arc<dyn EntitySealer>,
    /// Seals credentials and opens their cards.
    pub credentials: Arc<dyn Sealer>,
    /// Computes keyed digests.
    pub digester: Arc<dyn KeyedDigester>,
    /// Uses of the keys of organizations.
    pub uses: KeyUses,
    /// True if an operation failed because the disk was full. One that succeeds later is no evidence of free space: it may have
    /// written little or nothing.
    pub(crate) is_full: AtomicBool,
    /// Versions of organizations that were compared with the audit log.
    pub(super) newest: Cache<OrganizationId, i64>,
}

/// Runs operations in a store, with the ports that they may use.
#[derive(Clone)]
pub struct Operations {
    /// Store that runs their transactions.
    pub store: Arc<dyn RowStore>,
    /// Ports without I/O.
    pub ports: Arc<Ports>,
}

impl Operations {
    /// Creates the runner of a process.
    pub fn new(
        store: Arc<dyn RowStore>,
        sealer: Arc<dyn EntitySealer>,
        credentials: Arc<dyn Sealer>,
        digester: Arc<dyn KeyedDigester>,
    ) -> Self {
        let newest = Cache::new(COMPARED);
        let ports = Ports { sealer, credentials, digester, uses: KeyUses::default(), is_full: false.into(), newest };
        Self { store, ports: Arc::new(ports) }
    }
}

impl Operations {
    /// Runs an operation. If its keys were replaced, loads them and runs it again: the only retry outside of stores.
    ///
    /// # Errors
    /// Those of the operation. [`Refusal::Contended`] if the keys are replaced all the time.
    pub async fn run<O: Operation>(
        &self,
        environment: &Environment,
        principal: &Principal,
        operation: O,
    ) -> Result<O::Outcome, Error> {
        let mut task = Box::new(Task {
            operation,
            environment: environment.clone(),
            ports: Arc::clone(&self.ports),
            principal: principal.clone(),
            outcome: None,
            keys_are_loaded: false,
            events: Vec::new(),
        });
        for attempt in 1.. {
            let work = self.store.submit(task).await.inspect_err(|error| {
                self.ports.is_full.fetch_or(matches!(error, StoreError::Full), Ordering::Relaxed);
            })?;
            let returned = work.into_any().downcast::<Task<O>>();
            task = returned.map_err(|_| StoreError::Fault("an operation came back as another one".into()))?;
            match task.outcome.take() {
                Some(Err(Failure::Overtaken)) if attempt < ATTEMPTS => {
                    environment.emit(Event::Retried(RetryReason::KeyReplaced));
                    self.ports.digester.reload_keys().await?;
                }
                Some(Err(Failure::UnknownKey { .. } | Failure::Seal(SealError::UnknownKey { .. })))
                    if !task.keys_are_loaded =>
                {
                    self.ports.digester.reload_keys().await?;
                    task.keys_are_loaded = true;
                }
                Some(Ok(outcome)) => {
                    task.events.into_iter().for_each(|event| environment.emit(event));
                    return Ok(outcome);
                }
                Some(Err(failure)) => return Err(error(environment, failure)),
                None => break,
            }
        }
        Err(StoreError::Fault("an operation was not run".into()).into())
    }
}

fn error(environment: &Environment, failure: Failure) -> Error {
    let key = match failure {
        Failure::Denied(denial) => return denial.into(),
        Failure::Refused(refusal) => return refusal.into(),
        Failure::Invalid(errors) => return Error::Invalid(errors),
        Failure::Overtaken => return Refusal::Contended.into(),
        Failure::Seal(error) => {
            environment.report(&error);
            return error.into();
        }
        Failure::Rows(_) => return StoreError::Fault("the store failed".into()).into(),
        Failure::Damaged { key, .. } | Failure::UnknownKey { key } => key,
    };
    environment.emit(key.damaged());
    Refusal::Damaged { table: EntityKey::TABLE, id: key.id.to_string() }.into()
}
