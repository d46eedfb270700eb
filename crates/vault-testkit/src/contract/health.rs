//! Cases of credential health and usage recorded by the activation process.

use super::activators::ACTIVATION_SECONDS;
use super::saving::{Changing, comparison};
use super::tools::{Settled as _, with};
use super::world::World;
use super::{ContractStore, audit};
use crate::commands::CredentialCommands as _;
use crate::crypto::FakeAuditSealer;
use futures_util::future::join_all;
use vault_core::activation::VendedForm;
use vault_core::audit::{Actor, AuditAction, AuditNote, AuditRecord};
use vault_core::check::CheckReason;
use vault_core::credential::{
    CHECK_AGAIN_SECONDS, CHECKER_SECONDS, ClaimChecks, EXPIRING_SECONDS, HealthState, LastCheck, ListFilter,
    ListHolders, ListUses, RecordActivated, RecordCheck, RequestCheck, USE_SECONDS, UsePosition, VersionKey,
};
use vault_core::hourly::{HOUR_SECONDS, HourlyLimit};
use vault_core::id::{CredentialId, IntegrationId};
use vault_core::integration::{CountActions, CountHours, CountedPeriod};
use vault_core::maintenance::Expired;
use vault_core::namespace::Namespace;
use vault_core::port::{AuditSealer, IdGenerator};
use vault_core::principal::Principal;
use vault_core::time::Timestamp;
use vault_core::{Error, Refusal};

impl World<'_> {
    /// Records the result of a check of a version after `before`.
    async fn record_check(
        &self,
        (id, version): (CredentialId, i64),
        before: Option<LastCheck>,
        failed: Option<CheckReason>,
    ) -> bool {
        let recorded = RecordCheck {
            key: VersionKey { organization: self.organization, id, version },
            check: LastCheck::after(before, self.now(), failed),
            changed: Some(AuditAction::CredentialFailing),
        };
        self.operate(&Principal::Operator, recorded).await.unwrap()
    }

    async fn uses(&self, principal: &Principal, id: CredentialId, after: Option<UsePosition>) -> Option<Vec<String>> {
        let listed = ListUses { organization: self.organization, id, after, limit: 2 };
        let uses = self.operate(principal, listed).await.ok()?;
        Some(uses.into_iter().map(|one| one.activation.to_string()).collect())
    }
}

/// A list is filtered by each health state.
pub async fn list_is_filtered_by_health(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let at = |seconds: i64| Some(world.now().plus_seconds(seconds));
    let mut ids = Vec::new();
    for expiry in [at(300), at(-10), None, at(100), at(100), at(EXPIRING_SECONDS + 100)] {
        ids.push(world.saved_with_metadata(&principal, &["some"], expiry).await);
    }
    let [third, expired, never, first, second, later] = ids[..] else { panic!("six were saved") };
    let health = async |health| {
        let filter = ListFilter { health: Some(health), ..ListFilter::default() };
        world.page(&principal, world.list_by(&principal, filter)).await
    };
    assert_eq!(health(HealthState::Expired).await, [expired]);
    assert_eq!(health(HealthState::Expiring).await, [second, first, third]);
    assert_eq!(health(HealthState::Unchecked).await, [later, never]);
    assert_eq!(health(HealthState::Failing).await, []);
    for id in ids {
        let failed = [first, later].contains(&id).then_some(CheckReason::UnknownKey);
        assert!(world.record_check((id, 1), None, failed).await);
    }
    assert_eq!(health(HealthState::Expired).await, [expired]);
    assert_eq!(health(HealthState::Failing).await, [later, first]);
    assert_eq!(health(HealthState::Expiring).await, [second, third]);
    assert_eq!(health(HealthState::Healthy).await, [never]);
    assert_eq!(health(HealthState::Unchecked).await, []);
}

/// Comparison counts are deleted after their hour.
pub async fn counts_of_comparisons_are_deleted(suite: &dyn ContractStore) {
    let long_ago = Timestamp::from_millis(1_000_000_000_000); // it sweeps nothing of other cases
    let world = World::at(suite, long_ago).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    world.operate(&principal, comparison(world.organization, id)).await.unwrap().unwrap();
    world.clock.advance_millis(HOUR_SECONDS * 1_000);
    assert!(world.delete_expired(Expired::HourlyCounts).await >= 1);
}

/// A requested check is claimed by one activation process, once; its result is stored with its version.
pub async fn requested_check_runs_once(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    let request = async |version| {
        world.operate(&principal, RequestCheck { organization: world.organization, id, version }).await.decided()
    };
    world.claim_checks(None).await;
    world.clock.advance_millis(CHECKER_SECONDS * 1_000 + 1);
    assert_eq!(request(None).await, Err(Refusal::NoChecker));
    assert_eq!(world.claim_checks(None).await, []);
    let read = world.versions(&principal, id).await;
    world.changed(world.stage(&principal, &read)).await;
    assert_eq!(request(Some(3)).await, Err(Refusal::NoSuchVersion));
    assert_eq!(request(None).await, Ok(()));
    assert_eq!(request(None).await, Ok(()));

    let claims = (0..4).map(|_| world.operate(&Principal::Operator, ClaimChecks { most: 10, turn: None }));
    let taken = join_all(claims).await.into_iter().map(Result::unwrap);
    let ours = taken.flatten().map(|(check, _)| check).filter(|check| check.organization == world.organization);
    let ours: Vec<_> = ours.collect();
    assert_eq!(ours.len(), 1);
    assert_eq!((ours[0].credential.version, ours[0].before), (2, None));
    // The process that claimed it may have ended.
    world.clock.advance_millis(CHECK_AGAIN_SECONDS * 1_000);
    assert_eq!(world.claim_checks(None).await.len(), 1);
    assert!(world.record_check((id, 2), ours[0].before, Some(CheckReason::UnknownKey)).await);
    world.clock.advance_millis(CHECK_AGAIN_SECONDS * 1_000);
    assert_eq!(world.claim_checks(None).await, []);

    let failed = |at: Timestamp| Some(LastCheck { at, since: at, failed: Some(CheckReason::UnknownKey) });
    let checked_at = world.now().plus_seconds(-CHECK_AGAIN_SECONDS);
    let read = world.versions(&principal, id).await;
    assert_eq!((read.current.check, read.others[0].check), (None, failed(checked_at)));
    // Health belongs to the version and does not change the revision.
    let read = world.changed(world.promotion(&principal, &read, 2)).await;
    assert_eq!((read.current.check, read.others[0].check), (failed(checked_at), None));
    assert_eq!(world.audited(AuditAction::CredentialFailing).await, 1);
    world.delete(&principal, id).await.unwrap();
    assert!(!world.record_check((id, 2), None, None).await, "it is gone");
}

/// The limit is sixty requested checks per hour and organization.
pub async fn requested_checks_are_limited(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let id = world.saved(&principal).await;
    world.claim_checks(None).await;
    let request = || RequestCheck { organization: world.organization, id, version: None };
    for _ in 0..HourlyLimit::CHECKS {
        world.operate(&principal, request()).await.unwrap();
    }
    let refused = world.operate(&principal, request()).await.decided();
    assert!(matches!(refused, Err(Refusal::TooOften(1..=3_601))), "{refused:?}");
    assert_eq!(world.audited(AuditAction::CredentialCheckRequested).await, HourlyLimit::CHECKS as usize);
}

/// An activation is a use of each credential, listed for its organization, newest first, until 30 days after it expired.
pub async fn issuance_is_recorded_as_use(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let found = world.integration().await;
    let activator = world.activator(&found);
    let id = world.saved(&principal).await;
    let mut activations = Vec::new();
    for _ in 0..3 {
        world.clock.advance_millis(1_000);
        let (activation, _) = world.activate(&activator, "contract").await;
        let command = world.issue_credentials(&activator, "contract", activation, &[id]);
        assert_eq!(world.store.issue_credentials(command).await.unwrap(), None);
        activations.insert(0, activation.to_string());
    }
    assert_eq!(world.uses(&principal, id, None).await.unwrap(), activations[..2]);
    let listed = ListUses { organization: world.organization, id, after: None, limit: 3 };
    let all = world.operate(&principal, listed).await.unwrap();
    let position = UsePosition { at: all[1].at, activation: all[1].activation };
    assert_eq!(world.uses(&principal, id, Some(position)).await.unwrap(), activations[2..]);
    assert_eq!((all[0].integration, all[0].form), (found.stored.id, VendedForm::Raw));
    assert_eq!(other.uses(&other.embedder(), id, None).await, None);

    let minute = world.now().floor_to_minute();
    for minute in [minute, minute.plus_seconds(-60)] {
        let recorded = RecordActivated { organization: world.organization, credentials: vec![id], minute };
        world.operate(&Principal::Operator, recorded).await.unwrap();
    }
    assert_eq!(world.versions(&principal, id).await.current.last_activated_at, Some(minute));
    world.clock.advance_millis((ACTIVATION_SECONDS + USE_SECONDS) * 1_000);
    while world.delete_expired(Expired::CredentialUses).await > 0 {}
    assert_eq!(world.uses(&principal, id, None).await.unwrap(), Vec::<String>::new());
}

/// The holders of a version are found however many activations followed, in both directions, until they end or expire.
pub async fn holders_of_each_version_are_counted(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    // Other cases may delete expired uses in the same store; those of this case expire long after theirs.
    world.clock.advance_seconds(10 * USE_SECONDS);
    let principal = world.embedder();
    let found = world.integration().await;
    let activator = world.activator(&found);
    let id = world.saved(&principal).await;
    let issue = async |version| {
        let (activation, _) = world.activate(&activator, "contract").await;
        let mut command = world.issue_credentials(&activator, "contract", activation, &[id]);
        command.payload.credentials[0].version = version;
        let expiry = command.payload.expires_at;
        assert_eq!(world.store.issue_credentials(command).await.unwrap(), None);
        (activation, expiry)
    };
    let promote = async |number| {
        let read = world.versions(&principal, id).await;
        world.changed(world.promotion(&principal, &read, number)).await;
    };
    let holders = async || {
        let (current, holders) = world.operate(&principal, ListHolders(world.organization, id)).await.unwrap();
        assert!(holders.iter().all(|one| one.integration == found.stored.id));
        (current, holders.iter().map(|one| (one.version, one.activations, one.until)).collect::<Vec<_>>())
    };
    let (_, old) = issue(1).await;
    let read = world.versions(&principal, id).await;
    world.changed(world.stage(&principal, &read)).await;
    promote(2).await;
    world.clock.advance_millis(1_000);
    for _ in 0..1_005 {
        let (activation, _) = issue(2).await;
        assert!(world.store.end_activation(world.end_activation(&activator, activation)).await.unwrap());
    }
    assert_eq!(holders().await, (2, vec![(1, 1, Some(old)), (2, 1_005, None)]));

    let (_, new) = issue(2).await;
    promote(1).await;
    assert_eq!(holders().await, (1, vec![(1, 1, Some(old)), (2, 1_006, Some(new))]));
    world.clock.advance_millis(old.millis_since(world.now()));
    assert_eq!(holders().await, (1, vec![(1, 1, None), (2, 1_006, Some(new))]));

    let other = World::new(suite).await;
    let refused = other.operate(&other.embedder(), ListHolders(other.organization, id)).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NotFound))), "{refused:?}");
}

/// An activation is one use of a credential: a renewal updates it, and an end before the expiry is recorded.
pub async fn renewal_and_end_update_the_use(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let activator = world.activator(&world.integration().await);
    let id = world.saved(&principal).await;
    let uses = async || {
        let listed = ListUses { organization: world.organization, id, after: None, limit: 9 };
        let uses = world.operate(&principal, listed).await.unwrap();
        uses.iter().map(|one| (one.activation, one.at, one.expires_at, one.ended_at, one.version)).collect::<Vec<_>>()
    };
    let started = world.now();
    let (activation, _) = world.activate(&activator, "contract").await;
    let command = world.issue_credentials(&activator, "contract", activation, &[id]);
    let expiry = command.payload.expires_at;
    assert_eq!(world.store.issue_credentials(command).await.unwrap(), None);
    assert_eq!(uses().await, [(activation, started, expiry, None, 1)]);

    let read = world.versions(&principal, id).await;
    let read = world.changed(world.stage(&principal, &read)).await;
    world.changed(world.promotion(&principal, &read, 2)).await;
    world.clock.advance_millis(1_000);
    let mut renewal = world.renew(&activator, activation, &[id]);
    renewal.payload.credentials[0].version = 2;
    let later = renewal.payload.expires_at;
    assert_eq!(world.store.issue_credentials(renewal).await.unwrap(), None);
    assert_eq!(uses().await, [(activation, started, later, None, 2)]);

    world.clock.advance_millis(1_000);
    assert!(world.store.end_activation(world.end_activation(&activator, activation)).await.unwrap());
    let ended = [(activation, started, later, Some(world.now()), 2)];
    assert_eq!(uses().await, ended);
    assert!(!world.store.end_activation(world.end_activation(&activator, activation)).await.unwrap());
    assert_eq!(uses().await, ended);
    // The time counts from the expiry, so that an activation that is renewed for longer is listed while it is active.
    world.clock.advance_millis(USE_SECONDS * 1_000);
    while world.delete_expired(Expired::CredentialUses).await > 0 {}
    assert_eq!(uses().await, ended);
}

/// The result of a check before a version is stored is the health of this version.
pub async fn check_before_save_is_health_of_version(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let principal = world.embedder();
    let check = |at| Some(LastCheck { at, since: at, failed: None });
    let saved_at = world.now();
    let command = with(world.save(&principal), |save| save.new.check = check(saved_at));
    let id = command.payload.id;
    world.store.save_credential(command).await.unwrap();
    assert_eq!(world.versions(&principal, id).await.current.check, check(saved_at));
    let healthy = ListFilter { health: Some(HealthState::Healthy), ..ListFilter::default() };
    assert_eq!(world.page(&principal, world.list_by(&principal, healthy)).await, [id]);
    world.clock.advance_millis(1_000);
    let staged_at = world.now();
    let read = world.versions(&principal, id).await;
    let checked = |change: &mut Changing, at| change.new.as_mut().unwrap().check = check(at);
    let read = world.changed(with(world.stage(&principal, &read), |change| checked(change, staged_at))).await;
    assert_eq!(read.others[0].check, check(staged_at));
    let read = world.changed(with(world.replacement(&principal, &read), |change| checked(change, world.now()))).await;
    assert_eq!(read.current.check, check(world.now()));
    let previous = read.others.iter().find(|version| version.number == 1).unwrap();
    assert_eq!(previous.check, check(saved_at));
}

/// Sealed entries of an organization's integrations are counted since a time, by integration, namespace, action and day, and
/// by action and hour.
pub async fn actions_of_integrations_are_counted(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let principal = world.embedder();
    let ours: Vec<IntegrationId> = (0..2).map(|_| IntegrationId::from_uuid(world.ids.ordered(world.now()))).collect();
    let [first, second] = ["imports", "exports"].map(|name| Namespace::parse(name, "").unwrap());
    let record = |organization, integration, action, namespace: Option<&Namespace>, count| {
        let sealed = world.audit_in(organization, action);
        let (actor, note) = (Actor::Integration(integration), namespace.cloned().map(AuditNote::of));
        FakeAuditSealer.seal(AuditRecord { actor, note, count, ..sealed.record })
    };
    let (activated, refused) = (AuditAction::NamespaceActivated, AuditAction::ActivationRefusedWorkload);
    let early = record(world.organization, ours[0], activated, Some(&first), 1);
    world.clock.advance_millis(1);
    let since = world.now();
    let mut entries = Vec::new();
    for (after, organization, integration, action, namespace, count) in [
        (0, world.organization, ours[0], activated, Some(&first), 1),
        (3_599_999, world.organization, ours[0], activated, Some(&first), 1),
        (1, world.organization, ours[0], activated, Some(&second), 1),
        (1, world.organization, ours[0], refused, None, 7),
        (82_799_998, world.organization, ours[1], activated, Some(&first), 1),
        (1, world.organization, ours[0], activated, Some(&first), 2),
        (1, other.organization, ours[0], activated, Some(&first), 1),
    ] {
        world.clock.advance_millis(after);
        entries.push(record(organization, integration, action, namespace, count));
    }
    entries.push(world.audit(activated));
    let counted = async |integration| {
        let counted = CountActions(world.organization, CountedPeriod { since, integration });
        let counted = world.operate(&principal, counted).await.unwrap();
        let mut counted: Vec<_> = counted
            .into_iter()
            .map(|one| {
                (one.integration, one.action.as_str(), one.namespace, one.day, one.count, one.first_at, one.last_at)
            })
            .collect();
        counted.sort();
        counted
    };
    let hourly = async |integration| {
        let counted = CountHours(world.organization, CountedPeriod { since, integration });
        let counted = world.operate(&principal, counted).await.unwrap();
        let mut counted: Vec<_> = counted.iter().map(|one| (one.action.as_str(), one.hour, one.count)).collect();
        counted.sort_unstable();
        counted
    };
    let all: Vec<_> = [early].into_iter().chain(entries.iter().cloned()).collect();
    world.append(all.clone()).await.unwrap();
    assert_eq!((counted(None).await, hourly(None).await), (Vec::new(), Vec::new()), "nothing is sealed yet");
    audit::add(&world, &all).await;
    let at = |index: usize| entries[index].record.at;
    let (used, denied) = (activated.as_str(), refused.as_str());
    let mut expected = vec![
        (ours[0], used, Some(first.clone()), 0, 2, at(0), at(1)),
        (ours[0], used, Some(second), 0, 1, at(2), at(2)),
        (ours[0], denied, None, 0, 7, at(3), at(3)),
        (ours[1], used, Some(first.clone()), 0, 1, at(4), at(4)),
        (ours[0], used, Some(first), 1, 2, at(5), at(5)),
    ];
    expected.sort();
    assert_eq!(counted(None).await, expected);
    assert_eq!(hourly(None).await, [(denied, 1, 7), (used, 0, 2), (used, 1, 1), (used, 23, 1), (used, 24, 2)]);
    expected.retain(|(integration, ..)| *integration == ours[1]);
    assert_eq!((counted(Some(ours[1])).await, hourly(Some(ours[1])).await), (expected, vec![(used, 23, 1)]));
}
