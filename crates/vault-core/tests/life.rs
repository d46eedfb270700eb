//! Properties of labels and health, for all inputs.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vault_core::check::CheckReason;
use vault_core::credential::{
    EXPIRING_SECONDS, Health, HealthState, LabelFilter, LabelPatch, Labels, LastCheck, effective_expiry,
};
use vault_core::json::{self, Limits, Node};
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

#[test]
fn invalid_labels_are_refused() {
    for text in
        ["[]", "\"a\"", "1", "{\"A\": \"x\"}", "{\"\": \"x\"}", "{\"a\": 1}", "{\"a\": \"ä\"}", "{\"a b\": \"x\"}"]
    {
        assert!(Labels::parse(node(text), "/labels").is_err(), "{text}");
    }
}
