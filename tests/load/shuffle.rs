//! Random order of requests, so that the order does not bias the measurements.

/// Shuffles in the same way in each run, so that two runs send the same requests.
pub(crate) struct Shuffler(u64);

impl Shuffler {
    /// Creates a shuffler in its initial state.
    pub(crate) const fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    /// Shuffles `items`.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            // xorshift64
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            let other = self.0 % (place as u64 + 1);
            items.swap(place, usize::try_from(other).unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_is_uniform_and_complete() {
        let mut shuffler = Shuffler::new();
        let mut first = [0; 4];
        for _ in 0..4_000 {
            let mut items = [0, 1, 2, 3];
            shuffler.shuffle(&mut items);
            first[items[0]] += 1;
            items.sort_unstable();
            assert_eq!(items, [0, 1, 2, 3]);
        }
        assert!(first.iter().all(|count| (900..1_100).contains(count)), "{first:?}");
    }
}
