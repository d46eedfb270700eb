//! Revocations while an activation waits for a storage: no credential is issued after the revocation has returned.

use super::setting::{ROLE_S3, Setting, denied, request};
use async_trait::async_trait;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use vault_core::activation::{Activated, VendMode, VendedForm};
use vault_core::audit::{AuditAction, AuditRecord, Subject};
use vault_core::check::CheckReason;
use vault_core::credential::CredentialData;
use vault_core::id::CredentialId;
use vault_core::integration::{IntegrationPrincipal, IntegrationRefusal, IntegrationState};
use vault_core::port::{CredentialVendor, ShortLived, StoreError, VendOrder};
use vault_core::usecase::OrganizationCommand;
use vault_core::usecase::integrations::IntegrationEdit;
use vault_core::{Error, Refusal};

type Operation = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A storage that runs one of `operations` during each of its responses.
struct Slow {
    setting: Arc<Setting>,
    operations: Mutex<Vec<Operation>>,
    answer: Result<(), CheckReason>,
}

#[async_trait]
impl CredentialVendor for Slow {
    async fn vend(&self, data: &CredentialData, order: VendOrder) -> Result<ShortLived, CheckReason> {
        let operation = self.operations.lock().unwrap().pop();
        if let Some(operation) = operation {
            operation.await;
        }
        self.answer?;
        self.setting.storage.vend(data, order).await
    }
}

struct Scene {
    setting: Arc<Setting>,
    credential: CredentialId,
    principal: IntegrationPrincipal,
}

impl Scene {
    async fn new() -> Self {
        let setting = Arc::new(Setting::new().await);
        let credential = setting.saved(setting.acme, "imports", ROLE_S3).await;
        let principal = setting.principal(&setting.integration("nightly", &["imports"]).await.token).await;
        Self { setting, credential, principal }
    }

    /// Activates while `operations` run, one during each request to the storage, the last one first.
    async fn activate(
        &self,
        vend: VendMode,
        answer: Result<(), CheckReason>,
        operations: Vec<Operation>,
    ) -> Result<Activated, Error> {
        let vendor = Arc::new(Slow { setting: Arc::clone(&self.setting), operations: Mutex::new(operations), answer });
        let activations = self.setting.activations().vendor(Some(vendor));
        activations.activate(&self.principal, request("imports", vend)).await
    }

    fn operation<F: Future<Output = ()> + Send + 'static>(
        &self,
        operation: impl FnOnce(Arc<Setting>) -> F,
    ) -> Operation {
        Box::pin(operation(Arc::clone(&self.setting)))
    }

    fn failed(&self) -> Vec<AuditRecord> {
        self.setting.audited(AuditAction::ActivationFailed)
    }
}

#[derive(Clone, Copy, Debug)]
enum Revocation {
    Freeze,
    Disable,
    Delete,
    Rotate,
    Narrow,
    Expire,
    DisableOrganization,
    DeleteCredential,
}

impl Revocation {
    const ALL: [Self; 8] = [
        Self::Freeze,
        Self::Disable,
        Self::Delete,
        Self::Rotate,
        Self::Narrow,
        Self::Expire,
        Self::DisableOrganization,
        Self::DeleteCredential,
    ];

    async fn carry_out(self, setting: Arc<Setting>, credential: CredentialId) {
        match self {
            Self::Freeze => assert!(setting.freeze("imports").await.changed),
            Self::Disable => setting.set_state("nightly", IntegrationState::Disabled).await,
            Self::Delete => setting.delete("nightly").await,
            Self::Rotate => drop(setting.rotate("nightly", 0).await),
            Self::Narrow => {
                let namespaces = Some(vec!["elsewhere".to_owned()]);
                setting.edit("nightly", IntegrationEdit { namespaces, ..IntegrationEdit::default() }).await;
            }
            Self::Expire => {
                let expires_at = Some(Some(setting.now().plus_seconds(1)));
                setting.edit("nightly", IntegrationEdit { expires_at, ..IntegrationEdit::default() }).await;
                setting.clock.advance_seconds(1);
            }
            Self::DisableOrganization => {
                setting.operator().change_organization("Acme", OrganizationCommand::Disable).await.unwrap();
            }
            Self::DeleteCredential => setting.vault().delete(&setting.member(), credential).await.unwrap(),
        }
    }

    fn explains(self, refused: Result<Activated, Error>) -> bool {
        match self {
            Self::Freeze => matches!(refused, Err(Error::Refused(Refusal::Frozen))),
            Self::Disable => denied(refused, IntegrationRefusal::Disabled),
            Self::Delete => denied(refused, IntegrationRefusal::Unknown),
            Self::Rotate => denied(refused, IntegrationRefusal::Replaced),
            Self::Narrow => matches!(refused, Err(Error::Refused(Refusal::NamespaceNotAllowed))),
            Self::Expire => denied(refused, IntegrationRefusal::Expired),
            Self::DisableOrganization => denied(refused, IntegrationRefusal::OrganizationDisabled),
            Self::DeleteCredential => matches!(refused, Err(Error::Refused(Refusal::NamespaceEmpty))),
        }
    }
}

/// Applies to every requested form, whether or not the storage issued credentials.
#[tokio::test]
async fn nothing_is_issued_after_acknowledged_revocation() {
    for revocation in Revocation::ALL {
        for (vend, answer, left) in [
            (VendMode::Short, Ok(()), 1),
            (VendMode::PreferShort, Ok(()), 1),
            // The saved secret is issued after the storage rejected the request.
            (VendMode::PreferShort, Err(CheckReason::Denied), 0),
        ] {
            let scene = Scene::new().await;
            let credential = scene.credential;
            let operation = scene.operation(|setting| revocation.carry_out(setting, credential));
            let refused = scene.activate(vend, answer, vec![operation]).await;
            assert!(revocation.explains(refused), "{revocation:?} {vend:?}");
            assert_eq!(scene.setting.audited(AuditAction::NamespaceActivated), [], "{revocation:?} {vend:?}");
            assert_eq!(scene.setting.events.recorded(AuditAction::NamespaceActivated), 0);

            // The entry includes the credentials that cannot be revoked.
            let (started, failed) = (scene.setting.audited(AuditAction::ActivationStarted), scene.failed());
            assert_eq!((started.len(), failed.len()), (1, 1), "{revocation:?} {vend:?}");
            assert_eq!(failed[0].subject, started[0].subject);
            let note = failed[0].note.as_ref().unwrap();
            assert_eq!(note.credentials.len(), left, "{revocation:?} {vend:?}");
            assert!(note.credentials.iter().all(|one| one.credential == credential && one.form == VendedForm::Short));
        }
    }
}

/// If a credential changes, the activation starts again with the current content of the namespace, and issues the new
/// version.
#[tokio::test]
async fn concurrent_change_restarts_activation() {
    let scene = Scene::new().await;
    let credential = scene.credential;
    let replace = scene.operation(|setting| async move {
        setting.replace(credential).await;
    });
    let activated = scene.activate(VendMode::Short, Ok(()), vec![replace]).await.unwrap();
    assert_eq!(activated.credentials[0].version, 2);
    let issued_credentials = &scene.setting.audited(AuditAction::NamespaceActivated)[0];
    assert_eq!(issued_credentials.subject, Subject::Activation(activated.id));
    assert_eq!(issued_credentials.note.as_ref().unwrap().credentials[0].version, 2);
    assert_eq!(scene.failed().len(), 1);
    let live = scene.setting.live(&scene.principal).await.unwrap();
    assert_eq!(live.iter().map(|one| one.id).collect::<Vec<_>>(), [activated.id], "the first one is gone");

    // Of two credentials, only the remaining one is issued.
    let second = scene.setting.saved(scene.setting.acme, "imports", ROLE_S3).await;
    let delete =
        scene.operation(|setting| async move { setting.vault().delete(&setting.member(), credential).await.unwrap() });
    let activated = scene.activate(VendMode::Short, Ok(()), vec![delete]).await.unwrap();
    assert_eq!(activated.credentials.iter().map(|one| one.id).collect::<Vec<_>>(), [second]);
}

/// It starts again at most three times. A later request may succeed.
#[tokio::test]
async fn activation_restarts_are_limited() {
    for (changes, succeeds) in [(3, true), (4, false)] {
        let scene = Scene::new().await;
        let credential = scene.credential;
        let operations = (0..changes)
            .map(|_| {
                scene.operation(move |setting| async move {
                    setting.replace(credential).await;
                })
            })
            .collect();
        let outcome = scene.activate(VendMode::Short, Ok(()), operations).await;
        assert_eq!(outcome.is_ok(), succeeds, "{changes}");
        if !succeeds {
            assert!(matches!(outcome, Err(Error::Store(StoreError::Unavailable(_)))));
            assert_eq!(scene.setting.live(&scene.principal).await.unwrap(), []);
        }
    }
    // A routine rotation with an overlap is also such a change.
    let scene = Scene::new().await;
    let rotate = scene.operation(|setting| async move { drop(setting.rotate("nightly", 600).await) });
    assert!(scene.activate(VendMode::Short, Ok(()), vec![rotate]).await.is_ok());
}

/// The response itself does not show that it has expired.
#[tokio::test]
async fn credentials_expired_since_fetch_are_not_issued() {
    let scene = Scene::new().await;
    let wait = scene.operation(|setting| async move { setting.clock.advance_seconds(600) });
    let activated = scene.activate(VendMode::Short, Ok(()), vec![wait]).await.unwrap();
    assert!(activated.expires_at > scene.setting.now());
    assert!(
        activated.credentials.iter().all(|one| one.vended.expires_at().is_some_and(|end| end > scene.setting.now()))
    );
}

/// The integration itself may end the activation.
#[tokio::test]
async fn ended_activation_issues_nothing() {
    let scene = Scene::new().await;
    let principal = scene.principal.clone();
    let end = scene.operation(|setting| async move {
        for live in setting.live(&principal).await.unwrap() {
            setting.activations().end(&principal, live.id).await.unwrap();
        }
    });
    let refused = scene.activate(VendMode::Short, Ok(()), vec![end]).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotFound))));
    assert_eq!(scene.failed().len(), 1);
}
