//! Composition of the listeners' parts.

use crate::egress;
use crate::federation::{CountedStorage, Issuing};
use crate::receivers::Carrier;
use crate::settings::{Activation, Role, Settings};
use std::future::ready;
use std::sync::Arc;
use tokio::runtime::Handle;
use vault_cli::failure::Failure;
use vault_core::port::{CredentialVendor, Opener, ProviderTrust, ReceiverGuard, StorageProbe};
use vault_core::usecase::activations::Identity;
use vault_crypto::JwtVerifier;
use vault_embed::OpenVault;
use vault_http::{ActivationParts, MetricsText, Readiness, ServerParts};
use vault_storage::{EgressPolicy, IssuerClient, Storage, StorageSettings};

/// Parts of the listeners in addition to the vault.
pub(crate) struct ListenerParts {
    pub(crate) storage: Option<Arc<Storage>>,
    pub(crate) carrier: Arc<Carrier>,
    /// Federation issuer, if one is set.
    pub(crate) issuing: Option<Issuing>,
    pub(crate) readiness: Readiness,
    pub(crate) metrics: MetricsText,
}

/// Creates the parts of the public listener.
pub(crate) fn public(settings: &Settings, opened: &OpenVault, parts: &ListenerParts) -> ServerParts {
    let ListenerParts { storage, carrier, issuing, readiness, .. } = parts;
    let probe = storage.as_ref().map(as_probe);
    let server = &settings.server;
    let vault = opened.vault().limit(server.max_credentials).version_limits(server.version_limits());
    ServerParts {
        runtime: Handle::current(),
        vault: vault.probe(probe).federation(server.federation_issuer.clone()),
        accounts: opened.accounts().with_max_ttl(settings.server.max_ttl),
        integrations: opened.integrations(),
        receivers: opened.receivers().guard(Some(Arc::clone(carrier) as Arc<dyn ReceiverGuard>)),
        audit: opened.audit_reader(),
        federation: issuing.as_ref().map(|issuing| Arc::clone(&issuing.published)),
        ids: opened.ports().environment.ids.clone(),
        readiness: readiness.clone(),
    }
}

/// Creates the parts of the API that a command of the operator uses in its process.
pub(crate) fn operator(opened: &OpenVault) -> ServerParts {
    ServerParts {
        runtime: Handle::current(),
        vault: opened.vault(),
        accounts: opened.accounts(),
        integrations: opened.integrations(),
        receivers: opened.receivers(),
        audit: opened.audit_reader(),
        federation: None,
        ids: opened.ports().environment.ids.clone(),
        readiness: Readiness::new(|| ready(Ok(()))),
    }
}

/// Creates the parts of the activation listener, the only one that gets the opener.
///
/// # Errors
/// A file of the outgoing proxy cannot be used.
pub(crate) fn activation(
    settings: &Settings,
    activation: &Activation,
    opened: &OpenVault,
    opener: Arc<dyn Opener>,
    parts: &ListenerParts,
) -> Result<ActivationParts, Failure> {
    // Only this copy of the client can sign. The public listener uses the other one for checks before a save.
    let signer = parts.issuing.as_ref().and_then(Issuing::signer);
    let storage = parts.storage.as_ref().map(|storage| Arc::new(Storage::clone(storage).signer(signer)));
    let counted = storage.clone().map(|storage| Arc::new(CountedStorage(storage)));
    let issuers = IssuerClient::new(&egress::of(settings)?);
    Ok(ActivationParts {
        runtime: Handle::current(),
        activations: opened
            .activations(opener)
            .vendor(counted.clone().map(|storage| storage as Arc<dyn CredentialVendor>))
            .probe(storage.as_ref().map(as_probe))
            .trust(counted.map(|storage| storage as Arc<dyn ProviderTrust>))
            .live_limit(activation.limit)
            .identity(Some(Identity { verifier: Arc::new(JwtVerifier), keys: Some(Arc::new(issuers)) })),
        ids: opened.ports().environment.ids.clone(),
        readiness: parts.readiness.clone(),
    })
}

/// Creates the storage client from the settings. Returns `None` for the role `api`, which connects to no storage.
pub(crate) fn storage(settings: &Settings, opened: &OpenVault) -> Result<Option<Arc<Storage>>, Failure> {
    if settings.server.role == Role::Api {
        return Ok(None);
    }
    let policy = EgressPolicy::allowing(settings.server.permitted_networks())
        .without_listeners(settings.server.addresses().into_iter().map(|(_, address)| address).collect());
    let settings = StorageSettings {
        egress: egress::of(settings)?.with_policy(policy),
        session_tags: settings.server.session_tags,
        ..StorageSettings::default()
    };
    Ok(Some(Arc::new(Storage::new(settings, opened.ports().environment.ids.clone())?)))
}

fn as_probe(storage: &Arc<Storage>) -> Arc<dyn StorageProbe> {
    Arc::clone(storage) as Arc<dyn StorageProbe>
}
