//! Properties of labels, versions and health, for all inputs.

use crate::support::HASHES;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vault_core::activation::VendRule;
use vault_core::check::CheckReason;
use vault_core::credential::{
    CredentialState, CredentialType, Description, EXPIRING_SECONDS, Health, HealthState, LabelFilter, LabelPatch,
    Labels, LastCheck, Metadata, VersionLimits, VersionList, VersionRecord, effective_expiry,
};
use vault_core::id::{CredentialId, OrganizationId, VersionId};
use vault_core::json::{self, Limits, Node};
use vault_core::namespace::Namespace;
use vault_core::time::Timestamp;

fn node(text: &str) -> Node {
    json::parse(text.as_bytes(), Limits::default()).unwrap().root
}

fn names() -> impl Strategy<Value = String> {
    "[a-z0-9._/-]{1,63}"
}

fn values() -> impl Strategy<Value = String> {
    "[A-Za-z0-9._-]{0,63}"
}

fn object<V: serde::Serialize>(members: &BTreeMap<String, V>) -> Node {
    node(&serde_json::to_string(members).unwrap())
}

fn read(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn checks() -> impl Strategy<Value = Option<LastCheck>> {
    let reasons = prop_oneof![Just(None), Just(Some(CheckReason::UnknownKey))];
    prop::option::of((0_i64..1_000, 0_i64..1_000, reasons).prop_map(|(since, later, failed)| {
        let since = Timestamp::from_millis(since * 1_000);
        LastCheck { since, at: since.plus_seconds(later), failed }
    }))
}

proptest! {
    /// The list of a credential's versions is stored without loss.
    #[test]
    fn version_list_keeps_its_records_when_stored(
        records in vec((any::<i64>(), any::<[u8; 16]>(), prop::option::of(0..i64::MAX)), 0..6), now in 0..i64::MAX,
    ) {
        let records: Vec<_> = records.into_iter().map(|(number, id, destroy_at)| VersionRecord {
            number,
            id: VersionId::from_bytes(id),
            destroy_at: destroy_at.map(Timestamp::from_millis),
        }).collect();
        let list: VersionList = records.iter().copied().collect();
        let list = VersionList::from_bytes(list.as_bytes().to_vec());
        prop_assert_eq!(list.records().collect::<Vec<_>>(), records.clone());
        let now = Timestamp::from_millis(now);
        for VersionRecord { number, .. } in records.clone() {
            let first = records.iter().find(|record| record.number == number).copied();
            prop_assert_eq!((list.get(number), list.id(number)), (first, first.map(|record| record.id)));
            prop_assert_eq!(list.is_kept(number, now), first.is_some_and(|record| record.destroy_at.is_none_or(|at| now < at)));
        }
        // A truncated list contains no further version.
        let cut = list.as_bytes().len().saturating_sub(1);
        let cut = VersionList::from_bytes(list.as_bytes()[..cut].to_vec());
        prop_assert_eq!(cut.records().count(), records.len().saturating_sub(1));
    }

    #[test]
    fn valid_labels_are_unchanged(members in btree_map(names(), values(), 0..=16)) {
        prop_assert_eq!(read(&Labels::parse(object(&members), "/labels").unwrap()), members);
    }

    #[test]
    fn more_than_sixteen_labels_are_refused(members in btree_map(names(), values(), 17..20)) {
        let violations = Labels::parse(object(&members), "/labels").unwrap_err();
        prop_assert_eq!(violations[0].pointer.as_str(), "/labels");
    }

    #[test]
    fn violations_never_contain_values(name in names(), value in "[ -~]{64,80}") {
        let members = BTreeMap::from([(name.clone(), value.clone())]);
        let violations = Labels::parse(object(&members), "/labels").unwrap_err();
        prop_assert!(violations.iter().all(|violation| !violation.to_string().contains(&value)));
    }

    /// RFC 7396: fields that a patch omits are unchanged, and fields set to null are removed.
    #[test]
    fn merge_patch_changes_only_named_fields(
        before in btree_map(names(), values(), 0..8),
        patch in btree_map(names(), prop::option::of(values()), 0..8),
    ) {
        let labels = Labels::parse(object(&before), "").unwrap();
        let mut expected = before;
        for (name, value) in &patch {
            match value {
                Some(value) => _ = expected.insert(name.clone(), value.clone()),
                None => _ = expected.remove(name),
            }
        }
        let patch = LabelPatch::parse(object(&patch), "").unwrap();
        let patched = labels.patched(&patch, "").unwrap();
        prop_assert_eq!(read(&patched), expected);
        let remove_all = LabelPatch::parse(Node::Null, "").unwrap();
        prop_assert!(patched.patched(&remove_all, "").unwrap().is_empty());
    }

    #[test]
    fn filter_is_a_label(name in names(), value in values()) {
        prop_assert_eq!(
            LabelFilter::parse(&format!("{name}:{value}"), "label").unwrap(),
            LabelFilter { name: name.clone(), value }
        );
        prop_assert!(LabelFilter::parse(&name, "label").is_err());
    }

    #[test]
    fn newest_versions_are_kept_up_to_limit(
        versions in 0_usize..8,
        previous_seconds in 0_i64..100,
        times in vec(0_i64..200, 0..12),
        others in 1_usize..=2,
        now in 200_i64..300,
    ) {
        let limits = VersionLimits { versions, previous_seconds };
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let now = at(now);
        let previous: Vec<_> = (1..).zip(&times).map(|(number, time)| (number, limits.supersede(at(*time)))).collect();
        let destroyed = limits.destroyed(others, &previous, now);
        let (gone, kept): (Vec<_>, Vec<_>) = previous.iter().copied().partition(|(number, _)| destroyed.contains(number));
        prop_assert!(kept.len() + others <= versions.max(2));
        prop_assert!(kept.iter().all(|(_, superseded)| now.millis_since(superseded.at) < previous_seconds * 1_000));
        // A version that is deleted early was superseded before every version that is kept.
        for (_, gone) in gone.iter().filter(|(_, superseded)| superseded.is_kept(now)) {
            prop_assert!(kept.iter().all(|(_, kept)| kept.at >= gone.at));
            prop_assert_eq!(kept.len() + others, versions.max(2));
        }
        prop_assert_eq!(limits.destroyed(others, &kept, now), Vec::<i64>::new());
    }

    #[test]
    fn health_is_first_matching_state(
        now in 0_i64..3_000_000,
        expires_at in prop::option::of(0_i64..3_000_000),
        check in checks(),
    ) {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let health = Health::at(at(now), expires_at.map(at), check);
        let fails = check.is_some_and(|check| check.failed.is_some());
        let expected = if expires_at.is_some_and(|expiry| expiry <= now) {
            HealthState::Expired
        } else if fails {
            HealthState::Failing
        } else if expires_at.is_some_and(|expiry| expiry - EXPIRING_SECONDS <= now) {
            HealthState::Expiring
        } else if check.is_some() {
            HealthState::Healthy
        } else {
            HealthState::Unchecked
        };
        prop_assert_eq!(health.state, expected);
        prop_assert_eq!(health.reason.is_some(), expected == HealthState::Failing);
        prop_assert_eq!(health.since.is_some(), expected != HealthState::Unchecked);
    }

    #[test]
    fn health_state_starts_with_first_agreeing_check(results in vec(any::<bool>(), 1..20)) {
        let mut last: Option<LastCheck> = None;
        let mut began = 0;
        for (second, fails) in (0_i64..).zip(&results) {
            let failed = fails.then_some(CheckReason::UnknownKey);
            if last.is_none_or(|last| last.failed != failed) {
                began = second;
            }
            last = Some(LastCheck::after(last, Timestamp::from_millis(second * 1_000), failed));
            prop_assert_eq!(last.unwrap().since, Timestamp::from_millis(began * 1_000));
        }
    }

    #[test]
    fn earlier_expiry_applies(one in prop::option::of(0_i64..9), two in prop::option::of(0_i64..9)) {
        let both: Vec<_> = [one, two].into_iter().flatten().collect();
        let at = |millis: Option<i64>| millis.map(Timestamp::from_millis);
        prop_assert_eq!(effective_expiry(at(one), at(two)), at(both.into_iter().min()));
    }
}

proptest! {
    #[test]
    fn metadata_is_read_back_as_it_was_sealed(
        members in btree_map(names(), values(), 0..=16),
        text in prop::option::of("[a-zäöü.,\"\\\\]{1,100}"),
        expiries in btree_map(1_i64..9, 0_i64..100_000, 0..5),
        destroyed in vec(1_i64..9, 0..3),
    ) {
        let mut metadata = Metadata::default();
        metadata.labels = Labels::parse(object(&members), "").unwrap();
        metadata.description = text.map(|text| Description::parse(&text, "").unwrap());
        for (number, millis) in &expiries {
            metadata.set_expires_at(*number, Some(Timestamp::from_millis(*millis)));
        }
        prop_assert_eq!(&Metadata::from_json(&metadata.to_json()).unwrap(), &metadata);
        metadata.forget(&destroyed);
        for (number, millis) in expiries {
            let kept = !destroyed.contains(&number);
            prop_assert_eq!(metadata.expires_at(number), kept.then_some(Timestamp::from_millis(millis)));
        }
    }

    /// The MAC of a credential's row does not verify if a column is changed or the MAC is moved to another row.
    #[test]
    fn mac_covers_one_state_of_one_credential(
        one in any::<[u8; 16]>(), two in any::<[u8; 16]>(), (version, staged, revision, with_metadata) in any::<(u8, bool, u8, bool)>(),
    ) {
        let (organization, id) = (OrganizationId::from_bytes([1; 16]), CredentialId::from_bytes(one));
        let (here, there) = (Namespace::parse("imports", "").unwrap(), Namespace::parse("exports", "").unwrap());
        let (version, revision) = (i64::from(version) + 1, i64::from(revision) + 1);
        let first = VersionRecord { number: version, id: VersionId::from_bytes(one), destroy_at: None };
        let others = [
            VersionRecord { id: VersionId::from_bytes([!one[0]; 16]), ..first },
            VersionRecord { destroy_at: Some(Timestamp::from_millis(revision)), ..first },
        ];
        let listed: VersionList = [first].into_iter().collect();
        let lists = others.map(|other| [other].into_iter().collect::<VersionList>());
        let [other_id, other_end] = &lists;
        let state = CredentialState {
            kind: CredentialType::S3,
            namespace: &here,
            vend: VendRule::Short,
            version,
            staged: staged.then_some(version + 1),
            highest: version + 1,
            listed: &listed,
            revision,
            metadata_revision: with_metadata.then_some(revision),
        };
        let code = state.code(&HASHES, organization, id);
        prop_assert_eq!(code, state.code(&HASHES, organization, id));
        prop_assert_eq!(code == state.code(&HASHES, organization, CredentialId::from_bytes(two)), one == two);
        prop_assert!(code != state.code(&HASHES, OrganizationId::from_bytes([2; 16]), id));
        let others = [
            CredentialState { kind: CredentialType::Gcs, ..state },
            CredentialState { namespace: &there, ..state },
            CredentialState { vend: VendRule::Any, ..state },
            CredentialState { version: version + 1, ..state },
            CredentialState { staged: if staged { None } else { Some(version + 1) }, ..state },
            CredentialState { highest: version + 2, ..state },
            CredentialState { listed: other_id, ..state },
            CredentialState { listed: other_end, ..state },
            CredentialState { revision: revision + 1, ..state },
            CredentialState { metadata_revision: if with_metadata { None } else { Some(revision) }, ..state },
        ];
        for other in others {
            prop_assert!(code != other.code(&HASHES, organization, id), "{other:?}");
        }
    }
}

#[test]
fn invalid_labels_are_refused() {
    for text in
        ["[]", "\"a\"", "1", "{\"A\": \"x\"}", "{\"\": \"x\"}", "{\"a\": 1}", "{\"a\": \"ä\"}", "{\"a b\": \"x\"}"]
    {
        assert!(Labels::parse(node(text), "/labels").is_err(), "{text}");
    }
}
