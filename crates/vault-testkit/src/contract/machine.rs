//! Concurrent clients, some of which abandon their command, compared with a model of a few maps and counters that
//! shares no rule with the store.
//!
//! Commands are sent in batches and run concurrently within a batch. Their results must be those of the model in some
//! order. A command that its client abandoned runs at some later time, or never.

use super::ContractStore;
use super::saving::Changing;
use super::tools::{request_digest, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use proptest_state_machine::ReferenceStateMachine;
use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::runtime::Handle;
use tokio::task::yield_now;
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialEdit, CredentialType, DeleteCredential, VersionLimits};
use vault_core::id::{AccountId, CredentialId};
use vault_core::organization::{OrganizationState, RotateOrganization};
use vault_core::port::{IdGenerator, Idempotency};
use vault_core::principal::{Denial, Principal};
use vault_core::role::Role;
use vault_core::{Error, Refusal};

/// Number of sequences that the case runs.
const SEQUENCES: u32 = 60;
/// Number of batches in a sequence.
const LENGTH: usize = 12;
/// Maximum number of commands in a batch.
const WIDTH: usize = 3;
/// Actions that the model records.
const RECORDED: [AuditAction; 4] = [
    AuditAction::CredentialSaved,
    AuditAction::CredentialDeleted,
    AuditAction::CredentialReplaced,
    AuditAction::OrganizationKeyReplaced,
];
/// Maximum number of credentials of the organization.
const ROOM: usize = 4;

/// Command of a client. Numbers of credentials and versions start at 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Saves one of two bodies as one of two users, with one of two idempotency keys or none.
    Save(u8, Option<u8>, u8),
    /// Deletes a credential, optionally only at a revision.
    Delete(usize, Option<i64>),
    /// Replaces a credential's version at a revision with the next one.
    Replace(usize, i64),
    /// Starts a rotation of the organization's key.
    Rotate,
    /// Enables or disables the organization; always the only command of its batch.
    SetOpen(bool),
    /// Lists all credentials.
    List,
}

/// A command, and how often its client polls for a result before it abandons the command; `None` means until there is
/// one.
pub type Asked = (Act, Option<u8>);

/// Strategy for useful batches: commands refer to credentials that earlier commands created.
#[derive(Clone, Debug)]
pub struct Batches;

/// Number of saves so far.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    saves: usize,
}

impl ReferenceStateMachine for Batches {
    type State = Made;
    type Transition = Vec<Asked>;

    fn init_state() -> BoxedStrategy<Made> {
        Just(Made { saves: 0 }).boxed()
    }

    fn transitions(created: &Made) -> BoxedStrategy<Vec<Asked>> {
        let credential = 0..created.saves.max(1);
        let payload = prop_oneof![
            6 => (0..2_u8, proptest::option::of(0..2_u8), 0..2_u8)
                .prop_map(|(who, name, body)| Act::Save(who, name, body)),
            2 => (credential.clone(), proptest::option::of(1..3_i64)).prop_map(|(which, at)| Act::Delete(which, at)),
            3 => (credential, 1..4_i64).prop_map(|(which, at)| Act::Replace(which, at)),
            1 => Just(Act::Rotate),
            2 => Just(Act::List),
        ];
        let patience = prop_oneof![6 => Just(None), 1 => (0..4_u8).prop_map(Some)];
        prop_oneof![
            8 => proptest::collection::vec((payload, patience), 1..=WIDTH),
            1 => proptest::bool::weighted(0.7).prop_map(|open| vec![(Act::SetOpen(open), None)]),
        ]
        .boxed()
    }

    fn apply(mut created: Made, batch: &Vec<Asked>) -> Made {
        created.saves += batch.iter().filter(|(payload, _)| matches!(payload, Act::Save(..))).count();
        created
    }

    fn preconditions(created: &Made, batch: &Vec<Asked>) -> bool {
        batch.iter().all(|(payload, _)| match payload {
            Act::Delete(which, _) | Act::Replace(which, _) => *which < created.saves.max(1),
            Act::Save(..) | Act::Rotate | Act::SetOpen(_) | Act::List => true,
        })
    }
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Saved(usize),
    Version(i64),
    Listed(Vec<usize>),
    Recorded(BTreeMap<&'static str, usize>),
    Denied,
    Full,
    Mismatch,
    Changed,
    NotFound,
}

/// A command as it was sent. Saves are numbered in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Act(Act, usize),
    Audit,
}

/// Model of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    closed: bool,
    /// Revisions by credential. Later saves have later ids.
    credentials: BTreeMap<usize, i64>,
    requests: BTreeMap<(u8, u8), (u8, usize)>,
    rotates: bool,
    recorded: BTreeMap<&'static str, usize>,
}

impl Model {
    fn new() -> Self {
        let (credentials, requests, recorded) = Default::default();
        Self { closed: false, credentials, requests, rotates: false, recorded }
    }

    fn record(&mut self, action: AuditAction) {
        *self.recorded.entry(action.as_str()).or_default() += 1;
    }

    fn carry_out(&mut self, given: Given) -> Answer {
        let Given::Act(payload, number) = given else { return Answer::Recorded(self.recorded.clone()) };
        match payload {
            Act::SetOpen(open) => {
                self.closed = !open;
                return Answer::Yes;
            }
            Act::Rotate if self.rotates => return Answer::No,
            Act::Rotate => {
                self.rotates = true;
                self.record(AuditAction::OrganizationKeyReplaced);
                return Answer::Yes;
            }
            _ if self.closed => return Answer::Denied,
            _ => {}
        }
        match payload {
            Act::Save(who, name, body) => {
                if let Some(earlier) = name.and_then(|name| self.requests.get(&(who, name))) {
                    return if earlier.0 == body { Answer::Saved(earlier.1) } else { Answer::Mismatch };
                }
                if self.credentials.len() == ROOM {
                    return Answer::Full;
                }
                self.credentials.insert(number, 1);
                name.map(|name| self.requests.insert((who, name), (body, number)));
                self.record(AuditAction::CredentialSaved);
                Answer::Saved(number)
            }
            Act::Delete(which, at) => match self.credentials.get(&which) {
                None => Answer::NotFound,
                Some(revision) if at.is_some_and(|at| at != *revision) => Answer::Changed,
                Some(_) => {
                    self.credentials.remove(&which);
                    self.record(AuditAction::CredentialDeleted);
                    Answer::Yes
                }
            },
            Act::Replace(which, at) => match self.credentials.get_mut(&which) {
                None => Answer::NotFound,
                Some(revision) if *revision != at => Answer::Changed,
                Some(revision) => {
                    *revision += 1;
                    self.record(AuditAction::CredentialReplaced);
                    Answer::Version(at + 1)
                }
            },
            _ => Answer::Listed(self.credentials.keys().rev().copied().collect()),
        }
    }
}

/// Possible states of the store, each with the abandoned commands that may still run.
type Possible = Vec<(Model, Vec<Given>)>;

/// Returns the possible states after `possible` when commands that ran at the same time returned these results.
fn explain(possible: &Possible, batch: &[(Given, Option<Answer>)]) -> Possible {
    let mut found = Possible::new();
    for (model, abandoned) in possible {
        let waiting = batch.iter().filter(|(_, answer)| answer.is_some()).cloned().collect();
        let given_up = batch.iter().filter(|(_, answer)| answer.is_none()).map(|(given, _)| *given);
        order(model, waiting, abandoned.iter().copied().chain(given_up).collect(), &mut found);
    }
    found
}

/// Explores every order of `waiting`, which have results, and of some of `abandoned`.
fn order(model: &Model, waiting: Vec<(Given, Option<Answer>)>, abandoned: Vec<Given>, found: &mut Possible) {
    if waiting.is_empty() {
        let end = (model.clone(), abandoned);
        if !found.contains(&end) {
            found.push(end);
        }
        return;
    }
    for index in 0..waiting.len() {
        let (mut next, mut rest) = (model.clone(), waiting.clone());
        let (given, answer) = rest.remove(index);
        if Some(next.carry_out(given)) == answer {
            order(&next, rest, abandoned.clone(), found);
        }
    }
    for index in 0..abandoned.len() {
        let (mut next, mut rest) = (model.clone(), abandoned.clone());
        next.carry_out(rest.remove(index));
        if next != *model {
            order(&next, waiting.clone(), rest, found);
        }
    }
}

/// Concurrent and abandoned commands have the same effect as the model in some order.
pub async fn concurrent_clients_are_linearizable(suite: &dyn ContractStore) {
    // The runner is not asynchronous.
    tokio::task::block_in_place(|| check(SEQUENCES, |batches| Handle::current().block_on(play(suite, batches))));
}

/// Runs `play` for this number of sequences, or for the number in the variable `VAULT_SEQUENCES`.
///
/// A failing sequence is shrunk to the smallest that still fails, and printed in a form that can be pasted.
pub fn check(sequences: u32, play: impl Fn(&[Vec<Asked>]) -> Result<(), String>) {
    let wanted = std::env::var("VAULT_SEQUENCES").ok().and_then(|text| text.parse().ok());
    let config = Config { cases: wanted.unwrap_or(sequences), failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&Batches::sequential_strategy(1..LENGTH), |(_, batches, seen)| {
        // Shrinking skips batches that did not run.
        seen.inspect(|seen| seen.store(batches.len(), Ordering::SeqCst));
        play(&batches).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, (_, batches, _))) => {
            panic!(
                "use vault_testkit::contract::machine::{{Act::*, play}};\nplay(&subject, &{}).await\n{reason}",
                pasted(&batches)
            )
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the batches as an expression.
fn pasted(batches: &[Vec<Asked>]) -> String {
    let batches: Vec<_> = batches.iter().map(|batch| format!("vec!{batch:?}")).collect();
    format!("[{}]", batches.join(", "))
}

/// Runs one sequence.
///
/// # Errors
///
/// No order of the commands explains their results.
pub async fn play(suite: &dyn ContractStore, batches: &[Vec<Asked>]) -> Result<(), String> {
    let mut clients = Clients::new(suite).await;
    let mut possible = vec![(Model::new(), Vec::new())];
    for batch in batches {
        let answered = clients.ask(batch).await?;
        possible = narrow(&possible, &answered)?;
        let listed = clients.ask(&[(Act::List, None)]).await?;
        possible = narrow(&possible, &listed)?;
    }
    narrow(&possible, &[(Given::Audit, Some(clients.recorded().await))]).map(drop)
}

fn narrow(possible: &Possible, batch: &[(Given, Option<Answer>)]) -> Result<Possible, String> {
    let explained = explain(possible, batch);
    if explained.is_empty() {
        Err(format!("no order of {batch:?} explains it after {possible:?}"))
    } else {
        Ok(explained)
    }
}

/// Result that a store returned.
enum Raw {
    Id(CredentialId),
    Bool(bool),
    Number(i64),
    Rows(Vec<CredentialId>),
}

type Call<'a> = Pin<Box<dyn Future<Output = Result<Raw, Error>> + Send + 'a>>;

struct Clients<'a> {
    world: World<'a>,
    users: [AccountId; 2],
    credentials: Vec<CredentialId>,
}

impl<'a> Clients<'a> {
    async fn new(suite: &'a dyn ContractStore) -> Self {
        let world = World::new(suite).await;
        let users = [(); 2].map(|()| AccountId::from_uuid(world.ids.random()));
        Self { users, credentials: Vec::new(), world }
    }

    /// Sends all commands of a batch concurrently.
    async fn ask(&mut self, batch: &[Asked]) -> Result<Vec<(Given, Option<Answer>)>, String> {
        if let [(payload @ Act::SetOpen(open), _)] = batch {
            let state = if *open { OrganizationState::Active } else { OrganizationState::Disabled };
            self.world.set_state(state).await;
            return Ok(vec![(Given::Act(*payload, 0), Some(Answer::Yes))]);
        }
        let mut given = Vec::new();
        for (payload, _) in batch {
            let number = match payload {
                Act::Save(..) => {
                    self.credentials.push(CredentialId::from_uuid(self.world.ids.ordered(self.world.now())));
                    self.credentials.len() - 1
                }
                _ => 0,
            };
            given.push((*payload, number));
        }
        let calls =
            given.iter().zip(batch).map(|((payload, number), (_, patience))| (self.call(*payload, *number), *patience));
        let answers = join_all(calls.map(|(call, patience)| async move {
            let gives_up = async {
                for _ in 0..patience.unwrap_or_default() {
                    yield_now().await;
                }
                if patience.is_none() {
                    pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                answer = call => Some(answer),
                () = gives_up => None,
            }
        }))
        .await;
        let answers: Result<Vec<_>, String> =
            answers.into_iter().map(|answer| answer.map(|answer| self.read(answer)).transpose()).collect();
        let given = given.into_iter().map(|(payload, number)| Given::Act(payload, number));
        Ok(given.zip(answers?).collect())
    }

    fn call(&self, payload: Act, number: usize) -> Call<'_> {
        let (world, store) = (&self.world, Arc::clone(&self.world.store));
        let user = |who: u8| Principal::embedder(world.organization, self.users[usize::from(who)], Role::Editor);
        let credential =
            |which: usize| self.credentials.get(which).copied().unwrap_or(CredentialId::from_bytes([0; 16]));
        match payload {
            Act::Save(who, name, body) => {
                let command = with(world.save(&user(who)), |save| {
                    save.id = self.credentials[number];
                    save.limit = i64::try_from(ROOM).unwrap();
                    save.new.idempotency = name.map(|name| Idempotency {
                        account: self.users[usize::from(who)],
                        key: format!("key {name}"),
                        body: request_digest(&format!("body {body}")).into(),
                    });
                });
                Box::pin(async move { Ok(Raw::Id(store.save_credential(command).await?)) })
            }
            Act::Delete(which, revision) => {
                let (organization, id, user) = (world.organization, credential(which), user(0));
                let deletion = DeleteCredential { organization, id, revision };
                Box::pin(async move { world.operate(&user, deletion).await.map(|()| Raw::Bool(true)) })
            }
            Act::Replace(which, revision) => {
                let payload = Changing {
                    organization: world.organization,
                    id: credential(which),
                    revision: Some(revision),
                    edit: CredentialEdit::Replace { kind: CredentialType::S3, expires_at: None },
                    new: Some(world.new_version()),
                    limits: VersionLimits::default(),
                };
                let command = world.command(&user(1), AuditAction::CredentialReplaced, payload);
                Box::pin(async move {
                    store.change_credential(command).await?;
                    Ok(Raw::Number(revision + 1))
                })
            }
            Act::Rotate => Box::pin(async move {
                let started = world.operate(&Principal::Operator, RotateOrganization(world.organization)).await?;
                Ok(Raw::Bool(started.is_new))
            }),
            Act::List | Act::SetOpen(_) => {
                let user = user(0);
                Box::pin(async move {
                    let page = world.try_page(&user, world.list(&user)).await?;
                    Ok(Raw::Rows(page.credentials.into_iter().map(|one| one.row.id).collect()))
                })
            }
        }
    }

    fn read(&self, answer: Result<Raw, Error>) -> Result<Answer, String> {
        let number = |id: &CredentialId| {
            self.credentials.iter().position(|known| known == id).ok_or(format!("{id} was never saved"))
        };
        Ok(match answer {
            Ok(Raw::Id(id)) => Answer::Saved(number(&id)?),
            Ok(Raw::Number(version)) => Answer::Version(version),
            Ok(Raw::Rows(ids)) => Answer::Listed(ids.iter().map(number).collect::<Result<_, _>>()?),
            Ok(Raw::Bool(true)) => Answer::Yes,
            Ok(Raw::Bool(false)) => Answer::No,
            Err(Error::Denied(Denial::OrganizationDisabled)) => Answer::Denied,
            Err(Error::Refused(Refusal::LimitReached { .. })) => Answer::Full,
            Err(Error::Refused(Refusal::IdempotencyMismatch)) => Answer::Mismatch,
            Err(Error::Refused(Refusal::Changed)) => Answer::Changed,
            Err(Error::Refused(Refusal::NotFound)) => Answer::NotFound,
            Err(error) => return Err(format!("the store failed: {error:?}")),
        })
    }

    /// Returns how often each action of the model was recorded.
    async fn recorded(&self) -> Answer {
        let mut recorded = BTreeMap::new();
        for action in self.world.audit_actions().await {
            if let Some(known) = RECORDED.into_iter().map(AuditAction::as_str).find(|known| *known == action) {
                *recorded.entry(known).or_default() += 1;
            }
        }
        Answer::Recorded(recorded)
    }
}
