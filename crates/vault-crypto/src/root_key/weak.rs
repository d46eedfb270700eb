//! Detects keys that were not generated at random.

use crate::key::SymmetricKey;

/// Returns the reason why `key` cannot be random, if there is one. A random key is rejected once in 10^13.
pub(super) fn weakness(key: &SymmetricKey) -> Option<&'static str> {
    let key = key.expose(); // only to validate it
    if key.iter().all(|byte| *byte == 0) {
        return Some("all bytes are zero");
    }
    if key.iter().all(|byte| *byte == key[0]) {
        return Some("all bytes are the same");
    }
    let step = key[1].wrapping_sub(key[0]);
    if key.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step) {
        return Some("the bytes count up, as in examples");
    }
    if key.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')) {
        return Some("it is a text");
    }
    let (first, second) = key.split_at(SymmetricKey::LENGTH / 2);
    if first == second {
        return Some("its halves are the same");
    }
    None
}
