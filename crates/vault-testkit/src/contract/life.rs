//! Cases of what is said of a credential, whether it works and where it is used.

use super::ContractStore;
use super::idempotency::digest;
use super::tools::{Settled as _, blob, race, with};
use super::world::{World, undescribed};
use std::sync::Arc;
use vault_core::activation::{HandOutRefusal, HandedOut, SignedRule, VendRule, VendedForm};
use vault_core::audit::AuditAction;
use vault_core::check::CheckReason;
use vault_core::credential::{EXPIRING_SECONDS, HealthState, LastCheck};
use vault_core::hourly::{HOUR_SECONDS, Hourly};
use vault_core::id::CredentialId;
use vault_core::port::{
    CHECK_AGAIN_SECONDS, CHECKER_SECONDS, ChangeCredential, CredentialChange, DueCheck, Expired, HandOut, List,
    ListCredentials, ListPosition, MatchCredential, NoteActivated, RecordCheck, RequestCheck, StoredDescription,
    StoredVersions, TakeChecks, USE_SECONDS, UsePosition,
};
use vault_core::principal::Principal;
use vault_core::sealed::SealedMetadata;
use vault_core::time::Timestamp;
use vault_core::{Command, Refusal};

impl World<'_> {
    /// A credential with labels and an expiry.
    async fn said(&self, principal: &Principal, labels: &[&str], expires_at: Option<Timestamp>) -> CredentialId {
        let command = with(self.save(principal), |save| {
            save.description.labels = labels.iter().map(|label| digest(label)).collect();
            save.expires_at = expires_at;
        });
        let id = command.act.id;
        self.store.save_credential(command).await.unwrap();
        id
    }

    fn described(
        &self,
        principal: &Principal,
        read: &StoredVersions,
        description: StoredDescription,
    ) -> Command<ChangeCredential> {
        let act = ChangeCredential {
            organization: self.organization,
            id: read.current.id,
            revision: read.current.revision,
            change: CredentialChange::Describe,
            description: Some(description),
            expires_at: Some(self.now()),
        };
        self.command(principal, AuditAction::CredentialDescribed, act)
    }

    fn labelled(&self, principal: &Principal, labels: &[&str]) -> ListCredentials {
        ListCredentials { labels: labels.iter().map(|label| digest(label)).collect(), ..self.list(principal) }
    }

    fn matches(&self, principal: &Principal, id: CredentialId) -> Command<MatchCredential> {
        let act = MatchCredential { organization: self.organization, id };
        self.command(principal, AuditAction::CredentialMatched, act)
    }

    fn request_check(&self, principal: &Principal, id: CredentialId, version: Option<i64>) -> Command<RequestCheck> {
        let act = RequestCheck { organization: self.organization, id, version };
        self.command(principal, AuditAction::CredentialCheckRequested, act)
    }

    async fn take_checks(&self, turn: Option<(usize, i64)>) -> Vec<DueCheck> {
        let checks = self.store.take_checks(TakeChecks { now: self.now(), most: 10, turn }).await.unwrap();
        // A store may hold other organizations.
        checks.into_iter().filter(|check| check.organization == self.organization).collect()
    }

    async fn record_check(&self, due: &DueCheck, failed: Option<CheckReason>) -> bool {
        let act = RecordCheck {
            organization: due.organization,
            id: due.credential.id,
            version: due.credential.version,
            check: LastCheck::after(due.before, self.now(), failed),
            audit: Some(self.audit(AuditAction::CredentialFailing)),
        };
        self.store.record_check(act).await.unwrap()
    }

    async fn uses(&self, principal: &Principal, id: CredentialId, after: Option<UsePosition>) -> Option<Vec<String>> {
        let of = (self.organization, id);
        let query = List { principal: principal.clone(), of, after, limit: 2, now: self.now() };
        let uses = self.store.list_uses(query).await.unwrap()?;
        Some(uses.into_iter().map(|one| one.activation.to_string()).collect())
    }
}

/// What is said of a credential is read back with it, and replaced as a whole by a change of the revision that was read.
pub async fn what_is_said_of_a_credential_is_replaced(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.said(&principal, &["a", "b"], None).await;
    let read = world.versions(&principal, id).await;
    assert_eq!((&read.current.metadata, read.current.expires_at), (&None, None));
    let sealed = SealedMetadata { key: world.key, revision: 2, blob: blob("metadata") };
    let description = StoredDescription {
        metadata: Some(sealed.clone()),
        labels: vec![digest("b"), digest("c")],
        rule: SignedRule { vend: VendRule::Short, code: Some(digest("short")) },
    };
    let expires_at = world.now();
    let change = || world.described(&principal, &read, description.clone());
    assert_eq!(world.store.change_credential(change()).await.unwrap(), 1);
    assert_eq!(world.store.change_credential(change()).await.decided(), Err(Refusal::Changed));
    let mut expected = read.current.clone();
    (expected.revision, expected.updated_at, expected.expires_at) = (2, expires_at, Some(expires_at));
    (expected.metadata, expected.rule) = (Some(sealed), description.rule);
    assert_eq!(world.versions(&principal, id).await.current, expected);
    for (label, found) in [("a", vec![]), ("b", vec![id]), ("c", vec![id])] {
        assert_eq!(world.page(world.labelled(&principal, &[label])).await, found, "{label}");
    }
    // A change of the versions alone leaves it as it is.
    let read = world.versions(&principal, id).await;
    let read = world.changed(&principal, &read, world.replacement(&read)).await;
    assert_eq!((read.current.rule, read.current.metadata), (expected.rule, expected.metadata));
    assert_eq!(world.page(world.labelled(&principal, &["b", "c"])).await, [id]);
    assert_eq!(world.audited(AuditAction::CredentialDescribed).await, 1);
}

/// Metadata under a key that is no longer active is refused, saved or changed.
pub async fn metadata_needs_an_active_key(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let read = world.versions(&principal, id).await;
    let replacement = world.replace_key(world.key);
    assert!(world.store.replace_organization_key(replacement).await.unwrap());
    let metadata = Some(SealedMetadata { key: world.key, revision: 2, blob: blob("metadata") });
    let description = StoredDescription { metadata, ..undescribed() };
    let change = world.described(&principal, &read, description.clone());
    assert_eq!(world.store.change_credential(change).await.decided(), Err(Refusal::Contended));
    assert_eq!(world.versions(&principal, id).await, read);
}

/// A list of labels holds those that have all of them, page by page, and nothing of another organization.
pub async fn a_list_is_filtered_by_labels(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (principal, stranger) = (world.embedder(), other.embedder());
    let mut saved = Vec::new();
    for number in 0..12 {
        let all = ["two", "three", "four"];
        let labels: Vec<_> = all.into_iter().zip([2, 3, 4]).filter(|(_, by)| number % by == 0).collect();
        let labels: Vec<_> = labels.into_iter().map(|(label, _)| label).collect();
        let id = world.said(&principal, &labels, None).await;
        other.said(&stranger, &labels, None).await;
        saved.insert(0, (id, labels));
    }
    for wanted in [vec!["two"], vec!["three", "two"], vec!["four", "two", "three"], vec!["five"], vec!["two", "five"]] {
        let expected = saved.iter().filter(|(_, labels)| wanted.iter().all(|label| labels.contains(label)));
        let expected: Vec<_> = expected.map(|(id, _)| *id).collect();
        let query = world.labelled(&principal, &wanted);
        assert_eq!(world.page(query.clone()).await, expected, "{wanted:?}");
        let mut paged: Vec<CredentialId> = Vec::new();
        loop {
            let after = paged.last().map(|id| ListPosition { expires_at: None, id: *id });
            let page = world.page(ListCredentials { after, limit: 2, ..query.clone() }).await;
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, expected, "{wanted:?}");
        let elsewhere = ListCredentials { namespace: Some(super::tools::namespace("other")), ..query };
        assert_eq!(world.page(elsewhere).await, []);
    }
    let (first, _) = saved.remove(0);
    assert_eq!(world.store.delete_credential(world.delete(&principal, first)).await.settled(), Ok(true));
    let two: Vec<_> = saved.iter().filter(|(_, labels)| labels.contains(&"two")).map(|(id, _)| *id).collect();
    assert_eq!(world.page(world.labelled(&principal, &["two"])).await, two);
}

/// The soonest to expire first, page by page, and each state of health.
pub async fn a_list_is_filtered_by_expiry_and_health(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let at = |seconds: i64| Some(world.now().plus_seconds(seconds));
    let mut ids = Vec::new();
    for expiry in [at(300), at(-10), None, at(100), at(100), at(EXPIRING_SECONDS + 100)] {
        ids.push(world.said(&principal, &["some"], expiry).await);
    }
    let [third, expired, never, first, second, later] = ids[..] else { panic!("six were saved") };
    let before = |seconds| ListCredentials { expires_before: at(seconds), ..world.list(&principal) };
    assert_eq!(world.page(before(301)).await, [expired, first, second, third]);
    assert_eq!(world.page(before(300)).await, [expired, first, second]);
    assert_eq!(world.page(ListCredentials { labels: vec![digest("none")], ..before(301) }).await, []);
    assert_eq!(
        world.page(ListCredentials { labels: vec![digest("some")], ..before(101) }).await,
        [expired, first, second]
    );
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let query = ListCredentials { after, limit: 1, ..before(301) };
        let Some(row) = world.store.list_credentials(query).await.unwrap().rows.into_iter().next() else { break };
        after = Some(ListPosition { expires_at: row.expires_at, id: row.id });
        paged.push(row.id);
    }
    assert_eq!(paged, [expired, first, second, third]);

    let health = |health| ListCredentials { health: Some(health), ..world.list(&principal) };
    assert_eq!(world.page(health(HealthState::Expired)).await, [expired]);
    assert_eq!(world.page(health(HealthState::Expiring)).await, [second, first, third]);
    assert_eq!(world.page(health(HealthState::Unchecked)).await, [later, never]);
    assert_eq!(world.page(health(HealthState::Failing)).await, []);
    for due in world.take_checks(Some((100, 0))).await {
        let fails = [first, later].contains(&due.credential.id);
        assert!(world.record_check(&due, fails.then_some(CheckReason::UnknownKey)).await);
    }
    assert_eq!(world.page(health(HealthState::Expired)).await, [expired]);
    assert_eq!(world.page(health(HealthState::Failing)).await, [later, first]);
    assert_eq!(world.page(health(HealthState::Expiring)).await, [second, third]);
    assert_eq!(world.page(health(HealthState::Healthy)).await, [never]);
    assert_eq!(world.page(health(HealthState::Unchecked)).await, []);
}

/// Data is compared ten times an hour, for each credential; each time is recorded.
pub async fn comparisons_are_counted(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (principal, stranger) = (world.embedder(), other.embedder());
    let (id, another) = (world.saved(&principal).await, world.saved(&principal).await);
    let outcomes = race((0..Hourly::MATCHES + 6).map(|_| {
        let (command, store) = (world.matches(&principal, id), Arc::clone(&world.store));
        async move { store.match_credential(command).await.decided().map(|row| row.id) }
    }))
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(id)).count(), Hourly::MATCHES as usize);
    let refused = |outcome: &Result<CredentialId, Refusal>| matches!(outcome, Err(Refusal::TooOften(1..=3_601)));
    assert_eq!(outcomes.iter().filter(|outcome| refused(outcome)).count(), 6);
    assert_eq!(world.audited(AuditAction::CredentialMatched).await, Hourly::MATCHES as usize);
    assert_eq!(world.store.match_credential(world.matches(&principal, another)).await.unwrap().id, another);
    let foreign = other.matches(&stranger, id);
    assert_eq!(other.store.match_credential(foreign).await.decided().err(), Some(Refusal::NotFound));
    world.clock.advance_millis(HOUR_SECONDS * 1_000);
    assert_eq!(world.store.match_credential(world.matches(&principal, id)).await.unwrap().id, id);
    assert!(world.store.sweep(Expired::HourlyCounts, world.now()).await.unwrap() >= 1);
}

/// A requested check is taken by one activation side, once; what it found is stored with its version.
pub async fn a_requested_check_is_made_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let request =
        async |version| world.store.request_check(world.request_check(&principal, id, version)).await.decided();
    world.take_checks(None).await;
    world.clock.advance_millis(CHECKER_SECONDS * 1_000 + 1);
    assert_eq!(request(None).await, Err(Refusal::NoChecker));
    assert_eq!(world.take_checks(None).await, []);
    let read = world.versions(&principal, id).await;
    let staged = CredentialChange::Stage(world.new_version(id, 2));
    world.changed(&principal, &read, staged).await;
    assert_eq!(request(Some(3)).await, Err(Refusal::NoSuchVersion));
    assert_eq!(request(None).await, Ok(()));
    assert_eq!(request(None).await, Ok(()));

    let taken = race((0..4).map(|_| {
        let (store, act) = (Arc::clone(&world.store), TakeChecks { now: world.now(), most: 10, turn: None });
        async move { store.take_checks(act).await.unwrap() }
    }))
    .await;
    let ours = taken.into_iter().flatten().filter(|check| check.organization == world.organization);
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours.len(), 1);
    assert_eq!((ours[0].credential.version, ours[0].before), (2, None));
    assert_eq!(ours[0].credential.sealed, world.sealed_version(id, 2));
    // Whoever took it may have died.
    world.clock.advance_millis(CHECK_AGAIN_SECONDS * 1_000);
    assert_eq!(world.take_checks(None).await.len(), 1);
    assert!(world.record_check(&ours[0], Some(CheckReason::UnknownKey)).await);
    world.clock.advance_millis(CHECK_AGAIN_SECONDS * 1_000);
    assert_eq!(world.take_checks(None).await, []);

    let failed = |at: Timestamp| Some(LastCheck { at, since: at, failed: Some(CheckReason::UnknownKey) });
    let checked_at = world.now().plus_seconds(-CHECK_AGAIN_SECONDS);
    let read = world.versions(&principal, id).await;
    assert_eq!((read.current.check, read.others[0].check), (None, failed(checked_at)));
    // Health goes with its version, and changes no revision.
    let promote = CredentialChange::Promote { number: 2, destroy_at: world.destroy_at(), destroyed: Vec::new() };
    let read = world.changed(&principal, &read, promote).await;
    assert_eq!((read.current.check, read.others[0].check), (failed(checked_at), None));
    assert_eq!(world.audited(AuditAction::CredentialFailing).await, 1);
    assert_eq!(world.store.delete_credential(world.delete(&principal, id)).await.settled(), Ok(true));
    assert!(!world.record_check(&ours[0], None).await, "it is gone");
}

/// An organization requests sixty checks an hour.
pub async fn requested_checks_are_limited(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    world.take_checks(None).await;
    for _ in 0..Hourly::CHECKS {
        world.store.request_check(world.request_check(&principal, id, None)).await.unwrap();
    }
    let refused = world.store.request_check(world.request_check(&principal, id, None)).await.decided();
    assert!(matches!(refused, Err(Refusal::TooOften(1..=3_601))), "{refused:?}");
    assert_eq!(world.audited(AuditAction::CredentialCheckRequested).await, Hourly::CHECKS as usize);
}

/// Every credential has its turn once in a round, and the next round begins when it may.
pub async fn checks_come_in_rounds(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let mut saved = Vec::new();
    for _ in 0..7 {
        saved.push(world.saved(&principal).await);
    }
    let mut seen = Vec::new();
    // Stores that are shared hold credentials of other organizations too.
    for _ in 0..10_000 {
        let due = world.take_checks(Some((3, 1_000_000))).await;
        seen.extend(due.iter().map(|check| check.credential.id));
        if seen.len() >= saved.len() {
            break;
        }
        world.clock.advance_millis(1);
    }
    assert_eq!(seen, saved);
}

/// Handing out is a use of each credential, which its organization sees, newest first, for thirty days.
pub async fn what_is_handed_out_is_a_use(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let stored = world.integration().await;
    let activator = world.activator(&stored);
    let id = world.saved(&principal).await;
    let mut activations = Vec::new();
    for _ in 0..3 {
        world.clock.advance_millis(1_000);
        let (begun, _) = world.activate(&activator, "contract").await;
        let command = world.hand_out(&activator, "contract", begun, &[id]);
        assert_eq!(world.store.hand_out(command).await.unwrap(), None);
        activations.insert(0, begun.to_string());
    }
    assert_eq!(world.uses(&principal, id, None).await.unwrap(), activations[..2]);
    let query =
        List { principal: principal.clone(), of: (world.organization, id), after: None, limit: 3, now: world.now() };
    let all = world.store.list_uses(query).await.unwrap().unwrap();
    let position = UsePosition { at: all[1].at, activation: all[1].activation };
    assert_eq!(world.uses(&principal, id, Some(position)).await.unwrap(), activations[2..]);
    assert_eq!((all[0].integration, all[0].form), (stored.integration.id, VendedForm::Raw));
    assert_eq!(all[0].name, Some(stored.integration.name));
    assert_eq!(other.uses(&other.embedder(), id, None).await, None);

    let minute = world.now().floor_to_minute();
    for minute in [minute, minute.plus_seconds(-60)] {
        let act = NoteActivated { organization: world.organization, credentials: vec![id], minute };
        world.store.note_activated(act).await.unwrap();
    }
    assert_eq!(world.versions(&principal, id).await.current.last_activated_at, Some(minute));
    world.clock.advance_millis(USE_SECONDS * 1_000);
    while world.store.sweep(Expired::CredentialUses, world.now()).await.unwrap() > 0 {}
    assert_eq!(world.uses(&principal, id, None).await.unwrap(), Vec::<String>::new());
}

/// What may only be handed out as something short-lived does not leave as it is, whatever was made ready.
pub async fn a_rule_that_came_meanwhile_holds(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let activator = world.activator(&world.integration().await);
    let id = world.saved(&principal).await;
    let (begun, _) = world.activate(&activator, "contract").await;
    let read = world.versions(&principal, id).await;
    let rule = SignedRule { vend: VendRule::Short, code: Some(digest("short")) };
    let change = world.described(&principal, &read, StoredDescription { rule, ..undescribed() });
    world.store.change_credential(change).await.unwrap();
    let raw = world.hand_out(&activator, "contract", begun, &[id]);
    assert_eq!(world.store.hand_out(raw).await.unwrap(), Some(HandOutRefusal::Changed));
    let (begun, _) = world.activate(&activator, "contract").await;
    let mut short = world.hand_out(&activator, "contract", begun, &[id]);
    let HandOut { credentials, .. } = &mut short.act;
    *credentials = vec![HandedOut { credential: id, version: 1, form: VendedForm::Short, expires_at: None }];
    assert_eq!(world.store.hand_out(short).await.unwrap(), None);
}
