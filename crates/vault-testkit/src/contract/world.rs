//! Organization of a single case, and the commands that cases send.

use super::saving::{NewVersionOf, Saving};
use super::tools::{By, Conclusion, Settled as _, name, namespace, principal_of, random, secret, with};
use super::{ContractStore, Store};
use crate::clock::{ManualClock, RecordingEvents, SequentialIds};
use crate::commands::{CredentialCommands as _, operations};
use crate::crypto::{FakeAuditSealer, FakeDigester};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use vault_core::account::{
    Account, AccountChange, AccountLogins, AccountRights, AccountSecrets, AccountState, ChangeAccount, CreateAccount,
    ListedAccount,
};
use vault_core::activation::VendRule;
use vault_core::audit::{
    Actor, AppendEntries, AuditAction, AuditRecord, Origin, ReadCheckpoints, SealedAuditRecord, StoredCheckpoint,
    Subject,
};
use vault_core::credential::{
    CredentialPage, CredentialQuery, CredentialType, DeleteCredential, ListCredentials, ListFilter, OpenedCredential,
    ShowCredential,
};
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::email::EmailAddress;
use vault_core::entity::Opened;
use vault_core::id::{AccountId, AuditId, CredentialId, KeyId, OrganizationId, SecretsId, SessionId, VersionId};
use vault_core::login::{
    AttemptOutcome, FinishAttempt, ProofEffect, Reservation, ReserveAttempt, ReservedAccount, VerifiedFactors,
    VerifiedProof,
};
use vault_core::maintenance::{DeleteExpired, Expired};
use vault_core::operation::{Access, Failure, Operation, Unit};
use vault_core::organization::{
    CountKeyUses, CreateOrganization, DeleteOrganization, Organization, OrganizationName, OrganizationState,
    ReadOrganization, SetOrganizationState,
};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{AccountPlace, AuditSealer, Clock, IdGenerator, KeyedDigester, RowStore, StoredCredential};
use vault_core::principal::{EmbedderPrincipal, Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::sealed::OrganizationKeys;
use vault_core::session::{EndSession, NewSession};
use vault_core::time::Timestamp;
use vault_core::usecase::Environment;
use vault_core::{Command, Error};

/// Duration of sessions in cases, in seconds: one hour.
pub(super) const SESSION_SECONDS: i64 = 3_600;
/// Limit that no case reaches unintentionally.
pub(super) const NO_LIMIT: i64 = 1_000_000;

/// One organization with a separate clock, and the ports. No other case shares any of it.
pub(super) struct World<'a> {
    suite: &'a dyn ContractStore,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: ManualClock,
    pub(super) ids: Arc<SequentialIds>,
    pub(super) organization: OrganizationId,
    /// Name at creation.
    pub(super) name: OrganizationName,
    steps: AtomicI64,
}

/// Account with the secrets of its user.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) account: Account,
    pub(super) secrets: AccountSecrets,
    pub(super) recovery_codes: Vec<Digest>,
}

impl Holder {
    /// Returns the holder with another address.
    pub(super) fn at(mut self, email: &EmailAddress) -> Self {
        self.account.grant.email = email.clone();
        self
    }

    /// Returns the holder with the account values that a reservation returned.
    pub(super) fn as_reserved(&self, facts: &ReservedAccount) -> Self {
        let secrets = facts.secrets.clone().expect("they open");
        Self { account: facts.account.clone(), secrets, ..self.clone() }
    }
}

/// An account as stored, and as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) account: Account,
    pub(super) logins: AccountLogins,
    pub(super) listed: ListedAccount,
}

/// Reads the document of an account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReadAccount(pub(super) AccountPlace);

impl Operation for ReadAccount {
    type Outcome = Option<Account>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Option<Account>, Failure> {
        Ok(unit.find::<Account>(self.0.0, *self.0.1.as_uuid()).await?.map(Opened::into_value))
    }
}

/// Changes of an account, in order.
#[derive(Clone, Debug)]
pub(super) struct Wanted(pub(super) Vec<AccountChange>);

impl From<AccountChange> for Wanted {
    fn from(change: AccountChange) -> Self {
        Self(vec![change])
    }
}

impl<'a> World<'a> {
    pub(super) async fn new(suite: &'a dyn ContractStore) -> Self {
        Self::at(suite, ManualClock::START).await
    }

    pub(super) async fn at(suite: &'a dyn ContractStore, now: Timestamp) -> Self {
        let (world, creation) = Self::prepare(suite, now);
        world.operate(&Principal::Operator, creation).await.expect("a new name is free");
        world
    }

    /// Returns a world and the command that creates its organization.
    pub(super) fn prepare(suite: &'a dyn ContractStore, now: Timestamp) -> (Self, CreateOrganization) {
        let ids = Arc::new(SequentialIds::seeded(random()));
        let organization = OrganizationId::from_uuid(ids.ordered(now));
        let world = Self {
            suite,
            store: suite.ports(),
            clock: ManualClock::at(now),
            name: name(&format!("Org {organization}")),
            ids,
            organization,
            steps: AtomicI64::new(0),
        };
        let creation = CreateOrganization { id: world.organization, name: world.name.clone() };
        (world, creation)
    }

    /// Runs an operation on a store.
    pub(super) async fn operate_on<O: Operation>(
        &self,
        store: &Arc<dyn Store>,
        principal: &Principal,
        operation: O,
    ) -> Result<O::Outcome, Error> {
        self.running(store, principal.clone(), operation).await
    }

    /// Returns a run of an operation that borrows nothing.
    pub(super) fn running<O: Operation>(
        &self,
        store: &Arc<dyn Store>,
        principal: Principal,
        operation: O,
    ) -> impl Future<Output = Result<O::Outcome, Error>> + Send + 'static + use<O> {
        let environment = Environment {
            clock: Arc::new(self.now()),
            ids: self.ids.clone(),
            events: Arc::new(RecordingEvents::default()),
            audit: Arc::new(FakeAuditSealer),
            awaited: Arc::default(),
            origin: Origin::default(),
        };
        // An operation creates the same keys in two stores that are compared.
        let [.., low] = *self.organization.as_bytes().as_chunks::<8>().0 else { unreachable!("16 bytes") };
        let seed = u64::from_be_bytes(low).wrapping_add(self.now().as_millis().unsigned_abs());
        let operations = operations(Arc::clone(store) as Arc<dyn RowStore>, Arc::new(SequentialIds::seeded(seed)));
        async move { operations.run(&environment, &principal, operation).await }
    }

    /// Returns a run of an operation by its principal, which borrows nothing.
    pub(super) fn running_by<O: Operation>(
        &self,
        By { principal, payload }: By<O>,
    ) -> impl Future<Output = Result<O::Outcome, Error>> + Send + 'static + use<O> {
        self.running(&self.store, principal, payload)
    }

    /// Runs an operation by its principal.
    pub(super) async fn run<O: Operation>(&self, operation: By<O>) -> Result<O::Outcome, Error> {
        self.running_by(operation).await
    }

    /// Runs an operation.
    pub(super) async fn operate<O: Operation>(&self, principal: &Principal, operation: O) -> Result<O::Outcome, Error> {
        self.operate_on(&self.store, principal, operation).await
    }

    /// Appends entries to the audit log.
    pub(super) async fn append(&self, entries: Vec<SealedAuditRecord>) -> Result<(), Error> {
        self.operate(&Principal::Operator, AppendEntries(entries)).await
    }

    pub(super) async fn checkpoints(&self, read: ReadCheckpoints) -> Vec<StoredCheckpoint> {
        self.operate(&Principal::Operator, read).await.unwrap()
    }

    pub(super) async fn set_state(&self, state: OrganizationState) {
        let organization = self.organization;
        self.operate(&Principal::Operator, SetOrganizationState { organization, state }).await.unwrap();
    }

    /// Deletes the organization with all its data except the audit log.
    pub(super) async fn delete_organization(&self) {
        self.operate(&Principal::Operator, DeleteOrganization(self.organization)).await.unwrap();
        while self.delete_expired(Expired::Erasures).await > 0 {}
    }

    /// Deletes a slice of expired rows.
    pub(super) async fn delete_expired(&self, expired: Expired) -> usize {
        self.operate(&Principal::Operator, DeleteExpired(expired)).await.unwrap()
    }

    /// Reads the organization, if it exists.
    pub(super) async fn read_organization(&self) -> Option<Organization> {
        self.operate(&Principal::Operator, ReadOrganization(self.organization)).await.unwrap()
    }

    // Accounts

    pub(super) fn new_holder(&self, role: Role) -> Holder {
        let account = AccountId::from_uuid(self.ids.ordered(self.now()));
        let email = EmailAddress::parse(&format!("{account}@contract.example")).unwrap();
        let grant =
            AccountRights { account, organization: self.organization, email, role, state: AccountState::Active };
        let secrets = self.secrets();
        Holder {
            account: Account::new(grant, secrets.id, self.now()),
            secrets,
            recovery_codes: (0..10).map(|_| self.recovery_code()).collect(),
        }
    }

    pub(super) fn secrets(&self) -> AccountSecrets {
        let id = SecretsId::from_uuid(self.ids.random());
        AccountSecrets { id, password: secret(&format!("password {id}")), seed: secret(&format!("seed {id}")) }
    }

    pub(super) fn recovery_code(&self) -> Digest {
        FakeDigester::default().digest(DigestPurpose::Network, &[b"recovery code", self.ids.random().as_bytes()])
    }

    pub(super) fn create_account(&self, holder: &Holder) -> By<CreateAccount> {
        let payload = CreateAccount {
            grant: holder.account.grant.clone(),
            secrets: holder.secrets.clone(),
            recovery_codes: holder.recovery_codes.clone(),
        };
        By { principal: Principal::Operator, payload }
    }

    pub(super) async fn holder(&self, role: Role) -> Holder {
        let holder = self.new_holder(role);
        let outcome = self.run(self.create_account(&holder)).await.decided();
        assert_eq!(outcome, Ok(()));
        holder
    }

    pub(super) async fn read(&self, holder: &Holder) -> Found {
        let account = self.operate(&Principal::Operator, ReadAccount(holder.account.place())).await.unwrap();
        let listed = self.account(&holder.account.grant.email).await.expect("the account is there");
        Found { account: account.expect("it is listed"), logins: listed.logins, listed }
    }

    pub(super) fn change_account(&self, holder: &Holder, change: AccountChange) -> By<ChangeAccount> {
        let (organization, account) = holder.account.place();
        By { principal: Principal::Operator, payload: ChangeAccount { organization, account, change } }
    }

    /// Executes changes of the account in its current state.
    pub(super) async fn change(&self, holder: &Holder, wanted: impl Into<Wanted>) {
        for change in wanted.into().0 {
            self.run(self.change_account(holder, change)).await.unwrap();
        }
    }

    // Logins

    pub(super) fn network(&self) -> Digest {
        FakeDigester::default().digest(DigestPurpose::Network, &[self.ids.random().as_bytes()])
    }

    pub(super) fn attempt(&self, address: &EmailAddress, network: Digest) -> ReserveAttempt {
        ReserveAttempt { address: address.clone(), network }
    }

    pub(super) async fn reserve(&self, holder: &Holder, network: Digest) -> Reservation {
        self.reserve_attempt(self.attempt(&holder.account.grant.email, network)).await
    }

    pub(super) async fn reserve_attempt(&self, attempt: ReserveAttempt) -> Reservation {
        self.operate(&Principal::Operator, attempt).await.unwrap()
    }

    /// Returns a time step that no login of this world has used.
    pub(super) fn fresh_step(&self) -> PasscodeProof {
        let ahead = self.steps.fetch_add(1, Ordering::SeqCst);
        PasscodeProof::Step(TimeStep(TimeStep::at(ManualClock::START).0 + ahead))
    }

    /// Returns the last step of an attempt with the factors `presented`.
    pub(super) fn bring(&self, holder: &Holder, network: Digest, presented: VerifiedFactors) -> Conclusion {
        let (reserved, actor) = (Some(holder.account.clone()), Actor::Unknown);
        let attempt = FinishAttempt { reserved, attempts: 1, presented, network, actor };
        Conclusion { by: Principal::Operator, attempt }
    }

    pub(super) fn complete_login(&self, holder: &Holder, network: Digest, passcode: PasscodeProof) -> Conclusion {
        let now = self.now();
        let effect = ProofEffect::Session(NewSession {
            id: SessionId::from_uuid(self.ids.random()),
            created_at: now,
            expires_at: now.plus_seconds(SESSION_SECONDS),
            network: "192.0.2.0/24".to_owned(),
            client: Some("curl/8.0".to_owned()),
        });
        let proof = VerifiedProof { passcode, rehashed: None, effect };
        self.bring(holder, network, VerifiedFactors::Proof(Box::new(proof)))
    }

    /// Returns the end of an attempt, which borrows nothing.
    pub(super) fn concluding(&self, end: Conclusion) -> impl Future<Output = AttemptOutcome> + Send + 'static + use<> {
        let running = self.running(&self.store, end.by, end.attempt);
        async move { running.await.unwrap() }
    }

    pub(super) async fn conclude(&self, end: Conclusion) -> AttemptOutcome {
        self.concluding(end).await
    }

    pub(super) async fn log_in(&self, holder: &Holder) -> SessionPrincipal {
        self.log_in_from(holder, self.network()).await
    }

    pub(super) async fn log_in_from(&self, holder: &Holder, network: Digest) -> SessionPrincipal {
        let command = self.complete_login(holder, network, self.fresh_step());
        let version = self.read(holder).await.account.sessions.since;
        let principal = SessionPrincipal { version, ..principal_of(&command) };
        assert_eq!(self.conclude(command).await, AttemptOutcome::Completed);
        principal
    }

    /// Ends a session of the principal's account.
    pub(super) async fn end_session(&self, principal: &SessionPrincipal, session: SessionId) -> Result<bool, Error> {
        self.operate(&principal.clone().into(), EndSession { organization: principal.organization, session }).await
    }

    pub(super) async fn log_out(&self, session: &SessionPrincipal) {
        assert!(self.end_session(session, session.session).await.unwrap());
    }

    /// Creates an account with this role and two sessions.
    pub(super) async fn two_sessions(&self, role: Role) -> [SessionPrincipal; 2] {
        let holder = self.holder(role).await;
        [self.log_in(&holder).await, self.log_in(&holder).await]
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns how often `action` is recorded in this organization.
    pub(super) async fn audited(&self, action: AuditAction) -> usize {
        self.audited_in(self.organization, action).await
    }

    pub(super) async fn audited_in(&self, organization: OrganizationId, action: AuditAction) -> usize {
        let actions = self.suite.audit_actions(organization).await;
        actions.iter().filter(|recorded| *recorded == action.as_str()).count()
    }

    /// Returns the actions in the audit records of this organization.
    pub(super) async fn audit_actions(&self) -> Vec<String> {
        self.suite.audit_actions(self.organization).await
    }

    /// Returns the number of audit records of this organization.
    pub(super) async fn audit_length(&self) -> usize {
        self.audit_actions().await.len()
    }

    pub(super) fn audit(&self, action: AuditAction) -> SealedAuditRecord {
        self.audit_in(self.organization, action)
    }

    pub(super) fn audit_in(&self, organization: OrganizationId, action: AuditAction) -> SealedAuditRecord {
        FakeAuditSealer.seal(AuditRecord {
            id: AuditId::from_uuid(self.ids.ordered(self.now())),
            at: self.now(),
            organization: Some(organization),
            actor: Actor::Operator,
            action,
            subject: Subject::Organization(organization),
            count: 1,
            note: None,
            origin: vault_core::audit::Origin::default(),
            rows: Vec::new(),
            changes: Vec::new(),
        })
    }

    pub(super) async fn keys(&self) -> OrganizationKeys {
        self.read_organization().await.expect("the organization is there").keys
    }

    /// Replaces the key of the organization, and returns its successor.
    pub(super) async fn replace_key(&self) -> KeyId {
        let (organization, key) = (self.organization, self.keys().await.active.id);
        let count = CountKeyUses { organization, key, uses: 1, replaced_at: 1 };
        self.operate(&Principal::Operator, count).await.unwrap();
        self.keys().await.active.id
    }

    // Commands

    /// Returns a user of an embedding service, for cases in which the principal does not matter.
    pub(super) fn embedder(&self) -> Principal {
        Principal::Embedder(EmbedderPrincipal {
            organization: self.organization,
            account: AccountId::from_uuid(self.ids.random()),
            role: Role::Editor,
        })
    }

    /// Returns a command of `principal` in its organization.
    pub(super) fn command<A>(&self, principal: &Principal, action: AuditAction, payload: A) -> Command<A> {
        let organization = principal.organization().unwrap_or(self.organization);
        Command { principal: principal.clone(), now: self.now(), audit: self.audit_in(organization, action), payload }
    }

    pub(super) fn new_version(&self) -> NewVersionOf {
        let id = VersionId::from_uuid(self.ids.random());
        NewVersionOf { id, kind: CredentialType::S3, check: None, idempotency: None }
    }

    pub(super) fn save(&self, principal: &Principal) -> Command<Saving> {
        let payload = Saving {
            organization: principal.organization().unwrap(),
            id: CredentialId::from_uuid(self.ids.ordered(self.now())),
            namespace: namespace("contract"),
            vend: VendRule::Any,
            labels: Vec::new(),
            expires_at: None,
            new: self.new_version(),
            limit: NO_LIMIT,
        };
        self.command(principal, AuditAction::CredentialSaved, payload)
    }

    /// Returns the command that saves a credential in a namespace for a user of an embedding service.
    pub(super) fn save_in(&self, name: &str) -> Command<Saving> {
        with(self.save(&self.embedder()), |save| save.namespace = namespace(name))
    }

    /// Deletes a credential.
    pub(super) async fn delete(&self, principal: &Principal, id: CredentialId) -> Result<(), Error> {
        let organization = principal.organization().unwrap();
        self.operate(principal, DeleteCredential { organization, id, revision: None }).await
    }

    pub(super) async fn saved(&self, principal: &Principal) -> CredentialId {
        let command = self.save(principal);
        let id = command.payload.id;
        self.store.save_credential(command).await.unwrap();
        id
    }

    pub(super) fn list(&self, principal: &Principal) -> CredentialQuery {
        CredentialQuery {
            organization: principal.organization().unwrap(),
            filter: ListFilter::default(),
            labels: Vec::new(),
            after: None,
            limit: 1_000,
        }
    }

    pub(super) fn list_by(&self, principal: &Principal, filter: ListFilter) -> CredentialQuery {
        CredentialQuery { filter, ..self.list(principal) }
    }

    /// Returns the ids on the page that `query` requests.
    pub(super) async fn page(&self, principal: &Principal, query: CredentialQuery) -> Vec<CredentialId> {
        let page = self.try_page(principal, query).await.unwrap();
        page.credentials.into_iter().map(|one| one.row.id).collect()
    }

    pub(super) async fn try_page(
        &self,
        principal: &Principal,
        query: CredentialQuery,
    ) -> Result<CredentialPage<Vec<OpenedCredential>>, Error> {
        self.operate(principal, opening(query)).await
    }

    pub(super) async fn listed(&self, principal: &Principal) -> Vec<CredentialId> {
        self.page(principal, self.list(principal)).await
    }

    /// Reads a credential of the principal's organization.
    pub(super) async fn show(&self, principal: &Principal, id: CredentialId) -> Result<StoredCredential, Error> {
        Ok(self.operate(principal, ShowCredential(principal.organization().unwrap(), id)).await?.row)
    }
}

/// Lists all rows of a query with their cards.
pub fn opening(query: CredentialQuery) -> ListCredentials<Vec<OpenedCredential>> {
    ListCredentials { query, page: usize::MAX, add: |page, opened, _| page.push(opened) }
}
