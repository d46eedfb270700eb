//! Cases of the integrity check and its rows. Other tests may write to the same database, so each case reads only the rows
//! of its own organizations.

use super::ContractStore;
use super::tools::namespace;
use super::world::World;
use crate::crypto::{FakeAuditSealer, PlainSealer};
use uuid::Uuid;
use vault_core::audit::{AuditAction, AuditEntry, AuditNote, AuditRecord, RecordedRow, RowState, Subject};
use vault_core::id::{AuditId, CredentialId, OrganizationId};
use vault_core::inspect::{InspectRow, Inspected, InspectedRow, ReadPage, RowFinding, Stage, Violation};
use vault_core::operation::{Access, Failure, Operation, Unit};
use vault_core::organization::OrganizationState;
use vault_core::port::{AuditSealer as _, IdGenerator as _, RecordedStates, StoredRowKey};
use vault_core::principal::Principal;
use vault_core::role::Role;

/// Number of rows per page.
const PAGE: usize = 2;
/// Number of entries per page.
const LONG_PAGE: usize = 100;

/// Reads the entries about a row.
#[derive(Clone, Debug, PartialEq)]
struct ReadEntries(RecordedStates);

impl Operation for ReadEntries {
    type Outcome = Vec<AuditEntry>;
    const ACCESS: Access<Self> = Access::Read(|_| None);

    async fn run(&self, unit: &Unit<'_>) -> Result<Vec<AuditEntry>, Failure> {
        Ok(unit.rows().recorded_entries(&self.0).await?)
    }
}

impl World<'_> {
    /// Returns the rows to be inspected from the start of a stage to its end, page by page.
    pub(super) async fn rows_of(&self, mut stage: Stage, limit: usize) -> Vec<InspectedRow> {
        let (kind, mut rows) = (std::mem::discriminant(&stage), Vec::new());
        while std::mem::discriminant(&stage) == kind {
            let page = self.operate(&Principal::Operator, ReadPage { stage, limit }).await.unwrap();
            rows.extend(page.rows);
            stage = page.next;
        }
        rows
    }

    pub(super) async fn inspect(&self, row: InspectedRow) -> Inspected {
        self.operate(&Principal::Operator, InspectRow::new(row)).await.unwrap()
    }

    pub(super) async fn findings(&self, row: InspectedRow) -> Vec<RowFinding> {
        self.inspect(row).await.findings
    }

    /// Returns the row keys of the credentials of this organization.
    async fn credential_places(&self) -> Vec<StoredRowKey> {
        let rows = self.rows_of(Stage::Credentials(None), PAGE).await.into_iter();
        let mut places: Vec<_> = rows
            .map(|row| match row {
                InspectedRow::Credential(place) => place,
                other => panic!("no credential: {other:?}"),
            })
            .collect();
        assert!(places.is_sorted_by(|one, next| one < next), "each once, in their order");
        let own = self.organization.to_string();
        places.retain(|(organization, _)| *organization == own);
        places
    }

    /// Appends an entry with the state of a row after an action.
    async fn record_state(&self, subject: Subject, row: RecordedRow, state: RowState, name: Option<&str>) -> String {
        let id = AuditId::from_uuid(self.ids.ordered(self.now()));
        let note = name.map(|name| AuditNote::of(namespace(name)));
        let record = self.audit(AuditAction::StateRecorded).record;
        let record = AuditRecord { id, subject, note, rows: vec![(row, state)], ..record };
        self.append(vec![FakeAuditSealer.seal(record)]).await.unwrap();
        self.clock.advance_seconds(1);
        id.to_string()
    }

    async fn recorded(&self, subject: Subject, row: RecordedRow, name: Option<&str>, limit: usize) -> Vec<AuditEntry> {
        let (organization, namespace) = (self.organization, name.map(namespace));
        let query = RecordedStates { organization, subject, row, namespace, limit };
        self.operate(&Principal::Operator, ReadEntries(query)).await.unwrap()
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

/// A credential is inspected with all its versions and labels.
pub async fn credential_is_read_completely(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let embedder = world.embedder();
    let id = world.saved_with_metadata(&embedder, &["a", "b"], None).await;
    let read = world.versions(&embedder, id).await;
    world.changed(world.replacement(&embedder, &read)).await;

    let place = |organization: OrganizationId, id: CredentialId| {
        InspectedRow::Credential((organization.to_string(), id.to_string()))
    };
    let inspected = world.inspect(place(world.organization, id)).await;
    assert_eq!(inspected.findings, []);
    let opener = PlainSealer::new(world.ids.clone());
    let opened: Vec<_> = inspected.sealed.unwrap().open(&opener).collect();
    assert!(opened.len() == 2 && opened.iter().all(Result::is_ok), "{opened:?}");

    let stranger = World::new(suite).await;
    let nonexistent = CredentialId::from_uuid(world.ids.random());
    for place in [place(stranger.organization, id), place(world.organization, nonexistent)] {
        let inspected = world.inspect(place).await;
        assert!(inspected.findings.is_empty() && inspected.sealed.is_none());
    }
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

/// Of the rows that entries name, those that do not exist are found: each in its organization and under its kind.
pub async fn rows_that_do_not_exist_are_found(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let of = world.organization;
    let account = world.holder(Role::Editor).await.account.grant.account;
    world.invited(Role::Viewer).await;
    world.integration().await;
    super::receiver::added(&world, Some(of)).await;
    let credential = world.saved(&world.embedder()).await;
    let deleted = Subject::Credential(CredentialId::from_uuid(world.ids.random()));
    let state = RowState::Revision(1);
    let mut entries = Vec::new();
    for one in [&world, &other, &world] {
        entries.push(one.record_state(deleted, RecordedRow::Credential, state, None).await);
    }
    // The credential of another organization.
    other.record_state(Subject::Credential(credential), RecordedRow::Credential, state, None).await;

    let mut found = Vec::new();
    for row in world.rows_of(Stage::Recorded(None), LONG_PAGE).await {
        let InspectedRow::Absent(row, (organization, id)) = row else { panic!("it exists: {row:?}") };
        if [of, other.organization].contains(&organization) {
            found.push((row, organization, id));
        }
    }
    let id = |subject: Subject| Uuid::parse_str(subject.text().split_once(':').unwrap().1).unwrap();
    let mut expected = vec![
        (RecordedRow::Credential, of, id(deleted)),
        (RecordedRow::Credential, other.organization, id(deleted)),
        (RecordedRow::Credential, other.organization, *credential.as_uuid()),
        // Entries about accounts also name their invitations.
        (RecordedRow::Invitation, of, *account.as_uuid()),
    ];
    expected.sort_by_key(|(row, organization, id)| (row.as_str(), *organization, *id));
    found.sort_by_key(|(row, organization, id)| (row.as_str(), *organization, *id));
    found.dedup();
    found.retain(|(row, _, id)| *row != RecordedRow::Account || id == account.as_uuid());
    assert_eq!(found, expected);
    let findings = world.findings(InspectedRow::Absent(RecordedRow::Credential, (of, id(deleted)))).await;
    assert_eq!(findings[0].violation, Violation::Deleted { entry: entries.pop().unwrap() });
}
