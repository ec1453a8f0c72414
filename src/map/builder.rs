//! The options of both maps.

use core::fmt;
use core::marker::PhantomData;

use ahash::RandomState;

use crate::engine::{CapacityError, Options, Shape};

/// Which map a [`Builder`] builds. Sealed.
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
    /// twenty entries or fewer up to one in 27 grows earlier, and with [small segments](Self::segment_slots) one or the other
    /// segment does. Of this and [`fixed_capacity`](Self::fixed_capacity) the last that is called counts.
    ///
    /// ```
    /// let map: koel::HashMap<u64, u64> = koel::HashMap::builder().capacity(1000).build();
    /// assert!(map.capacity() >= 1000);
    /// ```
    pub fn capacity(mut self, entries: usize) -> Self {
        (self.options.capacity, self.options.fixed) = (entries, false);
        self
    }

    /// A map that never grows: any `entries` different keys fit, in at most 1.08 slots for each (from about a
    /// thousand on; about 1.06 as a rule; up to 1.13 in [small segments](Self::segment_slots)), and what does not fit is
    /// handed back. While several threads insert and remove at the same time, a few fewer may fit.
    ///
    /// The bound is a lower one: up to about 8% more may be accepted, rounded up to buckets of four, as long as there are free
    /// slots; by small maps up to twice as many: four where none, or up to three, were asked for, eight for four, twelve for
    /// ten. And more where keys collide or segments are small, as those that find no slot go to a list and leave slots free for
    /// others: a map for 1,000 that has 500 keys of one hash may take 1,560 in all; one in segments of four slots 1,250, of 64
    /// slots 1,130. If you need an exact bound, count for yourself.
    ///
    /// [`Pinned::checked_insert`](crate::Pinned::checked_insert) and its kin hand back what does not fit (`checked_try_insert`,
    /// `checked_get_or_insert_with`, `checked_update_or_insert` and its kin, `checked_compute`). Everything else that inserts
    /// panics then (`insert`, `try_insert`, `get_or_insert`, `update_or_insert`, `compute`, `extend`).
    ///
    /// It has fewer and larger segments than a growing map, and so fewer locks for writers.
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

    /// How many slots a segment may have, rounded up to whole buckets of four: 4,096 in a map that grows, 65,536 in
    /// one of fixed capacity.
    ///
    /// A map begins with segments of one size: if these are small and its [capacity is fixed](Self::fixed_capacity), it has up
    /// to 1.13 slots for each entry, may accept a quarter more than it was made for, and looks at all segments before it hands
    /// one back, and for each of the last that it takes.
    ///
    /// A growing map's segments split where twice their slots would be more, and a write may have to wait for one
    /// segment's split. More slots make fewer segments; as many slots as the map has make it one MemC3 table with one
    /// writer at a time, and, if its capacity is fixed, 8,192 version counters.
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

    /// Whether to ask the system for huge pages for the segments that the map starts with, and for its entries: fewer
    /// TLB misses in tables of many megabytes, at the price of touching memory 2 MiB at a time. By default they are
    /// asked for if the map is made with half a million slots (2^19) or more; and for the tags of what it grows by when it has
    /// many segments, unless this says no. Advice only, and only on Linux.
    ///
    /// ```
    /// let map = koel::InlineMap::<u64, u64>::builder().capacity(1_000_000).huge_pages(false).build();
    /// assert!(map.is_empty());
    /// ```
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.options.huge_pages = Some(yes);
        self
    }

    /// Whether the entries of a [`HashMap`](crate::HashMap) that is made for many have *home cells*: memory where the hash of a
    /// key says, a cell and a quarter for each entry of the capacity, so that a look-up waits for slot and entry at once. In
    /// tables beyond the caches hits take up to a third less time so; misses, inserting and replacing take up to a tenth more
    /// or less. In tables that the caches hold, replacing takes up to half as long again. Of entries of 16 bytes the map is a
    /// seventh larger, of larger ones a fifth to a third, and all cells are there from the start; when most entries have been
    /// replaced it is about an eighth larger again, as those that found no free cell at home have other memory.
    ///
    /// By default if entries are up to 16 bytes and the cells 8 MiB at least: from 420 thousand entries of two words on.
    /// Entries beyond the capacity lie where there is memory, as all do without home cells; so they do where there is no
    /// memory for cells, in maps that start without a capacity (until `Extend` for `&mut` makes them anew), and if they are
    /// larger than half a KiB, aligned to more than 64 bytes, or own memory themselves (have a `Drop`, as those of a `String`
    /// do): these lie beside that. An `InlineMap` has
    /// no use for any. [`Pinned::shrink_to_fit`](crate::Pinned::shrink_to_fit) may end them.
    ///
    /// ```
    /// let ages = koel::HashMap::<u64, u8>::builder().capacity(1_000).home_cells(true).build();
    /// ages.pin().insert(1815, 36);
    /// ```
    pub fn home_cells(mut self, yes: bool) -> Self {
        self.options.home_cells = Some(yes);
        self
    }

    /// Builds the map: the [`HashMap`](crate::HashMap) or [`InlineMap`](crate::InlineMap) whose `builder` began this.
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

    /// Builds the map: the [`HashMap`](crate::HashMap) or [`InlineMap`](crate::InlineMap) whose `builder` began this.
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
