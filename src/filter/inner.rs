//! A filter without its hash function: a table and its layout, for digests.

use core::marker::PhantomData;

use super::codec::Codec;
use super::collect::try_collect;
use super::error::FilterError;
use super::geometry::{Place, ToPlace};
use super::layout::{Layout, Task};
use super::locked::Locked;
use super::parted::Parted;
use super::sizing::{Shape, rate_at};
use super::table::Table;
use crate::engine::BATCH;
use crate::full::Full;
use crate::hash::Digest;

/// The size in bytes of a table from which on it is filled segment by segment: smaller tables fit in the caches as a whole, and
/// would be filled up to a tenth more slowly.
const PARTED_BYTES: usize = 8 << 20;

/// The fraction of `probes` random hashes that `contains` accepts: 0 to 1.
pub(crate) fn measured_rate(probes: usize, contains: impl Fn(u64) -> bool) -> f64 {
    // A sequence without repetition, mixed by SplitMix64's finalizer.
    let probe = |i: usize| {
        let mut z = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x6B6F_656C;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        contains(z ^ z >> 31)
    };
    let found = (0..probes).filter(|i| probe(*i)).count();
    found as f64 / probes.max(1) as f64
}

/// A table and its layout.
pub(crate) struct Inner {
    pub(crate) table: Table,
    pub(crate) layout: Layout,
    /// Keys that fit for sure.
    pub(crate) capacity: usize,
}

impl Inner {
    /// Makes an empty one; large ones ask for huge pages unless told otherwise.
    pub(crate) fn new(shape: Shape, huge_pages: Option<bool>) -> Result<Self, FilterError> {
        let table = Table::allocate(shape.geometry, shape.format.bucket_bits(), huge_pages)
            .ok_or(FilterError::OutOfMemory { bytes: Inner::bytes(&shape) })?;
        Ok(Inner { table, layout: Layout::new(shape.format), capacity: shape.capacity })
    }

    /// Makes a copy: each segment as it is when the copy reaches it.
    pub(crate) fn copy(&self) -> Result<Self, FilterError> {
        let copy = Inner::new(self.shape(), None)?;
        for segment in self.table.segments() {
            let locked = Locked::lock(&self.table, segment.index);
            Locked::lock(&copy.table, segment.index).set_words(segment.all_words(), locked.len());
        }
        Ok(copy)
    }

    /// The number of bytes from the allocator for one of this shape.
    pub(crate) fn bytes(shape: &Shape) -> usize {
        Table::bytes(shape.geometry, shape.format.bucket_bits())
    }

    /// Its shape.
    pub(crate) fn shape(&self) -> Shape {
        Shape { format: self.layout.format, geometry: *self.table.geometry(), capacity: self.capacity }
    }

    /// Slots.
    pub(crate) fn slots(&self) -> usize {
        self.shape().slots() as usize
    }

    /// The expected false-positive rate now.
    pub(crate) fn rate(&self) -> f64 {
        rate_at(self.layout.format, self.table.len() as f64, self.slots() as f64)
    }

    #[inline(always)]
    pub(crate) fn place(&self, at: impl ToPlace) -> Place {
        at.place(self.table.geometry(), None)
    }

    /// Returns whether a fingerprint is present; never waits.
    #[inline(always)]
    pub(crate) fn contains(&self, at: impl ToPlace) -> bool {
        self.layout.run(Contains { table: &self.table, at })
    }

    /// Inserts a fingerprint where it belongs, and returns whether it had room.
    #[inline]
    pub(crate) fn insert(&self, at: impl ToPlace) -> bool {
        self.layout.run(Insert { table: &self.table, at })
    }

    /// Inserts a fingerprint if it is not present, and returns whether it was inserted; an error, if it had no room.
    #[inline]
    pub(crate) fn insert_unique(&self, at: impl ToPlace) -> Result<bool, Full> {
        self.layout.run(InsertUnique { table: &self.table, at })
    }

    /// Removes one copy of a fingerprint from where it belongs, and returns whether there was one.
    #[inline]
    pub(crate) fn remove(&self, at: impl ToPlace) -> bool {
        self.layout.run(Remove { table: &self.table, at })
    }

    pub(crate) fn count(&self, at: impl ToPlace) -> usize {
        self.layout.run(Count { table: &self.table, at }) as usize
    }

    /// Returns whether there seems to be a free slot: without a lock, so that an insertion may still find none.
    pub(crate) fn has_room(&self, at: impl ToPlace) -> bool {
        self.layout.run(HasRoom { table: &self.table, at })
    }

    /// Locks the segment of a place.
    pub(crate) fn lock(&self, place: Place) -> Locked<'_> {
        Locked::lock(&self.table, place.segment)
    }

    /// `count`, in a locked segment: no bucket is just being changed.
    pub(crate) fn count_in(&self, locked: &Locked<'_>, place: Place) -> usize {
        self.layout.run(CountIn { locked, place }) as usize
    }

    pub(crate) fn clear(&self) {
        self.layout.run(Clear(&self.table));
    }

    /// Starts loading the memory that a look-up of a place reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: impl ToPlace) {
        self.table.prefetch(self.layout.format.bucket_bits(), self.place(at));
    }

    /// Whether one of this shape is filled segment by segment.
    pub(crate) fn is_filled_by_segment(shape: &Shape) -> bool {
        shape.geometry.segments > 1 && Inner::bytes(shape) >= PARTED_BYTES
    }

    /// Fills a table that nobody else uses, with the digests in the order that is fastest; returns those that had no room, or
    /// were left untried ([`put_all`]). An error if there is no memory for a list of its locks.
    pub(crate) fn fill<S: ToPlace + From<Digest>>(
        &self,
        digests: &mut Parted,
    ) -> Result<Vec<Digest>, FilterError> {
        let geometry = self.table.geometry();
        if Inner::is_filled_by_segment(&self.shape()) && !digests.is_for(geometry) {
            // As they are, if there is no memory to order them.
            if let Ok(parted) = digests.again(geometry) {
                *digests = parted;
            }
        }
        if !digests.is_for(geometry) {
            let mut left = Vec::new();
            for digests in digests.slices() {
                left.append(&mut self.fill_in_order::<S>(digests)?);
            }
            return Ok(left);
        }
        let segments = 0..geometry.segments;
        let mut left: Vec<_> =
            segments.flat_map(|segment| self.fill_segment::<S>(segment, digests)).collect();
        left.append(&mut self.fill_in_order::<S>(digests.rest())?);
        Ok(left)
    }

    /// Fills a table that nobody else uses with digests in any order; otherwise as [`Inner::fill`].
    pub(crate) fn fill_in_order<S: ToPlace + From<Digest>>(
        &self,
        digests: &[Digest],
    ) -> Result<Vec<Digest>, FilterError> {
        if digests.is_empty() {
            return Ok(Vec::new());
        }
        self.layout.run(Fill { table: &self.table, digests, form: PhantomData::<S> })
    }

    /// Fills one segment with those of its digests that are ordered by segment; returns those that had no room, or were left
    /// untried.
    pub(crate) fn fill_segment<S: ToPlace + From<Digest>>(
        &self,
        segment: u32,
        digests: &Parted,
    ) -> Vec<Digest> {
        let fill = |digests| {
            let (table, form) = (&self.table, PhantomData::<S>);
            self.layout.run(FillSegment { table, segment, digests, form })
        };
        digests.of_segment(segment).flat_map(fill).collect()
    }
}

struct FillSegment<'a, S> {
    table: &'a Table,
    segment: u32,
    digests: &'a [Digest],
    form: PhantomData<S>,
}

impl<S: ToPlace + From<Digest>> Task for FillSegment<'_, S> {
    type Output = Vec<Digest>;

    fn run<C: Codec>(self, codec: C) -> Vec<Digest> {
        let mut locked = Locked::lock(self.table, self.segment);
        let put = |place| locked.insert_evenly(codec, place);
        put_all::<C, S>(self.table, codec, self.digests, put)
    }
}

/// The places of up to `BATCH` digests, whose buckets are prefetched.
#[inline(always)]
pub(super) fn places<C: Codec, S: ToPlace + From<Digest>>(
    table: &Table,
    codec: C,
    digests: &[Digest],
) -> [Place; BATCH] {
    let mut places = [Place::default(); BATCH];
    for (place, digest) in places.iter_mut().zip(digests) {
        *place = table.place(codec, S::from(*digest));
        table.prefetch(codec.bucket_bits(), *place);
    }
    places
}

/// Gives the places of all to `put`, in order; returns those for which it has no room. Buckets are prefetched for `BATCH` keys
/// at a time. When one in a thousand had no room it tries no more: a search in vain takes as long as hundreds that find a free
/// slot.
#[inline(always)]
fn put_all<C: Codec, S: ToPlace + From<Digest>>(
    table: &Table,
    codec: C,
    digests: &[Digest],
    mut put: impl FnMut(Place) -> bool,
) -> Vec<Digest> {
    let most = (digests.len() / 1024).max(64);
    let (mut full, mut rest) = (Vec::new(), digests);
    while !rest.is_empty() && full.len() <= most {
        let (digests, after) = rest.split_at(rest.len().min(BATCH));
        rest = after;
        for (place, digest) in places::<C, S>(table, codec, digests).iter().zip(digests) {
            if !put(*place) {
                full.push(*digest);
            }
        }
    }
    full.extend_from_slice(rest);
    full
}

struct Contains<'a, S> {
    table: &'a Table,
    at: S,
}

impl<S: ToPlace> Task for Contains<'_, S> {
    type Output = bool;

    #[inline(always)]
    fn run<C: Codec>(self, codec: C) -> bool {
        self.table.contains(codec, self.at, self.table.place(codec, self.at))
    }
}

struct Insert<'a, S> {
    table: &'a Table,
    at: S,
}

impl<S: ToPlace> Task for Insert<'_, S> {
    type Output = bool;

    #[inline]
    fn run<C: Codec>(self, codec: C) -> bool {
        let place = self.table.place(codec, self.at);
        Locked::fetch_and_lock(self.table, codec, place).insert(codec, place)
    }
}

struct InsertUnique<'a, S> {
    table: &'a Table,
    at: S,
}

impl<S: ToPlace> Task for InsertUnique<'_, S> {
    type Output = Result<bool, Full>;

    fn run<C: Codec>(self, codec: C) -> Result<bool, Full> {
        let place = self.table.place(codec, self.at);
        let mut locked = Locked::fetch_and_lock(self.table, codec, place);
        if locked.contains(codec, place) {
            return Ok(false);
        }
        if locked.insert(codec, place) { Ok(true) } else { Err(Full::NOTHING) }
    }
}

struct Remove<'a, S> {
    table: &'a Table,
    at: S,
}

impl<S: ToPlace> Task for Remove<'_, S> {
    type Output = bool;

    #[inline]
    fn run<C: Codec>(self, codec: C) -> bool {
        let place = self.table.place(codec, self.at);
        Locked::fetch_and_lock(self.table, codec, place).remove(codec, place)
    }
}

struct Count<'a, S> {
    table: &'a Table,
    at: S,
}

impl<S: ToPlace> Task for Count<'_, S> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        self.table.count(codec, self.table.place(codec, self.at))
    }
}

struct HasRoom<'a, S> {
    table: &'a Table,
    at: S,
}

impl<S: ToPlace> Task for HasRoom<'_, S> {
    type Output = bool;

    fn run<C: Codec>(self, codec: C) -> bool {
        self.table.has_room(codec, self.table.place(codec, self.at))
    }
}

struct CountIn<'a> {
    locked: &'a Locked<'a>,
    place: Place,
}

impl Task for CountIn<'_> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        self.locked.count(codec, self.place)
    }
}

struct Clear<'a>(&'a Table);

impl Task for Clear<'_> {
    type Output = ();

    fn run<C: Codec>(self, codec: C) {
        for segment in self.0.segments() {
            Locked::lock(self.0, segment.index).clear(codec);
        }
    }
}

struct Fill<'a, S> {
    table: &'a Table,
    digests: &'a [Digest],
    form: PhantomData<S>,
}

impl<S: ToPlace + From<Digest>> Task for Fill<'_, S> {
    type Output = Result<Vec<Digest>, FilterError>;

    /// The table's only user takes all its locks once.
    fn run<C: Codec>(self, codec: C) -> Result<Vec<Digest>, FilterError> {
        let locks = self.table.segments().map(|segment| Locked::lock(self.table, segment.index));
        let mut segments: Vec<Locked<'_>> = try_collect(locks)?;
        let put = |place: Place| segments[place.segment as usize].insert_evenly(codec, place);
        Ok(put_all::<C, S>(self.table, codec, self.digests, put))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::filter::CuckooFilter;

    /// Gives all digests to a table that has room for none; returns how many of them it was asked for.
    struct Tries<'a>(&'a Table, &'a [Digest]);

    impl Task for Tries<'_> {
        type Output = (usize, Vec<Digest>);

        fn run<C: Codec>(self, codec: C) -> (usize, Vec<Digest>) {
            let mut tries = 0;
            let refuse = |_| {
                tries += 1;
                false
            };
            let left = put_all::<C, Digest>(self.0, codec, self.1, refuse);
            (tries, left)
        }
    }

    /// Repeated keys would be searched for in vain, one by one: a growing filter took forty times as long in that case.
    #[test]
    fn not_all_keys_are_tried_where_one_in_a_thousand_has_no_room() {
        let filter = CuckooFilter::builder().capacity(1000).build().expect("a filter");
        let inner = &filter.inner;
        for (len, most) in [(10, 10), (1000, 64 + BATCH), (1_000_000, 1_000_000 / 1024 + BATCH)] {
            let digests: Vec<Digest> = (0..len).map(|n| Digest::new(n as u64)).collect();
            let (tries, left) = inner.layout.run(Tries(&inner.table, &digests));
            assert!(tries <= most && tries >= len.min(64), "{tries} of {len}");
            assert_eq!(left, digests);
        }
    }
}
