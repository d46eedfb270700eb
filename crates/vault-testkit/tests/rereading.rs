//! A key may be added after the keys were read. The operation then runs once more, before a row is reported as damaged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_core::Error;
use vault_core::credential::{Card, CredentialData, CredentialPatch, CredentialType, Fingerprint, SecretBytes};
use vault_core::id::{AccountId, CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::operation::Operations;
use vault_core::port::{CardContext, CredentialContext, Event, SealError, SealedCredential, Sealer};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::{Blob, OrganizationKeys, SealedData, WrappedKey};
use vault_core::time::Timestamp;
use vault_core::usecase::{CredentialReplacement, NewCredential, Vault};
use vault_testkit::crypto::PlainSealer;
use vault_testkit::fake::FakeVault;

/// A sealer that does not know the keys of the first cards.
struct Stale {
    sealer: Arc<PlainSealer>,
    /// Number of cards whose keys it does not know.
    times: usize,
    calls: AtomicUsize,
}

impl Sealer for Stale {
    fn open_card(&self, keys: &OrganizationKeys, context: CardContext, sealed: &Blob) -> Result<Card, SealError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) < self.times {
            let object = context.credential.to_string();
            let key = KeyId::from_bytes([9; 16]);
            return Err(SealError::UnknownKey { table: "credentials", column: "card", object, key });
        }
        self.sealer.open_card(keys, context, sealed)
    }

    fn fingerprint(
        &self,
        organization: OrganizationId,
        keys: &OrganizationKeys,
        data: &SecretBytes,
    ) -> Result<Fingerprint, SealError> {
        self.sealer.fingerprint(organization, keys, data)
    }

    fn seal(
        &self,
        keys: &OrganizationKeys,
        context: CredentialContext,
        namespace: &Namespace,
        data: &SecretBytes,
    ) -> Result<SealedData, SealError> {
        self.sealer.seal(keys, context, namespace, data)
    }

    fn seal_card(&self, keys: &OrganizationKeys, context: CardContext, card: &Card) -> Result<Blob, SealError> {
        self.sealer.seal_card(keys, context, card)
    }

    fn rewrap(
        &self,
        _: OrganizationId,
        _: &OrganizationKeys,
        _: &SealedCredential,
    ) -> Result<SealedCredential, SealError> {
        unreachable!("nothing rotates")
    }

    fn new_keys(&self, _: OrganizationId, _: Timestamp) -> Result<OrganizationKeys, SealError> {
        unreachable!("there is an organization")
    }

    fn new_key(&self, _: OrganizationId, _: Timestamp) -> Result<WrappedKey, SealError> {
        unreachable!("nothing rotates")
    }
}

fn link(path: &str) -> CredentialData {
    let json = format!(r#"{{"url":"https://files.example/{path}"}}"#);
    CredentialData::from_canonical_json(CredentialType::DirectLink, json.as_bytes()).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    List,
    Show,
    Versions,
    Matches,
    Describe,
    Promote,
    Destroy,
}

struct Setting {
    fake: FakeVault,
    editor: Principal,
    credential: CredentialId,
}

impl Setting {
    /// Creates a vault with one credential that has a staged version.
    async fn new() -> Self {
        let fake = FakeVault::new();
        let organization = fake.operator().ensure_organization("Acme").await.unwrap().id;
        let editor = Principal::embedder(organization, AccountId::from_bytes([7; 16]), Role::Editor);
        let request = NewCredential::new("imports".parse().unwrap(), link("a"));
        let credential = fake.vault().save(&editor, request).await.unwrap();
        let staged = CredentialReplacement {
            credential: credential.into(),
            data: link("b"),
            expires_at: None,
            stage: true,
            idempotency: None,
            verify: false,
        };
        fake.vault().replace(&editor, staged).await.unwrap();
        Self { fake, editor, credential }
    }

    async fn act(&self, act: Act, sealer: Arc<Stale>) -> Result<(), Error> {
        let FakeVault { environment, tally, store, digester, .. } = &self.fake;
        let operations = Operations::new(store.clone(), digester.clone(), sealer, digester.clone());
        let vault = Vault::new(environment.clone(), tally.clone(), operations);
        let (editor, id) = (&self.editor, self.credential);
        match act {
            Act::List => vault.list(editor, Default::default(), Default::default()).await.map(drop),
            Act::Show => vault.show(editor, id).await.map(drop),
            Act::Versions => vault.versions(editor, id).await.map(drop),
            Act::Matches => vault.matches(editor, id, &link("a")).await.map(|matches| assert!(matches)),
            Act::Describe => {
                let expires_at = Some(Some(self.fake.environment.now().plus_seconds(60)));
                let request = CredentialPatch { labels: None, description: None, expires_at, vend: None };
                vault.describe(editor, id.into(), request).await.map(drop)
            }
            Act::Promote => vault.promote(editor, id.into(), 2).await.map(drop),
            Act::Destroy => vault.destroy_version(editor, id.into(), 2).await,
        }
    }

    /// Returns how often damage was reported.
    fn damage(&self) -> usize {
        let events = self.fake.events.events().into_iter();
        events.filter(|event| matches!(event, Event::IntegrityFailure { .. })).count()
    }
}

fn stale(setting: &Setting, times: usize) -> Arc<Stale> {
    Arc::new(Stale { sealer: setting.fake.sealer.clone(), times, calls: AtomicUsize::new(0) })
}

#[tokio::test]
async fn row_with_unknown_key_is_reread_once() {
    for act in [Act::List, Act::Show, Act::Versions, Act::Matches, Act::Describe, Act::Promote, Act::Destroy] {
        let setting = Setting::new().await;
        let sealer = stale(&setting, 1);
        setting.act(act, sealer.clone()).await.unwrap();
        assert_eq!((setting.damage(), sealer.calls.load(Ordering::SeqCst)), (0, 2), "{act:?}");

        // A row that was read twice is damaged: lists show its remaining fields, and operations that need its content
        // fail.
        let setting = Setting::new().await;
        let sealer = stale(&setting, usize::MAX);
        let done = setting.act(act, sealer.clone()).await;
        let fails = matches!(act, Act::Matches | Act::Describe | Act::Promote | Act::Destroy);
        assert_eq!(matches!(done, Err(Error::Seal(SealError::UnknownKey { .. }))), fails, "{act:?}: {done:?}");
        assert_eq!(done.is_ok(), !fails, "{act:?}: {done:?}");
        assert_eq!((setting.damage(), sealer.calls.load(Ordering::SeqCst)), (1, 2), "{act:?}");
    }
}
