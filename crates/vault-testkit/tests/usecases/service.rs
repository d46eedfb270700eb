//! All use cases of a service, and its users.

use super::work::{Noted, Work};
use secrecy::SecretString;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
use std::sync::Arc;
use vault_core::Error;
use vault_core::audit::{Actor, AuditAction};
use vault_core::email::EmailAddress;
use vault_core::id::{AccountId, OrganizationId};
use vault_core::network::Network;
use vault_core::passcode::{PasscodeSecret, TimeStep};
use vault_core::port::{Clock, Event, TokenIssuer as _};
use vault_core::principal::{Principal, SessionPrincipal};
use vault_core::role::Role;
use vault_core::session::SessionClaims;
use vault_core::time::Timestamp;
use vault_core::usecase::*;
use vault_testkit::crypto::{FakeAuditSealer, FakePasscodes};
use vault_testkit::fake::FakeVault;

pub(crate) const PASSWORD: &str = "correct horse battery staple";

pub(crate) struct Service {
    fake: FakeVault,
    /// Records the crypto operations of the account use cases.
    pub(crate) work: Arc<Work>,
    pub(crate) accounts: Accounts,
}

impl Deref for Service {
    type Target = FakeVault;

    fn deref(&self) -> &FakeVault {
        &self.fake
    }
}

/// A user with an account, and the secrets of the user.
pub(crate) struct Person {
    pub(crate) account: AccountId,
    pub(crate) email: EmailAddress,
    pub(crate) password: String,
    pub(crate) secret: String,
}

impl Service {
    pub(crate) async fn new() -> Self {
        let (mut fake, work) = (FakeVault::new(), Arc::new(Work::default()));
        fake.environment.audit = Noted::new(FakeAuditSealer, &work);
        fake.tally = Arc::new(AuditTally::new(fake.environment.clone(), fake.operations()));
        let ports = AccountPorts {
            hasher: Noted::new(fake.hasher.clone(), &work),
            passcodes: Noted::new(fake.passcodes.clone(), &work),
            digester: Noted::new(fake.digester.clone(), &work),
            ..fake.account_ports()
        };
        let service = Self { accounts: Accounts::new(FakeVault::INSTANCE, ports), fake, work };
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

    /// A user with access to the host.
    pub(crate) const OPERATOR: Principal = Principal::Operator;

    /// Returns the organization with this name.
    pub(crate) async fn organization_named(&self, name: &str) -> OrganizationId {
        self.operator().organization(name).await.unwrap().id
    }

    /// Invites a user as the session's admin.
    pub(crate) async fn invites(&self, session: &SessionPrincipal, email: &str, role: Role) -> Result<Invited, Error> {
        self.accounts.invite(&session.clone().into(), session.organization, email, role).await
    }

    /// Changes an account as the session's admin.
    pub(crate) async fn as_admin(
        &self,
        session: &SessionPrincipal,
        account: AccountId,
        command: AccountCommand,
    ) -> Result<ChangedAccount, Error> {
        let account = AccountRef::Id(session.organization, account);
        self.accounts.change(&session.clone().into(), account, command).await
    }

    pub(crate) async fn as_operator(&self, email: &str, command: AccountCommand) -> Result<ChangedAccount, Error> {
        self.accounts.change(&Self::OPERATOR, AccountRef::email(email), command).await
    }

    /// Creates a user with an account in the organization, as an operator.
    pub(crate) async fn person(&self, organization: &str, name: &str, role: Role) -> Person {
        let request = CreateAccountRequest {
            organization: self.organization_named(organization).await,
            email: format!("{name}@example.com"),
            role,
            password: Some(PASSWORD.into()),
        };
        let created = self.accounts.create(request).await.unwrap();
        Person {
            account: created.grant.account,
            email: created.grant.email,
            password: PASSWORD.to_owned(),
            secret: exposed(&created.passcode),
        }
    }

    /// Returns the current code of an authenticator with `secret`.
    pub(crate) fn code(&self, secret: &str) -> SecretString {
        FakePasscodes::shown_by_authenticator(secret, TimeStep::at(self.clock.now())).unwrap().into()
    }

    /// Returns the user's re-authentication, in a separate time step.
    pub(crate) fn proof(&self, person: &Person) -> OwnerProof {
        self.clock.advance_seconds(TimeStep::SECONDS);
        OwnerProof {
            password: person.password.as_str().into(),
            passcode: self.code(&person.secret),
            network: network(),
        }
    }

    pub(crate) async fn try_log_in(&self, email: &str, proof: OwnerProof) -> Result<SessionPrincipal, Error> {
        let OwnerProof { password, passcode, network } = proof;
        let (email, client) = (email.to_owned(), Some("a client".to_owned()));
        let request = LogInRequest { email, password, passcode, ttl: Some(86_400), network, client };
        let token = self.accounts.log_in(request).await?.token;
        // Authenticate only to read it back.
        Ok(self.accounts.authenticate(secrecy::ExposeSecret::expose_secret(&token.0)).unwrap())
    }

    pub(crate) async fn log_in(&self, person: &Person) -> SessionPrincipal {
        let proof = self.proof(person);
        self.try_log_in(person.email.as_str(), proof).await.unwrap()
    }

    /// Makes a request with the session's token.
    pub(crate) fn used(&self, session: &SessionPrincipal) {
        let claims = SessionClaims {
            instance: FakeVault::INSTANCE,
            session: session.session,
            account: session.account,
            organization: session.organization,
            role: session.role,
            version: session.version,
            issued_at: self.now(),
            expires_at: self.now().plus_seconds(60),
        };
        let token = self.tokens.issue(&claims).unwrap();
        assert_eq!(&self.accounts.authenticate(secrecy::ExposeSecret::expose_secret(&token.0)).unwrap(), session);
    }

    /// Returns how many passwords were verified against an account's own verifier.
    pub(crate) fn evaluations(&self) -> usize {
        self.events.events().iter().filter(|event| **event == Event::PasswordEvaluated).count()
    }

    /// Returns `true` if the session is still authorized.
    pub(crate) async fn lives(&self, session: &SessionPrincipal) -> bool {
        self.accounts.own(session).await.is_ok()
    }

    /// Returns how often `action` is recorded, and the actor of the latest record.
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

/// Returns the secret as the user types it into an authenticator.
pub(crate) fn exposed(passcode: &PasscodeSecret) -> String {
    secrecy::ExposeSecret::expose_secret(&passcode.secret).to_owned()
}
