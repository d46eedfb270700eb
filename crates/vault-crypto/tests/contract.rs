//! The adapters keep the contract of the ports of cryptography.

use std::sync::Arc;
use vault_core::id::InstanceId;
use vault_core::port::{
    AuditSealer, IdGenerator as _, KeyRepository, KeyedDigester, PasscodeVerifier, PasswordHasher, TokenIssuer,
};
use vault_crypto::{Argon2Parameters, CredentialCrypto, HashingPool, Keyring, LoadedRootKey, OsEntropy};
use vault_testkit::clock::{ManualClock, SequentialIds};
use vault_testkit::contract::{CryptoSubject, SealingPorts};

/// A new deployment's keys.
async fn keyring() -> Keyring {
    let directory = tempfile::tempdir().unwrap();
    let root = LoadedRootKey::generate(&directory.path().join("root.key"), Arc::new(OsEntropy)).unwrap();
    let instance = InstanceId::from_uuid(SequentialIds::seeded(1).random());
    Keyring::create(&root, Arc::new(OsEntropy), instance, ManualClock::START).unwrap().keyring
}

struct Deployment(Keyring);

/// Only their keys tell deployments apart: they have one id.
async fn deployment() -> Deployment {
    Deployment(keyring().await)
}

impl CryptoSubject for Deployment {
    fn start(&self, keys: Arc<dyn KeyRepository>) -> SealingPorts {
        let CredentialCrypto { sealer, list_opener, rewrapper, opener } = self.0.credentials(keys);
        SealingPorts { sealer, lister: list_opener, opener, rewrapper }
    }

    fn digester(&self) -> Arc<dyn KeyedDigester> {
        Arc::new(self.0.digester(Arc::new(vault_core::time::Timestamp::from_millis(0))))
    }

    fn audit_sealer(&self) -> Arc<dyn AuditSealer> {
        Arc::new(self.0.audit_sealer())
    }

    fn issuer(&self) -> Arc<dyn TokenIssuer> {
        Arc::new(self.0.token_issuer(7))
    }

    fn instance(&self) -> InstanceId {
        self.0.instance()
    }

    fn hasher(&self) -> Arc<dyn PasswordHasher> {
        let pool = HashingPool::with_size(1, 1).unwrap();
        Arc::new(self.0.password_hasher(pool, Argon2Parameters::LEAST, Vec::new()).unwrap())
    }

    fn passcodes(&self) -> Arc<dyn PasscodeVerifier> {
        Arc::new(self.0.passcodes())
    }
}

vault_testkit::crypto_contract!(deployment());
