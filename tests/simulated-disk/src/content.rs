//! Content of a file, as processes see it and as a power cut could leave it.

use crate::random::Random;
use std::collections::BTreeMap;
use std::ops::Range;

/// Size of an atomic write.
const SECTOR: usize = 512;

type Sector = [u8; SECTOR];

/// The content of a file. Each sector that was written since the last sync may or may not survive a power cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The content that processes read.
    seen: Vec<u8>,
    /// The content that certainly survives a power cut.
    kept: Vec<u8>,
    /// Versions of each sector since the last sync, oldest first, with the number of the call.
    unsynced: BTreeMap<usize, Vec<(u64, Sector)>>,
    /// The sizes since the last sync.
    sizes: Vec<(u64, usize)>,
}

impl Content {
    /// Creates a file whose content survives a power cut.
    pub(crate) fn kept(bytes: Vec<u8>) -> Self {
        Self { seen: bytes.clone(), kept: bytes, ..Self::default() }
    }

    /// Returns the content that processes read.
    pub(crate) fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// Writes bytes in the call of this number.
    pub(crate) fn write(&mut self, call: u64, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.seen.len() {
            self.seen.resize(end, 0);
            self.sizes.push((call, end));
        }
        self.seen[offset..end].copy_from_slice(bytes);
        for number in offset / SECTOR..end.div_ceil(SECTOR) {
            let mut sector = [0; SECTOR];
            let part = &self.seen[within(number, self.seen.len())];
            sector[..part.len()].copy_from_slice(part);
            self.unsynced.entry(number).or_default().push((call, sector));
        }
    }

    /// Sets the size in the call of this number.
    pub(crate) fn resize(&mut self, call: u64, size: usize) {
        if size != self.seen.len() {
            self.seen.resize(size, 0);
            self.sizes.push((call, size));
        }
    }

    /// Marks the current content as synced.
    pub(crate) fn sync(&mut self) {
        self.kept.resize(self.seen.len(), 0);
        for (number, _) in std::mem::take(&mut self.unsynced) {
            let range = within(number, self.seen.len());
            self.kept[range.clone()].copy_from_slice(&self.seen[range]);
        }
        self.sizes.clear();
    }

    /// Fails a sync: the disk stores some of the written sectors, and the kernel marks all of them as written, so a
    /// later sync does not repeat them. Reads return the written content or, with `reread`, the content of the disk.
    pub(crate) fn fail_sync(&mut self, fate: &mut Fate, reread: bool) {
        self.kept = self.survive(fate);
        self.unsynced.clear();
        self.sizes.clear();
        if reread {
            self.seen.clone_from(&self.kept);
        }
    }

    /// Returns the content after a power cut.
    pub(crate) fn survive(&self, fate: &mut Fate) -> Vec<u8> {
        let size = fate.choose(&self.sizes).map_or(self.kept.len(), |(_, size)| *size);
        let mut left = self.kept.clone();
        left.resize(size, 0);
        for (number, versions) in &self.unsynced {
            let range = within(*number, size);
            if let Some((_, sector)) = fate.choose(versions) {
                let length = range.len();
                left[range].copy_from_slice(&sector[..length]);
            } else if range.start >= self.kept.len() && fate.random.below(8) == 0 {
                // An allocated block that was not written contains old data of another file.
                left[range].fill_with(|| fate.random.draw().to_le_bytes()[0]);
            }
        }
        left
    }
}

/// Returns the range of a sector in a file of this size.
fn within(number: usize, size: usize) -> Range<usize> {
    (number * SECTOR).min(size)..((number + 1) * SECTOR).min(size)
}

/// Decides which unsynced writes survive a power cut.
pub(crate) struct Fate {
    rule: Rule,
    pub(crate) random: Random,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    /// No write survives.
    Nothing,
    /// All writes survive.
    Everything,
    /// Writes before this call survive, and some sectors of the call itself.
    Until(u64),
    /// Each sector independently has its newest version with the first probability in percent, its oldest with the
    /// second, and otherwise any version.
    Each { newest: usize, oldest: usize },
}

impl Fate {
    /// Returns a random rule for a cut at the call `last`.
    pub(crate) fn of(mut random: Random, last: u64) -> Self {
        let rule = match random.below(10) {
            0 => Rule::Nothing,
            1 => Rule::Everything,
            // Most batches need a few hundred calls.
            2 | 3 => Rule::Until(last.saturating_sub(random.draw() % 200)),
            4 => Rule::Each { newest: 98, oldest: 2 },
            5 => Rule::Each { newest: 2, oldest: 98 },
            6 => Rule::Each { newest: 90, oldest: 5 },
            7 => Rule::Each { newest: 0, oldest: 0 },
            _ => Rule::Each { newest: 50, oldest: 30 },
        };
        Self { rule, random }
    }

    /// Returns the surviving version, given those since the last sync (oldest first), or `None` for the synced one.
    pub(crate) fn choose<'a, T>(&mut self, versions: &'a [(u64, T)]) -> Option<&'a (u64, T)> {
        match self.rule {
            Rule::Nothing => None,
            Rule::Everything => versions.last(),
            Rule::Until(last) => {
                let before = versions.partition_point(|(call, _)| *call < last);
                let torn = versions.get(before).filter(|(call, _)| *call == last && self.random.below(2) == 0);
                torn.or_else(|| versions[..before].last())
            }
            Rule::Each { newest, oldest } => match self.random.below(100) {
                chosen if chosen < newest => versions.last(),
                chosen if chosen < newest + oldest => None,
                _ => self.random.below(versions.len() + 1).checked_sub(1).map(|index| &versions[index]),
            },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn fate(seed: u64, last: u64) -> Fate {
        Fate::of(Random::of(seed, 1), last)
    }

    #[test]
    fn synced_bytes_survive_and_unsynced_ones_by_sector() {
        let mut content = Content::default();
        content.write(1, 0, &[1; 2_000]);
        content.sync();
        content.write(2, 0, &[2; 1_100]);
        content.write(3, 500, &[3; 24]);
        let mut seen = [false; 4];
        for seed in 0..300 {
            let left = content.survive(&mut fate(seed, 3));
            assert_eq!(left.len(), 2_000);
            assert!(left[1_100..].iter().all(|byte| *byte == 1), "seed {seed}");
            for sector in left[..1_024].chunks(SECTOR) {
                // A sector is whole: it has its oldest content or that of a write.
                let kinds = (sector[0], sector[SECTOR - 1]);
                assert!([(1, 1), (2, 2), (2, 3), (3, 2)].contains(&kinds), "seed {seed}: {kinds:?}");
                seen[usize::from(kinds.0.max(kinds.1))] = true;
            }
        }
        assert_eq!(seen, [false, true, true, true]);
        assert_eq!(content.seen()[500..524], [3; 24]);
    }

    #[test]
    fn failed_sync_is_not_repaired_by_next() {
        let mut content = Content::default();
        content.write(1, 0, &[1; 4_096]);
        content.sync();
        let mut lost = 0;
        for seed in 0..50 {
            let mut content = content.clone();
            content.write(2, 0, &[2; 4_096]);
            content.fail_sync(&mut fate(seed, 2), false);
            content.sync();
            assert_eq!(content.seen(), [2; 4_096]);
            lost += usize::from(content.survive(&mut fate(seed, 3)).contains(&1));
        }
        assert!(lost > 10, "{lost}");
    }

    #[test]
    fn size_may_survive_without_its_bytes() {
        let mut content = Content::default();
        content.write(1, 0, &[1; 5_000]);
        let left: Vec<Vec<u8>> = (0..200).map(|seed| content.survive(&mut fate(seed, 1))).collect();
        assert!(left.iter().any(Vec::is_empty) && left.iter().any(|left| left == &[1; 5_000]));
        assert!(left.iter().any(|left| left.len() == 5_000 && left.iter().any(|byte| *byte != 1)));
    }
}
