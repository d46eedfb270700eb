//! From a store that fulfils the contract to a running vault: keys are created once and then loaded, and the ports form
//! a `Vault`.

use redb_store::RedbStore;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use vault_core::audit::{Actor, AuditAction, Origin, Subject};
use vault_core::credential::{CredentialData, CredentialType};
use vault_core::id::{AccountId, InstanceId, OrganizationId};
use vault_core::organization::OrganizationName;
use vault_core::port::{Clock, CreateInstance, IdGenerator, KeyRepository};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::usecase::{AuditTally, Environment, NewCredential, Vault};
use vault_crypto::{Keyring, OsEntropy, LoadedRootKey};
use vault_embed::{LoggedEvents, SystemClock, SystemIds};

/// An open vault.
struct Running {
    vault: Vault,
    tally: Arc<AuditTally>,
    /// The principal: a user of this service.
    who: Principal,
}

/// Opens or creates the vault in a directory, for one organization.
async fn open(directory: &Path, organization: OrganizationId) -> Result<Running, Box<dyn Error>> {
    let store = Arc::new(RedbStore::open(&directory.join("vault.redb"))?);
    let (entropy, ids) = (Arc::new(OsEntropy), Arc::new(SystemIds::default()));
    let (root_path, now) = (directory.join("root.key"), SystemClock.now());
    let environment = |keyring: &Keyring| Environment {
        clock: Arc::new(SystemClock),
        ids: ids.clone(),
        events: Arc::new(LoggedEvents),
        audit: Arc::new(keyring.audit_sealer()),
        origin: Origin::default(),
    };

    // The keys are created at the first start and loaded at every later one. The stored values are useless without the
    // root key.
    let keyring = match store.instance().await? {
        Some(instance) => {
            let root = LoadedRootKey::load(&root_path, entropy.clone())?;
            let (retiring, keys) = (store.retiring_instance_keys().await?, store.instance_keys().await?);
            Keyring::open(&root, entropy, &instance, &retiring, &keys)?
        }
        None => {
            let root = LoadedRootKey::generate(&root_path, entropy.clone())?;
            let made = Keyring::create(&root, entropy, InstanceId::from_uuid(ids.random()), now)?;
            let created = (Actor::Operator, AuditAction::InstanceCreated, Subject::Instance);
            let audit = environment(&made.keyring).record(now, None, created.0, created.1, created.2);
            store.create_instance(CreateInstance { instance: made.instance, keys: made.keys, audit }).await?;
            made.keyring
        }
    };

    // The ports form a vault. The port that decrypts data (`crypto.opener`) is not among them.
    let (environment, crypto) = (environment(&keyring), keyring.credentials(store.clone()));
    if store.organization_keys(organization).await?.is_none() {
        let keys = crypto.sealer.new_organization_keys(organization, &OrganizationName::parse("Acme")?, now)?;
        let created = AuditAction::OrganizationCreated;
        let audit =
            environment.record(now, Some(organization), Actor::Operator, created, Subject::Organization(organization));
        store.add_organization(organization, keys, audit).await?;
    }
    let tally = Arc::new(AuditTally::new(environment.clone(), store.clone()));
    let digester = Arc::new(keyring.digester(environment.clock.clone()));
    let vault = Vault::new(environment, tally.clone(), store, crypto.sealer, crypto.list_opener, digester);
    let who = Principal::embedder(organization, AccountId::from_bytes(*b"user number 0001"), Role::Editor);
    Ok(Running { vault, tally, who })
}

#[tokio::test]
async fn vault_runs_on_the_store_and_outlives_its_process() -> Result<(), Box<dyn Error>> {
    let (directory, organization) = (tempfile::tempdir()?, OrganizationId::from_bytes(*b"organization 001"));
    let link = "https://files.example/nightly.bin?signature=not-to-be-seen";
    let running = open(directory.path(), organization).await?;
    let body = format!(r#"{{"url": "{link}"}}"#);
    let data = CredentialData::from_json(CredentialType::DirectLink, body.as_bytes())?;
    let id = running.vault.save(&running.who, NewCredential::new("imports/nightly".parse()?, data)).await?;
    drop(running);

    let running = open(directory.path(), organization).await?;
    let page = running.vault.list(&running.who, Default::default(), Default::default()).await?;
    assert_eq!(page.items.iter().map(|item| item.id).collect::<Vec<_>>(), [id]);
    // Lists are counted in memory: write the counters before the process exits.
    running.tally.flush(true).await?;
    drop(running);
    let stored = std::fs::read(directory.path().join("vault.redb"))?;
    assert!(!stored.windows(14).any(|bytes| bytes == b"not-to-be-seen"), "a secret is stored in the file");
    Ok(())
}
