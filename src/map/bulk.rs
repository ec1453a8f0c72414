//! Inserting many pairs: memory is fetched for a batch of them before the first is inserted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::{BATCH, CapacityError};
use crate::hash::Digest;
use crate::outcome::FULL;
use crate::reclaim::discard;

/// With fewer pairs there is next to nothing to overlap, and a batch needs memory to be allocated.
const FEW: usize = 8;

/// A batch of larger pairs would take much memory, and there is next to nothing to gain.
const LARGE: usize = 4096;

/// A destination of pairs.
pub(crate) trait Target<K, V> {
    /// Starts loading the memory that `insert` reads and writes.
    fn prepare(&self, digest: Digest);

    /// Inserts a pair, whose key may be present, and returns whether there was room.
    fn insert(&mut self, digest: Digest, key: K, value: V) -> bool;
}

/// A map that others may use meanwhile, as a destination of pairs.
pub(crate) trait SharedMap<K, V>: Target<K, V> + Copy {
    /// The digest of a key.
    fn digest(self, key: &K) -> Digest;

    /// Whether there are no entries.
    fn is_empty(self) -> bool;

    /// Makes room for this many more entries.
    fn try_reserve(self, additional: usize) -> Result<(), CapacityError>;
}

/// Inserts all pairs, and makes room beforehand in an empty map.
///
/// # Panics
///
/// If there is no room.
#[track_caller]
pub(crate) fn extend<K, V>(map: impl SharedMap<K, V>, pairs: impl IntoIterator<Item = (K, V)>) {
    let pairs = pairs.into_iter();
    let (at_least, _) = pairs.size_hint();
    if at_least > 1 && map.is_empty() {
        // If there is memory: a hint is no promise.
        let _ = map.try_reserve(at_least);
    }
    let digested = |_: &_, (key, value): (K, V)| (map.digest(&key), key, value);
    assert!(in_batches(pairs, digested, map), "{FULL}");
}

/// Makes room for this many more entries.
///
/// # Panics
///
/// If there is no memory for them.
#[track_caller]
pub(super) fn reserve<K, V>(map: impl SharedMap<K, V>, additional: usize) {
    if let Err(error) = map.try_reserve(additional) {
        panic!("{error}");
    }
}

/// Pairs that have been taken from an iterator, and where they go. If the iterator panics, they are inserted.
struct Batch<K, V, T: Target<K, V>> {
    pairs: Vec<(Digest, K, V)>,
    target: T,
}

impl<K, V, T: Target<K, V>> Batch<K, V, T> {
    /// Inserts pairs in order until one has no room, and returns whether all had. The others are dropped, as they are if an
    /// insertion panics.
    // In one place, so that an insertion is inlined into it.
    #[inline(never)]
    fn insert_all(&mut self) -> bool {
        self.pairs.drain(..).all(|(digest, key, value)| self.target.insert(digest, key, value))
    }
}

impl<K, V, T: Target<K, V>> Drop for Batch<K, V, T> {
    fn drop(&mut self) {
        // Pairs are left only if the iterator has panicked: that panic goes on. Another one, such as that of [E1], would end
        // the process; and nobody is left to be told of pairs that have no room.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.insert_all())) {
            discard(payload);
        }
    }
}

/// Takes pairs a batch at a time, computes their digests and prepares for each pair of a batch, and then inserts them, in
/// order, until one has no room; large pairs one by one. Returns whether all had room.
#[inline]
pub(super) fn in_batches<I, K, V, T: Target<K, V>>(
    pairs: impl Iterator<Item = I>,
    digested: impl Fn(&T, I) -> (Digest, K, V),
    mut target: T,
) -> bool {
    let mut pairs = pairs.fuse();
    let at_most = pairs.size_hint().1.unwrap_or(BATCH).min(BATCH);
    let mut room = Vec::new();
    if size_of::<(K, V)>() > LARGE || at_most < FEW || room.try_reserve_exact(at_most).is_err() {
        return pairs.all(|pair| {
            let (digest, key, value) = digested(&target, pair);
            target.insert(digest, key, value)
        });
    }
    let mut batch = Batch { pairs: room, target };
    loop {
        for pair in pairs.by_ref().take(BATCH) {
            let pair = digested(&batch.target, pair);
            batch.target.prepare(pair.0);
            batch.pairs.push(pair);
        }
        if batch.pairs.is_empty() {
            return true;
        }
        if !batch.insert_all() {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Records what it gets, and accepts what `takes` accepts.
    struct Log<'l, F> {
        log: &'l RefCell<Vec<(&'static str, u64)>>,
        takes: F,
    }

    impl<V, F: FnMut(u64) -> bool> Target<u64, V> for Log<'_, F> {
        fn prepare(&self, digest: Digest) {
            self.log.borrow_mut().push(("prepared", digest.bits()));
        }

        fn insert(&mut self, digest: Digest, n: u64, _: V) -> bool {
            assert_eq!(digest, Digest::new(n));
            let takes = (self.takes)(n);
            self.log.borrow_mut().push(("inserted", n));
            takes
        }
    }

    /// Returns whether all of these had room, and logs what became of them.
    fn insert(
        numbers: impl Iterator<Item = u64>,
        takes: impl FnMut(u64) -> bool,
        log: &RefCell<Vec<(&'static str, u64)>>,
    ) -> bool {
        in_batches(numbers, |_, n| (Digest::new(n), n, ()), Log { log, takes })
    }

    fn inserted(log: RefCell<Vec<(&'static str, u64)>>) -> Vec<u64> {
        log.into_inner().into_iter().filter(|(what, _)| *what == "inserted").map(|(_, n)| n).collect()
    }

    #[test]
    fn each_batch_is_prepared_and_then_inserted_in_order() {
        for n in [FEW as u64, 31, 32, 33, 100] {
            let log = RefCell::default();
            assert!(insert(0..n, |_| true, &log));
            let numbers: Vec<u64> = (0..n).collect();
            let expected = numbers.chunks(BATCH).flat_map(|batch| {
                let prepared = batch.iter().map(|&n| ("prepared", Digest::new(n).bits()));
                prepared.chain(batch.iter().map(|&n| ("inserted", n)))
            });
            assert_eq!(log.into_inner(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_few_are_inserted_as_they_come() {
        for n in 0..FEW as u64 {
            let log = RefCell::default();
            assert!(insert(0..n, |_| true, &log));
            assert_eq!(log.into_inner(), (0..n).map(|n| ("inserted", n)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_without_room_ends_it() {
        let log = RefCell::default();
        assert!(!insert(0..100, |n| n < 40, &log));
        assert_eq!(inserted(log), (0..=40).collect::<Vec<_>>());
    }

    #[test]
    fn what_an_iterator_yielded_before_it_panicked_is_inserted() {
        let log = RefCell::default();
        let numbers = (0..100).inspect(|n| assert!(*n < 40, "as planned"));
        assert!(catch_unwind(AssertUnwindSafe(|| insert(numbers, |_| true, &log))).is_err());
        assert_eq!(inserted(log), (0..40).collect::<Vec<_>>());
    }

    #[test]
    fn pairs_of_more_than_4_kib_are_inserted_as_they_come() {
        fn order<V>(value: fn() -> V) -> Vec<&'static str> {
            let log = RefCell::default();
            let digested = |_: &_, n: u64| (Digest::new(n), n, value());
            assert!(in_batches(0..20, digested, Log { log: &log, takes: |_| true }));
            log.into_inner().into_iter().map(|(what, _)| what).collect()
        }
        assert_eq!(order(|| [0_u8; 4088]), [["prepared"; 20], ["inserted"; 20]].concat());
        assert_eq!(order(|| [0_u8; 4089]), ["inserted"; 20]);
    }

    #[test]
    fn a_second_panic_while_they_are_inserted_is_no_more_than_that() {
        let log = RefCell::default();
        let numbers = (0..100).inspect(|n| assert!(*n < 40, "as planned"));
        let takes = |n| {
            assert_ne!(n, 35, "as planned as well");
            true
        };
        let payload = catch_unwind(AssertUnwindSafe(|| insert(numbers, takes, &log))).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"as planned"));
        assert_eq!(inserted(log), (0..35).collect::<Vec<_>>());
    }
}
