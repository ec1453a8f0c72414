//! The options of both maps.

use core::fmt;
use core::marker::PhantomData;

use ahash::RandomState;

use crate::engine::{CapacityError, Options, Shape};

/// The kind of map that a [`Builder`] builds. Sealed.
pub trait Kind<S>: sealed::FromShape<S> {}

impl<T: sealed::FromShape<S>, S> Kind<S> for T {}

pub(crate) mod sealed {
    use crate::engine::{CapacityError, Shape};

    /// Seals [`Kind`](super::Kind).
    pub trait FromShape<S> {
        /// The map.
        type Map;

        /// An empty map of this shape, made for `requested` entries.
        fn from_shape(shape: Shape, requested: usize, hasher: S) -> Result<Self::Map, CapacityError>;
    }
}

/// Builds a [`HashMap`](crate::HashMap).
pub struct HashMapKind<K, V>(PhantomData<fn() -> (K, V)>);

/// Builds an [`InlineMap`](crate::InlineMap).
pub struct InlineMapKind<K, V>(PhantomData<fn() -> (K, V)>);

impl<K, V> Clone for HashMapKind<K, V> {
    fn clone(&self) -> Self {
        HashMapKind(PhantomData)
    }
}

impl<K, V> Clone for InlineMapKind<K, V> {
    fn clone(&self) -> Self {
        InlineMapKind(PhantomData)
    }
}

impl<K, V> fmt::Debug for HashMapKind<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashMapKind")
    }
}

impl<K, V> fmt::Debug for InlineMapKind<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InlineMapKind")
    }
}

/// The options of a map, from [`HashMap::builder`](crate::HashMap::builder) and
/// [`InlineMap::builder`](crate::InlineMap::builder).
///
/// ```
/// let map: koel::HashMap<u64, String> = koel::HashMap::builder().capacity(1000).build();
/// assert!(map.capacity() >= 1000);
///
/// let bounded: koel::InlineMap<u64, u64> = koel::InlineMap::builder().fixed_capacity(1000).build();
/// assert!((1000..=1080).contains(&bounded.capacity()));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<T, S = RandomState> {
    options: Options,
    hasher: S,
    kind: PhantomData<fn() -> T>,
}

impl<T, S> Builder<T, S> {
    pub(crate) fn new(hasher: S) -> Self {
        Builder { options: Options::default(), hasher, kind: PhantomData }
    }

    /// Room for `entries` from the start, if they spread evenly; the map grows when it has more. Of maps that are made for
    /// twenty entries or fewer, up to one in 27 grows earlier, and with [small segments](Self::segment_slots) a few segments
    /// do. If both this and [`fixed_capacity`](Self::fixed_capacity) are called, the last call counts.
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = koel::HashMap::builder().capacity(1000).build();
    /// assert!(map.capacity() >= 1000);
    /// ```
    pub fn capacity(mut self, entries: usize) -> Self {
        (self.options.capacity, self.options.fixed) = (entries, false);
        self
    }

    /// The map never grows: any `entries` different keys fit, in at most 1.08 slots for each (from about a thousand on; about
    /// 1.06 as a rule; up to 1.13 in [small segments](Self::segment_slots)), and pairs that do not fit are handed back. While
    /// several threads insert and remove at the same time, a few fewer may fit.
    ///
    /// This is a lower bound. As long as there are free slots, up to about 8% more may be accepted, rounded up to buckets of
    /// four. Small maps may accept up to twice as many: four where none, or up to three, were asked for, eight for four, twelve
    /// for ten. Still more may be accepted where keys collide or segments are small, as keys that find no slot go to a list and
    /// leave slots free for others: a map for 1,000 entries that has 500 keys with the same hash may take 1,560 in all; one in
    /// segments of four slots 1,250, of 64 slots 1,130. If you need an exact bound, keep a count yourself.
    ///
    /// [`Pinned::checked_insert`](crate::Pinned::checked_insert) and its kin hand back a pair that does not fit
    /// (`checked_try_insert`, `checked_get_or_insert_with`, `checked_update_or_insert` and its kin, `checked_compute`). All
    /// other methods that insert panic in that case (`insert`, `try_insert`, `get_or_insert`, `update_or_insert`, `compute`,
    /// `extend`).
    ///
    /// The map has fewer and larger segments than a growing map, and so fewer locks for writers.
    ///
    /// ```
    /// let map = koel::HashMap::builder().fixed_capacity(100).build();
    /// let pin = map.pin();
    /// let full = (0..200).find_map(|n| pin.checked_insert(n, "value").err()).unwrap();
    /// assert!(full.key >= 100 && full.value == "value");
    /// ```
    pub fn fixed_capacity(mut self, entries: usize) -> Self {
        (self.options.capacity, self.options.fixed) = (entries, true);
        self
    }

    /// The hash function; see [`HashMap::with_hasher`](crate::HashMap::with_hasher).
    ///
    /// ```
    /// let fixed: koel::HashMap<u64, u64, _> =
    ///     koel::HashMap::builder().fixed_capacity(1000).hasher(std::hash::RandomState::new()).build();
    /// assert_eq!(fixed.pin().insert(1, 10), None);
    /// ```
    pub fn hasher<S2>(self, hasher: S2) -> Builder<T, S2> {
        Builder { options: self.options, hasher, kind: PhantomData }
    }

    /// The number of slots that a segment may have, rounded up to whole buckets of four. The default is 4,096 in a map that
    /// grows, and 65,536 in one of fixed capacity.
    ///
    /// A map begins with segments of one size: if these are small and its [capacity is fixed](Self::fixed_capacity), it has up
    /// to 1.13 slots for each entry, may accept a quarter more than it was made for, and looks at all segments before it hands
    /// an entry back, and for each of the last entries that it takes.
    ///
    /// A segment of a growing map splits where it would otherwise have to double beyond this many slots, and a write may have
    /// to wait for one segment's split. More slots make fewer segments. With as many slots as the map has, it is a single MemC3
    /// table with one writer at a time, and, if its capacity is fixed, 8,192 version counters.
    ///
    /// ```
    /// let maps = [1024, 65_536].map(|slots| {
    ///     koel::InlineMap::<u64, u64>::builder().capacity(100_000).segment_slots(slots).build()
    /// });
    /// let [many, few] = maps.map(|map| map.stats().segments); // each has a writer lock
    /// assert!(many > 10 * few);
    /// ```
    #[doc(alias = "shards")]
    pub fn segment_slots(mut self, slots: usize) -> Self {
        self.options.segment_slots = Some(slots);
        self
    }

    /// Whether to ask the system for huge pages for the segments that the map starts with, and for its entries: fewer TLB
    /// misses in tables of many megabytes, at the price of touching memory 2 MiB at a time. By default they are requested if
    /// the map is made with half a million slots (2^19) or more. They are also requested for the tags of the segments by which
    /// a map with many segments grows, unless this option is `false`. This is advice only, and has an effect only on Linux.
    ///
    /// ```
    /// let map = koel::InlineMap::<u64, u64>::builder().capacity(1_000_000).huge_pages(false).build();
    /// assert!(map.is_empty());
    /// ```
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.options.huge_pages = Some(yes);
        self
    }

    /// Whether the entries of a [`HashMap`](crate::HashMap) that is made for many have *home cells*: memory at an address that
    /// the hash of the key determines, one and a quarter cells for each entry of the capacity, so that a look-up waits for slot
    /// and entry at the same time. In tables larger than the caches, hits take up to a third less time with them; misses,
    /// insertions and replacements take up to a tenth more or less. In tables that fit the caches, replacing takes up to half
    /// as long again. With entries of 16 bytes the map is a seventh larger, with larger ones a fifth to a third, and all cells
    /// are there from the start. When most entries have been replaced it is about an eighth larger again, as entries that found
    /// no free cell at home have other memory.
    ///
    /// By default a map has home cells if entries have up to 16 bytes and the cells at least 8 MiB in all: from 420 thousand
    /// entries of two words on. Entries beyond the capacity get other memory, as all entries do without home cells. So do all
    /// entries where there is no memory for cells, in maps that start without a capacity (until `Extend` for `&mut` rebuilds
    /// them), and if entries are larger than half a KiB, are aligned to more than 64 bytes, or own memory themselves (have a
    /// `Drop`, as entries of a `String` do): such entries are adjacent to that memory. An `InlineMap` has no use for home
    /// cells. [`Pinned::shrink_to_fit`](crate::Pinned::shrink_to_fit) may free them.
    ///
    /// ```
    /// let ages = koel::HashMap::<u64, u8>::builder().capacity(1_000).home_cells(true).build();
    /// ages.pin().insert(1815, 36);
    /// ```
    pub fn home_cells(mut self, yes: bool) -> Self {
        self.options.home_cells = Some(yes);
        self
    }

    /// Builds the map: the [`HashMap`](crate::HashMap) or [`InlineMap`](crate::InlineMap) whose `builder` method made this
    /// builder.
    ///
    /// # Panics
    ///
    /// Where [`Builder::try_build`] returns an error, with its message.
    #[track_caller]
    pub fn build(self) -> T::Map
    where
        T: Kind<S>,
    {
        match self.try_build() {
            Ok(map) => map,
            Err(error) => panic!("{error}"),
        }
    }

    /// Builds the map: the [`HashMap`](crate::HashMap) or [`InlineMap`](crate::InlineMap) whose `builder` method made this
    /// builder.
    ///
    /// # Errors
    ///
    /// If the capacity is beyond the limit, or there is no memory for it.
    ///
    /// ```
    /// let error = koel::HashMap::<u64, u64>::builder().capacity(usize::MAX).try_build().unwrap_err();
    /// println!("{error}"); // names the limit
    /// ```
    pub fn try_build(self) -> Result<T::Map, CapacityError>
    where
        T: Kind<S>,
    {
        let shape = Shape::new(self.options)?;
        T::from_shape(shape, self.options.capacity, self.hasher)
    }
}
