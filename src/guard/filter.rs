//! The filter that readers ask, of either kind; and where a fingerprint goes that has no room.

use std::io::{self, Write};

use crossbeam_utils::CachePadded;

use super::bloom::Bloom;
use super::stripes::STRIPES;
use crate::filter::{FilterError, ScalableCuckooFilter, Xxh3, hash_bytes};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Which filter a guard keeps.
///
/// While one is built anew the old one answers, and there is memory for both: about twice as much, for as long as the scan
/// takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// A growing cuckoo filter: keys go in and out. It is built anew, in the background, when it has grown to more than
    /// eight times its size: one table is faster than four. So it is when so many keys have been deleted that one for those
    /// that are left has less than a quarter of its size, and is smaller by 256 KiB or more; and when it had no room for keys
    /// of one group in sixteen ([`Stats::crowded_stripes`](super::Stats::crowded_stripes)), after as many writes as it has
    /// keys, and 4,096 at least.
    #[default]
    Cuckoo,
    /// A Bloom filter: keys go in. It is built anew, in the background, when a quarter of its keys has been deleted, and of
    /// those that it was made for; or when five times as many absent keys pass as [`false_positive_rate`] says, or there are
    /// half as many keys again as it was made for, whichever comes first: at 1% that is with 1.5 times the keys, at 1e-6 with
    /// 1.1 times.
    ///
    /// [`false_positive_rate`]: super::Builder::false_positive_rate
    Bloom,
    /// None: every look-up that the cache does not answer reaches the store.
    None,
}

/// How a guard's filters are made: all of one guard have one hash function.
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

    /// An empty filter for so many keys; `None` if there is to be none.
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
/// Between writes it holds a fingerprint for each of the store's keys [D1]; or, of a stripe that is crowded, perhaps not
/// all, and then says "perhaps" for the whole stripe [D4].
#[derive(Debug)]
pub(super) struct Active {
    sets: Sets,
    /// Stripes with a key whose fingerprint has found no room.
    crowded: Box<[AtomicBool]>,
    /// How many these are.
    crowded_stripes: AtomicUsize,
    /// Slots of a cuckoo filter to begin with.
    slots: usize,
    /// Keys that were taken out of a cuckoo filter since it was last asked whether it is sparse. On a line of its own: writers
    /// that delete should not take from readers what these look at.
    removed: CachePadded<AtomicUsize>,
    /// It was, and it is worn.
    sparse: AtomicBool,
}

/// A cuckoo filter of so many times its first slots has four tables, all of which a look-up looks at.
const GROWN: usize = 8;

/// To see whether a cuckoo filter is sparse its keys are counted: each time so much of it as one key in so many slots has been
/// taken out.
const ASKED: usize = 16;
/// A filter that began with no more slots, and has not grown so far that it is worn, has not the memory that is worth a scan,
/// however long its fingerprints are: 15 times so many slots take 240 KiB. So nothing is counted of it.
const FEW_SLOTS: usize = 4096;
const _: () = assert!((2 * GROWN - 1) * FEW_SLOTS * 4 < WORTH_A_SCAN);

/// When more of the stripes are crowded than one in so many, a filter is of little use, whatever its rate.
const CROWDED: usize = 16;

/// A filter is far too large that has room for more than so many times the keys for which a new one would be made.
const FAR: u64 = 4;
/// Bytes to be saved by a smaller filter that are worth a scan.
const WORTH_A_SCAN: usize = 256 << 10;

/// How many keys a filter has room for that is made for so many: a quarter more.
pub(super) fn with_spare(keys: u64) -> u64 {
    keys.saturating_add(keys / 4)
}

/// What became of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It is in the filter.
    Placed,
    /// It is in a Bloom filter, which had all of its bits.
    Again,
    /// There was no room: the stripe is crowded since.
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
            // Of the oldest table: one from a snapshot has grown.
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

    /// Puts a fingerprint in. The caller holds the stripe. A scan does not, beside writers who do: no mark is taken back
    /// before the filter is published, so that what it has left out stays marked.
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
            // Relaxed, here and below: a number.
            self.crowded_stripes.fetch_add(1, Ordering::Relaxed);
        }
        Added::Crowded
    }

    /// Takes back what `add` has just done, for a key that was in already or has not come. The caller holds the stripe.
    pub(super) fn undo(&self, added: Added, hash: u64, stripe: usize) {
        match (added, &self.sets) {
            (Added::Placed, Sets::Cuckoo(filter)) => {
                filter.remove_hash(hash);
            }
            (Added::Placed | Added::Again, Sets::Bloom(filter)) => filter.undo(),
            (Added::Crowded, _) => {
                // Relaxed: who holds the stripe next sees it; and all that was added is in the filter [D4].
                self.crowded[stripe].store(false, Ordering::Relaxed);
                self.crowded_stripes.fetch_sub(1, Ordering::Relaxed);
            }
            (Added::Unneeded | Added::Again, _) => {}
        }
    }

    /// The same, for a key that was in. False: not in this filter, which has not known all of the store's keys.
    pub(super) fn undo_of_known(&self, added: Added, hash: u64, stripe: usize) -> bool {
        self.undo(added, hash, stripe);
        match &self.sets {
            Sets::Cuckoo(_) => self.may_contain(hash, stripe),
            // Bits that it did not have stay.
            Sets::Bloom(_) => added != Added::Placed,
        }
    }

    /// Takes the fingerprint of a key out that is in no more. The caller holds the stripe. False: it was not in, so the
    /// filter has not known all of the store's keys.
    pub(super) fn remove(&self, hash: u64, stripe: usize) -> bool {
        if self.is_crowded(stripe) {
            // Nobody knows whether it is this key's fingerprint that is not in: it would take another's.
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

    /// Whether a new filter would be much better, which is made for so many keys at the `fewest`.
    pub(super) fn is_worn(&self, fewest: u64) -> bool {
        match &self.sets {
            Sets::Cuckoo(filter) => {
                let slots = filter.capacity();
                slots / GROWN > self.slots || self.is_sparse(slots, fewest)
            }
            Sets::Bloom(filter) => filter.is_worn(),
        }
    }

    /// Whether so much was taken out of a cuckoo filter of so many slots that it is far too large for what is left. Asked after
    /// each write: mostly it looks at one number. Notes what it has found, so that keys are seldom counted.
    ///
    /// Keys that come and go, about as many at any time, do not make it so: the keys that it was made for fill three quarters
    /// of its slots, and it is sparse when a fifth of them is filled. One that takes its place begins with three quarters
    /// again: from then on, more than two keys are deleted for each that the next scan finds.
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
            // It need not be counted after each write until another takes its place.
            self.sparse.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Whether so many stripes are crowded that a new filter would be much better.
    pub(super) fn is_crowded_out(&self) -> bool {
        self.crowded_stripes() > STRIPES / CROWDED
    }

    /// Whether it is far too large for so many keys, and a smaller one is worth a scan.
    pub(super) fn is_far_too_large(&self, keys: u64) -> bool {
        let room = match &self.sets {
            Sets::Cuckoo(filter) => filter.capacity() as u64,
            Sets::Bloom(filter) => filter.capacity(),
        };
        // One for these would take less than a quarter of the memory.
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
        // Of a crowded stripe all keys pass.
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

    /// The filter of this plan in bytes that a checksum vouches for.
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
