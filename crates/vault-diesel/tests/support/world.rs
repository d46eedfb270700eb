//! An organization with one account and one session, and commands that save credentials in it.

use secrecy::SecretString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vault_core::account::{Account, AccountRights, AccountSecrets, AccountState, CreateAccount};
use vault_core::activation::VendRule;
use vault_core::audit::{Actor, AuditAction, AuditRecord, Origin, SealedAuditRecord, Subject};
use vault_core::credential::{
    ChangeCredential, CredentialType, ListCredentials, NewVersion, SaveCredential, VersionEffects,
};
use vault_core::cursor::ListFilter;
use vault_core::digest::Digest;
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, AuditId, CredentialId, KeyId, OrganizationId, SecretsId, SessionId, VersionId};
use vault_core::login::{AttemptOutcome, FinishAttempt, ProofEffect, VerifiedFactors, VerifiedProof};
use vault_core::namespace::Namespace;
use vault_core::operation::{Operation, Operations};
use vault_core::organization::{CreateOrganization, Organization, OrganizationName, OrganizationState};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{RowStore, StoredCredential};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::sealed::{Blob, KeyState, OrganizationKeyRecord, OrganizationKeys, SealedData};
use vault_core::session::{EndSession, NewSession};
use vault_core::time::Timestamp;
use vault_core::usecase::Environment;
use vault_core::{Command, Error};
use vault_testkit::clock::{RecordingEvents, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester};

const NAMESPACES: u64 = 16;

pub(crate) struct World {
    pub(crate) organization: OrganizationId,
    pub(crate) account: AccountId,
    pub(crate) session: SessionId,
    pub(crate) key: KeyId,
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
            key: KeyId::from_bytes(bytes(first + 4)),
            counter: AtomicU64::new(first + 100),
        };
        let organization = Organization {
            id: world.organization,
            name: OrganizationName::parse(&format!("World {number}")).unwrap(),
            state: OrganizationState::Active,
            created_at: world.now(),
        };
        let keys = OrganizationKeys {
            fingerprint_key: KeyId::from_bytes(bytes(first + 5)),
            fingerprint_wrapped: Blob::from_bytes(vec![2; 78]),
            keys: vec![OrganizationKeyRecord {
                organization: world.organization,
                id: world.key,
                state: KeyState::Active,
                wrapped: Blob::from_bytes(vec![2; 78]),
                uses: 0,
                created_at: world.now(),
            }],
        };
        world.operate(shared, &Principal::Operator, CreateOrganization { organization, keys }).await.unwrap();
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
        let keys = Arc::new(FakeDigester::default());
        let operations =
            Operations { store: Arc::clone(store) as Arc<dyn RowStore>, sealer: keys.clone(), digester: keys };
        let environment = Environment {
            clock: Arc::new(now),
            ids: Arc::new(SequentialIds::seeded(self.next())),
            events: Arc::new(RecordingEvents::default()),
            audit: Arc::new(FakeAuditSealer),
            awaited: Arc::default(),
            origin: Origin::default(),
        };
        async move { operations.run(&environment, &principal, operation).await }
    }

    pub(crate) fn list(&self, limit: usize) -> ListCredentials {
        let (organization, filter) = (self.organization, ListFilter::default());
        ListCredentials { organization, filter, labels: Vec::new(), after: None, limit }
    }

    /// Lists credentials.
    pub(crate) async fn listed<S: RowStore + 'static>(
        &self,
        store: &Arc<S>,
        query: ListCredentials,
    ) -> Result<Vec<StoredCredential>, Error> {
        Ok(self.operate(store, &self.principal(), query).await?.rows)
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
        SealedAuditRecord { record, key: self.key, code: Digest::from_bytes([4; 32]) }
    }

    pub(crate) fn save(&self) -> Command<SaveCredential> {
        let number = self.next();
        let id = CredentialId::from_bytes(bytes(number));
        let payload = SaveCredential {
            organization: self.organization,
            id,
            kind: CredentialType::S3,
            // A save uses two numbers: its own and that of its audit record.
            namespace: namespace(number / 2),
            vend: VendRule::Any,
            expires_at: None,
            key: self.key,
            card: Blob::from_bytes(vec![3; 302]),
            version: version(1),
            labels: Vec::new(),
            limit: 10_000_000,
        };
        let actor = Actor::Account(self.account, self.session);
        let audit = self.audit(actor, AuditAction::CredentialSaved, Subject::Credential(id));
        Command { principal: self.principal(), now: self.now(), audit, payload }
    }

    /// Returns the command that replaces the data of a credential at this revision.
    pub(crate) fn replace(&self, id: CredentialId, revision: i64) -> Command<ChangeCredential> {
        let payload = ChangeCredential {
            organization: self.organization,
            id,
            revision,
            key: self.key,
            card: Blob::from_bytes(vec![4; 302]),
            current: revision + 1,
            version: Some(version(revision + 1)),
            effects: VersionEffects {
                destroyed: Vec::new(),
                moved: vec![(revision, Some(self.now().plus_seconds(3_600)))],
            },
            vend: VendRule::Any,
            expires_at: None,
            labels: None,
            action: AuditAction::CredentialReplaced,
            changes: Vec::new(),
        };
        let actor = Actor::Account(self.account, self.session);
        let audit = self.audit(actor, AuditAction::CredentialReplaced, Subject::Credential(id));
        Command { principal: self.principal(), now: self.now(), audit, payload }
    }
}

fn version(number: i64) -> NewVersion {
    let data = SealedData { data_key: Blob::from_bytes(vec![1; 78]), data: Blob::from_bytes(vec![2; 302]) };
    NewVersion { number, id: VersionId::from_bytes([7; 16]), data, check: None, idempotency: None }
}
