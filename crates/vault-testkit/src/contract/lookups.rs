//! Cases of rows that are found and verified by digests under more than one lookup key, and of rekeying them.

use super::ContractStore;
use super::tools::{request_digest, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use vault_core::audit::AuditAction;
use vault_core::credential::{ListCredentials, RelabelCredential};
use vault_core::cursor::ListFilter;
use vault_core::digest::{Digest, LookupDigests};
use vault_core::principal::Principal;
use vault_core::role::Role;

/// A credential gets other digests of its labels only if its revision is unchanged since it was read. While there are two
/// keys, it is found by digests under either.
pub async fn credential_is_rekeyed_only_if_unchanged(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal: Principal = world.log_in(&world.holder(Role::Editor).await).await.into();
    let (old, new, others) =
        (request_digest("old label"), request_digest("new label"), request_digest("another label"));
    let save = |labels: &[Digest]| with(world.save(&principal), |save| save.labels = labels.to_vec());
    let (first, second, third) = (save(&[old, others]), save(&[new]), save(&[others]));
    let ids = [&first, &second, &third].map(|command| command.payload.id);
    for command in [first, second, third] {
        world.store.save_credential(command).await.unwrap();
    }
    let label = LookupDigests::new(new, [old]);
    let found = async |labels: &[LookupDigests]| {
        world.page(&principal, ListCredentials { labels: labels.to_vec(), ..world.list(&principal) }).await
    };
    let soon = async |labels: &[LookupDigests]| {
        let filter = ListFilter { expires_before: Some(world.now().plus_seconds(1)), ..ListFilter::default() };
        let listed = ListCredentials { labels: labels.to_vec(), ..world.list_by(&principal, filter) };
        world.page(&principal, listed).await
    };
    assert_eq!(found(std::slice::from_ref(&label)).await, [ids[1], ids[0]], "newest first, whichever key");
    assert_eq!(found(&[label.clone(), others.into()]).await, [ids[0]]);
    assert_eq!(found(&[others.into(), label.clone()]).await, [ids[0]]);
    assert_eq!(soon(std::slice::from_ref(&label)).await, [], "none expires");

    let relabel = async |revision| {
        let labels = vec![new, request_digest("another label, moved")];
        let relabel = RelabelCredential { organization: world.organization, id: ids[0], revision, labels };
        world.operate(&Principal::Operator, relabel).await.unwrap()
    };
    assert!(!relabel(2).await, "it has another revision");
    assert_eq!(found(&[old.into()]).await, [ids[0]]);
    assert!(relabel(1).await);
    assert_eq!(found(&[new.into()]).await, [ids[1], ids[0]]);
    assert_eq!(found(&[old.into()]).await, []);
    assert_eq!(found(&[request_digest("another label, moved").into()]).await, [ids[0]]);
    let whole = world.store.whole_credential(world.organization, ids[0]).await.unwrap().unwrap();
    assert_eq!(whole.versions.current.revision, 1);
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 3, "no entry is made of it");
}
