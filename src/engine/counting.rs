//! Counts over all segments: items, slots, bytes, events.

use core::time::Duration;
use std::sync::Arc;

use super::directory::Directory;
use super::memory::Meter;
use super::payload::Payload;
use super::root::Root;
use super::segment::Segment;
use super::stats::Stats;
use super::stripes::{self, Version};
use crate::sync::{Ordering, spin_loop};

impl<P: Payload> Directory<P> {
    /// How many items there are. Exact while nobody writes; never fewer than are present throughout the call.
    pub(crate) fn len(&self) -> usize {
        self.while_root_stays(|root| each_current(root, Segment::items).sum())
    }

    /// Whether there are no items. Exact while nobody writes; false if an item is present throughout the call.
    pub(crate) fn is_empty(&self) -> bool {
        self.while_root_stays(|root| each_current(root, Segment::items).all(|items| items == 0))
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.while_root_stays(|root| each_current(root, Segment::slots).sum())
    }

    /// What `ask` makes of the root; asks again if the root has doubled meanwhile. Items in segments to which only the longer
    /// root leads are then no longer in those to which the shorter one leads [G6].
    fn while_root_stays<T>(&self, ask: impl Fn(Root<'_, P>) -> T) -> T {
        loop {
            let root = self.root();
            let result = ask(root);
            if root.is(self.root()) {
                return result;
            }
            spin_loop();
        }
    }

    /// Bytes of segments, roots and overflow, those kept for further use included.
    pub(crate) fn memory_usage(&self) -> usize {
        self.meter.bytes() + self.pool.lock().memory_usage()
    }

    /// The meter that counts the bytes.
    pub(crate) fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Counts collected from all segments.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats {
            splits: self.counts.splits.load(Ordering::Relaxed),
            doublings: self.counts.doublings.load(Ordering::Relaxed),
            longest_write_pause: Duration::from_nanos(self.counts.longest_pause_ns.load(Ordering::Relaxed)),
            len: self.len(),
            capacity: self.slots(),
            memory_usage: self.memory_usage(),
            ..Stats::default()
        };
        self.each_segment(|writing| {
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
        });
        stats
    }
}

/// What `ask` says of each segment at some moment when it was current, if the root is current throughout. A segment that
/// changes its place, or is split, may be asked twice.
fn each_current<P: Payload, T>(root: Root<'_, P>, ask: impl Fn(&Segment<P>) -> T) -> impl Iterator<Item = T> {
    let mut last: Option<(*const Segment<P>, Version)> = None;
    (0..root.len).filter_map(move |index| {
        loop {
            // Acquire: pairs with the Release in `publish`: the segment is seen as its builder left it.
            let pointer = root.entry(index).load(crate::reclaim::PROTECTED);
            // SAFETY: as in `Directory::locate_from`.
            let segment = unsafe { &*pointer };
            // All stripes change when a segment is emptied, and when it is filled, to be used anew [I8]: a segment to which
            // several entries lead is asked once, but not one that was replaced at the entry before and has come back at this
            // one.
            let stripe = segment.overflow().stripe();
            let is_last =
                |(last, version)| core::ptr::eq(last, pointer) && stripes::unchanged(stripe, version);
            if last.is_some_and(is_last) {
                return None;
            }
            let version = stripes::begin(stripe);
            let answer = ask(segment);
            // Acquire: pairs with the same: if it was replaced, and filled anew, its stripe shows that.
            let again = root.entry(index).load(crate::reclaim::PROTECTED);
            if core::ptr::eq(again, pointer) && stripes::unchanged(stripe, version) {
                last = Some((pointer, version));
                return Some(answer);
            }
            spin_loop();
        }
    })
}
