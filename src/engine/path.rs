//! The search for a cuckoo path: breadth first, reading tags only, writing nothing [W4].
//!
//! Breadth first finds a shortest path: at 95% load it mostly takes two displacements where MemC3's random walk makes dozens
//! (Li et al., "Algorithmic improvements for fast concurrent cuckoo hashing", EuroSys 2014, section 4.3.2). Call with the
//! segment's lock held: the path stays valid only as long as nobody else writes.

use core::mem::MaybeUninit;

use super::buckets::Buckets;
use super::payload::Payload;
use super::tags::{SLOTS, free_lane, tag_at};
use crate::hash::alternate;

/// A table of buckets, as the search sees it. Implemented by the maps' [`Buckets`] and the filters' tables.
pub(crate) trait Tags {
    /// The tags of a bucket.
    type Bucket: Copy;

    /// Slots in a bucket.
    fn slots(&self) -> u32;

    /// The tags of a bucket.
    fn load(&self, bucket: u32) -> Self::Bucket;

    /// The first empty lane.
    fn free_lane(&self, tags: Self::Bucket) -> Option<u32>;

    /// The other bucket of the item at `lane` of `bucket`, whose tags are `tags`.
    fn alternate(&self, bucket: u32, tags: Self::Bucket, lane: u32) -> u32;
}

impl<P: Payload> Tags for Buckets<P> {
    type Bucket = u32;

    #[inline(always)]
    fn slots(&self) -> u32 {
        SLOTS
    }

    #[inline(always)]
    fn load(&self, bucket: u32) -> u32 {
        self.tags(bucket)
    }

    #[inline(always)]
    fn free_lane(&self, tags: u32) -> Option<u32> {
        free_lane(tags)
    }

    #[inline(always)]
    fn alternate(&self, bucket: u32, tags: u32, lane: u32) -> u32 {
        alternate(bucket, tag_at(tags, lane), self.len())
    }
}

/// The longest path, in displacements: 2 * 4^5 buckets can be reached by it, enough for 95% load.
pub(crate) const MAX_HOPS: usize = 5;

/// Buckets that are expanded: the two roots and four children each, without the last level: 2 * (4^5 - 1) / 3.
pub(crate) const QUEUE: usize = 682;
const _: () = assert!(QUEUE == 2 * ((SLOTS as usize).pow(MAX_HOPS as u32) - 1) / 3);

/// The most slots that a bucket may have.
const MAX_SLOTS: usize = 8;

/// One displacement: the item at `bucket`, `lane` goes to the bucket of the next hop, or to the hole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) bucket: u32,
    pub(crate) lane: u32,
}

/// A chain of fewer than `N` displacements that ends in an empty slot.
#[derive(Debug)]
pub(crate) struct Path<const N: usize = { MAX_HOPS + 1 }> {
    hops: [Hop; N],
    len: usize,
}

impl<const N: usize> Path<N> {
    /// The slots to be moved, in order, followed by the empty one.
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

/// Finds a shortest path from either root to an empty slot, of fewer than `N` displacements; both roots are full. Looks at
/// `budget` buckets at the most. `None` means that there is no such path, or that finding it would cost too much.
#[inline]
pub(crate) fn search<T: Tags, const N: usize>(table: &T, roots: [u32; 2], budget: usize) -> Option<Path<N>> {
    debug_assert!(table.slots() as usize <= MAX_SLOTS);
    // Left uninitialized: 5 KiB that a short search never touches.
    let mut queue = [const { MaybeUninit::<Node>::uninit() }; QUEUE];
    queue[0].write(Node { bucket: roots[0], parent: 0, lane: 0, depth: 0 });
    queue[1].write(Node { bucket: roots[1], parent: 1, lane: 0, depth: 0 });
    let mut tail = 2;
    let mut head = 0;
    while head < tail.min(budget) {
        // SAFETY: head < tail, and all below tail were written.
        let node = unsafe { queue[head].assume_init() };
        let tags = table.load(node.bucket);
        // A lane that leads no further keeps the bucket itself here. The roots are full, and have turns of their own: if all
        // their items have the same two buckets, the search ends with these.
        let mut children = [node.bucket; MAX_SLOTS];
        for (lane, to) in (0..table.slots()).zip(&mut children) {
            let child = table.alternate(node.bucket, tags, lane);
            if child == node.bucket || roots.contains(&child) {
                continue;
            }
            if let Some(hole) = table.free_lane(table.load(child)) {
                let hole = Hop { bucket: child, lane: hole };
                return Some(trace_back(&queue[..tail], head, Hop { bucket: node.bucket, lane }, hole));
            }
            *to = child;
        }
        // Listed only now: if a hole had been found, listing would have been in vain. Buckets that are reached by the last
        // displacement were worth a look, but lead no further.
        if usize::from(node.depth) + 2 < N {
            for (lane, child) in (0..table.slots()).zip(children) {
                if child != node.bucket && tail < QUEUE {
                    let (parent, lane, depth) = (head as u16, lane as u8, node.depth + 1);
                    queue[tail].write(Node { bucket: child, parent, lane, depth });
                    tail += 1;
                }
            }
        }
        head += 1;
    }
    None
}

/// Collects the way from a root to `queue[at]`, the last item to move, and the hole.
#[inline]
fn trace_back<const N: usize>(queue: &[MaybeUninit<Node>], at: usize, last: Hop, hole: Hop) -> Path<N> {
    // SAFETY: the caller passes the written part of the queue, and parents precede their children in it.
    let node_at = |at: usize| unsafe { queue[at].assume_init() };
    let mut node = node_at(at);
    let hops_before = usize::from(node.depth);
    let mut hops = [hole; N];
    hops[hops_before] = last;
    for hop in hops[..hops_before].iter_mut().rev() {
        let parent = node_at(usize::from(node.parent));
        *hop = Hop { bucket: parent.bucket, lane: u32::from(node.lane) };
        node = parent;
    }
    Path { hops, len: hops_before + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets in a row. The second of two items in bucket b may go to b + 1, the first nowhere; the third slot of `hole`
    /// is empty.
    struct Row {
        hole: u32,
    }

    impl Tags for Row {
        type Bucket = u32;

        fn slots(&self) -> u32 {
            2
        }

        fn load(&self, bucket: u32) -> u32 {
            bucket
        }

        fn free_lane(&self, tags: u32) -> Option<u32> {
            (tags == self.hole).then_some(2)
        }

        fn alternate(&self, bucket: u32, tags: u32, lane: u32) -> u32 {
            assert_eq!(bucket, tags, "the tags of another bucket");
            bucket + lane
        }
    }

    /// The steps of a path of the length that the maps use.
    fn steps(path: Path) -> Vec<(u32, u32)> {
        path.hops().iter().map(|hop| (hop.bucket, hop.lane)).collect()
    }

    #[test]
    fn a_path_leads_from_a_root_over_the_items_that_move_to_the_hole() {
        for length in 1..=5 {
            let expected: Vec<_> = (0..length).map(|bucket| (bucket, 1)).chain([(length, 2)]).collect();
            let found = search(&Row { hole: length }, [0, 1000], QUEUE).map(steps);
            assert_eq!(found, Some(expected.clone()), "from the first root");
            let found = search(&Row { hole: length }, [1000, 0], QUEUE).map(steps);
            assert_eq!(found, Some(expected), "from the second root");
        }
        let nearer = search(&Row { hole: 3 }, [0, 2], QUEUE).map(steps);
        assert_eq!(nearer, Some(vec![(2, 1), (3, 2)]), "the shorter of two");
        assert!(search::<_, 6>(&Row { hole: 6 }, [0, 1000], QUEUE).is_none(), "six displacements");
        assert!(search::<_, 7>(&Row { hole: 6 }, [0, 1000], QUEUE).is_some());
    }

    #[test]
    fn no_more_buckets_are_expanded_than_the_budget_says() {
        // The roots' turns alternate, and so do those of the buckets they lead to: bucket 2 is the fifth.
        assert!(search::<_, 6>(&Row { hole: 3 }, [0, 1000], 4).is_none());
        assert!(search::<_, 6>(&Row { hole: 3 }, [0, 1000], 5).is_some());
        assert!(search::<_, 6>(&Row { hole: 1 }, [0, 1000], 0).is_none());
    }

    /// Two full buckets whose items lead to each other.
    struct Twins(core::cell::Cell<u32>);

    impl Tags for Twins {
        type Bucket = u32;

        fn slots(&self) -> u32 {
            SLOTS
        }

        fn load(&self, bucket: u32) -> u32 {
            self.0.set(self.0.get() + 1);
            bucket
        }

        fn free_lane(&self, _: u32) -> Option<u32> {
            None
        }

        fn alternate(&self, bucket: u32, _: u32, _: u32) -> u32 {
            1 - bucket
        }
    }

    #[test]
    fn roots_that_lead_only_to_each_other_end_the_search() {
        let twins = Twins(core::cell::Cell::new(0));
        assert!(search::<_, 6>(&twins, [0, 1], QUEUE).is_none());
        assert_eq!(twins.0.get(), 2, "each was looked at once");
    }

    /// A full table in which every item leads to a bucket of its own.
    struct Tree;

    impl Tags for Tree {
        type Bucket = u32;

        fn slots(&self) -> u32 {
            SLOTS
        }

        fn load(&self, bucket: u32) -> u32 {
            bucket
        }

        fn free_lane(&self, _: u32) -> Option<u32> {
            None
        }

        fn alternate(&self, bucket: u32, _: u32, lane: u32) -> u32 {
            bucket * SLOTS + 1 + lane
        }
    }

    #[test]
    fn a_search_of_long_paths_ends_with_its_queue() {
        assert!(search::<_, 6>(&Tree, [1, 2], usize::MAX).is_none());
        assert!(search::<_, 9>(&Tree, [1, 2], usize::MAX).is_none());
    }
}
