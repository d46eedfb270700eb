//! Cases of authorization on credentials: users of active organizations.

use super::ContractStore;
use super::idempotency::keyed;
use super::saving::comparison;
use super::tools::Settled as _;
use super::world::{World, opening};
use crate::commands::CredentialCommands as _;
use vault_core::Refusal;
use vault_core::credential::{
    DeleteCredential, FindRequest, ListHolders, ListUses, ListVersions, RequestCheck, ShowCredential,
};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::organization::OrganizationState;
use vault_core::port::IdGenerator;
use vault_core::principal::{Denial, EmbedderPrincipal, Principal};
use vault_core::role::Role;

/// A user of an embedding service needs no account and no session, only an active organization.
pub async fn embedder_is_authorized_while_organization_is_active(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let credential = world.saved(&principal).await;
    assert_eq!(world.listed(&principal).await, [credential]);
    assert_eq!(world.show(&principal, credential).await.unwrap().id, credential);

    world.set_state(OrganizationState::Disabled).await;
    let closed = Denial::OrganizationDisabled;
    assert_eq!(world.store.save_credential(world.save(&principal)).await.settled(), Err(closed));
    assert_eq!(world.try_page(&principal, world.list(&principal)).await.settled().unwrap_err(), closed);
    assert_eq!(world.show(&principal, credential).await.settled().unwrap_err(), closed);
    assert_eq!(world.delete(&principal, credential).await.settled(), Err(closed));

    world.set_state(OrganizationState::Active).await;
    world.delete(&principal, credential).await.unwrap();
    let nowhere = Principal::Embedder(EmbedderPrincipal {
        organization: OrganizationId::from_uuid(world.ids.random()),
        account: principal.account().unwrap(),
        role: Role::Admin,
    });
    assert_eq!(world.try_page(&nowhere, world.list(&nowhere)).await.settled().unwrap_err(), closed);
    assert_eq!(world.store.save_credential(world.save(&nowhere)).await.settled(), Err(closed));
}

/// An unauthorized principal is denied before any other check: before replays, limits and keys, and regardless of
/// whether the credential exists. Nothing is recorded.
pub async fn closed_organization_is_denied_every_operation(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let first = keyed(&world, &principal, "key", "body");
    let id = first.payload.id;
    world.store.save_credential(first).await.unwrap();
    let read = world.versions(&principal, id).await;
    world.set_state(OrganizationState::Disabled).await;
    let entries = world.audit_length().await;

    let store = &world.store;
    macro_rules! denied {
        ($method:ident($command:expr)) => {
            let answer = store.$method($command).await.settled().err();
            assert_eq!(answer, Some(Denial::OrganizationDisabled), stringify!($method));
        };
    }
    let nothing = CredentialId::from_uuid(world.ids.random());
    denied!(save_credential(keyed(&world, &principal, "key", "body")));
    denied!(save_credential(keyed(&world, &principal, "key", "another body")));
    let full = super::tools::with(world.save(&principal), |save| save.limit = 0);
    denied!(save_credential(full));
    let idempotency = keyed(&world, &principal, "key", "body").payload.new.idempotency;
    let of = world.organization;
    macro_rules! denied_operation {
        ($operation:expr) => {
            let answer = world.operate(&principal, $operation).await.settled().err();
            assert_eq!(answer, Some(Denial::OrganizationDisabled));
        };
    }
    denied_operation!(FindRequest { organization: of, idempotency });
    denied_operation!(opening(world.list(&principal)));
    for id in [id, nothing] {
        denied_operation!(ShowCredential(of, id));
        denied_operation!(ListVersions(of, id));
        denied_operation!(DeleteCredential { organization: of, id, revision: None });
        denied_operation!(comparison(of, id));
        denied_operation!(RequestCheck { organization: of, id, version: None });
        denied_operation!(ListUses { organization: of, id, after: None, limit: 1 });
        denied_operation!(ListHolders(of, id));
    }
    denied!(change_credential(world.replacement(&principal, &read)));

    assert_eq!(world.audit_length().await, entries);
    world.set_state(OrganizationState::Active).await;
    assert_eq!(world.versions(&principal, id).await, read);
    assert_eq!(world.listed(&principal).await, [id]);
}

/// Only the audit log remains of a deleted organization, and no request is authorized in it.
pub async fn deleted_organization_keeps_its_audit_log(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (principal, stranger) = (world.embedder(), other.embedder());
    world.replaced(&principal).await;
    world.store.save_credential(keyed(&world, &principal, "key", "body")).await.unwrap();
    let (kept, rows) = (other.saved(&stranger).await, suite.rows(other.organization).await);
    let entries = world.audit_length().await;
    world.delete_organization().await;
    assert_eq!(suite.rows(world.organization).await, Vec::<String>::new());
    assert!(world.audit_length().await >= entries);
    let answer = world.try_page(&principal, world.list(&principal)).await.settled();
    assert_eq!(answer.unwrap_err(), Denial::OrganizationDisabled);
    assert_eq!((other.listed(&stranger).await, suite.rows(other.organization).await), (vec![kept], rows));
}

/// A credential without activations has no uses, and no check is requested without an activation process.
pub async fn uses_and_checks_require_activation_process(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let nothing = CredentialId::from_uuid(world.ids.random());
    let organization = world.organization;
    let uses =
        async |id| world.operate(&principal, ListUses { organization, id, after: None, limit: 9 }).await.decided();
    assert_eq!(uses(id).await, Ok(Vec::new()));
    assert_eq!(uses(nothing).await, Err(Refusal::NotFound));
    for (id, version, refusal) in [(nothing, None, Refusal::NotFound), (id, Some(2), Refusal::NoSuchVersion)] {
        let request = RequestCheck { organization, id, version };
        assert_eq!(world.operate(&principal, request).await.decided(), Err(refusal));
    }
}
