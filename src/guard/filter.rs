//! The filter that readers ask, of either kind; and what happens to a fingerprint that finds no room.

use std::io::{self, Write};

use crossbeam_utils::CachePadded;

use super::bloom::Bloom;
use super::stripes::STRIPES;
use crate::filter::{FilterError, ScalableCuckooFilter, Xxh3, hash_bytes};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// The kind of filter that a guard keeps.
///
/// While a filter is rebuilt, the old one answers, and both take memory: about twice as much, for as long as the scan takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// A growing cuckoo filter: keys can be added and removed. It is rebuilt, in the background, when it has grown to more than
    /// eight times its first size, as one table is faster than four. It is also rebuilt when so many keys have been deleted
    /// that a filter for the rest would have less than a quarter of its size and be smaller by 256 KiB or more; and when it had
    /// no room for keys of one group in sixteen ([`Stats::crowded_stripes`](super::Stats::crowded_stripes)), after as many
    /// writes as it has keys, and at least 4,096.
    #[default]
    Cuckoo,
    /// A Bloom filter: keys can only be added. It is rebuilt, in the background, when the deleted keys are a quarter of its
    /// keys and of those that it was made for; or when five times as many absent keys pass as [`false_positive_rate`] says, or
    /// there are half as many keys again as it was made for, whichever comes first: at 1% that is with 1.5 times the keys, at
    /// 1e-6 with 1.1 times.
    ///
    /// [`false_positive_rate`]: super::Builder::false_positive_rate
    Bloom,
    /// No filter: every look-up that the cache does not answer reaches the store.
    None,
}

/// How a guard's filters are made: all filters of a guard have one hash function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) filter: Filter,
    pub(super) rate: f64,
    pub(super) hasher: Xxh3,
}

impl Plan {
    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        hash_bytes(&self.hasher, key)
    }

    /// An empty filter for this many keys; `None` if there is to be none.
    pub(super) fn build(&self, keys: u64) -> Result<Option<Active>, FilterError> {
        let sets = match self.filter {
            Filter::None => return Ok(None),
            Filter::Bloom => Sets::Bloom(Bloom::new(keys, self.rate)?),
            Filter::Cuckoo => {
                let capacity = usize::try_from(keys).unwrap_or(usize::MAX).max(1);
                let builder = ScalableCuckooFilter::builder().capacity(capacity);
                let filter = builder.false_positive_rate(self.rate).hasher(self.hasher).build()?;
                Sets::Cuckoo(filter)
            }
        };
        Ok(Some(Active::new(sets)))
    }
}

#[derive(Debug)]
#[cfg_attr(
    not(loom),
    expect(
        clippy::large_enum_variant,
        reason = "a guard has one; a box would be one more load for each look-up"
    )
)]
pub(super) enum Sets {
    Cuckoo(ScalableCuckooFilter),
    Bloom(Bloom),
}

/// A filter that readers ask, or will.
///
/// Between writes it holds a fingerprint for each of the store's keys [D1]. Those of a crowded stripe may be incomplete; then
/// it says "perhaps" for the whole stripe [D4].
#[derive(Debug)]
pub(super) struct Active {
    sets: Sets,
    /// Stripes with a key whose fingerprint found no room.
    crowded: Box<[AtomicBool]>,
    /// The number of these.
    crowded_stripes: AtomicUsize,
    /// The slots with which a cuckoo filter began.
    slots: usize,
    /// Keys that were removed from a cuckoo filter since it was last checked for sparseness. On a cache line of its own:
    /// writers that delete should not take away the line that readers look at.
    removed: CachePadded<AtomicUsize>,
    /// It was found sparse, and so is worn.
    sparse: AtomicBool,
}

/// A cuckoo filter of this many times its first slots has four tables, and a look-up visits all of them.
const GROWN: usize = 8;

/// To check whether a cuckoo filter is sparse, its keys are counted: each time one key per this many slots has been removed.
const ASKED: usize = 16;
/// A filter that began with no more slots, and has not grown so far that it is worn, is too small to be worth a scan, however
/// long its fingerprints are: 15 times this many slots take 240 KiB. So its keys are not counted.
const FEW_SLOTS: usize = 4096;
const _: () = assert!((2 * GROWN - 1) * FEW_SLOTS * 4 < WORTH_A_SCAN);

/// When more than one stripe in this many is crowded, a filter is of little use, whatever its rate.
const CROWDED: usize = 16;

/// A filter is far too large if it has room for more than this many times the keys for which a new one would be made.
const FAR: u64 = 4;
/// A scan is worth its time if a smaller filter saves this many bytes.
const WORTH_A_SCAN: usize = 256 << 10;

/// How many keys a filter that is made for `keys` has room for: a quarter more.
pub(super) fn with_spare(keys: u64) -> u64 {
    keys.saturating_add(keys / 4)
}

/// The outcome of adding a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It is in the filter.
    Placed,
    /// It is in a Bloom filter, in which all of its bits were set already.
    Again,
    /// There was no room: the stripe is crowded now.
    Crowded,
    /// The stripe was crowded already: it need not be in.
    Unneeded,
}

impl Active {
    fn new(sets: Sets) -> Self {
        Self::with_crowded(sets, (0..STRIPES).map(|_| AtomicBool::new(false)).collect())
    }

    fn with_crowded(sets: Sets, crowded: Box<[AtomicBool]>) -> Self {
        let slots = match &sets {
            // Of the oldest table: a filter from a snapshot may have grown.
            Sets::Cuckoo(filter) => filter.first_slots(),
            Sets::Bloom(_) => 0,
        };
        let marks = crowded.iter().filter(|mark| mark.load(Ordering::Relaxed)).count();
        let crowded_stripes = AtomicUsize::new(marks);
        Active {
            sets,
            crowded,
            crowded_stripes,
            slots,
            removed: CachePadded::new(AtomicUsize::new(0)),
            sparse: AtomicBool::new(false),
        }
    }

    /// False: no key of the store has this hash.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64, stripe: usize) -> bool {
        let found = match &self.sets {
            Sets::Cuckoo(filter) => filter.contains_hash(hash),
            Sets::Bloom(filter) => filter.contains(hash),
        };
        found || self.is_crowded(stripe)
    }

    fn is_crowded(&self, stripe: usize) -> bool {
        // Relaxed: a key that needs it is visible only after its commit, which the store orders after the mark.
        self.crowded[stripe].load(Ordering::Relaxed)
    }

    /// Adds a fingerprint. The caller holds the stripe. A scan does not, though it runs at the same time as writers that do: no
    /// mark is withdrawn before the filter is published, so that the stripes of fingerprints that the scan left out stay
    /// marked.
    pub(super) fn add(&self, hash: u64, stripe: usize) -> Added {
        if self.is_crowded(stripe) {
            return Added::Unneeded;
        }
        let placed = match &self.sets {
            Sets::Cuckoo(filter) => filter.insert_hash(hash).is_ok(),
            Sets::Bloom(filter) if filter.insert(hash) => return Added::Again,
            Sets::Bloom(_) => true,
        };
        if placed {
            return Added::Placed;
        }
        if !self.crowded[stripe].swap(true, Ordering::Relaxed) {
            // Relaxed, here and below: only a number.
            self.crowded_stripes.fetch_add(1, Ordering::Relaxed);
        }
        Added::Crowded
    }

    /// Takes back what `add` has just done, for a key that was in already or was not put. The caller holds the stripe.
    pub(super) fn undo(&self, added: Added, hash: u64, stripe: usize) {
        match (added, &self.sets) {
            (Added::Placed, Sets::Cuckoo(filter)) => {
                filter.remove_hash(hash);
            }
            (Added::Placed | Added::Again, Sets::Bloom(filter)) => filter.undo(),
            (Added::Crowded, _) => {
                // Relaxed: the next holder of the stripe sees it; and all that was added is in the filter [D4].
                self.crowded[stripe].store(false, Ordering::Relaxed);
                self.crowded_stripes.fetch_sub(1, Ordering::Relaxed);
            }
            (Added::Unneeded | Added::Again, _) => {}
        }
    }

    /// The same, for a key that was in. Returns false if it is not in this filter, which then lacked some of the store's keys.
    pub(super) fn undo_of_known(&self, added: Added, hash: u64, stripe: usize) -> bool {
        self.undo(added, hash, stripe);
        match &self.sets {
            Sets::Cuckoo(_) => self.may_contain(hash, stripe),
            // Newly set bits stay.
            Sets::Bloom(_) => added != Added::Placed,
        }
    }

    /// Removes the fingerprint of a key that the store no longer holds. The caller holds the stripe. Returns false if it was
    /// not in: then the filter lacked some of the store's keys.
    pub(super) fn remove(&self, hash: u64, stripe: usize) -> bool {
        if self.is_crowded(stripe) {
            // Nobody knows whether it is this key's fingerprint that is not in: if so, another key's would be removed.
            return true;
        }
        match &self.sets {
            Sets::Cuckoo(filter) => {
                if self.slots > FEW_SLOTS {
                    // Relaxed: a number.
                    self.removed.fetch_add(1, Ordering::Relaxed);
                }
                filter.remove_hash(hash)
            }
            Sets::Bloom(filter) => {
                filter.delete();
                filter.contains(hash)
            }
        }
    }

    /// Whether a new filter, made for at least `fewest` keys, would be much better.
    pub(super) fn is_worn(&self, fewest: u64) -> bool {
        match &self.sets {
            Sets::Cuckoo(filter) => {
                let slots = filter.capacity();
                slots / GROWN > self.slots || self.is_sparse(slots, fewest)
            }
            Sets::Bloom(filter) => filter.is_worn(),
        }
    }

    /// Whether so many keys were removed from a cuckoo filter of `slots` slots that it is far too large for the rest. Called
    /// after each write: mostly it looks at one number. It notes its result, so that keys are seldom counted.
    ///
    /// Keys that come and go in about equal numbers do not make it sparse: the keys that it was made for fill three quarters of
    /// its slots, and it is sparse when a fifth of the slots is filled. Its replacement begins with three quarters again: from
    /// then on, more than two keys are deleted for each that the next scan finds.
    fn is_sparse(&self, slots: usize, fewest: u64) -> bool {
        // Relaxed, here and below: numbers.
        if self.slots <= FEW_SLOTS || self.removed.load(Ordering::Relaxed) <= slots / ASKED {
            return false;
        }
        if !self.sparse.load(Ordering::Relaxed) {
            if !self.is_far_too_large(self.len().max(fewest)) {
                self.removed.store(0, Ordering::Relaxed);
                return false;
            }
            // Then keys need not be counted after each write until another filter takes its place.
            self.sparse.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Whether so many stripes are crowded that a new filter would be much better.
    pub(super) fn is_crowded_out(&self) -> bool {
        self.crowded_stripes() > STRIPES / CROWDED
    }

    /// Whether it is far too large for this many keys, and a smaller one is worth a scan.
    pub(super) fn is_far_too_large(&self, keys: u64) -> bool {
        let room = match &self.sets {
            Sets::Cuckoo(filter) => filter.capacity() as u64,
            Sets::Bloom(filter) => filter.capacity(),
        };
        // A filter for these keys would take less than a quarter of the memory.
        room / FAR > with_spare(keys) && self.memory_usage() / 4 * 3 >= WORTH_A_SCAN
    }

    pub(super) fn len(&self) -> u64 {
        match &self.sets {
            Sets::Cuckoo(filter) => filter.len() as u64,
            Sets::Bloom(filter) => filter.len(),
        }
    }

    pub(super) fn false_positive_rate(&self) -> f64 {
        let rate = match &self.sets {
            Sets::Cuckoo(filter) => filter.false_positive_rate(),
            Sets::Bloom(filter) => filter.false_positive_rate(),
        };
        // All keys of a crowded stripe pass.
        let crowded = self.crowded_stripes() as f64 / STRIPES as f64;
        crowded + (1.0 - crowded) * rate
    }

    pub(super) fn memory_usage(&self) -> usize {
        let sets = match &self.sets {
            Sets::Cuckoo(filter) => filter.memory_usage(),
            Sets::Bloom(filter) => filter.memory_usage(),
        };
        sets + STRIPES
    }

    pub(super) fn crowded_stripes(&self) -> usize {
        self.crowded_stripes.load(Ordering::Relaxed)
    }

    /// Whether its fingerprints were made by this hash function, as far as it knows.
    pub(super) fn has_hasher(&self, hasher: Xxh3) -> bool {
        match &self.sets {
            Sets::Cuckoo(filter) => *filter.hasher() == hasher,
            Sets::Bloom(_) => true,
        }
    }

    /// Writes the crowded stripes, a byte each, then the filter's bytes. No writes are under way.
    pub(super) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let crowded: [u8; STRIPES] = core::array::from_fn(|stripe| u8::from(self.is_crowded(stripe)));
        out.write_all(&crowded)?;
        match &self.sets {
            Sets::Cuckoo(filter) => filter.write_to(out),
            Sets::Bloom(filter) => filter.write_to(out),
        }
    }

    /// Reads a filter of this plan from bytes that a checksum vouches for.
    pub(super) fn from_bytes(plan: Plan, bytes: &[u8]) -> Result<Option<Self>, FilterError> {
        let Some((crowded, bytes)) = bytes.split_at_checked(STRIPES) else { return Ok(None) };
        let sets = match plan.filter {
            Filter::None => return Ok(None),
            Filter::Cuckoo => Sets::Cuckoo(ScalableCuckooFilter::from_bytes(bytes)?),
            Filter::Bloom => match Bloom::from_bytes(bytes, plan.rate)? {
                Some(bloom) => Sets::Bloom(bloom),
                None => return Ok(None),
            },
        };
        let crowded = crowded.iter().map(|byte| AtomicBool::new(*byte != 0)).collect();
        Ok(Some(Self::with_crowded(sets, crowded)))
    }
}
