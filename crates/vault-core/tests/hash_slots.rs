//! Slots in the queue of the password hash: properties of the rule that assigns them.

use proptest::prelude::*;
use vault_core::digest::Digest;
use vault_core::hash_slots::{HashSlots, Requester};

fn network(number: u8, known: bool) -> Requester {
    Requester::Network { network: Digest::from_bytes([number; 32]), known }
}

/// A network is known or unknown as a whole, but can become known by a login while it has slots.
fn requester() -> impl Strategy<Value = Requester> {
    prop_oneof![
        1 => Just(Requester::Trusted),
        8 => (0_u8..6, any::<bool>()).prop_map(|(number, known)| network(number, known)),
    ]
}

/// Acquire a slot, or release the one at an index.
fn steps() -> impl Strategy<Value = Vec<Result<Requester, prop::sample::Index>>> {
    let step = prop_oneof![3 => requester().prop_map(Ok), 1 => any::<prop::sample::Index>().prop_map(Err)];
    prop::collection::vec(step, 0..200)
}

fn count(held: &[Requester], matches: impl Fn(&Requester) -> bool) -> usize {
    held.iter().filter(|requester| matches(requester)).count()
}

proptest! {
    #[test]
    fn hash_slot_is_issued_exactly_if_rule_permits(total in 0_usize..40, steps in steps()) {
        let mut hash_slots = HashSlots::new(total);
        let (mut held, mut tokens) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Ok(requester) => {
                    let allowed = held.len() < total
                        && match requester {
                            Requester::Trusted => true,
                            Requester::Network { network, known } => {
                                let of_network = |other: &Requester| {
                                    matches!(other, Requester::Network { network: other, .. } if *other == network)
                                };
                                let of_unknown = |other: &Requester| {
                                    matches!(other, Requester::Network { known: false, .. })
                                };
                                count(&held, of_network) < (total / 4).max(1)
                                    && (known || count(&held, of_unknown) < total - total / 2)
                            }
                        };
                    let hash_slot = hash_slots.take(requester);
                    prop_assert_eq!(hash_slot.is_some(), allowed, "{:?} in addition to {:?}", requester, held);
                    prop_assert_eq!((hash_slots.taken(), hash_slots.total()), (held.len() + usize::from(allowed), total));
                    if let Some(hash_slot) = hash_slot {
                        held.push(requester);
                        tokens.push(hash_slot);
                    }
                }
                Err(index) if !held.is_empty() => {
                    let index = index.index(held.len());
                    held.swap_remove(index);
                    hash_slots.release(tokens.swap_remove(index));
                }
                Err(_) => {}
            }
        }
    }

    /// Half of the slots remain for known networks, however many requests unknown networks send.
    #[test]
    fn unknown_networks_leave_half_of_hash_slots(total in 1_usize..40) {
        let mut hash_slots = HashSlots::new(total);
        let mut held = Vec::new();
        for number in 0..200 {
            while let Some(hash_slot) = hash_slots.take(network(number, false)) {
                held.push(hash_slot);
            }
        }
        prop_assert_eq!(held.len(), total - total / 2);
        for number in 200..=255 {
            while let Some(hash_slot) = hash_slots.take(network(number, true)) {
                held.push(hash_slot);
            }
        }
        prop_assert_eq!(held.len(), total);
        // Released slots can be acquired again.
        held.into_iter().for_each(|hash_slot| hash_slots.release(hash_slot));
        let all: Vec<_> = std::iter::from_fn(|| hash_slots.take(Requester::Trusted)).collect();
        prop_assert_eq!(all.len(), total);
    }

    /// One network, known or not, gets at most a quarter of the slots.
    #[test]
    fn one_network_gets_a_quarter_of_hash_slots(total in 4_usize..40, known in any::<bool>()) {
        let mut hash_slots = HashSlots::new(total);
        let first: Vec<_> = std::iter::from_fn(|| hash_slots.take(network(1, known))).collect();
        prop_assert_eq!(first.len(), total / 4);
        prop_assert!(hash_slots.take(network(2, known)).is_some());
    }
}

#[test]
fn smallest_queue_serves_networks_round_robin() {
    let mut hash_slots = HashSlots::new(1);
    for requester in [network(1, false), network(2, true), Requester::Trusted] {
        let hash_slot = hash_slots.take(requester).unwrap();
        assert!(hash_slots.take(Requester::Trusted).is_none());
        hash_slots.release(hash_slot);
    }
    assert!(HashSlots::new(0).take(Requester::Trusted).is_none());
}
