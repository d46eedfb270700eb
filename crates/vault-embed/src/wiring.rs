//! Every operation, made of the ports of an open vault: the one place where they are put together.
//!
//! What opens the data of credentials is an argument of those that need it: an [`OpenVault`] has none to give.

use crate::vault::OpenVault;
use std::sync::Arc;
use vault_core::port::{CredentialVendor, Opener, StorageProbe};
use vault_core::usecase::{
    Activate, Authenticate, AuthenticateIntegration, ChangeAccountUseCase, ChangeIntegrationUseCase, ChangePassword,
    CheckNamespace, ConfirmEnrolmentUseCase, ConfirmPasscodeUseCase, CreateAccountUseCase, CreateIntegrationUseCase,
    Enrol, FreezeNamespaceUseCase, Invite, ListAccountsUseCase, ListIntegrationsUseCase, LogIn, LogOut, OpenNamespace,
    Operator, OwnActivations, OwnSessions, ProveOwner, ReadPasscode, ReplacePasscode, ReplaceRecoveryCodes,
    ShowOwnAccount, Vault,
};

/// Credentials.
impl OpenVault {
    /// Saves, lists, shows and deletes credentials, with the default limit and without a probe.
    pub fn vault(&self) -> Vault {
        let ports = &self.ports;
        Vault::new(
            ports.ambient.clone(),
            self.tally.clone(),
            ports.store.credentials.clone(),
            ports.sealer.clone(),
            ports.information_opener.clone(),
            ports.digester.clone(),
        )
    }
}

/// Operators.
impl OpenVault {
    /// Creates and changes organizations, and keeps the store small.
    pub fn operator(&self) -> Operator {
        let ports = &self.ports;
        Operator::new(ports.ambient.clone(), self.tally.clone(), ports.store.operator.clone(), ports.sealer.clone())
    }
}

/// Logging in and out, and accounts as their owners see them.
impl OpenVault {
    /// Verifies access tokens.
    pub fn authenticate(&self) -> Authenticate {
        Authenticate::new(self.ports.tokens.clone(), self.ports.ambient.clock.clone())
    }

    /// Logs in; tokens live at most `max_ttl` seconds.
    pub fn log_in(&self, max_ttl: u32) -> LogIn {
        LogIn { instance: self.instance, max_ttl, owner: self.prove_owner(), tokens: self.ports.tokens.clone() }
    }

    /// Logs out.
    pub fn log_out(&self) -> LogOut {
        LogOut::new(self.ports.ambient.clone(), self.ports.store.sessions.clone())
    }

    fn prove_owner(&self) -> ProveOwner {
        let ports = &self.ports;
        ProveOwner {
            ambient: ports.ambient.clone(),
            tally: self.tally.clone(),
            guard: ports.store.logins.clone(),
            hasher: ports.hasher.clone(),
            passcodes: ports.passcodes.clone(),
            digester: ports.digester.clone(),
        }
    }

    /// Shows one's own account.
    pub fn show_own_account(&self) -> ShowOwnAccount {
        ShowOwnAccount::new(self.ports.ambient.clone(), self.ports.store.own_accounts.clone())
    }

    /// Lists and ends one's own sessions.
    pub fn own_sessions(&self) -> OwnSessions {
        OwnSessions::new(self.ports.ambient.clone(), self.ports.store.sessions.clone())
    }

    /// Changes one's own password.
    pub fn change_password(&self) -> ChangePassword {
        ChangePassword { owner: self.prove_owner(), accounts: self.ports.store.own_accounts.clone() }
    }

    /// Gives one's own account a new passcode secret, which takes effect once it is confirmed.
    pub fn replace_passcode(&self) -> ReplacePasscode {
        ReplacePasscode { owner: self.prove_owner(), accounts: self.ports.store.own_accounts.clone() }
    }

    /// Confirms the new passcode secret.
    pub fn confirm_passcode(&self) -> ConfirmPasscodeUseCase {
        let ports = &self.ports;
        ConfirmPasscodeUseCase {
            ambient: ports.ambient.clone(),
            passcodes: ports.passcodes.clone(),
            log: ports.store.audit.clone(),
            accounts: ports.store.own_accounts.clone(),
        }
    }

    /// Replaces one's own recovery codes.
    pub fn replace_recovery_codes(&self) -> ReplaceRecoveryCodes {
        ReplaceRecoveryCodes { owner: self.prove_owner(), accounts: self.ports.store.own_accounts.clone() }
    }
}

/// Administration of accounts.
impl OpenVault {
    /// Lists accounts.
    pub fn list_accounts(&self) -> ListAccountsUseCase {
        ListAccountsUseCase::new(self.ports.ambient.clone(), self.ports.store.accounts.clone())
    }

    /// Creates accounts, for operators.
    pub fn create_account(&self) -> CreateAccountUseCase {
        let ports = &self.ports;
        CreateAccountUseCase {
            ambient: ports.ambient.clone(),
            entropy: ports.entropy.clone(),
            hasher: ports.hasher.clone(),
            passcodes: ports.passcodes.clone(),
            digester: ports.digester.clone(),
            organizations: ports.store.organizations.clone(),
            accounts: ports.store.accounts.clone(),
        }
    }

    /// Changes and deletes accounts.
    pub fn change_account(&self) -> ChangeAccountUseCase {
        let ports = &self.ports;
        ChangeAccountUseCase {
            ambient: ports.ambient.clone(),
            hasher: ports.hasher.clone(),
            passcodes: ports.passcodes.clone(),
            digester: ports.digester.clone(),
            organizations: ports.store.organizations.clone(),
            accounts: ports.store.accounts.clone(),
            invitations: ports.store.invitations.clone(),
        }
    }

    /// Reads the current passcode of an account, for operators.
    pub fn read_passcode(&self) -> ReadPasscode {
        let ports = &self.ports;
        ReadPasscode {
            ambient: ports.ambient.clone(),
            passcodes: ports.passcodes.clone(),
            digester: ports.digester.clone(),
            accounts: ports.store.accounts.clone(),
        }
    }

    /// Invites to an account.
    pub fn invite(&self) -> Invite {
        let ports = &self.ports;
        Invite {
            ambient: ports.ambient.clone(),
            entropy: ports.entropy.clone(),
            digester: ports.digester.clone(),
            organizations: ports.store.organizations.clone(),
            invitations: ports.store.invitations.clone(),
        }
    }

    /// Takes an invitation up.
    pub fn enrol(&self) -> Enrol {
        let ports = &self.ports;
        Enrol {
            ambient: ports.ambient.clone(),
            hasher: ports.hasher.clone(),
            passcodes: ports.passcodes.clone(),
            digester: ports.digester.clone(),
            invitations: ports.store.invitations.clone(),
        }
    }

    /// Confirms an enrolment.
    pub fn confirm_enrolment(&self) -> ConfirmEnrolmentUseCase {
        let ports = &self.ports;
        ConfirmEnrolmentUseCase {
            ambient: ports.ambient.clone(),
            passcodes: ports.passcodes.clone(),
            digester: ports.digester.clone(),
            invitations: ports.store.invitations.clone(),
        }
    }
}

/// Integrations and their namespaces.
impl OpenVault {
    /// Creates integrations.
    pub fn create_integration(&self) -> CreateIntegrationUseCase {
        let ports = &self.ports;
        CreateIntegrationUseCase {
            ambient: ports.ambient.clone(),
            entropy: ports.entropy.clone(),
            digester: ports.digester.clone(),
            organizations: ports.store.organizations.clone(),
            integrations: ports.store.integrations.clone(),
        }
    }

    /// Changes, rotates and deletes integrations.
    pub fn change_integration(&self) -> ChangeIntegrationUseCase {
        let ports = &self.ports;
        ChangeIntegrationUseCase {
            ambient: ports.ambient.clone(),
            entropy: ports.entropy.clone(),
            digester: ports.digester.clone(),
            organizations: ports.store.organizations.clone(),
            integrations: ports.store.integrations.clone(),
        }
    }

    /// Lists integrations.
    pub fn list_integrations(&self) -> ListIntegrationsUseCase {
        ListIntegrationsUseCase::new(self.ports.ambient.clone(), self.ports.store.integrations.clone())
    }

    /// Freezes and thaws namespaces.
    pub fn freeze_namespace(&self) -> FreezeNamespaceUseCase {
        let ports = &self.ports;
        FreezeNamespaceUseCase::new(
            ports.ambient.clone(),
            ports.store.organizations.clone(),
            ports.store.freezes.clone(),
        )
    }
}

/// Activations. Only [`OpenVault::activate`] and [`OpenVault::check_namespace`] open credentials, with the opener that they
/// are given.
impl OpenVault {
    /// Verifies integration tokens.
    pub fn authenticate_integration(&self) -> AuthenticateIntegration {
        AuthenticateIntegration::new(
            self.ports.ambient.clone(),
            self.tally.clone(),
            self.ports.digester.clone(),
            self.ports.store.integrations.clone(),
        )
    }

    /// Activates namespaces; an integration has at most `live_limit` live activations.
    pub fn activate(
        &self,
        opener: Arc<dyn Opener>,
        live_limit: i64,
        vendor: Option<Arc<dyn CredentialVendor>>,
    ) -> Activate {
        Activate { live_limit, open: self.open_namespace(opener), vendor }
    }

    /// Checks the credentials of a namespace against their storage.
    pub fn check_namespace(&self, opener: Arc<dyn Opener>, probe: Option<Arc<dyn StorageProbe>>) -> CheckNamespace {
        CheckNamespace { open: self.open_namespace(opener), probe }
    }

    /// Lists and ends an integration's own activations.
    pub fn own_activations(&self, vendor: Option<Arc<dyn CredentialVendor>>) -> OwnActivations {
        OwnActivations {
            ambient: self.ports.ambient.clone(),
            authenticate: self.authenticate_integration(),
            activations: self.ports.store.activations.clone(),
            vendor,
        }
    }

    fn open_namespace(&self, opener: Arc<dyn Opener>) -> OpenNamespace {
        OpenNamespace {
            ambient: self.ports.ambient.clone(),
            authenticate: self.authenticate_integration(),
            activations: self.ports.store.activations.clone(),
            opener,
            log: self.ports.store.audit.clone(),
        }
    }
}
