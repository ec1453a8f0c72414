//! What is counted over all segments: items, slots, bytes, what happened.

use core::time::Duration;

use super::directory::Directory;
use super::payload::Payload;
use super::root::Root;
use super::stats::Stats;
use super::stripes;
use crate::sync::Ordering;

impl<P: Payload> Directory<P> {
    /// How many items there are. Exact while nobody writes; never fewer than are there throughout.
    pub(crate) fn len(&self) -> usize {
        self.walk(|root| Self::counts(root).sum())
    }

    /// Whether there are none. Exact while nobody writes; false if there is one throughout.
    pub(crate) fn is_empty(&self) -> bool {
        self.walk(|root| Self::counts(root).all(|count| count == 0))
    }

    /// What `walk` makes of the directory: again, if that has doubled under it. What then is in segments to which only the
    /// longer one leads is no longer in those to which the other does [G6].
    fn walk<T>(&self, walk: impl Fn(&Root<P>) -> T) -> T {
        loop {
            let root = self.root();
            let result = walk(root);
            if core::ptr::eq(root, self.root()) {
                return result;
            }
        }
    }

    /// How many items each segment had at some moment when it was current, if the root is so throughout.
    fn counts(root: &Root<P>) -> impl Iterator<Item = usize> {
        let mut last = core::ptr::null_mut();
        (0..root.len).filter_map(move |index| {
            loop {
                let pointer = root.entry(index).load(crate::reclaim::PROTECTED);
                if core::ptr::eq(pointer, last) {
                    return None;
                }
                // SAFETY: as in `locate`.
                let segment = unsafe { &*pointer };
                // All stripes change when a segment is emptied, and when it is filled, to be used anew [I8].
                let stripe = segment.overflow().stripe();
                let version = stripes::begin(stripe);
                let items = segment.items();
                let again = root.entry(index).load(crate::reclaim::PROTECTED);
                if core::ptr::eq(again, pointer) && stripes::unchanged(stripe, version) {
                    last = pointer;
                    return Some(items);
                }
            }
        })
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.segments().map(|segment| segment.slots()).sum()
    }

    /// Bytes of segments, roots and overflow, those kept for further use included.
    pub(crate) fn memory_usage(&self) -> usize {
        self.meter.bytes() + self.pool.lock().memory_usage()
    }

    /// Counts collected from all segments.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats {
            splits: self.counts.splits.load(Ordering::Relaxed),
            doublings: self.counts.doublings.load(Ordering::Relaxed),
            longest_write_pause: Duration::from_nanos(self.counts.longest_pause_ns.load(Ordering::Relaxed)),
            ..Stats::default()
        };
        let mut cursor = 0;
        while let Some((writing, next)) = self.visit(cursor) {
            let state = writing.locked.state_ref();
            stats.segments += 1;
            stats.overflow += state.overflow_len;
            stats.failed_searches += state.tally.failed_searches;
            for (hops, (total, count)) in
                stats.path_lengths.iter_mut().zip(state.tally.path_lengths).enumerate()
            {
                *total += count;
                stats.displacements += count * hops as u64;
            }
            stats.read_retries += writing.locked.segment().write().read_retries.load(Ordering::Relaxed);
            cursor = next;
        }
        stats
    }
}
