use super::*;
use crate::testing::{NOW, key_id};
use proptest::prelude::*;

fn unwrapped(active_since: i64, retired: &[i64]) -> UnwrappedKeys<()> {
    let entry = |(number, since): (u128, i64)| {
        let since = Timestamp::from_millis(since);
        let (purpose, state, id) = (KeyPurpose::Token, KeyState::Active, key_id(number));
        UnwrappedKey { entry: KeyringEntry { purpose, id, state, since }, key: Arc::new(()) }
    };
    let retiring = (2..).zip(retired.iter().copied()).map(entry).collect();
    UnwrappedKeys { active: entry((1, active_since)), retiring }
}

proptest! {
    /// Within five seconds of a replacement the previous key, which every server has loaded, still signs.
    #[test]
    fn key_signs_after_every_server_has_loaded_it(since in 0..100_000_i64, after in -10_000..10_000_i64) {
        let keys = unwrapped(since, &[since]);
        let signs = keys.settled_at(Timestamp::from_millis(since + after)).id();
        prop_assert_eq!(signs, if after < KeyringEntry::SETTLED_SECONDS * 1_000 { key_id(2) } else { key_id(1) });
    }
}

#[test]
fn first_key_signs_immediately() {
    assert_eq!(unwrapped(NOW.as_millis(), &[]).settled_at(NOW).id(), key_id(1));
}
