//! Limits of the uses of an organization key.

use proptest::prelude::*;
use vault_core::key_use::{KeyUseDecision, KeyUseLimits};

#[test]
fn limits_match_documentation() {
    let limits = KeyUseLimits::default();
    assert_eq!((limits.block(), limits.replace_at(), limits.stop_at()), (65_536, 1 << 24, 1 << 28));
    assert_eq!(limits.decide(0), KeyUseDecision::Take);
    assert_eq!(limits.decide((1 << 24) - 1), KeyUseDecision::Take);
    assert_eq!(limits.decide(1 << 24), KeyUseDecision::ReplaceOrTake);
    assert_eq!(limits.decide((1 << 28) - 65_536), KeyUseDecision::ReplaceOrTake);
    assert_eq!(limits.decide((1 << 28) - 65_535), KeyUseDecision::Replace);
    assert_eq!(limits.decide(i64::MAX), KeyUseDecision::Replace);
}

#[test]
fn limits_can_only_be_lowered() {
    assert_eq!(KeyUseLimits::new(i64::MAX, i64::MAX, i64::MAX), KeyUseLimits::MOST);
    assert_eq!(KeyUseLimits::new(0, -1, i64::MIN), KeyUseLimits::new(1, 1, 1));
}

#[test]
fn exhausted_key_seals_nothing() {
    let limits = KeyUseLimits::new(10, 20, 400);
    let parts = [0, 1, 100, 400, 500].map(|taken| limits.part_used(taken));
    assert_eq!(parts, [0.0, 0.0025, 0.25, 1.0, 1.25]);
}

proptest! {
    /// A process that reserves blocks by the rule never reserves more than `stop_at` uses, even if no replacement succeeds.
    #[test]
    fn reserved_uses_never_exceed_limit(
        block in 1_i64..100, replace_at in 1_i64..1_000, stop_at in 1_i64..1_000,
    ) {
        let limits = KeyUseLimits::new(block, replace_at, stop_at);
        let mut taken = 0;
        while limits.decide(taken) != KeyUseDecision::Replace {
            prop_assert_eq!(limits.decide(taken) == KeyUseDecision::ReplaceOrTake, taken >= replace_at);
            taken += limits.block();
            prop_assert!(taken <= stop_at);
        }
        prop_assert!(taken + block > stop_at, "no block is wasted");
    }
}
