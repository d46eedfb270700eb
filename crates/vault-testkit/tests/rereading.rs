//! A rotation may finish between reading a row and reading the keys. The row is then read once more, before it is
//! reported as damaged.

use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vault_core::Error;
use vault_core::activation::{ActivationTtl, VendMode};
use vault_core::credential::{Card, CredentialData, CredentialType};
use vault_core::id::{AccountId, CredentialId, KeyId, OrganizationId};
use vault_core::namespace::Namespace;
use vault_core::port::{CardContext, CardOpener, CredentialContext, Event, Opener, SealError};
use vault_core::principal::Principal;
use vault_core::role::Role;
use vault_core::sealed::{Blob, SealedData};
use vault_core::usecase::activations::{ActivationRequest, CheckNamespaceRequest};
use vault_core::usecase::integrations::CreateIntegrationRequest;
use vault_core::usecase::{Activations, CredentialPatch, CredentialReplacement, NewCredential, Vault};
use vault_testkit::crypto::PlainSealer;
use vault_testkit::fake::FakeVault;

/// An opener that does not have the keys of the first rows.
struct Stale {
    sealer: Arc<PlainSealer>,
    /// Number of rows whose keys it does not have.
    times: usize,
    calls: AtomicUsize,
}

impl Stale {
    fn new(sealer: &Arc<PlainSealer>, times: usize) -> Arc<Self> {
        Arc::new(Self { sealer: sealer.clone(), times, calls: AtomicUsize::new(0) })
    }

    fn is_unknown(&self) -> bool {
        self.calls.fetch_add(1, Ordering::SeqCst) < self.times
    }
}

fn unknown(credential: CredentialId) -> SealError {
    let object = credential.to_string();
    SealError::UnknownKey { table: "credentials", column: "card", object, key: KeyId::from_bytes([9; 16]) }
}

#[async_trait]
impl CardOpener for Stale {
    async fn open_cards<'a>(
        &self,
        organization: OrganizationId,
        cards: &[(CardContext, &'a Blob)],
    ) -> Result<Vec<Result<Card, SealError>>, SealError> {
        if self.is_unknown() {
            return Ok(cards.iter().map(|(context, _)| Err(unknown(context.credential))).collect());
        }
        self.sealer.open_cards(organization, cards).await
    }
}

#[async_trait]
impl Opener for Stale {
    async fn open(
        &self,
        context: CredentialContext,
        namespace: &Namespace,
        kind: CredentialType,
        sealed: &SealedData,
    ) -> Result<CredentialData, SealError> {
        self.sealer.open(context, namespace, kind, sealed).await
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
    organization: OrganizationId,
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
        Self { fake, organization, editor, credential }
    }

    async fn act(&self, act: Act, opener: Arc<Stale>) -> Result<(), Error> {
        let FakeVault { environment, tally, store, sealer, .. } = &self.fake;
        let operations = self.fake.operations();
        let vault = Vault::new(environment.clone(), tally.clone(), store.clone(), sealer.clone(), opener, operations);
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

#[tokio::test]
async fn row_with_unknown_key_is_reread_once() {
    for act in [Act::List, Act::Show, Act::Versions, Act::Matches, Act::Describe, Act::Promote, Act::Destroy] {
        let setting = Setting::new().await;
        let opener = Stale::new(&setting.fake.sealer, 1);
        setting.act(act, opener.clone()).await.unwrap();
        assert_eq!((setting.damage(), opener.calls.load(Ordering::SeqCst)), (0, 2), "{act:?}");

        // A row that was read twice is damaged: lists show its remaining fields, and operations that need its content
        // fail.
        let setting = Setting::new().await;
        let opener = Stale::new(&setting.fake.sealer, usize::MAX);
        let done = setting.act(act, opener.clone()).await;
        let fails = matches!(act, Act::Matches | Act::Describe | Act::Promote | Act::Destroy);
        assert_eq!(matches!(done, Err(Error::Seal(SealError::UnknownKey { .. }))), fails, "{act:?}: {done:?}");
        assert_eq!(done.is_ok(), !fails, "{act:?}: {done:?}");
        assert_eq!((setting.damage(), opener.calls.load(Ordering::SeqCst)), (1, 2), "{act:?}");
    }
}

#[tokio::test]
async fn activation_restarts_once_if_key_is_unknown() {
    for (checks, times) in [(false, 1), (true, 1), (false, usize::MAX), (true, usize::MAX)] {
        let setting = Setting::new().await;
        let opener = Stale::new(&setting.fake.sealer, times);
        let FakeVault { environment, tally, store, .. } = &setting.fake;
        let operations = setting.fake.operations();
        let activations =
            Activations::new(environment.clone(), tally.clone(), store.clone(), operations, opener.clone());
        let request = CreateIntegrationRequest {
            name: "nightly".to_owned(),
            namespaces: vec!["imports".to_owned()],
            expires_at: None,
            token: true,
            trusts: Vec::new(),
            managed_by: None,
        };
        let created =
            setting.fake.integrations().create(&Principal::Operator, setting.organization, request).await.unwrap();
        let principal = activations.authenticate(created.token.unwrap().text(), None).await.unwrap();
        let namespace: Namespace = "imports".parse().unwrap();
        let done = if checks {
            let request = CheckNamespaceRequest { namespace, operations: Vec::new(), until: None, vend: VendMode::Raw };
            activations.check(&principal, request).await.map(drop)
        } else {
            let ttl = ActivationTtl::parse(Some(600)).unwrap();
            let request = ActivationRequest { namespace, purpose: None, ttl, vend: VendMode::Raw };
            activations.activate(&principal, request).await.map(drop)
        };
        let calls = opener.calls.load(Ordering::SeqCst);
        if times == 1 {
            done.unwrap();
            assert_eq!((setting.damage(), calls), (0, 2), "checks: {checks}");
        } else {
            assert!(matches!(done, Err(Error::Seal(SealError::UnknownKey { .. }))), "{done:?}");
            assert_eq!((setting.damage(), calls), (1, 2), "checks: {checks}");
        }
    }
}
