//! The use cases over fakes.

use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::id::InstanceId;
use vault_core::port::{CredentialStore, StorageProbe};
use vault_core::usecase::{
    Activations, Ambient, AuditTally, Authenticate, ChangeAccountUseCase, ChangePassword, ConfirmEnrolmentUseCase,
    ConfirmPasscodeUseCase, Enrol, Integrations, Invite, ListAccountsUseCase, LogIn, LogOut, OwnSessions, ProveOwner,
    ReplacePasscode, ReplaceRecoveryCodes, ShowOwnAccount, Vault,
};
use vault_http::{AccountParts, ActivationParts, OwnAccountParts, Readiness, ServerParts};
use vault_testkit::clock::SeededEntropy;
use vault_testkit::crypto::{FakeDigester, FakeHasher, FakePasscodes, FakeTokens, PlainSealer};
use vault_testkit::memory::MemoryStore;
use vault_testkit::storage::FakeStorage;

/// What the use cases are made of.
pub(super) struct Fakes {
    pub(super) runtime: Handle,
    pub(super) instance: InstanceId,
    pub(super) ambient: Ambient,
    pub(super) tally: Arc<AuditTally>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) credentials: Arc<dyn CredentialStore>,
    pub(super) limit: i64,
    pub(super) hasher: Arc<FakeHasher>,
    pub(super) passcodes: Arc<FakePasscodes>,
    pub(super) digester: Arc<FakeDigester>,
    pub(super) sealer: Arc<PlainSealer>,
    pub(super) tokens: Arc<FakeTokens>,
    pub(super) entropy: Arc<SeededEntropy>,
    pub(super) storage: Arc<FakeStorage>,
    /// Whether a save may be tried out first.
    pub(super) verifies: bool,
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
            vault: Vault::new(
                ambient.clone(),
                self.tally.clone(),
                self.credentials.clone(),
                self.sealer.clone(),
                self.sealer.clone(),
                self.digester.clone(),
            )
            .limit(self.limit)
            .probe(self.verifies.then(|| self.storage.clone() as Arc<dyn StorageProbe>)),
            accounts: self.accounts(),
            own_account: self.own_account(),
            integrations: self.integrations(),
            ids: ambient.ids.clone(),
            readiness: Readiness::new(|| std::future::ready(true)),
        }
    }

    pub(super) fn integrations(&self) -> Integrations {
        let (entropy, digester) = (self.entropy.clone(), self.digester.clone());
        Integrations::new(self.ambient.clone(), self.store.clone(), entropy, digester)
    }

    pub(super) fn activation(&self) -> ActivationParts {
        let (store, opener, digester) = (self.store.clone(), self.sealer.clone(), self.digester.clone());
        ActivationParts {
            runtime: self.runtime.clone(),
            activations: Activations::new(self.ambient.clone(), self.tally.clone(), store, opener, digester)
                .vendor(Some(self.storage.clone()))
                .probe(Some(self.storage.clone())),
            ids: self.ambient.ids.clone(),
            readiness: Readiness::new(|| std::future::ready(true)),
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
