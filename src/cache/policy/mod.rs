//! Which entry a full cache gives up: [`Policy`], and an [`Evictor`] for every segment.
//!
//! An evictor is plain data under its segment's lock and knows nothing of the table, on whose behalf [`Residents`] answers. It
//! is told of every insertion and removal. It learns of hits from the *mark*, half a byte next to the tag of every slot, in
//! which a hit sets a bit unless two are set: a hit on a hot entry writes nothing.
//!
//! [`adaptive`] is the default and is described there; [`clock`] is MemC3's; [`local`] costs least. `docs/benchmarks.md` has
//! the hit ratios of all, and `docs/tried.md` those of policies that were tried and rejected.
//!
//! | file | duty |
//! | --- | --- |
//! | `adaptive` | a window, main and ghosts |
//! | `heavy` | which newcomers `adaptive` turns away |
//! | `ghost`, `ring` | which keys were evicted lately; a queue of items |
//! | `clock`, `local` | policies without queues |
//! | `swept` | the part these two share: a hand that sweeps the slots |
//! | `heat` | what a dump keeps of an item's standing |
//! | `serde` | the names of policies, serialized and deserialized |
//! | `mark` | the bits of the byte that goes with a tag |

mod adaptive;
mod clock;
mod ghost;
mod heat;
mod heavy;
mod local;
pub(super) mod mark;
mod ring;
#[cfg(feature = "serde")]
mod serde;
mod swept;
#[cfg(test)]
mod tests;

use core::fmt;

use self::adaptive::Adaptive;
use self::clock::Clock;
pub(super) use self::heat::{Heat, WindowShare};
use self::local::Local;
use crate::hash::{Digest, Place};

/// Which entry a full cache evicts.
///
/// What each costs and yields, for entries of two words and keys drawn by Zipf 0.99 (`docs/benchmarks.md`):
///
/// | | bytes per entry beyond those of key and value, `Cache` / `InlineCache` | hits | read-through |
/// | --- | --- | --- | --- |
/// | `Adaptive` | 24 / 17 | 81.7% | 1 |
/// | `Clock` | 14 / - | 78.1% | 1.0 to 1.1 times as fast |
/// | `Local` | 14 / 7 | 79.3% | 1.1 to 1.4 times as fast |
///
/// ```
/// use koel::{Cache, Policy};
///
/// let cache: Cache<u32, u32> = Cache::builder().max_entries(1000).policy(Policy::Local).build();
/// assert_eq!(cache.policy(), Policy::Local);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// A window for new entries, a clock for entries that came back, and a memory of what was evicted.
    ///
    /// Withstands scans and loops, keeps popular entries, and gives recency more room where recency pays. Its queues, and what
    /// it remembers of evicted entries, take about 10 bytes for every entry of the cache. In a loop a tenth longer than a large
    /// cache it has 55 to 85% hits, depending on the seed of the hash function; 91% are possible.
    #[default]
    Adaptive,
    /// MemC3's CLOCK (Fan, Andersen and Kaminsky, NSDI 2013, section 3.4): one bit for every slot and a hand that sweeps
    /// the buckets.
    ///
    /// Close to LRU, and as helpless against a scan. Takes no memory of its own: for entries of a few bytes, or where recency
    /// is known to be all that counts.
    Clock,
    /// The victim is chosen among the eight slots where the newcomer may be, as in a set-associative cache: an entry that was
    /// not hit; if all were, a hand finds another.
    ///
    /// The fastest where many look-ups miss: an insertion decides by the lines that it has searched anyway, where the last few
    /// evicted entries are remembered as well. Takes no memory of its own. Hit ratios are, on average, between those of the
    /// other two.
    Local,
}

impl Policy {
    /// The policy's name in text.
    fn name(self) -> &'static str {
        match self {
            Policy::Adaptive => "adaptive",
            Policy::Clock => "clock",
            Policy::Local => "local",
        }
    }
}

/// Writes the name in lower case.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where an item is, as a queue remembers it: the half of its digest that selects its buckets, however many there are, and
/// its tag.
///
/// Items that share both share a locator: queues and residents agree as multisets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Locator(u32);

impl Locator {
    /// The locator of an item with this digest.
    #[inline]
    pub(super) fn new(digest: Digest) -> Self {
        Locator(digest.locator())
    }

    /// Where the item is among so many buckets.
    #[inline]
    pub(super) fn place(self, buckets: u32) -> Place {
        Place::located(self.0, buckets)
    }

    /// The whole locator.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        self.0
    }
}

/// An item that wants to be admitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    pub(super) locator: Locator,
    /// 1 if entries are counted.
    pub(super) weight: u64,
}

/// What a segment's table answers to its evictor, under the segment's lock.
pub(super) trait Residents {
    /// A slot that is taken. Only [`evict`](Self::evict) makes one invalid; it moves no item.
    type Slot: Copy + PartialEq;

    /// A slot that `locator` may mean and whose mark has `value` in the bits of `mask`; of several, any.
    fn find(&self, locator: Locator, mask: u8, value: u8) -> Option<Self::Slot>;

    /// A slot's mark.
    fn mark(&self, slot: Self::Slot) -> u8;

    /// Replaces a slot's mark. A hit in between may be lost.
    fn set_mark(&mut self, slot: Self::Slot, mark: u8);

    /// The weight with which the item in `slot` was admitted, or last reweighed.
    fn weight(&self, slot: Self::Slot) -> u64;

    /// Takes the item in `slot` out of the table. The evictor has forgotten it: no [`Evictor::removed`] for this one.
    fn evict(&mut self, slot: Self::Slot);

    /// Whether an item must not be evicted, though others make room. Evicting the others is enough: there is then room for all
    /// that it will weigh.
    #[inline(always)]
    fn stays(&self, _: Self::Slot) -> bool {
        false
    }

    /// How many buckets there are, which determines places.
    fn buckets(&self) -> u32;

    /// The tags of a bucket's four slots, 0 where one is empty, and their marks, of which the upper half of each byte is
    /// what was noted for the bucket.
    fn tags_and_marks(&self, bucket: u32) -> (u32, u32);

    /// Replaces the marks of a bucket and what is noted there. A hit in between may be lost.
    fn set_marks(&mut self, bucket: u32, marks: u32);

    /// The slot in one of the eight lanes of a place's two buckets; it must be taken.
    fn in_lane(&self, place: Place, lane: u32) -> Self::Slot;

    /// How many slots there are, taken or not: a clock's hand sweeps them.
    fn slots(&self) -> usize;

    /// The slot at `index`, below [`slots`](Self::slots), if it is taken.
    fn at(&self, index: usize) -> Option<Self::Slot>;
}

/// Whether `weight` more fits in addition to what is there. Sums may exceed the largest number.
fn has_room(capacity: u64, there: u64, weight: u64) -> bool {
    capacity.checked_sub(there).is_some_and(|room| weight <= room)
}

impl Policy {
    /// The mark of an item after a hit.
    #[inline(always)]
    pub(super) fn touch(mark: u8) -> u8 {
        mark | mark::hit(mark)
    }
}

/// One segment's policy, and the bound it keeps: residents never weigh more than the capacity.
#[derive(Debug)]
pub(super) struct Evictor(Kind);

#[derive(Debug)]
enum Kind {
    Adaptive(Box<Adaptive>),
    Clock(Clock),
    Local(Local),
}

/// Calls a method of the policy that this evictor has.
macro_rules! whichever {
    ($kind:expr, $policy:ident => $call:expr) => {
        match $kind {
            Kind::Adaptive($policy) => $call,
            Kind::Clock($policy) => $call,
            Kind::Local($policy) => $call,
        }
    };
}

impl Default for Evictor {
    /// An evictor for a segment that has nothing yet, and may hold nothing.
    fn default() -> Self {
        Evictor(Kind::Clock(Clock::new(0)))
    }
}

impl Evictor {
    /// An evictor for a segment whose items may weigh `capacity` together.
    pub(super) fn new(policy: Policy, capacity: u64) -> Self {
        Evictor(match policy {
            Policy::Adaptive => Kind::Adaptive(Box::new(Adaptive::new(capacity))),
            Policy::Clock => Kind::Clock(Clock::new(capacity)),
            Policy::Local => Kind::Local(Local::new(capacity)),
        })
    }

    /// How much residents may weigh together.
    pub(super) fn capacity(&self) -> u64 {
        whichever!(&self.0, policy => policy.capacity())
    }

    /// How much residents weigh together.
    pub(super) fn weight(&self) -> u64 {
        whichever!(&self.0, policy => policy.weight())
    }

    /// Evicts until `newcomer` fits and counts it as resident. The table then stores it, with the mark returned here; if that
    /// fails, it calls [`removed`](Self::removed).
    ///
    /// The caller has turned away newcomers that are heavier than the capacity.
    // Each policy's `admit` is a function of its own: in one function with the others it would save registers for what they
    // need.
    #[inline]
    pub(super) fn admit<R: Residents>(&mut self, newcomer: Newcomer, residents: &mut R) -> u8 {
        debug_assert!(newcomer.weight <= self.capacity());
        whichever!(&mut self.0, policy => policy.admit(newcomer, residents))
    }

    /// Whether a newcomer is turned away because it is not known to be worth all that would have to be evicted for it. It is
    /// not admitted then, and may be heavier than the capacity.
    pub(super) fn turns_away<R: Residents>(&mut self, newcomer: Newcomer, residents: &mut R) -> bool {
        match &mut self.0 {
            Kind::Adaptive(policy) => policy.turns_away(newcomer, residents),
            Kind::Clock(_) | Kind::Local(_) => false,
        }
    }

    /// Whether many residents, of their mean weight, would have to be evicted for a newcomer, if there are `len`.
    pub(super) fn is_heavy(&self, weight: u64, len: usize) -> bool {
        let missing = self.weight().saturating_add(weight).saturating_sub(self.capacity());
        heavy::is_of_many(missing, len, self.weight())
    }

    /// Whether a heavy newcomer would be the first for which anything is evicted, or the first that is turned away: other
    /// segments may have room.
    pub(super) fn would_be_first(&self, weight: u64, len: usize) -> bool {
        match &self.0 {
            Kind::Adaptive(policy) => policy.has_kept_all() && self.is_heavy(weight, len),
            Kind::Clock(_) | Kind::Local(_) => false,
        }
    }

    /// Starts loading what [`admit`](Self::admit) will read for a key, and, by `resident`, for the item to be evicted for it.
    #[inline]
    pub(super) fn prefetch(&self, newcomer: Newcomer, resident: impl Fn(Locator)) {
        if let Kind::Adaptive(policy) = &self.0 {
            policy.prefetch(newcomer, resident);
        }
    }

    /// Whether there is room for `weight` without evicting.
    pub(super) fn fits(&self, weight: u64) -> bool {
        has_room(self.capacity(), self.weight(), weight)
    }

    /// Counts an item from another cache as resident, with the hits it had and in the queue it was in, but before all that is
    /// there: it is older. Evicts nothing: there is room for it. The table then stores it with the mark returned here.
    pub(super) fn restore<R: Residents>(&mut self, newcomer: Newcomer, heat: Heat, residents: &mut R) -> u8 {
        debug_assert!(self.fits(newcomer.weight));
        whichever!(&mut self.0, policy => policy.restore(newcomer, heat, residents))
    }

    /// Items that no queue leads to, now that the table has doubled: to be [adopted](Self::adopt).
    pub(super) fn strays<R: Residents>(&self, residents: &mut R) -> Vec<R::Slot> {
        match &self.0 {
            Kind::Adaptive(policy) => policy.strays(residents),
            Kind::Clock(_) | Kind::Local(_) => Vec::new(),
        }
    }

    /// Gives a stray with this mark an entry with this locator.
    pub(super) fn adopt(&mut self, locator: Locator, mark: u8) {
        match &mut self.0 {
            Kind::Adaptive(policy) => policy.adopt(locator, mark),
            Kind::Clock(_) | Kind::Local(_) => {}
        }
    }

    /// All items, each queue from the next to go to the last, with their heat.
    pub(super) fn order<R: Residents>(&self, residents: &mut R) -> Vec<(R::Slot, Heat)> {
        whichever!(&self.0, policy => policy.order(residents))
    }

    /// How much the window may weigh, if there is one.
    pub(super) fn window_target(&self) -> Option<f64> {
        match &self.0 {
            Kind::Adaptive(policy) => Some(policy.target()),
            Kind::Clock(_) | Kind::Local(_) => None,
        }
    }

    /// Takes over what another cache's policy had learned, if this one has learned nothing yet.
    pub(super) fn learn(&mut self, share: WindowShare) {
        match &mut self.0 {
            Kind::Adaptive(policy) => policy.learn(share),
            Kind::Clock(_) | Kind::Local(_) => {}
        }
    }

    /// Evicts until `weight` more fits, for an item that is going to grow and [stays](Residents::stays): others are evicted.
    pub(super) fn make_room<R: Residents>(&mut self, weight: u64, residents: &mut R) {
        whichever!(&mut self.0, policy => policy.make_room(weight, residents));
    }

    /// Notes that an item with this mark was replaced in its slot by one of another weight, for which there was room.
    pub(super) fn reweighed(&mut self, mark: u8, old: u64, new: u64) {
        whichever!(&mut self.0, policy => policy.reweighed(mark, old, new));
        debug_assert!(self.weight() <= self.capacity());
    }

    /// Notes that an item with this mark left the table otherwise than by [`Residents::evict`].
    pub(super) fn removed(&mut self, mark: u8, weight: u64) {
        whichever!(&mut self.0, policy => policy.removed(mark, weight));
    }

    /// Changes the capacity, and evicts what no longer fits.
    pub(super) fn set_capacity<R: Residents>(&mut self, capacity: u64, residents: &mut R) {
        whichever!(&mut self.0, policy => policy.set_capacity(capacity, residents));
    }

    /// Gives back the memory that it holds for items that have left.
    pub(super) fn tidy<R: Residents>(&mut self, residents: &mut R) {
        match &mut self.0 {
            Kind::Adaptive(policy) => policy.tidy(residents),
            Kind::Clock(_) | Kind::Local(_) => {}
        }
    }

    /// Forgets everything: the table has been emptied.
    pub(super) fn clear(&mut self) {
        let policy = match self.0 {
            Kind::Adaptive(_) => Policy::Adaptive,
            Kind::Clock(_) => Policy::Clock,
            Kind::Local(_) => Policy::Local,
        };
        *self = Evictor::new(policy, self.capacity());
    }

    /// Bytes it has from the allocator.
    pub(super) fn memory_usage(&self) -> usize {
        match &self.0 {
            Kind::Adaptive(policy) => size_of::<Adaptive>() + policy.memory_usage(),
            Kind::Clock(_) | Kind::Local(_) => 0,
        }
    }
}
