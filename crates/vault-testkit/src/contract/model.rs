//! Comparison of the store with [`MemoryStore`]: random histories must have the same results in both.

use super::account_change::regrant;
use super::commands::{VaultCommand, vault_command};
use super::credential::position;
use super::model_activators::{Activators, Pair};
use super::tools::{By, Conclusion, address, evaluated, is_unknown_account, namespace, principal_of, with};
use super::world::{Holder, ReadAccount, Wanted, World, opening};
use super::{ContractStore, Store};
use crate::clock::ManualClock;
use crate::commands::CredentialCommands as _;
use crate::crypto::FakeDigester;
use crate::memory::MemoryStore;
use proptest::collection::vec;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::Error;
use vault_core::account::{AccountChange, AccountState};
use vault_core::credential::{Card, CredentialQuery, DeleteCredential, ListFilter, OpenedCredential, ShowCredential};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::id::CredentialId;
use vault_core::invitation::EnrolmentDraft;
use vault_core::login::{AttemptOutcome, ReserveAttempt};
use vault_core::namespace::Namespace;
use vault_core::organization::{OrganizationState, RotateOrganization, SetOrganizationState};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{Idempotency, KeyedDigester, StoredCredential};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::session::EndSession;

const HISTORIES: u32 = 16;
const LENGTH: usize = 120;
const DAY_MILLIS: i64 = 24 * 3_600 * 1_000;

/// Random commands have the same results, step by step, as in memory.
pub async fn random_commands_match_in_memory_store(suite: &dyn ContractStore) {
    // The runner is not asynchronous; it shrinks a history with a difference.
    tokio::task::block_in_place(|| {
        let mut runner = TestRunner::new(Config { cases: HISTORIES, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&vec(vault_command(), 1..LENGTH), |commands| {
            Handle::current().block_on(play(suite, &commands)).map_err(TestCaseError::fail)
        });
        if let Err(difference) = outcome {
            panic!("{difference}");
        }
    });
}

pub(super) type Difference = String;

async fn play(suite: &dyn ContractStore, commands: &[VaultCommand]) -> Result<(), Difference> {
    let mut history = History::begin(suite).await?;
    for command in commands {
        history.step(*command).await.map_err(|difference| format!("at {command:?}: {difference}"))?;
    }
    history.compare_rest().await
}

/// World with two stores: the store under test and the one in memory.
struct History<'a> {
    suite: &'a dyn ContractStore,
    world: World<'a>,
    memory: Arc<MemoryStore>,
    model: Arc<dyn Store>,
    /// Known values of each account.
    holders: Vec<Holder>,
    networks: Vec<Digest>,
    sessions: Vec<SessionPrincipal>,
    embedder: Principal,
    credentials: Vec<CredentialId>,
    activators: Activators,
}

/// Sends the same command, which may be denied or rejected, to both stores; returns the result if it is the same.
macro_rules! decided {
    ($history:expr, $method:ident($command:expr)) => {{
        let command = $command;
        let actual = $history.world.store.$method(command.clone()).await;
        same(Ok(evaluated(actual)), Ok(evaluated($history.model.$method(command).await)))
    }};
}

impl<'a> History<'a> {
    async fn begin(suite: &'a dyn ContractStore) -> Result<Self, Difference> {
        let (world, creation) = World::prepare(suite, ManualClock::START);
        let memory = Arc::new(MemoryStore::new());
        let mut history = Self {
            suite,
            model: Arc::clone(&memory) as Arc<dyn Store>,
            memory,
            holders: Vec::new(),
            networks: (0..3).map(|_| world.network()).collect(),
            sessions: Vec::new(),
            embedder: world.embedder(),
            credentials: Vec::new(),
            activators: Activators::default(),
            world,
        };
        for store in [&history.world.store, &history.model] {
            history.world.operate_on(store, &Principal::Operator, creation.clone()).await.unwrap();
        }
        for role in [Role::Admin, Role::Editor, Role::Viewer] {
            let holder = history.world.new_holder(role);
            let By { principal, payload } = history.world.create_account(&holder);
            history.pair().both(&principal, payload).await?;
            history.holders.push(holder);
        }
        Ok(history)
    }

    async fn step(&mut self, command: VaultCommand) -> Result<(), Difference> {
        match command {
            VaultCommand::Pass(millis) => self.world.clock.advance_millis(millis),
            VaultCommand::Reserve(account, network) => {
                let network = *pick(&self.networks, network);
                let attempt = self.world.attempt(&self.holder(account).account.grant.email, network);
                self.reserve(attempt).await?;
            }
            VaultCommand::ReserveUnknown => {
                let attempt = self.world.attempt(&address("unknown@nowhere.example"), self.networks[0]);
                let reservation = self.world.reserve_attempt(attempt).await;
                if !is_unknown_account(&reservation) {
                    return Err(format!("{reservation:?}"));
                }
            }
            VaultCommand::WrongPasscode(account) => {
                let Conclusion { by, attempt } = self.world.refuse(self.holder(account), true);
                self.pair().both(&by, attempt).await?;
            }
            VaultCommand::LogInByStep(account, step, network) => {
                let step = TimeStep(TimeStep::at(ManualClock::START).0 + step);
                self.log_in(account, PasscodeProof::Step(step), network).await?;
            }
            VaultCommand::LogInByRecoveryCode(account, code, network) => {
                let code = *pick(&self.holder(account).recovery_codes, code);
                self.log_in(account, PasscodeProof::RecoveryCode(code), network).await?;
            }
            VaultCommand::EndSession(session) => {
                if !self.sessions.is_empty() {
                    let session = pick(&self.sessions, session);
                    let end = EndSession { organization: session.organization, session: session.session };
                    self.pair().both(&session.clone().into(), end).await?;
                }
            }
            VaultCommand::Grant(account, role, active) => {
                let state = if active { AccountState::Active } else { AccountState::Disabled };
                self.change(account, regrant(role, state)).await?;
            }
            VaultCommand::ReEnrol(account, confirmed) => self.re_enrol(account, confirmed).await?,
            VaultCommand::Unlock(account) => self.change(account, AccountChange::Unlock).await?,
            VaultCommand::SetOrganization(active) => self.set_organization(active).await?,
            VaultCommand::Save(who, namespace, key, body) => self.save(who, namespace, key, body).await?,
            VaultCommand::List(who, namespace, after, limit) => {
                let filter = ListFilter { namespace: namespace.map(numbered), ..ListFilter::default() };
                let after = after.map(|after| position(self.credential(after)));
                let principal = self.principal(who);
                let list = CredentialQuery { after, limit, ..self.world.list_by(&principal, filter) };
                self.pair()
                    .both_in(
                        &principal,
                        || opening(list.clone()),
                        |page| page.credentials.into_iter().map(opened).collect::<Vec<_>>(),
                    )
                    .await?;
            }
            VaultCommand::Show(who, credential) => {
                let show = ShowCredential(self.world.organization, self.credential(credential));
                self.pair().both_in(&self.principal(who), || show.clone(), opened).await?;
            }
            VaultCommand::Delete(who, credential) => {
                let (organization, id) = (self.world.organization, self.credential(credential));
                let deletion = DeleteCredential { organization, id, revision: None };
                self.pair().both(&self.principal(who), deletion).await?;
            }
            VaultCommand::Rotate => {
                self.pair().both(&Principal::Operator, RotateOrganization(self.world.organization)).await?;
            }
            VaultCommand::Activator(who, command) => {
                let authority = match self.principal(who) {
                    Principal::Session(session) => Principal::Session(session),
                    Principal::Embedder(_) | Principal::Operator => Principal::Operator,
                };
                let pair = Pair { world: &self.world, model: &self.model };
                self.activators.step(pair, &authority, command).await?;
            }
        }
        Ok(())
    }

    async fn log_in(&mut self, account: usize, proof: PasscodeProof, network: usize) -> Result<(), Difference> {
        let command = self.world.complete_login(self.holder(account), *pick(&self.networks, network), proof);
        let principal = principal_of(&command);
        let outcome = self.pair().both(&command.by, command.attempt).await?;
        if outcome == Some(AttemptOutcome::Completed) {
            self.sessions.push(principal);
        }
        Ok(())
    }

    async fn change(&mut self, account: usize, wanted: impl Into<Wanted>) -> Result<(), Difference> {
        for change in wanted.into().0 {
            let By { principal, payload } = self.world.change_account(self.holder(account), change);
            self.pair().both(&principal, payload).await?.ok_or("an operator changes any account")?;
        }
        self.refresh(account).await
    }

    /// Reads an account in both stores.
    async fn refresh(&mut self, account: usize) -> Result<(), Difference> {
        let read = ReadAccount(self.holder(account).account.place());
        let read = self.pair().both(&Principal::Operator, read).await?.flatten();
        let index = account % self.holders.len();
        self.holders[index].account = read.ok_or("no account is deleted")?;
        Ok(())
    }

    /// Re-enrols an account, if the organization permits it.
    async fn re_enrol(&mut self, account: usize, confirmed: bool) -> Result<(), Difference> {
        let (change, invitation) = self.world.re_enrolment(self.holder(account));
        self.change(account, change).await?;
        let draft = self.world.write_draft(&invitation);
        let holder = account % self.holders.len();
        let EnrolmentDraft { secrets, recovery_codes } = draft.draft.clone();
        if !confirmed || self.pair().both(&Principal::Operator, draft).await? != Some(true) {
            return Ok(());
        }
        let PasscodeProof::Step(step) = self.world.fresh_step() else { return Err("no step".to_owned()) };
        let open = self.world.open(&invitation).await.ok_or("a draft without an invitation")?;
        let confirmation = self.world.confirm_enrolment(&open, step);
        self.pair().both(&Principal::Operator, confirmation).await?.ok_or("an open invitation is not confirmed")?;
        let holder = &mut self.holders[holder];
        *holder = Holder { secrets, recovery_codes, ..holder.clone() };
        self.refresh(account).await
    }

    async fn reserve(&self, attempt: ReserveAttempt) -> Result<(), Difference> {
        self.pair().both(&Principal::Operator, attempt).await.map(drop)
    }

    async fn set_organization(&self, active: bool) -> Result<(), Difference> {
        let organization = self.world.organization;
        let state = if active { OrganizationState::Active } else { OrganizationState::Disabled };
        for store in [&self.world.store, &self.model] {
            let set = SetOrganizationState { organization, state };
            self.world.operate_on(store, &Principal::Operator, set).await.unwrap();
        }
        Ok(())
    }

    async fn save(&mut self, who: usize, namespace: usize, key: Option<usize>, body: usize) -> Result<(), Difference> {
        // One key per day, so that none gets close to its expiry.
        let day = self.world.now().as_millis() / DAY_MILLIS;
        let body_digest = FakeDigester::default().digest(DigestPurpose::IdempotentBody, &[&[body == 0].map(u8::from)]);
        let principal = self.principal(who);
        let account = principal.account().unwrap();
        let command = with(self.world.save(&principal), |save| {
            save.namespace = numbered(namespace);
            save.new.idempotency =
                key.map(|key| Idempotency { account, key: format!("{day}/{key}"), body: body_digest.into() });
            save.limit = 8;
        });
        let id = command.payload.id;
        if decided!(self, save_credential(command))?.ok() == Some(id) {
            self.credentials.push(id);
        }
        Ok(())
    }

    /// Compares everything that no command read.
    async fn compare_rest(&self) -> Result<(), Difference> {
        let organization = self.world.organization;
        let audit = |mut actions: Vec<String>| {
            actions.sort();
            actions
        };
        let actual = audit(self.suite.audit_actions(organization).await);
        let expected = audit(self.memory.audit_actions(organization).await);
        same(Ok(actual), Ok(expected))?;
        for holder in &self.holders {
            let actual = self.world.read(holder).await;
            let expected = self.world.account_in(&self.model, &holder.account.grant.email).await.unwrap();
            same(Ok(actual.listed), Ok(expected))?;
        }
        self.activators.compare_rest(self.pair()).await
    }

    fn pair(&self) -> Pair<'_> {
        Pair { world: &self.world, model: &self.model }
    }

    fn holder(&self, account: usize) -> &Holder {
        pick(&self.holders, account)
    }

    fn principal(&self, who: usize) -> Principal {
        match self.sessions.get(who % (self.sessions.len() + 1)) {
            Some(session) => Principal::Session(session.clone()),
            None => self.embedder.clone(),
        }
    }

    /// Returns a credential that was saved once, or one that never existed.
    fn credential(&self, index: usize) -> CredentialId {
        let nothing = CredentialId::from_bytes([0x77; 16]);
        self.credentials.get(index % (self.credentials.len() + 1)).copied().unwrap_or(nothing)
    }
}

fn opened(OpenedCredential { row, card }: OpenedCredential) -> (StoredCredential, Card) {
    (row, card.expect("nothing is damaged"))
}

pub(super) fn pick<T>(from: &[T], index: usize) -> &T {
    &from[index % from.len()]
}

pub(super) fn numbered(index: usize) -> Namespace {
    namespace(&format!("n{index}"))
}

pub(super) fn same<T: Debug>(actual: Result<T, Error>, expected: Result<T, Error>) -> Result<T, Difference> {
    let (as_text, expected) = (format!("{actual:?}"), format!("{expected:?}"));
    match actual {
        Ok(actual) if as_text == expected => Ok(actual),
        _ => Err(format!("{as_text}, not {expected}")),
    }
}
