//! Cases of [`Inspection`](vault_core::port::Inspection). Other tests may write to the same database, so each case
//! reads only the rows of its own organizations.

use super::ContractStore;
use super::saving::label_digest;
use super::tools::{namespace, paged};
use super::world::World;
use crate::crypto::FakeAuditSealer;
use crate::crypto::PlainSealer;
use std::collections::HashSet;
use vault_core::audit::{AuditAction, AuditEntry, AuditNote, AuditRecord, RecordedRow, RowState, Subject};
use vault_core::digest::Digest;
use vault_core::id::{AuditId, CredentialId};
use vault_core::operation::ChangedNamespaces;
use vault_core::organization::OrganizationState;
use vault_core::port::{
    AuditSealer as _, IdGenerator as _, MAX_EXISTING, Opener as _, RecordedStates, RecordedSubject, StoredRowKey,
};
use vault_core::principal::Principal;
use vault_core::role::Role;

/// Number of row keys per page.
const PAGE: usize = 2;
/// Number of entries per page.
const LONG_PAGE: usize = 100;

impl World<'_> {
    /// Returns all row keys of this organization that `page` returns, page by page.
    async fn places(&self, page: impl AsyncFn(Option<StoredRowKey>) -> Vec<StoredRowKey>) -> Vec<StoredRowKey> {
        let mut places = paged(PAGE, async |last: Option<&StoredRowKey>| page(last.cloned()).await).await;
        assert!(places.is_sorted_by(|one, next| one < next), "each once, in their order");
        let own = self.organization.to_string();
        places.retain(|(organization, _)| *organization == own);
        places
    }

    async fn credential_places(&self) -> Vec<StoredRowKey> {
        self.places(async |after| self.store.credential_places(after, PAGE).await.unwrap()).await
    }

    /// Appends an entry with the state of a row after an action.
    async fn record_state(&self, subject: Subject, row: RecordedRow, state: RowState, name: Option<&str>) -> String {
        let id = AuditId::from_uuid(self.ids.ordered(self.now()));
        let note = name.map(|name| AuditNote::of(namespace(name)));
        let record = self.audit(AuditAction::StateRecorded).record;
        let record = AuditRecord { id, subject, note, rows: vec![(row, state)], ..record };
        self.store.append(vec![FakeAuditSealer.seal(record)]).await.unwrap();
        self.clock.advance_seconds(1);
        id.to_string()
    }

    async fn recorded(&self, subject: Subject, row: RecordedRow, name: Option<&str>, limit: usize) -> Vec<AuditEntry> {
        let (organization, namespace) = (self.organization, name.map(namespace));
        self.store.recorded_states(RecordedStates { organization, subject, row, namespace, limit }).await.unwrap()
    }
}

/// The row keys of credentials are returned page by page, including those of disabled organizations.
pub async fn every_credential_has_a_row_key(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    assert_eq!(world.credential_places().await, []);
    let mut saved = Vec::new();
    for _ in 0..3 {
        saved.push(world.saved(&world.embedder()).await);
        other.saved(&other.embedder()).await;
    }
    world.set_state(OrganizationState::Disabled).await;
    saved.sort();
    let expected: Vec<_> = saved.iter().map(|id| (world.organization.to_string(), id.to_string())).collect();
    assert_eq!(world.credential_places().await, expected);
}

/// A credential is returned with all its versions, sealed as they were stored, and the digests of its labels.
pub async fn credential_is_read_completely(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let embedder = world.embedder();
    let id = world.saved_with_metadata(&embedder, &["a", "b"], None).await;
    let read = world.versions(&embedder, id).await;
    let versions = world.changed(world.replacement(&embedder, &read)).await;

    let whole = world.store.whole_credential(world.organization, id).await.unwrap().unwrap();
    assert_eq!(whole.versions, versions);
    let (owner, sealer) = (world.read_organization().await.unwrap(), PlainSealer::new(world.ids.clone()));
    let card = versions.current.open(&sealer, &owner).unwrap();
    for (fetched, number) in whole.data.iter().zip([1, 2]) {
        assert_eq!((&fetched.row, fetched.version), (&versions.current, number));
        let context = fetched.row.data_context(owner.id, card.version(number).unwrap());
        assert!(sealer.open(&owner.keys, context, &card.namespace, card.kind, &fetched.data).is_ok());
    }
    let labels: HashSet<_> = whole.labels.iter().map(Digest::as_bytes).collect();
    let expected = ["a", "b"].map(|name| label_digest(owner.id, name));
    assert_eq!((whole.data.len(), whole.labels.len(), labels), (2, 2, expected.iter().map(Digest::as_bytes).collect()));

    let stranger = World::new(suite).await;
    let nonexistent = CredentialId::from_uuid(world.ids.random());
    assert!(world.store.whole_credential(stranger.organization, id).await.unwrap().is_none());
    assert!(world.store.whole_credential(world.organization, nonexistent).await.unwrap().is_none());
}

/// The namespaces of an organization that were ever frozen are read, in any state.
pub async fn changed_namespaces_are_read_by_organization(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let changed = async |expected: &[&str]| {
        let changed = ChangedNamespaces(world.organization);
        let mut namespaces = world.operate(&Principal::Operator, changed).await.unwrap().unwrap();
        namespaces.sort();
        assert_eq!(namespaces, expected.iter().map(|name| namespace(name)).collect::<Vec<_>>());
    };
    other.set_frozen("theirs", true).await;
    changed(&[]).await;
    world.set_frozen("a", true).await;
    world.set_frozen("b", true).await;
    changed(&["a", "b"]).await;
    world.set_frozen("a", false).await;
    changed(&["a", "b"]).await;
}

/// Entries about a row are returned newest first, without entries about another row, subject, namespace or
/// organization.
pub async fn newest_entries_of_a_row_are_first(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let subject = Subject::Credential(CredentialId::from_uuid(world.ids.random()));
    let another = Subject::Credential(CredentialId::from_uuid(world.ids.random()));
    let row = RecordedRow::Credential;
    let mut about = Vec::new();
    for revision in 1..=3 {
        about.push(world.record_state(subject, row, RowState::Revision(revision), None).await);
        world.record_state(another, row, RowState::Revision(revision), None).await;
        world.record_state(subject, RecordedRow::Integration, RowState::Gone, None).await;
        other.record_state(subject, row, RowState::Revision(revision), None).await;
    }
    about.reverse();
    for limit in [1, 2, 3, 10] {
        let found = world.recorded(subject, row, None, limit).await;
        let ids: Vec<_> = found.iter().map(|entry| entry.id.clone()).collect();
        assert_eq!(ids, about[..limit.min(about.len())]);
        assert_eq!(found[0].left(row), Some(RowState::Revision(3)));
    }

    let (vault, row) = (Subject::Namespace, RecordedRow::Namespace);
    let frozen = world.record_state(vault, row, RowState::Revision(1), Some("a")).await;
    let thawed = world.record_state(vault, row, RowState::Revision(2), Some("b")).await;
    for (name, expected) in [(Some("a"), vec![&frozen]), (Some("c"), vec![]), (None, vec![&thawed, &frozen])] {
        let found = world.recorded(vault, row, name, 10).await;
        assert_eq!(found.iter().map(|entry| &entry.id).collect::<Vec<_>>(), expected, "{name:?}");
    }
}

/// Entries that contain states of rows are returned once each, ordered by subject and ID, with their organizations.
pub async fn entries_with_states_are_returned_by_subject(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let subjects = [0; 2].map(|_| Subject::Credential(CredentialId::from_uuid(world.ids.random())));
    let row = RecordedRow::Credential;
    let mut expected = Vec::new();
    for (of, subject) in [(&world, 0), (&other, 1), (&world, 1), (&other, 0), (&world, 0)] {
        let subject = subjects[subject];
        let entry = of.record_state(subject, row, RowState::Revision(1), None).await;
        expected.push(RecordedSubject { subject: subject.text(), entry, organization: of.organization.to_string() });
    }
    // An entry without states.
    let record = AuditRecord { subject: subjects[0], ..world.audit(AuditAction::CredentialDescribed).record };
    world.store.append(vec![FakeAuditSealer.seal(record)]).await.unwrap();
    expected.sort();
    let page =
        async |last: Option<&RecordedSubject>| world.store.recorded_subjects(last.cloned(), LONG_PAGE).await.unwrap();
    let mut found = paged(LONG_PAGE, page).await;
    assert!(found.is_sorted_by(|one, next| one < next), "each once, in their order");
    found.retain(|one| subjects.iter().any(|subject| subject.text() == one.subject));
    assert_eq!(found, expected);
}

/// Of the row keys of a kind, those of existing rows are returned.
pub async fn existing_rows_are_those_of_their_kind_and_place(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let of = world.organization;
    let account = world.holder(Role::Editor).await.account.grant.account;
    let (invitation, _) = world.invited(Role::Viewer).await;
    let credential = world.saved(&world.embedder()).await;
    let integration = world.integration().await;
    let receiver = super::receiver::added(&world, Some(of)).await.key.id;
    let rows = [
        (RecordedRow::Organization, of, *of.as_uuid()),
        (RecordedRow::Account, of, *account.as_uuid()),
        (RecordedRow::Invitation, of, *invitation.grant.account.as_uuid()),
        (RecordedRow::Credential, of, *credential.as_uuid()),
        (RecordedRow::Integration, of, *integration.stored.id.as_uuid()),
        (RecordedRow::Receiver, of, *receiver.as_uuid()),
    ];
    let ids = rows.map(|(_, _, id)| id);
    for (row, of, id) in rows {
        let mut places: Vec<_> = ids.iter().map(|id| (of, *id)).collect();
        places.push((other.organization, id));
        places.extend(std::iter::repeat_with(|| (of, world.ids.random())).take(MAX_EXISTING - places.len()));
        assert_eq!(world.store.existing_rows(row, places).await.unwrap(), [(of, id)], "{row:?}");
    }
    assert_eq!(world.store.existing_rows(RecordedRow::Issuer, vec![(of, ids[0])]).await.unwrap(), []);
}
