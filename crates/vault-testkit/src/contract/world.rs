//! An organization of a case's own, and the commands that cases give.

use super::tools::{address, blob, bucket, chance, name, namespace, principal_of};
use super::{ContractStore, Store};
use crate::clock::{ManualClock, SequentialIds};
use crate::crypto::{FakeAuditSealer, FakeDigester};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use vault_core::Command;
use vault_core::account::{Account, AccountGrant, AccountState};
use vault_core::audit::{Actor, AuditAction, AuditRecord, SealedAuditRecord, Subject};
use vault_core::credential::CredentialType;
use vault_core::cursor::ListFilter;
use vault_core::digest::{Digest, DigestPurpose};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, AuditId, CredentialId, KeyId, OrganizationId, SeedId, SessionId};
use vault_core::organization::{Organization, OrganizationName, OrganizationState};
use vault_core::passcode::{PasscodeProof, TimeStep};
use vault_core::port::{
    AccountChange, AuditSealer, ChangeAccount, ChangeAccountOutcome, Clock, CompleteProof, CompleteProofOutcome,
    CreateAccount, CreateAccountOutcome, CreateOrganization, DeleteCredential, EndSession, IdGenerator, KeyedDigester,
    ListCredentials, ProofEffect, ReplaceOrganizationKey, Reservation, ReserveAttempt, SaveCredential, SaveOutcome,
    SetOrganizationState, ShowCredential,
};
use vault_core::principal::{EmbedderPrincipal, Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::sealed::{
    KeyState, OrganizationKeyRecord, OrganizationKeys, SealedCredential, SealedPassword, SealedSeed,
};
use vault_core::session::NewSession;
use vault_core::time::Timestamp;

/// How long the sessions of cases last, in seconds: one hour.
pub(super) const SESSION_SECONDS: i64 = 3_600;
/// A limit that no case reaches by accident.
pub(super) const NO_LIMIT: i64 = 1_000_000;

/// One organization with a clock of its own. Nothing in it is shared with another case.
pub(super) struct World<'a> {
    suite: &'a dyn ContractStore,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: ManualClock,
    pub(super) ids: Arc<SequentialIds>,
    pub(super) organization: OrganizationId,
    /// The organization's first key.
    pub(super) key: KeyId,
    /// The name it was created with.
    pub(super) name: OrganizationName,
    steps: AtomicI64,
}

/// An account and what its owner knows.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    pub(super) grant: AccountGrant,
    pub(super) grant_digest: Digest,
    pub(super) address: Digest,
    pub(super) password: SealedPassword,
    /// As a new account has it; other facts about the password come from a reservation.
    pub(super) password_version: i64,
    pub(super) seed: SealedSeed,
    pub(super) recovery_codes: Vec<Digest>,
}

impl<'a> World<'a> {
    pub(super) async fn new(suite: &'a dyn ContractStore) -> Self {
        Self::at(suite, ManualClock::START).await
    }

    pub(super) async fn at(suite: &'a dyn ContractStore, now: Timestamp) -> Self {
        let (world, creation) = Self::prepare(suite, now);
        assert!(world.store.create_organization(creation).await.unwrap(), "a new name is free");
        world
    }

    /// A world and the command that makes its organization.
    pub(super) fn prepare(suite: &'a dyn ContractStore, now: Timestamp) -> (Self, CreateOrganization) {
        let ids = Arc::new(SequentialIds::seeded(chance()));
        let organization = OrganizationId::from_uuid(ids.ordered(now));
        let world = Self {
            suite,
            store: suite.ports(),
            clock: ManualClock::at(now),
            key: KeyId::from_uuid(ids.random()),
            name: name(&format!("Org {organization}")),
            ids,
            organization,
            steps: AtomicI64::new(0),
        };
        let creation = world.create_organization(world.organization, world.key, &world.name);
        (world, creation)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How often `action` is recorded in this organization.
    pub(super) async fn audited(&self, action: AuditAction) -> usize {
        self.audited_in(self.organization, action).await
    }

    pub(super) async fn audited_in(&self, organization: OrganizationId, action: AuditAction) -> usize {
        let actions = self.suite.audit_actions(organization).await;
        actions.iter().filter(|recorded| *recorded == action.as_str()).count()
    }

    /// How many entries this organization has.
    pub(super) async fn audit_length(&self) -> usize {
        self.suite.audit_actions(self.organization).await.len()
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
        })
    }

    // Organizations and keys

    pub(super) fn create_organization(
        &self,
        id: OrganizationId,
        key: KeyId,
        name: &OrganizationName,
    ) -> CreateOrganization {
        let now = self.now();
        CreateOrganization {
            organization: Organization { id, name: name.clone(), state: OrganizationState::Active, created_at: now },
            keys: OrganizationKeys {
                fingerprint_key: KeyId::from_uuid(self.ids.random()),
                fingerprint_wrapped: blob("fingerprint key"),
                keys: vec![self.organization_key(id, key)],
            },
            audit: self.audit_in(id, AuditAction::OrganizationCreated),
        }
    }

    pub(super) fn organization_key(&self, organization: OrganizationId, id: KeyId) -> OrganizationKeyRecord {
        let created_at = self.now();
        OrganizationKeyRecord {
            organization,
            id,
            state: KeyState::Active,
            wrapped: blob("organization key"),
            uses: 0,
            created_at,
        }
    }

    pub(super) async fn set_state(&self, state: OrganizationState) {
        let action = match state {
            OrganizationState::Active => AuditAction::OrganizationEnabled,
            OrganizationState::Disabled => AuditAction::OrganizationDisabled,
        };
        let command = SetOrganizationState { organization: self.organization, state, audit: self.audit(action) };
        assert!(self.store.set_organization_state(command).await.unwrap());
    }

    pub(super) fn replace_key(&self, current: KeyId) -> ReplaceOrganizationKey {
        ReplaceOrganizationKey {
            current,
            next: self.organization_key(self.organization, KeyId::from_uuid(self.ids.random())),
            audit: self.audit(AuditAction::OrganizationKeyReplaced),
        }
    }

    // Accounts

    pub(super) fn new_holder(&self, role: Role) -> Holder {
        let account = AccountId::from_uuid(self.ids.ordered(self.now()));
        let email = EmailAddress::parse(&format!("{account}@contract.example")).unwrap();
        let grant = AccountGrant { account, organization: self.organization, email, role, state: AccountState::Active };
        Holder {
            grant_digest: grant.digest(&FakeDigester::default()),
            address: address(grant.email.as_str()),
            grant,
            password: self.password(),
            password_version: 0,
            seed: self.seed(),
            recovery_codes: (0..10).map(|_| self.recovery_code()).collect(),
        }
    }

    pub(super) fn password(&self) -> SealedPassword {
        SealedPassword(blob(&format!("password {}", self.ids.random())))
    }

    pub(super) fn seed(&self) -> SealedSeed {
        let id = SeedId::from_uuid(self.ids.random());
        SealedSeed { id, blob: blob(&format!("seed {id}")) }
    }

    pub(super) fn recovery_code(&self) -> Digest {
        FakeDigester::default().digest(DigestPurpose::RecoveryCode, &[self.ids.random().as_bytes()])
    }

    pub(super) fn create_account(&self, holder: &Holder) -> CreateAccount {
        CreateAccount {
            grant: holder.grant.clone(),
            grant_digest: holder.grant_digest,
            address: holder.address,
            password: holder.password.clone(),
            seed: holder.seed.clone(),
            recovery_codes: holder.recovery_codes.clone(),
            created_at: self.now(),
            audit: self.audit(AuditAction::AccountCreated),
        }
    }

    pub(super) async fn holder(&self, role: Role) -> Holder {
        let mut holder = self.new_holder(role);
        let outcome = self.store.create_account(self.create_account(&holder)).await.unwrap();
        assert_eq!(outcome, CreateAccountOutcome::Created);
        // Where counting begins is the store's own; a reservation tells.
        let network = self.network();
        if let Reservation::Account(reserved) = self.reserve(&holder, network).await {
            holder.password_version = reserved.password_version;
        }
        self.change(&holder, AccountChange::Unlock).await;
        holder
    }

    pub(super) async fn read(&self, holder: &Holder) -> Account {
        self.account(holder.address).await.expect("the account is there")
    }

    pub(super) fn change_account(&self, holder: &Holder, version: i64, change: AccountChange) -> ChangeAccount {
        let action = match &change {
            AccountChange::Grant { .. } => AuditAction::AccountRoleChanged,
            AccountChange::Password(_) => AuditAction::AccountPasswordChanged,
            AccountChange::Passcode { .. } => AuditAction::AccountPasscodeReset,
            AccountChange::Unlock => AuditAction::AccountUnlocked,
            AccountChange::Delete => AuditAction::AccountDeleted,
        };
        let Holder { grant: AccountGrant { account, organization, .. }, .. } = *holder;
        ChangeAccount {
            authority: Principal::Operator,
            organization,
            account,
            version,
            change,
            now: self.now(),
            audit: self.audit_in(organization, action),
        }
    }

    pub(super) async fn change(&self, holder: &Holder, change: AccountChange) {
        let version = self.read(holder).await.version;
        let outcome = self.store.change_account(self.change_account(holder, version, change)).await.unwrap();
        assert_eq!(outcome, ChangeAccountOutcome::Changed);
    }

    // Logins

    pub(super) fn network(&self) -> Digest {
        FakeDigester::default().digest(DigestPurpose::Network, &[self.ids.random().as_bytes()])
    }

    pub(super) fn attempt(&self, address: Digest, network: Digest) -> ReserveAttempt {
        ReserveAttempt { address, bucket: bucket(7), network, now: self.now() }
    }

    pub(super) async fn reserve(&self, holder: &Holder, network: Digest) -> Reservation {
        self.store.reserve_attempt(self.attempt(holder.address, network)).await.unwrap()
    }

    /// A step that no login of this world has used.
    pub(super) fn fresh_step(&self) -> PasscodeProof {
        let ahead = self.steps.fetch_add(1, Ordering::SeqCst);
        PasscodeProof::Step(TimeStep(TimeStep::at(ManualClock::START).0 + ahead))
    }

    pub(super) fn complete_login(&self, holder: &Holder, network: Digest, proof: PasscodeProof) -> CompleteProof {
        let now = self.now();
        CompleteProof {
            grant: holder.grant.clone(),
            password_version: holder.password_version,
            seed: holder.seed.id,
            proof,
            network,
            rehashed: None,
            effect: ProofEffect::Session(NewSession {
                id: SessionId::from_uuid(self.ids.random()),
                created_at: now,
                expires_at: now.plus_seconds(SESSION_SECONDS),
                network: "192.0.2.0/24".to_owned(),
            }),
            now,
            audit: self.audit_in(holder.grant.organization, AuditAction::LoginSucceeded),
        }
    }

    pub(super) async fn log_in(&self, holder: &Holder) -> SessionPrincipal {
        self.log_in_from(holder, self.network()).await
    }

    pub(super) async fn log_in_from(&self, holder: &Holder, network: Digest) -> SessionPrincipal {
        let command = self.complete_login(holder, network, self.fresh_step());
        let principal = principal_of(&command);
        let outcome = self.store.complete_proof(command).await.unwrap();
        assert_eq!(outcome, CompleteProofOutcome::Completed);
        principal
    }

    pub(super) fn end_session(&self, principal: &SessionPrincipal) -> EndSession {
        let audit = self.audit_in(principal.organization, AuditAction::LoggedOut);
        EndSession { principal: principal.clone(), session: principal.session, now: self.now(), audit }
    }

    // Credentials

    /// A user of an embedding service, for cases in which it does not matter who acts.
    pub(super) fn embedder(&self) -> Principal {
        Principal::Embedder(EmbedderPrincipal {
            organization: self.organization,
            account: AccountId::from_uuid(self.ids.random()),
            role: Role::Editor,
        })
    }

    /// A command of `principal` in its organization.
    pub(super) fn command<A>(&self, principal: &Principal, action: AuditAction, act: A) -> Command<A> {
        let organization = principal.organization().unwrap_or(self.organization);
        Command { principal: principal.clone(), now: self.now(), audit: self.audit_in(organization, action), act }
    }

    pub(super) fn save(&self, principal: &Principal) -> Command<SaveCredential> {
        let id = CredentialId::from_uuid(self.ids.ordered(self.now()));
        let act = SaveCredential {
            organization: principal.organization().unwrap(),
            id,
            version: 1,
            kind: CredentialType::S3,
            namespace: namespace("contract"),
            sealed: SealedCredential {
                key: self.key,
                data_key: blob(&format!("data key of {id}")),
                data: blob(&format!("data of {id}")),
                information: blob(&format!("information on {id}")),
            },
            idempotency: None,
            limit: NO_LIMIT,
        };
        self.command(principal, AuditAction::CredentialSaved, act)
    }

    pub(super) async fn saved(&self, principal: &Principal) -> CredentialId {
        let command = self.save(principal);
        let id = command.act.id;
        assert_eq!(self.store.save_credential(command).await.unwrap(), SaveOutcome::Saved);
        id
    }

    pub(super) fn list(&self, principal: &Principal) -> ListCredentials {
        let organization = principal.organization().unwrap();
        let (principal, now) = (principal.clone(), self.now());
        ListCredentials { principal, organization, now, filter: ListFilter::default(), after: None, limit: 1_000 }
    }

    /// The ids on the page that `query` asks for.
    pub(super) async fn page(&self, query: ListCredentials) -> Vec<CredentialId> {
        let page = self.store.list_credentials(query).await.unwrap();
        page.into_iter().map(|row| row.id).collect()
    }

    pub(super) async fn listed(&self, principal: &Principal) -> Vec<CredentialId> {
        self.page(self.list(principal)).await
    }

    pub(super) fn show(&self, principal: &Principal, id: CredentialId) -> ShowCredential {
        let organization = principal.organization().unwrap();
        ShowCredential { principal: principal.clone(), organization, now: self.now(), id }
    }

    pub(super) fn delete(&self, principal: &Principal, id: CredentialId) -> Command<DeleteCredential> {
        let act = DeleteCredential { organization: principal.organization().unwrap(), id };
        self.command(principal, AuditAction::CredentialDeleted, act)
    }
}
