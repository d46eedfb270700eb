//! The use cases, each made of the ports of an open vault.

use crate::compose::Vault;
use crate::settings::Settings;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::usecase::{
    AuditTally, Authenticate, ChangeAccountUseCase, ChangeIntegrationUseCase, ChangePassword, ConfirmEnrolmentUseCase,
    ConfirmPasscodeUseCase, CreateIntegrationUseCase, DeleteCredentialUseCase, Enrol, Invite, ListAccountsUseCase,
    ListCredentialsUseCase, ListIntegrationsUseCase, LogIn, LogOut, OwnSessions, ProveOwner, ReplacePasscode,
    ReplaceRecoveryCodes, SaveCredentialUseCase, ShowCredentialUseCase, ShowOwnAccount,
};
use vault_http::{AccountParts, IntegrationParts, OwnAccountParts, Readiness, ServerParts};

/// What the public listener is made of.
pub(crate) fn of(settings: &Settings, vault: &Vault, tally: &Arc<AuditTally>, readiness: &Readiness) -> ServerParts {
    let (ambient, store) = (&vault.ambient, &vault.store);
    let owner = ProveOwner {
        ambient: ambient.clone(),
        tally: tally.clone(),
        guard: store.logins.clone(),
        hasher: vault.hasher.clone(),
        passcodes: vault.passcodes.clone(),
        digester: vault.digester.clone(),
    };
    ServerParts {
        runtime: Handle::current(),
        authenticate: Arc::new(Authenticate::new(vault.tokens.clone(), ambient.clock.clone())),
        log_in: Arc::new(LogIn {
            instance: vault.instance,
            max_ttl: settings.max_ttl,
            owner: owner.clone(),
            tokens: vault.tokens.clone(),
        }),
        log_out: Arc::new(LogOut::new(ambient.clone(), store.sessions.clone())),
        save: Arc::new(SaveCredentialUseCase {
            limit: settings.max_credentials,
            ambient: ambient.clone(),
            sealer: vault.sealer.clone(),
            digester: vault.digester.clone(),
            credentials: store.credentials.clone(),
            probe: None,
        }),
        list: Arc::new(ListCredentialsUseCase {
            ambient: ambient.clone(),
            tally: tally.clone(),
            opener: vault.information_opener.clone(),
            digester: vault.digester.clone(),
            credentials: store.credentials.clone(),
        }),
        show: Arc::new(ShowCredentialUseCase {
            ambient: ambient.clone(),
            tally: tally.clone(),
            opener: vault.information_opener.clone(),
            credentials: store.credentials.clone(),
        }),
        delete: Arc::new(DeleteCredentialUseCase::new(ambient.clone(), store.credentials.clone())),
        accounts: accounts(vault),
        own_account: own_account(vault, owner),
        integrations: integrations(vault),
        ids: ambient.ids.clone(),
        readiness: readiness.clone(),
    }
}

fn accounts(vault: &Vault) -> AccountParts {
    AccountParts {
        list: Arc::new(list_accounts(vault)),
        invite: Arc::new(invite(vault)),
        change: Arc::new(change_account(vault)),
        enrol: Arc::new(Enrol {
            ambient: vault.ambient.clone(),
            hasher: vault.hasher.clone(),
            passcodes: vault.passcodes.clone(),
            digester: vault.digester.clone(),
            invitations: vault.store.invitations.clone(),
        }),
        confirm_enrolment: Arc::new(ConfirmEnrolmentUseCase {
            ambient: vault.ambient.clone(),
            passcodes: vault.passcodes.clone(),
            digester: vault.digester.clone(),
            invitations: vault.store.invitations.clone(),
        }),
    }
}

fn own_account(vault: &Vault, owner: ProveOwner) -> OwnAccountParts {
    let (ambient, accounts) = (&vault.ambient, &vault.store.own_accounts);
    OwnAccountParts {
        show: Arc::new(ShowOwnAccount::new(ambient.clone(), accounts.clone())),
        sessions: Arc::new(OwnSessions::new(ambient.clone(), vault.store.sessions.clone())),
        change_password: Arc::new(ChangePassword { owner: owner.clone(), accounts: accounts.clone() }),
        replace_passcode: Arc::new(ReplacePasscode { owner: owner.clone(), accounts: accounts.clone() }),
        confirm_passcode: Arc::new(ConfirmPasscodeUseCase {
            ambient: ambient.clone(),
            passcodes: vault.passcodes.clone(),
            log: vault.store.audit.clone(),
            accounts: accounts.clone(),
        }),
        replace_recovery_codes: Arc::new(ReplaceRecoveryCodes { owner, accounts: accounts.clone() }),
    }
}

fn integrations(vault: &Vault) -> IntegrationParts {
    let (ambient, store) = (&vault.ambient, &vault.store);
    IntegrationParts {
        create: Arc::new(CreateIntegrationUseCase {
            ambient: ambient.clone(),
            entropy: vault.entropy.clone(),
            digester: vault.digester.clone(),
            organizations: store.organizations.clone(),
            integrations: store.integrations.clone(),
        }),
        change: Arc::new(ChangeIntegrationUseCase {
            ambient: ambient.clone(),
            entropy: vault.entropy.clone(),
            digester: vault.digester.clone(),
            organizations: store.organizations.clone(),
            integrations: store.integrations.clone(),
        }),
        list: Arc::new(ListIntegrationsUseCase::new(ambient.clone(), store.integrations.clone())),
    }
}

/// Lists accounts.
pub(crate) fn list_accounts(vault: &Vault) -> ListAccountsUseCase {
    ListAccountsUseCase::new(vault.ambient.clone(), vault.store.accounts.clone())
}

/// Invites.
pub(crate) fn invite(vault: &Vault) -> Invite {
    Invite {
        ambient: vault.ambient.clone(),
        entropy: vault.entropy.clone(),
        digester: vault.digester.clone(),
        organizations: vault.store.organizations.clone(),
        invitations: vault.store.invitations.clone(),
    }
}

/// Changes and deletes accounts.
pub(crate) fn change_account(vault: &Vault) -> ChangeAccountUseCase {
    ChangeAccountUseCase {
        ambient: vault.ambient.clone(),
        hasher: vault.hasher.clone(),
        passcodes: vault.passcodes.clone(),
        digester: vault.digester.clone(),
        organizations: vault.store.organizations.clone(),
        accounts: vault.store.accounts.clone(),
        invitations: vault.store.invitations.clone(),
    }
}
