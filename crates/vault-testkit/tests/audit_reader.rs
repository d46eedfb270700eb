//! Reading the audit log, page by page and filtered, on the store in memory.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;
use vault_core::audit::{Actor, Affected, AppendEntries, AuditAction, AuditEntry, Subject};
use vault_core::cursor::PageRequest;
use vault_core::id::{AccountId, CredentialId, IntegrationId};
use vault_core::namespace::Namespace;
use vault_core::port::{AuditOrder, Clock as _};
use vault_core::principal::{Principal, Scope};
use vault_core::time::Timestamp;
use vault_core::usecase::{AuditFilter, AuditReader};
use vault_core::{Error, Refusal};
use vault_testkit::fake::FakeVault;

const ACTIONS: [AuditAction; 2] = [AuditAction::CredentialSaved, AuditAction::CredentialDeleted];

fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn actors() -> [Actor; 4] {
    let integration = |number| Actor::Integration(IntegrationId::from_uuid(uuid(number)));
    [Actor::Operator, Actor::Embedder(AccountId::from_uuid(uuid(1))), integration(2), integration(3)]
}

fn subjects() -> [Subject; 3] {
    [
        Subject::Vault,
        Subject::Credential(CredentialId::from_uuid(uuid(4))),
        Subject::Account(AccountId::from_uuid(uuid(5))),
    ]
}

/// An entry: milliseconds after the previous one, and the indices of actor, action and subject.
type Written = (i64, usize, usize, usize);

fn written() -> impl Strategy<Value = Vec<Written>> {
    vec((0_i64..3, 0..actors().len(), 0..ACTIONS.len(), 0..subjects().len()), 0..40)
}

struct Setting {
    fake: FakeVault,
    reader: AuditReader,
    start: Timestamp,
}

impl Setting {
    fn new() -> Self {
        let fake = FakeVault::new();
        let (reader, start) = (fake.audit_reader(), fake.clock.now());
        Self { fake, reader, start }
    }

    async fn write(&self, written: &[Written]) -> Vec<AuditEntry> {
        let mut records = Vec::new();
        for (later, actor, action, subject) in written {
            self.fake.clock.advance_millis(*later);
            let (actor, action, subject) = (actors()[*actor], ACTIONS[*action], subjects()[*subject]);
            records.push(self.fake.environment.record(self.fake.clock.now(), None, actor, action, subject));
        }
        let entries = records.iter().map(vault_core::audit::SealedAuditRecord::to_entry).collect();
        self.fake.operate(AppendEntries(records)).await.unwrap();
        entries
    }

    /// Returns all pages of a list, as an operator.
    async fn pages(&self, order: AuditOrder, filter: &AuditFilter, limit: usize) -> Vec<Vec<AuditEntry>> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let page = PageRequest { limit, cursor };
            let read = self.reader.list(&Principal::Operator, Scope::All, order, filter, &page).await.unwrap();
            pages.push(read.items);
            cursor = read.next;
            if cursor.is_none() {
                return pages;
            }
        }
    }
}

proptest! {
    /// The pages of a list contain every matching entry exactly once, in order.
    #[test]
    fn pages_cover_whole_list(
        written in written(),
        since in option::of(0_i64..60),
        until in option::of(0_i64..60),
        action in option::of(select(&ACTIONS[..])),
        subject in option::of((0..subjects().len(), any::<bool>())),
        actor in option::of((0..actors().len(), any::<bool>())),
        newest_first in any::<bool>(),
        limit in 1_usize..8,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let setting = Setting::new();
            let entries = setting.write(&written).await;
            let moment = |millis: i64| Timestamp::from_millis(setting.start.as_millis() + millis);
            let (since, until) = (since.map(moment), until.map(moment));
            // Filter by the whole subject or its ID, and by the kind of the actor or its ID.
            let subject = subject.map(|(index, whole)| (subjects()[index], whole));
            let actor = actor.map(|(index, kind)| (actors()[index], kind));
            let id = |subject: Subject| subject.text().rsplit(':').next().unwrap().to_owned();
            let whose = |actor: Actor| {
                let account = actor.account().map(|id| id.to_string());
                account.or(actor.integration().map(|id| id.to_string())).unwrap_or_else(|| actor.kind().to_owned())
            };
            let filter = AuditFilter {
                since,
                until,
                actions: action.iter().map(|action| action.as_str().to_owned()).collect(),
                subject: subject.map(|(subject, whole)| if whole { subject.text() } else { id(subject) }),
                actor: actor.map(|(actor, kind)| if kind { actor.kind().to_owned() } else { whose(actor) }),
                ..AuditFilter::default()
            };
            let mut expected: Vec<_> = entries.iter().zip(&written).filter(|(entry, (_, by, done, on))| {
                let by = actors()[*by];
                since.is_none_or(|since| since <= entry.at)
                    && until.is_none_or(|until| until > entry.at)
                    && action.is_none_or(|action| action == ACTIONS[*done])
                    && subject.is_none_or(|(subject, _)| subject == subjects()[*on])
                    && actor.is_none_or(|(actor, kind)| if kind { actor.kind() == by.kind() } else { actor == by })
            }).map(|(entry, _)| entry.clone()).collect();
            if newest_first {
                expected.reverse();
            }
            let order = if newest_first { AuditOrder::NewestFirst } else { AuditOrder::OldestFirst };
            let pages = setting.pages(order, &filter, limit).await;
            assert_eq!(pages.concat(), expected);
            assert!(pages.iter().all(|page| page.len() <= limit));
            assert_eq!(pages.len(), expected.len().div_ceil(limit).max(1), "no page is empty for nothing");
            // A list that is read again from the start or from a cursor is recorded once.
            setting.fake.tally.flush(true).await.unwrap();
            let listed = setting.fake.store.audit().into_iter().filter(|one| one.action == AuditAction::AuditListed);
            assert_eq!(listed.map(|one| one.count).collect::<Vec<_>>(), [1]);
        });
    }
}

#[tokio::test]
async fn entries_are_filtered_by_actions_outcome_and_reads() {
    let setting = Setting::new();
    let actions = [
        AuditAction::CredentialsListed,
        AuditAction::LoginRefused,
        AuditAction::CredentialSaved,
        AuditAction::ActivationRefusedFrozen,
        AuditAction::CredentialShown,
    ];
    let record = |action| {
        setting.fake.clock.advance_millis(1);
        setting.fake.environment.record(setting.fake.clock.now(), None, Actor::System, action, Subject::Vault)
    };
    setting.fake.operate(AppendEntries(actions.map(record).to_vec())).await.unwrap();
    let found = async |filter: AuditFilter| {
        let pages = setting.pages(AuditOrder::OldestFirst, &filter, 1).await;
        pages.concat().into_iter().map(|entry| entry.action).collect::<Vec<_>>()
    };
    let of = |actions: &[&str]| actions.iter().map(|action| (*action).to_owned()).collect();
    let denied = AuditFilter { denied: true, ..AuditFilter::default() };
    assert_eq!(found(denied.clone()).await, ["login.refused", "activation.refused-frozen"]);
    let without_reads = AuditFilter { without_reads: true, ..AuditFilter::default() };
    assert_eq!(found(without_reads).await, ["login.refused", "credential.saved", "activation.refused-frozen"]);
    let either = AuditFilter { actions: of(&["credential.saved", "login.refused"]), ..AuditFilter::default() };
    assert_eq!(found(either.clone()).await, ["login.refused", "credential.saved"]);
    assert_eq!(found(AuditFilter { denied: true, ..either }).await, ["login.refused"]);
}

/// A page reads at most 10,000 entries. It may be empty and still have a successor.
#[tokio::test]
async fn page_reads_bounded_number_of_entries() {
    let setting = Setting::new();
    let mut written: Vec<Written> = vec![(0, 0, 0, 0); 10_500];
    written[10_400].2 = 1;
    let entries = setting.write(&written).await;
    let filter =
        AuditFilter { actions: vec![AuditAction::CredentialDeleted.as_str().to_owned()], ..AuditFilter::default() };
    let pages = setting.pages(AuditOrder::OldestFirst, &filter, 5).await;
    assert_eq!(pages, [vec![], vec![entries[10_400].clone()]]);
    // The page is full, and not one more entry is read.
    let pages = setting.pages(AuditOrder::OldestFirst, &AuditFilter::default(), 10_000).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [10_000, 500]);
}

/// An ID may be ahead of its entry's time after a clock was moved back. Such entries are found for an hour.
#[tokio::test]
async fn entries_are_found_after_clock_moved_back() {
    let setting = Setting::new();
    setting.write(&[(0, 0, 0, 0)]).await;
    setting.fake.clock.advance_seconds(-3_500);
    let before = setting.write(&[(0, 0, 0, 0)]).await;
    let filter = AuditFilter { until: Some(setting.start), ..AuditFilter::default() };
    assert_eq!(setting.pages(AuditOrder::OldestFirst, &filter, 5).await, [before]);
}

/// A cursor belongs to one filter and order. With another filter, it would skip entries.
#[tokio::test]
async fn cursor_of_another_filter_is_refused() {
    let setting = Setting::new();
    setting.write(&[(0, 0, 0, 0); 6]).await;
    let filter = AuditFilter { actor: Some("operator".to_owned()), ..AuditFilter::default() };
    let read = async |filter: &AuditFilter, order, cursor| {
        let page = PageRequest { limit: 2, cursor };
        setting.reader.list(&Principal::Operator, Scope::All, order, filter, &page).await
    };
    let cursor = read(&filter, AuditOrder::OldestFirst, None).await.unwrap().next;
    assert!(cursor.is_some());
    assert!(read(&filter, AuditOrder::OldestFirst, cursor.clone()).await.is_ok());
    let text = |text: &str| Some(text.to_owned());
    let others = [
        AuditFilter::default(),
        AuditFilter { since: Some(setting.start), ..filter.clone() },
        AuditFilter { until: Some(setting.start), ..filter.clone() },
        AuditFilter { actions: vec!["credential.saved".to_owned()], ..filter.clone() },
        AuditFilter { denied: true, ..filter.clone() },
        AuditFilter { without_reads: true, ..filter.clone() },
        AuditFilter { subject: text("vault"), ..filter.clone() },
        AuditFilter { namespace: text("operator"), actor: None, ..filter.clone() },
    ];
    for other in others {
        let refused = read(&other, AuditOrder::OldestFirst, cursor.clone()).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::Cursor))), "{other:?}");
    }
    let refused = read(&filter, AuditOrder::NewestFirst, cursor).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::Cursor))));
}

/// A filter by namespace finds all entries about it, whatever their subject.
#[tokio::test]
async fn entries_are_found_by_their_namespace() {
    let setting = Setting::new();
    let namespace: Namespace = "imports/nightly".parse().unwrap();
    let credential = Subject::Credential(CredentialId::from_uuid(uuid(4)));
    let (now, environment) = (setting.start, &setting.fake.environment);
    let records = [
        environment.record(
            now,
            None,
            Actor::Operator,
            ACTIONS[0],
            Affected::from(credential).within(namespace.clone()),
        ),
        environment.record(now, None, Actor::Operator, ACTIONS[0], credential),
        environment.record(
            now,
            None,
            Actor::Operator,
            AuditAction::NamespaceFrozen,
            Affected::from(Subject::Namespace).within(namespace),
        ),
    ];
    setting.fake.operate(AppendEntries(records.to_vec())).await.unwrap();
    let filter = AuditFilter { namespace: Some("imports/nightly".to_owned()), ..AuditFilter::default() };
    let found = setting.pages(AuditOrder::OldestFirst, &filter, 10).await.concat();
    assert_eq!(found.iter().map(|entry| &*entry.action).collect::<Vec<_>>(), ["credential.saved", "namespace.frozen"]);
}
