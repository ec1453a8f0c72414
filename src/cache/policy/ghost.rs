//! [`Ghost`]: which keys were evicted lately, and how long ago.

use super::Locator;
use crate::engine::prefetch;
use crate::hash::scale;

/// Two-byte fingerprints of evicted keys, each with the epoch of its eviction, in sets of eight.
///
/// Remembers about the last `reach` keys: an epoch is a fifteenth of them, and a key is forgotten when its epoch is too
/// old, or, rarely, when its set is full of younger ones. Takes a stranger for a key it remembers in up to one of 500
/// cases (eight fingerprints of 12 bits).
#[derive(Debug)]
pub(super) struct Ghost {
    /// Each from the youngest to the oldest, and then zeros.
    sets: Box<[[u16; WAYS]]>,
    /// How many keys there are of each epoch.
    counts: [usize; EPOCHS],
    /// Their sum.
    len: usize,
    /// The epoch of keys that come now.
    epoch: u16,
    /// How many came in this epoch, of `epoch_keys`.
    filled: usize,
    epoch_keys: usize,
    /// From this age on, in epochs, a key is forgotten.
    limit: u16,
    /// Where forgotten keys are cleared next.
    hand: usize,
    /// How many sets are cleared for each key that comes.
    cleaned_sets: usize,
}

/// Whether some entry of a set has this fingerprint: mostly not. Without a branch, so that all are compared at once.
fn may_have(set: &[u16; WAYS], print: u16) -> bool {
    set.iter().fold(false, |any, &entry| any | (entry >> 4 == print))
}

/// How many epochs ago an entry's was.
fn age(entry: u16, now: u16) -> u16 {
    now.wrapping_sub(entry) % EPOCHS as u16
}

const WAYS: usize = 8;
/// Keys for which sets are cleared together.
const CLEANED_AT_ONCE: usize = 4;
/// Epochs are told by four bits; the oldest is always one that is forgotten, and cleared before its number returns.
const EPOCHS: usize = 16;

impl Ghost {
    /// Remembers about the last `reach` keys.
    pub(super) fn new(reach: usize) -> Self {
        let reach = reach.max(1);
        let epoch_keys = reach.div_ceil(EPOCHS - 1);
        Ghost {
            sets: vec![[0; WAYS]; reach.div_ceil(WAYS)].into(),
            cleaned_sets: reach.div_ceil(WAYS).div_ceil(epoch_keys),
            counts: [0; EPOCHS],
            len: 0,
            epoch: 0,
            filled: 0,
            epoch_keys,
            limit: reach.div_ceil(epoch_keys) as u16,
            hand: 0,
        }
    }

    /// Made for about this many keys.
    pub(super) fn reach(&self) -> usize {
        self.epoch_keys * usize::from(self.limit)
    }

    /// How many keys it remembers.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Remembers a key. One that is there already is then there twice, and taken the younger first.
    pub(super) fn push(&mut self, locator: Locator) {
        if self.filled == self.epoch_keys {
            self.turn();
        }
        // In every epoch the hand comes round, so that the forgotten are gone before their epoch's number returns. Some
        // sets at a time, as it is the line that costs, which nobody else has need of.
        if self.filled % CLEANED_AT_ONCE == 0 {
            for _ in 0..self.cleaned_sets * CLEANED_AT_ONCE.min(self.epoch_keys - self.filled) {
                self.clean();
            }
        }
        let (set, print) = self.place(locator);
        let set = &mut self.sets[set];
        let oldest = set[WAYS - 1];
        set.copy_within(..WAYS - 1, 1);
        set[0] = print << 4 | self.epoch;
        self.uncount(oldest);
        self.filled += 1;
        self.counts[usize::from(self.epoch)] += 1;
        self.len += 1;
    }

    /// Starts loading what `take` and `push` read of a key.
    #[inline]
    pub(super) fn prefetch(&self, locator: Locator) {
        prefetch(self.sets.as_ptr().wrapping_add(self.place(locator).0));
    }

    /// Forgets a key, and says about how many were pushed after it, if it was remembered.
    pub(super) fn take(&mut self, locator: Locator) -> Option<usize> {
        let (set, print) = self.place(locator);
        if may_have(&self.sets[set], print) { self.take_from(set, print) } else { None }
    }

    /// The same, of a key that seems to be there. By itself, as that is rare.
    #[inline(never)]
    fn take_from(&mut self, set: usize, print: u16) -> Option<usize> {
        let way = self.sets[set].iter().position(|entry| entry >> 4 == print)?;
        let entry = self.sets[set][way];
        if self.is_forgotten(entry) {
            return None;
        }
        self.sets[set].copy_within(way + 1.., way);
        self.sets[set][WAYS - 1] = 0;
        self.uncount(entry);
        let age = usize::from(age(entry, self.epoch));
        // From the middle of its epoch.
        Some(match age {
            0 => self.filled / 2,
            _ => self.filled + (age - 1) * self.epoch_keys + self.epoch_keys / 2,
        })
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// The next epoch begins, and one more is forgotten.
    fn turn(&mut self) {
        self.epoch = (self.epoch + 1) % EPOCHS as u16;
        self.filled = 0;
        let forgotten = (self.epoch + EPOCHS as u16 - self.limit) % EPOCHS as u16;
        self.len -= core::mem::take(&mut self.counts[usize::from(forgotten)]);
    }

    /// Clears the forgotten of one set.
    fn clean(&mut self) {
        let set = self.hand;
        self.hand = if set + 1 == self.sets.len() { 0 } else { set + 1 };
        // Without a branch: one instruction for all of them.
        let (epoch, limit) = (self.epoch, self.limit);
        self.sets[set] = self.sets[set].map(|entry| if age(entry, epoch) >= limit { 0 } else { entry });
    }

    /// An entry, if it is one, leaves.
    fn uncount(&mut self, entry: u16) {
        if entry != 0 && !self.is_forgotten(entry) {
            self.counts[usize::from(entry % EPOCHS as u16)] -= 1;
            self.len -= 1;
        }
    }

    fn is_forgotten(&self, entry: u16) -> bool {
        entry != 0 && age(entry, self.epoch) >= self.limit
    }

    /// A key's set and its fingerprint, 1 to 4095.
    fn place(&self, locator: Locator) -> (usize, u16) {
        let mixed = u64::from(locator.bits()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let set = scale((mixed >> 32) as u32, self.sets.len() as u32) as usize;
        (set, ((mixed as u32 >> 8) % 0xFFF) as u16 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Locator;
    use super::{Ghost, age};
    use crate::hash::Digest;

    fn key(i: usize) -> Locator {
        Locator::new(Digest::located(i as u64))
    }

    #[test]
    fn the_last_keys_are_remembered_with_their_age() {
        for reach in [1, 2, 7, 32, 100, 5000] {
            let mut ghost = Ghost::new(reach);
            (0..4 * reach).for_each(|i| ghost.push(key(i)));
            assert!(ghost.len() <= ghost.reach() && ghost.reach() < 2 * reach + 16);
            // A full set loses its oldest: some of the older half, hardly any of the younger.
            let young = reach.div_ceil(4);
            let mut found = 0;
            for ago in 0..young {
                if let Some(said) = ghost.take(key(4 * reach - 1 - ago)) {
                    found += 1;
                    assert!(said.abs_diff(ago) <= reach / 15 + 1, "{reach}: {said} for {ago}");
                }
            }
            assert!(found * 10 >= young * 9, "{reach}: {found} of {young}");
        }
    }

    #[test]
    fn most_within_reach_are_remembered_and_none_beyond() {
        let mut ghost = Ghost::new(6000);
        (0..20_000).for_each(|i| ghost.push(key(i)));
        let within = (14_400..20_000).filter(|&i| ghost.take(key(i)).is_some()).count();
        assert!(within > 4700, "{within}");
        let beyond = (0..14_000).filter(|&i| ghost.take(key(i)).is_some()).count();
        assert!(beyond < 100, "{beyond}");
    }

    #[test]
    fn strangers_are_rarely_remembered() {
        let mut ghost = Ghost::new(6000);
        (0..20_000).for_each(|i| ghost.push(key(i)));
        let strangers = (1_000_000..1_100_000).filter(|&i| ghost.take(key(i)).is_some()).count();
        assert!(strangers < 300, "{strangers} of 100,000");
    }

    #[test]
    fn what_is_taken_is_forgotten_and_the_count_is_exact() {
        // In the smallest ones an epoch ends before as many keys have come as are cleaned for at once.
        [1, 2, 5, 16, 31, 32, 64, 250, 300].into_iter().for_each(count_is_exact);
    }

    fn count_is_exact(reach: usize) {
        let mut ghost = Ghost::new(reach);
        for i in 0..10_000 {
            ghost.push(key(i));
            if i % 3 == 0 {
                ghost.take(key(i - i / 7 % 40.min(i + 1)));
            }
            for set in &ghost.sets {
                let ages = set.map(|entry| if entry == 0 { u16::MAX } else { age(entry, ghost.epoch) });
                assert!(ages.is_sorted(), "the youngest first, zeros last: {set:x?}");
            }
            let live =
                ghost.sets.as_flattened().iter().filter(|&&entry| entry != 0 && !ghost.is_forgotten(entry));
            assert_eq!(ghost.len(), live.count());
        }
        ghost.push(key(77_777));
        assert!(ghost.take(key(77_777)).is_some());
        assert_eq!(ghost.take(key(77_777)), None);
    }
}
