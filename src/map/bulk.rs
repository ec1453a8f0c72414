//! Inserting many pairs: memory is fetched for a batch of them before the first is inserted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::BATCH;
use crate::hash::Digest;
use crate::reclaim::discard;

/// With fewer pairs there is next to nothing to overlap, and a batch is memory to be allocated.
const FEW: usize = 8;

/// Pairs that have been taken from an iterator, and how to insert them. If the iterator panics, they are inserted.
struct Batch<K, V, F: FnMut(Digest, K, V) -> bool> {
    pairs: Vec<(Digest, K, V)>,
    insert: F,
}

impl<K, V, F: FnMut(Digest, K, V) -> bool> Batch<K, V, F> {
    /// Inserts pairs in order until one has no room. Whether all had; the others are dropped, as they are if an insertion
    /// panics.
    // In one place, for an insertion to be inlined into it.
    #[inline(never)]
    fn insert_all(&mut self) -> bool {
        self.pairs.drain(..).all(|(digest, key, value)| (self.insert)(digest, key, value))
    }
}

impl<K, V, F: FnMut(Digest, K, V) -> bool> Drop for Batch<K, V, F> {
    fn drop(&mut self) {
        // Pairs are left only if the iterator has panicked: that panic goes on. Another one, such as that of [E1], would end
        // the process, and of pairs that have no room nobody is left to be told.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| self.insert_all())) {
            discard(payload);
        }
    }
}

/// Takes pairs and their digests a batch at a time; prepares for each of a batch, and then inserts them, in order, until
/// one has no room. Whether all had.
#[inline]
pub(super) fn in_batches<K, V>(
    pairs: impl Iterator<Item = (Digest, K, V)>,
    prepare: impl Fn(Digest),
    mut insert: impl FnMut(Digest, K, V) -> bool,
) -> bool {
    let mut pairs = pairs.fuse();
    let at_most = pairs.size_hint().1.unwrap_or(BATCH).min(BATCH);
    let mut room = Vec::new();
    if at_most < FEW || room.try_reserve_exact(at_most).is_err() {
        return pairs.all(|(digest, key, value)| insert(digest, key, value));
    }
    let mut batch = Batch { pairs: room, insert };
    loop {
        for pair in pairs.by_ref().take(BATCH) {
            prepare(pair.0);
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

    fn numbered(n: u64) -> impl Iterator<Item = (Digest, u64, ())> {
        (0..n).map(|n| (Digest::new(n), n, ()))
    }

    #[test]
    fn each_batch_is_prepared_and_then_inserted_in_order() {
        for n in [FEW as u64, 31, 32, 33, 100] {
            let log = RefCell::new(Vec::new());
            let prepare = |digest: Digest| log.borrow_mut().push(("prepared", digest.bits()));
            let insert = |_, n, ()| {
                log.borrow_mut().push(("inserted", n));
                true
            };
            assert!(in_batches(numbered(n), prepare, insert));
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
            let mut inserted = Vec::new();
            let insert = |_, n, ()| {
                inserted.push(n);
                true
            };
            assert!(in_batches(numbered(n), |_| panic!("nothing to prepare"), insert));
            assert_eq!(inserted, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_without_room_ends_it() {
        let mut inserted = Vec::new();
        let insert = |_, n, ()| {
            inserted.push(n);
            n < 40
        };
        assert!(!in_batches(numbered(100), |_| (), insert));
        assert_eq!(inserted, (0..=40).collect::<Vec<_>>());
    }

    #[test]
    fn what_an_iterator_yielded_before_it_panicked_is_inserted() {
        let inserted = RefCell::new(Vec::new());
        let insert = |_, n, ()| {
            inserted.borrow_mut().push(n);
            true
        };
        let pairs = numbered(100).inspect(|&(_, n, ())| assert!(n < 40, "as planned"));
        assert!(catch_unwind(AssertUnwindSafe(|| in_batches(pairs, |_| (), insert))).is_err());
        assert_eq!(inserted.into_inner(), (0..40).collect::<Vec<_>>());
    }

    #[test]
    fn a_second_panic_while_they_are_inserted_is_no_more_than_that() {
        let mut inserted = Vec::new();
        let insert = |_, n, ()| {
            assert_ne!(n, 35, "as planned as well");
            inserted.push(n);
            true
        };
        let pairs = numbered(100).inspect(|&(_, n, ())| assert!(n < 40, "as planned"));
        let payload = catch_unwind(AssertUnwindSafe(|| in_batches(pairs, |_| (), insert))).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"as planned"));
        assert_eq!(inserted, (0..35).collect::<Vec<_>>());
    }
}
