//! An organization with one account and one session, and commands that save credentials in it.

use secrecy::SecretString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vault_core::Error;
use vault_core::account::{Account, AccountRights, AccountSecrets, AccountState, CreateAccount};
use vault_core::activation::VendRule;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Origin, SealedAuditRecord, Subject};
use vault_core::credential::{
    ChangeCredential, CredentialData, CredentialEdit, CredentialQuery, CredentialType, ListFilter, Metadata, NewData,
    OpenedCredential, SaveCredential, VersionLimits,
};
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, AuditId, CredentialId, OrganizationId, SecretsId, SessionId, VersionId};
use vault_core::login::{AttemptOutcome, FinishAttempt, ProofEffect, VerifiedFactors, VerifiedProof};
use vault_core::namespace::Namespace;
use vault_core::operation::{Operation, Operations};
use vault_core::organization::{CreateOrganization, OrganizationName};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::RowStore;
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::session::{EndSession, NewSession};
use vault_core::time::Timestamp;
use vault_core::usecase::Environment;
use vault_testkit::clock::{RecordingEvents, SequentialIds};
use vault_testkit::contract::opening;
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, PlainSealer};

const NAMESPACES: u64 = 16;

pub(crate) struct World {
    pub(crate) organization: OrganizationId,
    pub(crate) account: AccountId,
    pub(crate) session: SessionId,
    counter: AtomicU64,
}

pub(crate) fn namespace(number: u64) -> Namespace {
    Namespace::parse(&format!("team-{}/production", number % NAMESPACES), "").unwrap()
}

pub(crate) fn bytes(number: u64) -> [u8; 16] {
    let mut bytes = [0x70; 16];
    bytes[..8].copy_from_slice(&(0x0198_0000_0000_0000 + number).to_be_bytes());
    bytes[8..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes
}

/// The only recovery code of every account.
pub(crate) const RECOVERY_CODE: Digest = Digest::from_bytes([6; 32]);

/// Returns the first secrets of an account.
pub(crate) fn secrets(account: AccountId) -> AccountSecrets {
    let text = |length| SecretString::from("x".repeat(length)).into();
    AccountSecrets { id: SecretsId::from_bytes(*account.as_bytes()), password: text(97), seed: text(70) }
}

/// Returns the address of an account.
pub(crate) fn address(number: u64) -> EmailAddress {
    EmailAddress::parse(&format!("owner-{number:08}@example.com")).unwrap()
}

/// Returns digests that differ in their first eight bytes.
pub(crate) fn digest(number: u64) -> Digest {
    let mut bytes = [2; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Digest::from_bytes(bytes)
}

impl World {
    /// Creates the world with this number. Worlds with different numbers share nothing.
    pub(crate) async fn make<S>(shared: &Arc<S>, number: u64) -> Self
    where
        S: RowStore + 'static,
    {
        let first = number << 32;
        let world = Self {
            organization: OrganizationId::from_bytes(bytes(first + 1)),
            account: AccountId::from_bytes(bytes(first + 2)),
            session: SessionId::from_bytes(bytes(first + 3)),
            counter: AtomicU64::new(first + 100),
        };
        let name = OrganizationName::parse(&format!("World {number}")).unwrap();
        let create = CreateOrganization { id: world.organization, name };
        world.operate(shared, &Principal::Operator, create).await.unwrap();
        world.enter(shared, world.account, world.session, Role::Editor, number).await;
        world
    }

    /// Creates another account and logs it in.
    pub(crate) async fn member<S>(&self, store: &Arc<S>, role: Role) -> SessionPrincipal
    where
        S: RowStore + 'static,
    {
        let (account, session) = (AccountId::from_bytes(bytes(self.next())), SessionId::from_bytes(bytes(self.next())));
        self.enter(store, account, session, role, self.next()).await;
        SessionPrincipal { organization: self.organization, account, session, role, version: 1 }
    }

    /// Creates another account with the address of `number`.
    pub(crate) async fn account_at<S>(&self, store: &Arc<S>, number: u64, role: Role) -> SessionPrincipal
    where
        S: RowStore + 'static,
    {
        let (account, session) = (AccountId::from_bytes(bytes(self.next())), SessionId::from_bytes(bytes(self.next())));
        self.enter(store, account, session, role, number).await;
        SessionPrincipal { organization: self.organization, account, session, role, version: 1 }
    }

    async fn enter<S>(&self, store: &Arc<S>, account: AccountId, session: SessionId, role: Role, number: u64)
    where
        S: RowStore + 'static,
    {
        let grant = AccountRights {
            account,
            organization: self.organization,
            email: address(number),
            role,
            state: AccountState::Active,
        };
        let (secrets, recovery_codes) = (secrets(account), vec![RECOVERY_CODE]);
        let payload = CreateAccount { grant: grant.clone(), secrets, recovery_codes };
        self.operate(store, &Principal::Operator, payload).await.unwrap();
        let login = self.login(grant, session, PasscodeProof::Step(TimeStep(1)));
        assert_eq!(self.finish(store, login).await.unwrap(), AttemptOutcome::Completed);
    }

    /// Returns the login of an account of this world.
    pub(crate) fn login(&self, grant: AccountRights, session: SessionId, passcode: PasscodeProof) -> FinishAttempt {
        let effect = ProofEffect::Session(NewSession {
            id: session,
            created_at: self.now(),
            expires_at: self.now().plus_seconds(3600),
            network: "192.0.2.0/24".to_owned(),
            client: None,
        });
        let proof = VerifiedProof { passcode, rehashed: None, effect };
        let account = Account::new(grant.clone(), secrets(grant.account).id, self.now());
        self.refusal(Some(account), VerifiedFactors::Proof(Box::new(proof)))
    }

    /// Returns the conclusion of an attempt with these factors.
    pub(crate) fn refusal(&self, reserved: Option<Account>, presented: VerifiedFactors) -> FinishAttempt {
        FinishAttempt { reserved, attempts: 1, presented, network: Digest::from_bytes([3; 32]), actor: Actor::Unknown }
    }

    /// Concludes an attempt.
    pub(crate) fn finish<S: RowStore + 'static>(
        &self,
        store: &Arc<S>,
        attempt: FinishAttempt,
    ) -> impl Future<Output = Result<AttemptOutcome, Error>> + Send + 'static + use<S> {
        self.running(store, Principal::Operator, attempt)
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    pub(crate) fn holder(&self) -> SessionPrincipal {
        SessionPrincipal {
            organization: self.organization,
            account: self.account,
            session: self.session,
            role: Role::Editor,
            version: 1,
        }
    }

    pub(crate) fn principal(&self) -> Principal {
        Principal::Session(self.holder())
    }

    /// Runs an operation.
    pub(crate) async fn operate<S: RowStore + 'static, O: Operation>(
        &self,
        store: &Arc<S>,
        principal: &Principal,
        operation: O,
    ) -> Result<O::Outcome, Error> {
        self.running(store, principal.clone(), operation).await
    }

    /// Returns a run of an operation that borrows nothing.
    pub(crate) fn running<S: RowStore + 'static, O: Operation>(
        &self,
        store: &Arc<S>,
        principal: Principal,
        operation: O,
    ) -> impl Future<Output = Result<O::Outcome, Error>> + Send + 'static + use<S, O> {
        self.running_at(self.now(), store, principal, operation)
    }

    /// Returns a run of an operation at `now`.
    pub(crate) fn running_at<S: RowStore + 'static, O: Operation>(
        &self,
        now: Timestamp,
        store: &Arc<S>,
        principal: Principal,
        operation: O,
    ) -> impl Future<Output = Result<O::Outcome, Error>> + Send + 'static + use<S, O> {
        let (keys, ids) = (Arc::new(FakeDigester::default()), Arc::new(SequentialIds::seeded(self.next())));
        let credentials = Arc::new(PlainSealer::new(ids.clone()));
        let operations = Operations::new(Arc::clone(store) as Arc<dyn RowStore>, keys.clone(), credentials, keys);
        let environment = Environment {
            clock: Arc::new(now),
            ids,
            events: Arc::new(RecordingEvents::default()),
            audit: Arc::new(FakeAuditSealer),
            awaited: Arc::default(),
            origin: Origin::default(),
        };
        async move { operations.run(&environment, &principal, operation).await }
    }

    pub(crate) fn list(&self, limit: usize) -> CredentialQuery {
        let (organization, filter) = (self.organization, ListFilter::default());
        CredentialQuery { organization, filter, labels: Vec::new(), after: None, limit }
    }

    /// Lists credentials.
    pub(crate) async fn listed<S: RowStore + 'static>(
        &self,
        store: &Arc<S>,
        query: CredentialQuery,
    ) -> Result<Vec<OpenedCredential>, Error> {
        Ok(self.operate(store, &self.principal(), opening(query)).await?.credentials)
    }

    /// Ends the session.
    pub(crate) async fn log_out<S: RowStore + 'static>(&self, store: &Arc<S>) {
        let end = EndSession { organization: self.organization, session: self.session };
        assert!(self.operate(store, &self.principal(), end).await.unwrap());
    }

    pub(crate) fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn audit(&self, actor: Actor, action: AuditAction, subject: Subject) -> SealedAuditRecord {
        let record = AuditRecord {
            id: AuditId::from_bytes(bytes(self.next())),
            at: self.now(),
            organization: Some(self.organization),
            actor,
            action,
            subject,
            count: 1,
            note: None,
            origin: Origin::default(),
            rows: Vec::new(),
            changes: Vec::new(),
        };
        SealedAuditRecord { record, key: FakeAuditSealer::KEY, mac: Digest::from_bytes([4; 32]) }
    }

    /// Returns the operation that saves another credential.
    pub(crate) fn save(&self) -> SaveCredential {
        let number = self.next();
        SaveCredential {
            organization: self.organization,
            id: CredentialId::from_bytes(bytes(number)),
            // A save uses two numbers: its own and that of its environment.
            namespace: namespace(number / 2),
            vend: VendRule::Any,
            metadata: Metadata::default(),
            new: new_data(number),
            limit: 10_000_000,
        }
    }

    /// Returns the operation that replaces the data of a credential at this revision.
    pub(crate) fn replace(&self, id: CredentialId, revision: i64) -> ChangeCredential {
        ChangeCredential {
            organization: self.organization,
            id,
            revision: Some(revision),
            edit: CredentialEdit::Replace { kind: CredentialType::DirectLink, expires_at: None },
            new: Some(new_data(self.next())),
            limits: VersionLimits::default(),
        }
    }

    /// Returns a run of an operation of the account.
    pub(crate) fn by_account<S: RowStore + 'static, O: Operation>(
        &self,
        store: &Arc<S>,
        operation: O,
    ) -> impl Future<Output = Result<O::Outcome, Error>> + Send + 'static + use<S, O> {
        self.running(store, self.principal(), operation)
    }

    /// Saves another credential.
    pub(crate) async fn saved<S: RowStore + 'static>(&self, store: &Arc<S>) -> Result<CredentialId, Error> {
        self.by_account(store, self.save()).await
    }
}

/// Returns data of a version, different for each number.
pub(crate) fn new_data(number: u64) -> NewData {
    let json = format!(r#"{{"url":"https://files.example/{number}"}}"#);
    let data = CredentialData::from_json(CredentialType::DirectLink, json.as_bytes()).unwrap();
    let (id, json) = (VersionId::from_bytes(bytes(number)), data.to_canonical_json());
    NewData { id, data, json, check: None, idempotency: None }
}
