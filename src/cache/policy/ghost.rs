//! [`Ghost`]: a memory of which keys were evicted lately, and how long ago.

use super::Locator;
use crate::hash::{Digest, scale};
use crate::prefetch::prefetch;

/// Two-byte fingerprints of evicted keys, each with the epoch of its eviction, in sets that are queues.
///
/// Remembers about the last `reach` keys: an epoch is a fifteenth of them, and a key is forgotten when its epoch is too old, or
/// when its set is full of younger ones. Mistakes another key for one it remembers in up to one of 500 cases (eight
/// fingerprints of 12 bits).
///
/// What the arrival of a key writes is in the first line, see [`Adaptive`](super::adaptive::Adaptive).
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Ghost {
    sets: Box<[Set]>,
    /// How many keys came in epochs that are not yet forgotten and were not taken.
    len: u32,
    /// How many keys are still to come in this epoch, of `epoch_keys`.
    left: u32,
    epoch_keys: u32,
    /// The epoch of keys that come now.
    epoch: u16,
    /// From this age on, in epochs, a key is forgotten.
    limit: u16,
    /// How many keys of each epoch were not taken; for the current one, those that are still to come count as well.
    counts: [u32; EPOCHS],
}

/// From the youngest to the oldest, and then zeros: twelve bits of fingerprint, four of epoch.
type Set = [u16; WAYS];

const WAYS: usize = 8;
/// How many epochs four bits can distinguish.
const EPOCHS: usize = 16;
/// The longest reach, far more than a segment has slots for.
const MOST: usize = 1 << 31;

/// Whether a set has this fingerprint: mostly not. Without branches, so that all are compared at once.
#[inline]
fn has(set: &Set, print: u16) -> bool {
    set.iter().fold(false, |any, &entry| any | (entry >> 4 == print))
}

/// Where in a set this fingerprint is, and how many epochs ago it came.
///
/// The steps from now to the youngest and from each to the next are added up, so that no age is too great, only steps have to
/// fit four bits. They do unless no key comes to a set for as many epochs as four bits can distinguish, as happens to two of
/// ten thousand: then its keys seem young.
fn find(set: &[u16], print: u16, now: u16) -> Option<(usize, u16)> {
    let (mut epoch, mut age) = (now, 0);
    for (way, &entry) in set.iter().enumerate() {
        age += epoch.wrapping_sub(entry) % EPOCHS as u16;
        epoch = entry;
        if entry >> 4 == print {
            return Some((way, age));
        }
    }
    None
}

impl Ghost {
    /// A ghost that remembers about the last `reach` keys.
    pub(super) fn new(reach: usize) -> Self {
        let reach = reach.clamp(1, MOST);
        let epoch_keys = reach.div_ceil(EPOCHS - 1);
        Ghost {
            sets: vec![[0; WAYS]; reach.div_ceil(WAYS)].into(),
            len: 0,
            left: epoch_keys as u32,
            epoch_keys: epoch_keys as u32,
            epoch: 0,
            limit: reach.div_ceil(epoch_keys) as u16,
            counts: core::array::from_fn(|epoch| if epoch == 0 { epoch_keys as u32 } else { 0 }),
        }
    }

    /// About how many keys it was made for.
    #[inline]
    pub(super) fn reach(&self) -> usize {
        self.epoch_keys as usize * usize::from(self.limit)
    }

    /// How many keys it remembers, or would if all sets were large enough.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Remembers a key. A key that is there already is then there twice, and the younger one is taken first.
    #[inline]
    pub(super) fn push(&mut self, locator: Locator) {
        if self.left == 0 {
            self.turn();
        }
        self.left -= 1;
        let (set, print) = self.place(locator);
        let set = &mut self.sets[set];
        set.copy_within(..WAYS - 1, 1);
        set[0] = print << 4 | self.epoch;
        self.len += 1;
    }

    /// Begins the next epoch, and forgets the oldest.
    #[cold]
    fn turn(&mut self) {
        self.epoch = (self.epoch + 1) % EPOCHS as u16;
        self.left = self.epoch_keys;
        let forgotten = (self.epoch + EPOCHS as u16 - self.limit) % EPOCHS as u16;
        self.len -= core::mem::take(&mut self.counts[usize::from(forgotten)]);
        self.counts[usize::from(self.epoch)] = self.epoch_keys;
    }

    /// Starts loading what `take` and `push` read for a key.
    #[inline]
    pub(super) fn prefetch(&self, locator: Locator) {
        prefetch(self.sets.as_ptr().wrapping_add(self.place(locator).0));
    }

    /// How many times a key is remembered, eight at most, and among how many of the last keys at the most.
    pub(super) fn times(&self, locator: Locator) -> (usize, usize) {
        let (set, print) = self.place(locator);
        let mut set = &self.sets[set][..];
        let (mut epoch, mut age, mut times) = (self.epoch, 0, 0);
        while let Some((way, more)) = find(set, print, epoch).filter(|(_, more)| age + more < self.limit) {
            age += more;
            (epoch, set, times) = (set[way], &set[way + 1..], times + 1);
        }
        (times, (usize::from(age) + 1) * self.epoch_keys as usize - self.left as usize)
    }

    /// Forgets a key, and returns about how many were pushed after it, if it was remembered.
    #[inline]
    pub(super) fn take(&mut self, locator: Locator) -> Option<usize> {
        let (set, print) = self.place(locator);
        if has(&self.sets[set], print) { self.take_from(set, print) } else { None }
    }

    /// The same, for a key that seems to be there. A function of its own, because that is rare.
    #[inline(never)]
    fn take_from(&mut self, set: usize, print: u16) -> Option<usize> {
        let set = &mut self.sets[set];
        let (way, age) = find(set, print, self.epoch)?;
        let epoch = (usize::from(self.epoch) + EPOCHS - usize::from(age) % EPOCHS) % EPOCHS;
        let to_come = if age == 0 { self.left } else { 0 };
        // No key is left of its epoch: it only seems so young.
        if age >= self.limit || self.counts[epoch] == to_come {
            return None;
        }
        set.copy_within(way + 1.., way);
        set[WAYS - 1] = 0;
        self.counts[epoch] -= 1;
        self.len -= 1;
        let epoch_keys = self.epoch_keys as usize;
        let filled = epoch_keys - self.left as usize;
        // Counted from the middle of its epoch.
        Some(match usize::from(age) {
            0 => filled / 2,
            age => filled + (age - 1) * epoch_keys + epoch_keys / 2,
        })
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// A key's set and its fingerprint, 1 to 4095.
    #[inline]
    fn place(&self, locator: Locator) -> (usize, u16) {
        let mixed = Digest::new(u64::from(locator.bits()));
        let set = scale(mixed.prefix(), self.sets.len() as u32) as usize;
        let print = mixed.bits() as u16 >> 4;
        (set, print + u16::from(print == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Locator;
    use super::{Digest, Ghost, find};

    fn key(i: usize) -> Locator {
        Locator::new(Digest::new(i as u64))
    }

    /// A ghost of this reach to which the keys 0 to `keys` have come, the last of them last.
    fn after(keys: usize, reach: usize) -> Ghost {
        let mut ghost = Ghost::new(reach);
        (0..keys).for_each(|i| ghost.push(key(i)));
        ghost
    }

    #[test]
    fn the_last_keys_are_remembered_with_their_age() {
        for reach in [1, 2, 7, 32, 100, 5000] {
            let mut ghost = after(4 * reach, reach);
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
        let mut ghost = after(20_000, 6000);
        let within = (14_400..20_000).filter(|&i| ghost.take(key(i)).is_some()).count();
        assert!(within > 4700, "{within}");
        let mut ghost = after(20_000, 6000);
        // Two fingerprints in a thousand are other keys'.
        let beyond = (0..13_900).filter(|&i| ghost.take(key(i)).is_some()).count();
        assert!(beyond < 60, "{beyond}");
    }

    #[test]
    fn strangers_are_rarely_remembered() {
        let mut ghost = after(20_000, 6000);
        let strangers = (1_000_000..1_100_000).filter(|&i| ghost.take(key(i)).is_some()).count();
        assert!((1..300).contains(&strangers), "{strangers} of 100,000");
    }

    /// What `len` should be.
    fn counted(ghost: &Ghost) -> usize {
        ghost.counts.iter().sum::<u32>() as usize - ghost.left as usize
    }

    #[test]
    fn what_is_taken_is_forgotten_and_the_count_is_of_what_was_not() {
        for reach in [1, 2, 5, 16, 31, 32, 64, 250, 300] {
            let mut ghost = Ghost::new(reach);
            let mut taken = std::collections::VecDeque::new();
            for i in 0..10_000 {
                ghost.push(key(i));
                taken.push_back(i % 3 == 0 && ghost.take(key(i)).is_some());
                let queues = |set: &[u16; 8]| set.is_sorted_by_key(|&entry| entry == 0);
                assert!(ghost.sets.iter().all(queues), "zeros last");
                // The keys of the epochs that count: the last, which is not full, and those before it.
                let among = (ghost.reach() - ghost.left as usize).min(i + 1);
                let left = taken.iter().rev().take(among).filter(|&&taken| !taken).count();
                assert_eq!((ghost.len(), counted(&ghost)), (left, left), "{reach}: after {i}");
            }
            ghost.push(key(77_777));
            assert!(ghost.take(key(77_777)).is_some());
            assert_eq!(ghost.take(key(77_777)), None);
        }
    }

    #[test]
    fn a_key_that_came_again_is_counted_among_those_since() {
        for reach in [32, 100, 5000] {
            let mut ghost = after(3 * reach, reach);
            assert_eq!(ghost.times(key(7_000_000)).0, 0);
            for times in 1..=4 {
                ghost.push(key(7_000_000));
                let (said, among) = ghost.times(key(7_000_000));
                let since = 2 * times - 1;
                assert_eq!(said, times);
                assert!((since..=since + reach / 15 + 1).contains(&among), "{reach}: {among} for {since}");
                ghost.push(key(times));
            }
            (0..2 * reach).for_each(|i| ghost.push(key(100_000 + i)));
            assert_eq!(ghost.times(key(7_000_000)).0, 0, "forgotten");
        }
    }

    #[test]
    fn older_keys_may_be_taken_in_any_order() {
        for reach in [1, 2, 5, 9, 16, 31, 64, 300] {
            let mut ghost = Ghost::new(reach);
            let mut random = 1_u64;
            for i in 0..20_000 {
                ghost.push(key(i));
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if random >> 63 == 0 {
                    ghost.take(key(i - (random >> 32) as usize % (2 * reach).min(i + 1)));
                }
                assert_eq!(ghost.len(), counted(&ghost), "{reach}: after {i}");
                assert!(ghost.len() <= ghost.reach());
            }
        }
    }

    #[test]
    fn a_set_that_was_left_alone_for_all_epochs_passes_nothing_off_as_young() {
        // Two sets, and epochs of one key.
        let mut ghost = Ghost::new(15);
        let of_set = |set| (0..).map(key).filter(move |&key| Ghost::new(15).place(key).0 == set);
        let old = of_set(0).next().expect("half of the keys");
        ghost.push(old);
        for other in of_set(1).take(16) {
            ghost.push(other);
            assert!(ghost.take(other).is_some());
        }
        assert_eq!(find(&ghost.sets[0], ghost.place(old).1, ghost.epoch), Some((0, 0)), "it seems young");
        assert_eq!(ghost.take(old), None);
        assert_eq!((ghost.len(), counted(&ghost)), (0, 0));
    }
}
