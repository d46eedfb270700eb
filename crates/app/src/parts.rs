//! The use cases, each made of the ports of an open vault.

use crate::compose::Vault as Opened;
use crate::failure::Failure;
use crate::settings::{Activation, Settings};
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_core::port::{CredentialVendor, Opener, StorageProbe};
use vault_core::usecase::{
    Activate, AuditTally, Authenticate, AuthenticateIntegration, ChangeAccountUseCase, ChangeIntegrationUseCase,
    ChangePassword, CheckNamespace, ConfirmEnrolmentUseCase, ConfirmPasscodeUseCase, CreateIntegrationUseCase, Enrol,
    FreezeNamespaceUseCase, Invite, ListAccountsUseCase, ListIntegrationsUseCase, LogIn, LogOut, OpenNamespace,
    OwnActivations, OwnSessions, ProveOwner, ReplacePasscode, ReplaceRecoveryCodes, ShowOwnAccount, Vault,
};
use vault_http::{AccountParts, ActivationParts, IntegrationParts, OwnAccountParts, Readiness, ServerParts};
use vault_storage::{EgressPolicy, Storage, StorageSettings};

/// What the public listener is made of.
pub(crate) fn public(
    settings: &Settings,
    vault: &Opened,
    storage: Option<&Arc<Storage>>,
    tally: &Arc<AuditTally>,
    readiness: &Readiness,
) -> ServerParts {
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
        vault: Vault::new(
            ambient.clone(),
            tally.clone(),
            store.credentials.clone(),
            vault.sealer.clone(),
            vault.information_opener.clone(),
            vault.digester.clone(),
        )
        .limit(settings.max_credentials)
        .probe(storage.filter(|_| settings.verify_on_save).map(as_probe)),
        accounts: accounts(vault),
        own_account: own_account(vault, owner),
        integrations: IntegrationParts {
            create: Arc::new(create_integration(vault)),
            change: Arc::new(change_integration(vault)),
            list: Arc::new(list_integrations(vault)),
        },
        ids: ambient.ids.clone(),
        readiness: readiness.clone(),
    }
}

/// What the activation listener is made of: the one place that an opener goes to.
pub(crate) fn activation(
    settings: &Activation,
    vault: &Opened,
    opener: Arc<dyn Opener>,
    storage: Option<&Arc<Storage>>,
    tally: &Arc<AuditTally>,
    readiness: &Readiness,
) -> ActivationParts {
    let (ambient, store) = (&vault.ambient, &vault.store);
    let authenticate = AuthenticateIntegration::new(
        ambient.clone(),
        tally.clone(),
        vault.digester.clone(),
        store.integrations.clone(),
    );
    let open = OpenNamespace {
        ambient: ambient.clone(),
        authenticate: authenticate.clone(),
        activations: store.activations.clone(),
        opener,
        log: store.audit.clone(),
    };
    let vendor = storage.map(|storage| Arc::clone(storage) as Arc<dyn CredentialVendor>);
    ActivationParts {
        runtime: Handle::current(),
        activate: Arc::new(Activate { live_limit: settings.limit, open: open.clone(), vendor: vendor.clone() }),
        own: Arc::new(OwnActivations {
            ambient: ambient.clone(),
            authenticate: authenticate.clone(),
            activations: store.activations.clone(),
            vendor,
        }),
        check: Arc::new(CheckNamespace { open, probe: storage.map(as_probe) }),
        authenticate,
        ids: ambient.ids.clone(),
        readiness: readiness.clone(),
    }
}

fn accounts(vault: &Opened) -> AccountParts {
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

fn own_account(vault: &Opened, owner: ProveOwner) -> OwnAccountParts {
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

/// Lists accounts.
pub(crate) fn list_accounts(vault: &Opened) -> ListAccountsUseCase {
    ListAccountsUseCase::new(vault.ambient.clone(), vault.store.accounts.clone())
}

/// Invites.
pub(crate) fn invite(vault: &Opened) -> Invite {
    Invite {
        ambient: vault.ambient.clone(),
        entropy: vault.entropy.clone(),
        digester: vault.digester.clone(),
        organizations: vault.store.organizations.clone(),
        invitations: vault.store.invitations.clone(),
    }
}

/// Changes and deletes accounts.
pub(crate) fn change_account(vault: &Opened) -> ChangeAccountUseCase {
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

/// Makes integrations.
pub(crate) fn create_integration(vault: &Opened) -> CreateIntegrationUseCase {
    CreateIntegrationUseCase {
        ambient: vault.ambient.clone(),
        entropy: vault.entropy.clone(),
        digester: vault.digester.clone(),
        organizations: vault.store.organizations.clone(),
        integrations: vault.store.integrations.clone(),
    }
}

/// Changes integrations.
pub(crate) fn change_integration(vault: &Opened) -> ChangeIntegrationUseCase {
    ChangeIntegrationUseCase {
        ambient: vault.ambient.clone(),
        entropy: vault.entropy.clone(),
        digester: vault.digester.clone(),
        organizations: vault.store.organizations.clone(),
        integrations: vault.store.integrations.clone(),
    }
}

/// Lists integrations.
pub(crate) fn list_integrations(vault: &Opened) -> ListIntegrationsUseCase {
    ListIntegrationsUseCase::new(vault.ambient.clone(), vault.store.integrations.clone())
}

/// Freezes and thaws namespaces.
pub(crate) fn freeze_namespace(vault: &Opened) -> FreezeNamespaceUseCase {
    FreezeNamespaceUseCase::new(vault.ambient.clone(), vault.store.organizations.clone(), vault.store.freezes.clone())
}

/// What reaches the stores, as far as the settings allow; nothing where nobody may ask for it.
pub(crate) fn storage(settings: &Settings, vault: &Opened) -> Result<Option<Arc<Storage>>, Failure> {
    if settings.activation.is_none() && !settings.verify_on_save {
        return Ok(None);
    }
    let settings = StorageSettings {
        egress: EgressPolicy::allowing(settings.allow_egress.clone()),
        ca_file: settings.storage_ca_file.clone(),
        ..StorageSettings::default()
    };
    Ok(Some(Arc::new(Storage::new(settings, vault.ambient.ids.clone())?)))
}

fn as_probe(storage: &Arc<Storage>) -> Arc<dyn StorageProbe> {
    Arc::clone(storage) as Arc<dyn StorageProbe>
}
