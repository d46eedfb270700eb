//! Every use case of a service, and people that use it.

use secrecy::SecretString;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, InstanceId};
use vault_core::network::Network;
use vault_core::passcode::{PasscodeSecret, TimeStep};
use vault_core::port::{Clock, Event};
use vault_core::principal::SessionPrincipal;
use vault_core::role::Role;
use vault_core::time::Timestamp;
use vault_core::usecase::*;
use vault_testkit::clock::{ManualClock, RecordingEvents, SeededEntropy, SequentialIds};
use vault_testkit::crypto::{FakeAuditSealer, FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainSealer};
use vault_testkit::memory::MemoryStore;

const INSTANCE: InstanceId = InstanceId::from_bytes([1; 16]);
pub(crate) const PASSWORD: &str = "correct horse battery staple";

pub(crate) struct Service {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) events: Arc<RecordingEvents>,
    pub(crate) hasher: Arc<FakeHasher>,
    ids: Arc<SequentialIds>,
    tokens: Arc<FakeTokens>,
    ambient: Ambient,
    digester: Arc<FakeDigester>,
    passcodes: Arc<FakePasscodes>,
    owner: ProveOwner,
}

/// Somebody with an account, and what they know.
pub(crate) struct Person {
    pub(crate) account: AccountId,
    pub(crate) email: EmailAddress,
    pub(crate) password: String,
    pub(crate) secret: String,
    pub(crate) recovery_codes: Vec<SecretString>,
}

impl Service {
    pub(crate) async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(ManualClock::default());
        let ids = Arc::new(SequentialIds::default());
        let events = Arc::new(RecordingEvents::default());
        let digester = Arc::new(FakeDigester::default());
        let hasher = Arc::new(FakeHasher::default());
        let passcodes = Arc::new(FakePasscodes::new(ids.clone(), digester.clone()));
        let ambient = Ambient {
            clock: clock.clone(),
            ids: ids.clone(),
            events: events.clone(),
            audit: Arc::new(FakeAuditSealer),
        };
        let owner = ProveOwner {
            ambient: ambient.clone(),
            tally: Arc::new(AuditTally::new(ambient.clone(), store.clone())),
            guard: store.clone(),
            hasher: hasher.clone(),
            passcodes: passcodes.clone(),
            digester: digester.clone(),
        };
        let tokens = Arc::new(FakeTokens::new(INSTANCE));
        let service = Self { store, clock, events, hasher, ids, tokens, ambient, digester, passcodes, owner };
        for name in ["Acme", "Other"] {
            service.organization(name).await;
        }
        service
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn organization(&self, name: &str) {
        self.operator().create_organization(name).await.unwrap();
    }

    pub(crate) fn operator(&self) -> Operator {
        let sealer = Arc::new(PlainSealer::new(self.store.clone(), self.ids.clone()));
        let tally = Arc::new(AuditTally::new(self.ambient.clone(), self.store.clone()));
        Operator::new(self.ambient.clone(), tally, self.store.clone(), sealer)
    }

    pub(crate) fn create_account(&self) -> CreateAccountUseCase {
        CreateAccountUseCase {
            ambient: self.ambient.clone(),
            entropy: Arc::new(SeededEntropy::default()),
            hasher: self.hasher.clone(),
            passcodes: self.passcodes.clone(),
            digester: self.digester.clone(),
            organizations: self.store.clone(),
            accounts: self.store.clone(),
        }
    }

    pub(crate) fn change(&self) -> ChangeAccountUseCase {
        ChangeAccountUseCase {
            ambient: self.ambient.clone(),
            hasher: self.hasher.clone(),
            passcodes: self.passcodes.clone(),
            digester: self.digester.clone(),
            organizations: self.store.clone(),
            accounts: self.store.clone(),
            invitations: self.store.clone(),
        }
    }

    pub(crate) fn list(&self) -> ListAccountsUseCase {
        ListAccountsUseCase::new(self.ambient.clone(), self.store.clone())
    }

    /// Invites with codes that no other value of `seed` gives.
    pub(crate) fn invite(&self, seed: u64) -> Invite {
        Invite {
            ambient: self.ambient.clone(),
            entropy: Arc::new(SeededEntropy::seeded(seed)),
            digester: self.digester.clone(),
            organizations: self.store.clone(),
            invitations: self.store.clone(),
        }
    }

    pub(crate) fn enrol(&self) -> Enrol {
        Enrol {
            ambient: self.ambient.clone(),
            hasher: self.hasher.clone(),
            passcodes: self.passcodes.clone(),
            digester: self.digester.clone(),
            invitations: self.store.clone(),
        }
    }

    pub(crate) fn confirm_enrolment(&self) -> ConfirmEnrolmentUseCase {
        ConfirmEnrolmentUseCase {
            ambient: self.ambient.clone(),
            passcodes: self.passcodes.clone(),
            digester: self.digester.clone(),
            invitations: self.store.clone(),
        }
    }

    pub(crate) fn own_account(&self) -> ShowOwnAccount {
        ShowOwnAccount::new(self.ambient.clone(), self.store.clone())
    }

    pub(crate) fn sessions(&self) -> OwnSessions {
        OwnSessions::new(self.ambient.clone(), self.store.clone())
    }

    pub(crate) fn change_password(&self) -> ChangePassword {
        ChangePassword { owner: self.owner.clone(), accounts: self.store.clone() }
    }

    pub(crate) fn replace_passcode(&self) -> ReplacePasscode {
        ReplacePasscode { owner: self.owner.clone(), accounts: self.store.clone() }
    }

    pub(crate) fn confirm_passcode(&self) -> ConfirmPasscodeUseCase {
        ConfirmPasscodeUseCase {
            ambient: self.ambient.clone(),
            passcodes: self.passcodes.clone(),
            log: self.store.clone(),
            accounts: self.store.clone(),
        }
    }

    pub(crate) fn replace_recovery_codes(&self) -> ReplaceRecoveryCodes {
        ReplaceRecoveryCodes { owner: self.owner.clone(), accounts: self.store.clone() }
    }

    /// Somebody for whom an operator made an account in the organization.
    pub(crate) async fn person(&self, organization: &str, name: &str, role: Role) -> Person {
        let request = CreateAccountRequest {
            organization: organization.to_owned(),
            email: format!("{name}@example.com"),
            role,
            password: Some(PASSWORD.into()),
        };
        let made = self.create_account().run(request).await.unwrap();
        Person {
            account: made.grant.account,
            email: made.grant.email,
            password: PASSWORD.to_owned(),
            secret: exposed(&made.passcode),
            recovery_codes: made.recovery_codes.into_iter().map(|code| code.0).collect(),
        }
    }

    /// A code of the seed that was shown as `secret`, as an authenticator makes it at this moment.
    pub(crate) fn code(&self, secret: &str) -> SecretString {
        FakePasscodes::shown_by_authenticator(secret, TimeStep::at(self.clock.now())).unwrap().into()
    }

    /// What the person brings to prove to be here, in a time step of its own.
    pub(crate) fn proof(&self, person: &Person) -> OwnerProof {
        self.clock.advance_seconds(TimeStep::SECONDS);
        OwnerProof {
            password: person.password.as_str().into(),
            passcode: self.code(&person.secret),
            network: network(),
        }
    }

    pub(crate) async fn try_log_in(&self, email: &str, proof: OwnerProof) -> Result<SessionPrincipal, LogInError> {
        let OwnerProof { password, passcode, network } = proof;
        let log_in =
            LogIn { instance: INSTANCE, max_ttl: 86_400, owner: self.owner.clone(), tokens: self.tokens.clone() };
        let request = LogInRequest { email: email.to_owned(), password, passcode, ttl: Some(86_400), network };
        let token = log_in.run(request).await?.token;
        let authenticate = Authenticate::new(self.tokens.clone(), self.clock.clone());
        // Only to read it back.
        Ok(authenticate.run(secrecy::ExposeSecret::expose_secret(&token.0)).unwrap())
    }

    pub(crate) async fn log_in(&self, person: &Person) -> SessionPrincipal {
        let proof = self.proof(person);
        self.try_log_in(person.email.as_str(), proof).await.unwrap()
    }

    /// Whether the session may still act.
    pub(crate) async fn lives(&self, session: &SessionPrincipal) -> bool {
        self.own_account().run(session).await.is_ok()
    }

    /// How often `action` is recorded, and by whom the last time.
    pub(crate) fn audited(&self, action: AuditAction) -> (usize, Option<Actor>) {
        let records: Vec<_> = self.store.audit().into_iter().filter(|record| record.action == action).collect();
        (records.len(), records.last().map(|record| record.actor))
    }

    pub(crate) fn saw_damage(&self, table: &str) -> bool {
        let events = self.events.events();
        events.iter().any(|event| matches!(event, Event::IntegrityFailure { table: found, .. } if *found == table))
    }
}

pub(crate) fn network() -> Network {
    Network::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)))
}

/// The secret as its owner types it into an authenticator.
pub(crate) fn exposed(passcode: &PasscodeSecret) -> String {
    secrecy::ExposeSecret::expose_secret(&passcode.secret).to_owned()
}
