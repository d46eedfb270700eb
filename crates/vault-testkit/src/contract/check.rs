//! Cases of checks and of credential usage recorded by the activation process, for stores with only the activation
//! ports.

use super::ContractStore;
use super::world::World;
use vault_core::audit::AuditAction;
use vault_core::check::CheckReason;
use vault_core::credential::{ClaimChecks, DueCheck, LastCheck, RecordActivated, RecordCheck, VersionKey};

use vault_core::principal::Principal;

impl World<'_> {
    pub(super) async fn claim_checks(&self, turn: Option<(usize, i64)>) -> Vec<DueCheck> {
        let checks = self.operate(&Principal::Operator, ClaimChecks { most: 10, turn }).await.unwrap();
        // A store may contain other organizations.
        checks.into_iter().map(|(check, _)| check).filter(|check| check.organization == self.organization).collect()
    }
}

/// Every credential is checked once per round, and the next round starts at its time.
pub async fn checks_are_due_in_rounds(suite: &dyn ContractStore) {
    let world = World::new(suite).await;
    let mut saved = Vec::new();
    for _ in 0..7 {
        saved.push(world.saved_in("contract").await.id);
    }
    let mut seen = Vec::new();
    // Shared stores also contain credentials of other organizations.
    for _ in 0..10_000 {
        let due = world.claim_checks(Some((3, 1_000_000))).await;
        seen.extend(due.iter().map(|check| check.credential.row.id));
        if seen.len() >= saved.len() {
            break;
        }
    }
    assert_eq!(seen, saved);
}

/// The result of a check is stored with its version and recorded, unless that version no longer exists.
pub async fn check_result_applies_to_checked_version(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let id = world.saved_in("contract").await.id;
    let embedder = world.embedder();
    let read = world.versions(&embedder, id).await;
    world.changed(world.stage(&embedder, &read)).await;
    let check = LastCheck::after(None, world.now(), Some(CheckReason::UnknownKey));
    let record = async |of: &World<'_>, version| {
        let key = VersionKey { organization: of.organization, id, version };
        let recorded = RecordCheck { key, check, changed: Some(AuditAction::CredentialFailing) };
        world.operate(&Principal::Operator, recorded).await.unwrap()
    };
    for (of, version, recorded) in [(&world, 1, true), (&world, 2, true), (&world, 3, false), (&other, 1, false)] {
        assert_eq!(record(of, version).await, recorded, "version {version}");
    }
    world.delete_credential(id).await;
    assert!(!record(&world, 1).await, "it is gone");
    assert_eq!(world.audited(AuditAction::CredentialFailing).await, 2);
    assert_eq!(other.audited(AuditAction::CredentialFailing).await, 0);
}

/// The latest minute in which a credential was activated is stored, and returned with the credential.
pub async fn latest_activation_is_recorded(suite: &dyn ContractStore) {
    let (world, other) = (World::new(suite).await, World::new(suite).await);
    let (id, neighbour) = (world.saved_in("contract").await.id, world.saved_in("contract").await.id);
    let principal = world.activator(&world.integration().await);
    let minute = world.now().floor_to_minute();
    let note = async |of: &World<'_>, minute| {
        let recorded = RecordActivated { organization: of.organization, credentials: vec![id], minute };
        world.operate(&Principal::Operator, recorded).await.unwrap();
    };
    let noted = async || {
        let taken = world.taken(world.take(&principal, "contract")).await;
        taken.iter().map(|fetched| (fetched.row.id, fetched.row.last_activated_at)).collect::<Vec<_>>()
    };
    note(&other, minute).await;
    assert_eq!(noted().await, [(id, None), (neighbour, None)]);
    for (at, latest) in [(minute, minute), (minute.plus_seconds(-60), minute)] {
        note(&world, at).await;
        assert_eq!(noted().await, [(id, Some(latest)), (neighbour, None)]);
    }
}
