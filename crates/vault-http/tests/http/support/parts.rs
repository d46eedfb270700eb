//! The use cases over fakes.

use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::id::InstanceId;
use vault_core::port::CredentialRepository;
use vault_core::usecase::{
    Ambient, AuditTally, Authenticate, ChangeAccountUseCase, ChangePassword, ConfirmEnrolmentUseCase,
    ConfirmPasscodeUseCase, DeleteCredentialUseCase, Enrol, Invite, ListAccountsUseCase, ListCredentialsUseCase, LogIn,
    LogOut, OwnSessions, ProveOwner, ReplacePasscode, ReplaceRecoveryCodes, SaveCredentialUseCase,
    ShowCredentialUseCase, ShowOwnAccount,
};
use vault_http::{AccountParts, OwnAccountParts, ServerParts};
use vault_testkit::clock::SeededEntropy;
use vault_testkit::crypto::{FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainSealer};
use vault_testkit::memory::MemoryStore;

/// What the use cases are made of.
pub(super) struct Fakes {
    pub(super) runtime: Handle,
    pub(super) instance: InstanceId,
    pub(super) ambient: Ambient,
    pub(super) tally: Arc<AuditTally>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) credentials: Arc<dyn CredentialRepository>,
    pub(super) limit: i64,
    pub(super) hasher: Arc<FakeHasher>,
    pub(super) passcodes: Arc<FakePasscodes>,
    pub(super) digester: Arc<FakeDigester>,
    pub(super) sealer: Arc<PlainSealer>,
    pub(super) tokens: Arc<FakeTokens>,
}

impl Fakes {
    pub(super) fn parts(&self) -> ServerParts {
        let ambient = &self.ambient;
        ServerParts {
            runtime: self.runtime.clone(),
            authenticate: Arc::new(Authenticate::new(self.tokens.clone(), ambient.clock.clone())),
            log_in: Arc::new(LogIn {
                instance: self.instance,
                max_ttl: 86_400,
                owner: self.owner(),
                tokens: self.tokens.clone(),
            }),
            log_out: Arc::new(LogOut::new(ambient.clone(), self.store.clone())),
            save: Arc::new(SaveCredentialUseCase {
                limit: self.limit,
                ambient: ambient.clone(),
                sealer: self.sealer.clone(),
                digester: self.digester.clone(),
                credentials: self.credentials.clone(),
            }),
            list: Arc::new(ListCredentialsUseCase {
                ambient: ambient.clone(),
                tally: self.tally.clone(),
                opener: self.sealer.clone(),
                digester: self.digester.clone(),
                credentials: self.credentials.clone(),
            }),
            show: Arc::new(ShowCredentialUseCase {
                ambient: ambient.clone(),
                tally: self.tally.clone(),
                opener: self.sealer.clone(),
                credentials: self.credentials.clone(),
            }),
            delete: Arc::new(DeleteCredentialUseCase::new(ambient.clone(), self.credentials.clone())),
            accounts: self.accounts(),
            own_account: self.own_account(),
            ids: ambient.ids.clone(),
            readiness: Arc::new(|| Box::pin(std::future::ready(true))),
        }
    }

    fn owner(&self) -> ProveOwner {
        ProveOwner {
            ambient: self.ambient.clone(),
            tally: self.tally.clone(),
            guard: self.store.clone(),
            hasher: self.hasher.clone(),
            passcodes: self.passcodes.clone(),
            digester: self.digester.clone(),
        }
    }

    fn accounts(&self) -> AccountParts {
        AccountParts {
            list: Arc::new(ListAccountsUseCase::new(self.ambient.clone(), self.store.clone())),
            invite: Arc::new(Invite {
                ambient: self.ambient.clone(),
                entropy: Arc::new(SeededEntropy::default()),
                digester: self.digester.clone(),
                organizations: self.store.clone(),
                invitations: self.store.clone(),
            }),
            change: Arc::new(ChangeAccountUseCase {
                ambient: self.ambient.clone(),
                hasher: self.hasher.clone(),
                passcodes: self.passcodes.clone(),
                digester: self.digester.clone(),
                organizations: self.store.clone(),
                accounts: self.store.clone(),
                invitations: self.store.clone(),
            }),
            enrol: Arc::new(Enrol {
                ambient: self.ambient.clone(),
                hasher: self.hasher.clone(),
                passcodes: self.passcodes.clone(),
                digester: self.digester.clone(),
                invitations: self.store.clone(),
            }),
            confirm_enrolment: Arc::new(ConfirmEnrolmentUseCase {
                ambient: self.ambient.clone(),
                passcodes: self.passcodes.clone(),
                digester: self.digester.clone(),
                invitations: self.store.clone(),
            }),
        }
    }

    fn own_account(&self) -> OwnAccountParts {
        OwnAccountParts {
            show: Arc::new(ShowOwnAccount::new(self.ambient.clone(), self.store.clone())),
            sessions: Arc::new(OwnSessions::new(self.ambient.clone(), self.store.clone())),
            change_password: Arc::new(ChangePassword { owner: self.owner(), accounts: self.store.clone() }),
            replace_passcode: Arc::new(ReplacePasscode { owner: self.owner(), accounts: self.store.clone() }),
            confirm_passcode: Arc::new(ConfirmPasscodeUseCase {
                ambient: self.ambient.clone(),
                passcodes: self.passcodes.clone(),
                log: self.store.clone(),
                accounts: self.store.clone(),
            }),
            replace_recovery_codes: Arc::new(ReplaceRecoveryCodes {
                owner: self.owner(),
                accounts: self.store.clone(),
            }),
        }
    }
}
