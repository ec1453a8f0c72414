//! The search for a cuckoo path: breadth first, reading tags only, writing nothing [W4].
//!
//! Breadth first finds a shortest path: at 95% load mostly two displacements where MemC3's random walk makes
//! dozens (Li et al., "Algorithmic improvements for fast concurrent cuckoo hashing", EuroSys 2014, section
//! 4.3.2). Call with the segment's lock held: the path stays true only as long as nobody else writes.

use core::mem::MaybeUninit;

use super::buckets::{Buckets, SLOTS, free_lane, tag_at};
use super::payload::Payload;
use crate::hash::{Place, alternate};

/// The longest path, in displacements: 2 * 4^5 buckets can be reached by it, enough for 95% load.
pub(crate) const MAX_HOPS: usize = 5;

/// Buckets that are expanded: the two roots and four children each, but for the last level: 2 * (4^5 - 1) / 3.
const QUEUE: usize = 682;
const _: () = assert!(QUEUE == 2 * ((SLOTS as usize).pow(MAX_HOPS as u32) - 1) / 3);

/// One displacement: the item at `bucket`, `lane` goes to the bucket of the next hop, or to the hole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) bucket: u32,
    pub(crate) lane: u32,
}

/// A chain of displacements that ends in an empty slot.
#[derive(Debug)]
pub(crate) struct Path {
    hops: [Hop; MAX_HOPS + 1],
    len: usize,
}

impl Path {
    /// The slots to be moved, in order, and last the empty one.
    pub(crate) fn hops(&self) -> &[Hop] {
        &self.hops[..self.len]
    }
}

/// A bucket that the search has reached.
#[derive(Clone, Copy)]
struct Node {
    bucket: u32,
    /// Index of the bucket it was reached from; the roots name themselves.
    parent: u16,
    /// The lane in the parent whose item would move here.
    lane: u8,
    /// Displacements from a root to here.
    depth: u8,
}

/// Finds a shortest path from either bucket of `place` to an empty slot; both are full. Looks at `budget` buckets
/// at the most: `None` says that there is no such path, or that it is not worth its price.
pub(crate) fn search<P: Payload>(buckets: &Buckets<P>, place: Place, budget: usize) -> Option<Path> {
    // Left uninitialized: 5 KiB that a short search never touches.
    // Two roots and at most four children each, down to depth MAX_HOPS - 1: it never fills beyond its length.
    let mut queue = [const { MaybeUninit::<Node>::uninit() }; QUEUE];
    queue[0].write(Node { bucket: place.first, parent: 0, lane: 0, depth: 0 });
    queue[1].write(Node { bucket: place.second, parent: 1, lane: 0, depth: 0 });
    let mut tail = 2;
    let mut head = 0;
    while head < tail.min(budget) {
        // SAFETY: head < tail, and all below tail were written.
        let node = unsafe { queue[head].assume_init() };
        let tags = buckets.tags(node.bucket);
        for lane in 0..SLOTS {
            let child = alternate(node.bucket, tag_at(tags, lane), buckets.len());
            if child == node.bucket {
                continue;
            }
            if let Some(hole) = free_lane(buckets.tags(child)) {
                let hole = Hop { bucket: child, lane: hole };
                return Some(trace_back(&queue[..tail], head, Hop { bucket: node.bucket, lane }, hole));
            }
            // A bucket that is reached by MAX_HOPS displacements was worth a look, but leads no further.
            if usize::from(node.depth) + 1 < MAX_HOPS {
                let (parent, lane, depth) = (head as u16, lane as u8, node.depth + 1);
                queue[tail].write(Node { bucket: child, parent, lane, depth });
                buckets.prefetch_tags(child);
                tail += 1;
            }
        }
        head += 1;
    }
    None
}

/// Collects the way from a root to `queue[at]`, the last item to move, and the hole.
fn trace_back(queue: &[MaybeUninit<Node>], mut at: usize, last: Hop, hole: Hop) -> Path {
    let mut reversed = [hole; MAX_HOPS + 1];
    reversed[1] = last;
    let mut len = 2;
    loop {
        // SAFETY: the caller passes the written part of the queue, and parents precede their children in it.
        let node = unsafe { queue[at].assume_init() };
        let parent = usize::from(node.parent);
        if parent == at {
            break;
        }
        // SAFETY: as above.
        let bucket = unsafe { queue[parent].assume_init() }.bucket;
        reversed[len] = Hop { bucket, lane: u32::from(node.lane) };
        len += 1;
        at = parent;
    }
    reversed[..len].reverse();
    Path { hops: reversed, len }
}
