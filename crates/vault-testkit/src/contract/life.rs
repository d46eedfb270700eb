//! Cases of credential metadata, of lists filtered by it, and of comparisons.

use super::ContractStore;
use super::saving::{Changing, comparison, label_digest, label_patch};
use super::tools::{Settled as _, paged, with};
use super::world::World;
use crate::commands::CredentialCommands as _;
use futures_util::future::join_all;
use vault_core::activation::VendRule;
use vault_core::audit::AuditAction;
use vault_core::credential::{
    CredentialEdit, CredentialPatch, CredentialQuery, ListFilter, ListPosition, OpenedCredential,
};
use vault_core::hourly::{HOUR_SECONDS, HourlyLimit};
use vault_core::id::CredentialId;
use vault_core::port::{StoredCredential, StoredVersions};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

impl World<'_> {
    /// Saves a credential with labels and an expiry.
    pub(super) async fn saved_with_metadata(
        &self,
        principal: &Principal,
        labels: &[&'static str],
        expires_at: Option<Timestamp>,
    ) -> CredentialId {
        let command = with(self.save(principal), |save| {
            save.labels = labels.to_vec();
            save.expires_at = expires_at;
        });
        let id = command.payload.id;
        self.store.save_credential(command).await.unwrap();
        id
    }

    /// Describes a credential: with another label, vend rule and expiry.
    fn described(&self, principal: &Principal, read: &StoredVersions) -> Command<Changing> {
        let patch = CredentialPatch {
            labels: Some(label_patch("c", "a")),
            description: None,
            expires_at: Some(Some(self.now())),
            vend: Some(VendRule::Short),
        };
        self.change_version(principal, read, CredentialEdit::Describe(patch), None)
    }

    pub(super) fn labelled(&self, principal: &Principal, labels: &[&str]) -> CredentialQuery {
        CredentialQuery {
            labels: labels.iter().map(|label| label_digest(self.organization, label).into()).collect(),
            ..self.list(principal)
        }
    }
}

/// Card, labels, vend rule and expiry are replaced by a change based on the current revision.
pub async fn description_is_replaced(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved_with_metadata(&principal, &["a", "b"], None).await;
    let read = world.versions(&principal, id).await;
    let change = || world.described(&principal, &read);
    let after = world.changed(change()).await.current;
    let mut expected = StoredCredential { card: after.card.clone(), vend: VendRule::Short, ..read.current.clone() };
    (expected.revision, expected.updated_at, expected.expires_at) = (2, world.now(), Some(world.now()));
    assert_eq!(after, expected);
    assert_eq!(world.store.change_credential(change()).await.decided(), Err(Refusal::Changed));
    for (label, found) in [("a", vec![]), ("b", vec![id]), ("c", vec![id])] {
        assert_eq!(world.page(&principal, world.labelled(&principal, &[label])).await, found, "{label}");
    }
    // A change of only the versions does not affect it.
    let read = world.versions(&principal, id).await;
    let read = world.changed(world.replacement(&principal, &read)).await;
    assert_eq!(read.current.vend, expected.vend);
    assert_eq!(world.page(&principal, world.labelled(&principal, &["b", "c"])).await, [id]);
    assert_eq!(world.audited(AuditAction::CredentialVendRestricted).await, 1);
}

/// A list by labels contains the credentials that have all of them, in pages, without those of other organizations.
pub async fn list_is_filtered_by_labels(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (principal, stranger) = (world.embedder(), other.embedder());
    let mut saved = Vec::new();
    for number in 0..12 {
        let all = ["two", "three", "four"];
        let labels: Vec<_> = all.into_iter().zip([2, 3, 4]).filter(|(_, by)| number % by == 0).collect();
        let labels: Vec<_> = labels.into_iter().map(|(label, _)| label).collect();
        let id = world.saved_with_metadata(&principal, &labels, None).await;
        other.saved_with_metadata(&stranger, &labels, None).await;
        saved.insert(0, (id, labels));
    }
    for wanted in [vec!["two"], vec!["three", "two"], vec!["four", "two", "three"], vec!["five"], vec!["two", "five"]] {
        let expected = saved.iter().filter(|(_, labels)| wanted.iter().all(|label| labels.contains(label)));
        let expected: Vec<_> = expected.map(|(id, _)| *id).collect();
        let query = world.labelled(&principal, &wanted);
        assert_eq!(world.page(&principal, query.clone()).await, expected, "{wanted:?}");
        let page = async |last: Option<&CredentialId>| {
            let after = last.map(|id| ListPosition { expires_at: None, id: *id });
            world.page(&principal, CredentialQuery { after, limit: 2, ..query.clone() }).await
        };
        assert_eq!(paged(2, page).await, expected, "{wanted:?}");
        let filter = ListFilter { namespace: Some(super::tools::namespace("other")), ..ListFilter::default() };
        assert_eq!(world.page(&principal, CredentialQuery { filter, ..query }).await, []);
    }
    let (first, _) = saved.remove(0);
    world.delete(&principal, first).await.unwrap();
    let two: Vec<_> = saved.iter().filter(|(_, labels)| labels.contains(&"two")).map(|(id, _)| *id).collect();
    assert_eq!(world.page(&principal, world.labelled(&principal, &["two"])).await, two);
}

/// A list by expiry starts with the earliest, in pages.
pub async fn list_is_filtered_by_expiry(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let at = |seconds: i64| Some(world.now().plus_seconds(seconds));
    let mut ids = Vec::new();
    for expiry in [at(300), at(-10), None, at(100), at(100)] {
        ids.push(world.saved_with_metadata(&principal, &["some"], expiry).await);
    }
    let [third, expired, _, first, second] = ids[..] else { panic!("five were saved") };
    let before =
        |seconds| world.list_by(&principal, ListFilter { expires_before: at(seconds), ..ListFilter::default() });
    assert_eq!(world.page(&principal, before(301)).await, [expired, first, second, third]);
    assert_eq!(world.page(&principal, before(300)).await, [expired, first, second]);
    assert_eq!(
        world
            .page(&principal, CredentialQuery { labels: world.labelled(&principal, &["none"]).labels, ..before(301) })
            .await,
        []
    );
    assert_eq!(
        world
            .page(&principal, CredentialQuery { labels: world.labelled(&principal, &["some"]).labels, ..before(101) })
            .await,
        [expired, first, second]
    );
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let query = CredentialQuery { after, limit: 1, ..before(301) };
        let page = world.try_page(&principal, query).await.unwrap().credentials;
        let Some(OpenedCredential { row, .. }) = page.into_iter().next() else { break };
        after = Some(ListPosition { expires_at: row.expires_at, id: row.id });
        paged.push(row.id);
    }
    assert_eq!(paged, [expired, first, second, third]);
}

/// The limit is ten comparisons per hour and credential; each is recorded.
pub async fn comparisons_are_counted(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (principal, stranger) = (world.embedder(), other.embedder());
    let (id, another) = (world.saved(&principal).await, world.saved(&principal).await);
    let matched = async |id| world.operate(&principal, comparison(world.organization, id)).await.decided();
    let outcomes = join_all((0..HourlyLimit::MATCHES + 6).map(|_| matched(id))).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(Ok(false))).count(), HourlyLimit::MATCHES as usize);
    let refused = |outcome: &Result<_, Refusal>| matches!(outcome, Err(Refusal::TooOften(1..=3_601)));
    assert_eq!(outcomes.iter().filter(|outcome| refused(outcome)).count(), 6);
    assert_eq!(world.audited(AuditAction::CredentialMatched).await, HourlyLimit::MATCHES as usize);
    assert_eq!(matched(another).await, Ok(Ok(false)));
    let foreign = comparison(other.organization, id);
    assert_eq!(other.operate(&stranger, foreign).await.decided().err(), Some(Refusal::NotFound));
    world.clock.advance_millis(HOUR_SECONDS * 1_000);
    assert_eq!(matched(id).await, Ok(Ok(false)));
}
