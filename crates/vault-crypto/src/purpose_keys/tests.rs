use super::*;
use crate::testing::{NOW, key_id};
use proptest::prelude::*;

fn terms(active_since: i64, retired: &[i64]) -> Terms<()> {
    let term = |(number, since): (u128, i64)| {
        let since = Timestamp::from_millis(since);
        let (purpose, state, id) = (KeyPurpose::Token, KeyState::Active, key_id(number));
        Term { term: KeyringEntry { purpose, id, state, since }, key: Arc::new(()) }
    };
    let retiring = (2..).zip(retired.iter().copied()).map(term).collect();
    Terms { active: term((1, active_since)), retiring }
}

proptest! {
    /// Within five seconds of a replacement the previous key, which every server has loaded, still signs.
    #[test]
    fn key_signs_after_every_server_has_loaded_it(since in 0..100_000_i64, after in -10_000..10_000_i64) {
        let terms = terms(since, &[since]);
        let signs = terms.settled_at(Timestamp::from_millis(since + after)).id();
        prop_assert_eq!(signs, if after < KeyringEntry::SETTLED_SECONDS * 1_000 { key_id(2) } else { key_id(1) });
    }
}

#[test]
fn first_key_signs_immediately() {
    assert_eq!(terms(NOW.as_millis(), &[]).settled_at(NOW).id(), key_id(1));
}
