//! Cases of rows that are found and verified by digests under more than one lookup key, and of rekeying them.

use super::ContractStore;
use super::saving::label_digest;
use super::tools::request_digest;
use super::world::World;
use vault_core::audit::AuditAction;
use vault_core::credential::{CredentialQuery, ListFilter, RelabelCredential};
use vault_core::digest::{Digest, LookupDigests};
use vault_core::id::{CredentialId, OrganizationId};
use vault_core::operation::{Access, Failure, Operation, Unit};
use vault_core::principal::Principal;

/// Stores other digests, like those under an earlier key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SetLabels(OrganizationId, CredentialId, Vec<Digest>);

impl Operation for SetLabels {
    type Outcome = ();
    const ACCESS: Access<Self> = Access::Write(|operation| Some(operation.0));

    async fn run(&self, unit: &Unit<'_>) -> Result<(), Failure> {
        unit.commit_without_entry();
        Ok(unit.rows().set_labels(self.0, self.1, &self.2).await?)
    }
}

/// While there are two keys, a credential is found by digests under either. It gets the digests of its labels under the current key
/// once, and is otherwise unchanged.
pub async fn labels_are_rekeyed_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let (old, new, others) = (
        request_digest("old label"),
        label_digest(world.organization, "label"),
        label_digest(world.organization, "other"),
    );
    let ids = [
        world.saved_with_metadata(&principal, &["label", "other"], None).await,
        world.saved_with_metadata(&principal, &["label"], None).await,
        world.saved_with_metadata(&principal, &["other"], None).await,
    ];
    world.operate(&Principal::Operator, SetLabels(world.organization, ids[0], vec![old, others])).await.unwrap();
    let label = LookupDigests::new(new, [old]);
    let found = async |labels: &[LookupDigests]| {
        world.page(&principal, CredentialQuery { labels: labels.to_vec(), ..world.list(&principal) }).await
    };
    let soon = async |labels: &[LookupDigests]| {
        let filter = ListFilter { expires_before: Some(world.now().plus_seconds(1)), ..ListFilter::default() };
        let listed = CredentialQuery { labels: labels.to_vec(), ..world.list_by(&principal, filter) };
        world.page(&principal, listed).await
    };
    assert_eq!(found(std::slice::from_ref(&label)).await, [ids[1], ids[0]], "newest first, whichever key");
    assert_eq!(found(&[label.clone(), others.into()]).await, [ids[0]]);
    assert_eq!(found(&[others.into(), label.clone()]).await, [ids[0]]);
    assert_eq!(soon(std::slice::from_ref(&label)).await, [], "none expires");
    assert_eq!(found(&[old.into()]).await, [ids[0]]);

    let entries = world.audit_length().await;
    for (id, is_moved) in [(ids[0], true), (ids[0], false), (ids[1], false)] {
        let relabel = RelabelCredential(world.organization, id);
        assert_eq!(world.operate(&Principal::Operator, relabel).await.unwrap(), is_moved);
    }
    assert_eq!(found(&[new.into()]).await, [ids[1], ids[0]]);
    assert_eq!(found(&[old.into()]).await, []);
    assert_eq!(found(&[others.into()]).await, [ids[2], ids[0]]);
    assert_eq!(world.versions(&principal, ids[0]).await.current.revision, 1);
    assert_eq!(world.audit_length().await, entries, "no entry is made of it");
    assert_eq!(world.audited(AuditAction::CredentialSaved).await, 3);
}
