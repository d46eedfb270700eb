//! Properties of the card of a credential: its versions after any changes, and its stored form.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use vault_core::Refusal;
use vault_core::activation::VendRule;
use vault_core::credential::{
    Card, CardVersion, CredentialType, Description, Information, Labels, Metadata, VersionLimits,
};
use vault_core::id::VersionId;
use vault_core::json::{Member, Node};
use vault_core::namespace::Namespace;
use vault_core::time::Timestamp;

#[derive(Clone, Copy, Debug)]
enum Change {
    Replace,
    Stage,
    Promote(i64),
    Destroy(i64),
    Wait(i64),
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::Replace),
        2 => Just(Change::Stage),
        2 => (1_i64..9).prop_map(Change::Promote),
        1 => (1_i64..9).prop_map(Change::Destroy),
        1 => (1_i64..40).prop_map(Change::Wait),
    ]
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn version(number: i64, now: Timestamp) -> CardVersion {
    CardVersion {
        number,
        id: VersionId::from_bytes([u8::try_from(number).unwrap(); 16]),
        created_at: now,
        superseded: None,
        expires_at: (number % 2 == 0).then(|| now.plus_seconds(number)),
        information: Information::from_json(format!("{{\"n\":{number}}}")).unwrap(),
    }
}

fn first(metadata: Metadata) -> Card {
    let (kind, namespace, vend) = (CredentialType::S3, Namespace::parse("imports", "").unwrap(), VendRule::Short);
    Card { kind, namespace, vend, highest: 1, current: version(1, at(0)), others: Vec::new(), metadata }
}

fn changed(card: &Card, change: Change, limits: VersionLimits, now: Timestamp) -> Result<Card, Refusal> {
    let next = || version(card.highest + 1, now);
    match change {
        Change::Replace => Ok(card.replaced(next(), limits, now)),
        Change::Stage => Ok(card.with_staged(next(), limits, now)),
        Change::Promote(number) => card.promoted(number, limits, now),
        Change::Destroy(number) => card.without(number, now),
        Change::Wait(_) => Ok(card.at(now)),
    }
}

proptest! {
    /// After any changes there is one current version and at most one staged one, the newest previous ones are kept up to the
    /// limit and their retention, no number is assigned twice, and the effects on stored data lead from one card to the next.
    #[test]
    fn versions_follow_their_rules(
        versions in 0_usize..6, previous_seconds in 0_i64..60, changes in vec(changes(), 0..24),
    ) {
        let limits = VersionLimits { versions, previous_seconds };
        let (mut card, mut seconds) = (first(Metadata::default()), 0);
        let mut stored = BTreeMap::from([(1, None)]);
        for change in changes {
            seconds += if let Change::Wait(seconds) = change { seconds } else { 1 };
            let now = at(seconds);
            let Ok(after) = changed(&card, change, limits, now) else { continue };
            let effects = card.effects(&after);
            for number in &effects.destroyed {
                prop_assert!(stored.remove(number).is_some());
            }
            for (number, destroy_at) in &effects.moved {
                prop_assert!(stored.insert(*number, *destroy_at).is_some());
            }
            if after.highest > card.highest {
                stored.insert(after.highest, None);
            }
            let listed: BTreeMap<_, _> = after.versions().map(|one| (one.number, one.destroy_at())).collect();
            prop_assert_eq!(&stored, &listed);
            prop_assert_eq!(after.current.superseded, None);
            prop_assert!(after.others.iter().filter(|one| one.superseded.is_none()).count() <= 1);
            prop_assert!(after.versions().all(|one| one.number <= after.highest));
            prop_assert_eq!(after.versions().map(|one| one.id).collect::<BTreeSet<_>>().len(), stored.len());
            if matches!(change, Change::Replace | Change::Stage | Change::Promote(_)) {
                prop_assert!(after.versions().count() <= versions.max(2));
                prop_assert!(after.others.iter().all(|one| one.is_kept(now)));
                // A version that was destroyed within its retention is older than each kept one.
                let oldest = after.others.iter().filter_map(|one| one.superseded).map(|one| one.at).min();
                let gone = card.others.iter().filter(|one| one.is_kept(now) && after.version(one.number).is_none());
                for gone in gone.filter_map(|one| one.superseded) {
                    prop_assert!(oldest.is_none_or(|oldest| gone.at <= oldest));
                }
            }
            card = after;
        }
    }

    #[test]
    fn expiries_belong_to_versions_that_exist(numbers in vec(1_i64..6, 0..4)) {
        let limits = VersionLimits { versions: 3, previous_seconds: 1_000 };
        let mut card = first(Metadata::default());
        for seconds in 1..6 {
            card.metadata.set_expires_at(card.current.number, Some(at(seconds)));
            card = card.replaced(version(card.highest + 1, at(seconds)), limits, at(seconds));
        }
        for number in numbers {
            let declared = card.metadata.expires_at(number);
            prop_assert_eq!(declared.is_some(), card.version(number).is_some() && number != card.current.number);
        }
    }

    #[test]
    fn card_is_read_back_as_it_was_sealed(
        labels in btree_map("[a-z0-9._/-]{1,63}", "[A-Za-z0-9._-]{0,63}", 0..=16),
        text in prop::option::of("[a-zäöü.,\"\\\\]{1,100}"),
        expiries in btree_map(1_i64..9, 0_i64..100_000, 0..5),
        changes in vec(changes(), 0..9),
    ) {
        let member = |(name, value): (&String, &String)| Member {
            name: name.clone(),
            value: Node::String(value.as_str().into()),
        };
        let mut metadata = Metadata::default();
        metadata.labels = Labels::parse(Node::Object(labels.iter().map(member).collect()), "").unwrap();
        metadata.description = text.map(|text| Description::parse(&text, "").unwrap());
        for (number, millis) in &expiries {
            metadata.set_expires_at(*number, Some(Timestamp::from_millis(*millis)));
        }
        let limits = VersionLimits::default();
        let card = changes.into_iter().fold(first(metadata), |card, change| {
            changed(&card, change, limits, at(1)).unwrap_or(card)
        });
        let bytes = card.to_bytes();
        prop_assert_eq!(&Card::from_bytes(&bytes).unwrap(), &card);
        prop_assert!(Card::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    }
}
