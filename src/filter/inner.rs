//! What a filter is without its hash function: a table and its layout, for digests.

use core::marker::PhantomData;

use super::codec::Codec;
use super::collect::try_collect;
use super::error::FilterError;
use super::geometry::{Older, Place, ToPlace, WholeDigest};
use super::layout::{Layout, Task};
use super::locked::Locked;
use super::parted::parted;
use super::sizing::{Shape, rate_at};
use super::table::Table;
use crate::full::Full;
use crate::hash::Digest;

/// Digests that are looked up at once: as many as a `u32` has bits.
pub(crate) const BATCH: usize = 32;

/// Bytes of a table from which on it is filled segment by segment: smaller ones are in the caches as a whole, and would be
/// filled up to a tenth more slowly.
const PARTED_BYTES: usize = 8 << 20;

/// The digests of up to `BATCH` items.
#[inline(always)]
pub(crate) fn digests<T>(items: &[T], digest: impl Fn(&T) -> Digest) -> [Digest; BATCH] {
    let mut digests = [Digest::ZERO; BATCH];
    for (to, item) in digests.iter_mut().zip(items) {
        *to = digest(item);
    }
    digests
}

/// How often `contains` accepts random hashes, of `probes`: 0 to 1.
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
    /// An empty one; large ones ask for huge pages unless told otherwise.
    pub(crate) fn new(shape: Shape, huge_pages: Option<bool>) -> Result<Self, FilterError> {
        let bits = shape.format.bucket_bits();
        let table = Table::allocate(shape.geometry, bits, huge_pages)
            .ok_or(FilterError::OutOfMemory { bytes: Table::bytes(shape.geometry, bits) })?;
        Ok(Inner { table, layout: Layout::new(shape.format), capacity: shape.capacity })
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
        rate_at(self.layout.format, self.table.len() as f64 / self.slots() as f64)
    }

    #[inline(always)]
    pub(crate) fn place(&self, at: impl ToPlace) -> Place {
        at.place(self.table.geometry(), None)
    }

    /// Whether a fingerprint is there; never waits.
    #[inline(always)]
    pub(crate) fn contains(&self, at: impl ToPlace) -> bool {
        self.layout.run(Contains { table: &self.table, at })
    }

    /// Whether a fingerprint had room where it belongs.
    #[inline]
    pub(crate) fn insert(&self, at: impl ToPlace) -> bool {
        self.layout.run(Insert { table: &self.table, at })
    }

    /// Whether a fingerprint was inserted that was not there; an error, if it had no room.
    #[inline]
    pub(crate) fn insert_unique(&self, at: impl ToPlace) -> Result<bool, Full> {
        self.layout.run(InsertUnique { table: &self.table, at })
    }

    /// Whether one copy of a fingerprint was removed from where it belongs.
    #[inline]
    pub(crate) fn remove(&self, at: impl ToPlace) -> bool {
        self.layout.run(Remove { table: &self.table, at })
    }

    pub(crate) fn count(&self, at: impl ToPlace) -> usize {
        self.layout.run(Count { table: &self.table, at }) as usize
    }

    /// Whether there seems to be a free slot: asked without a lock, so that an insertion may still find none.
    pub(crate) fn has_room(&self, at: impl ToPlace) -> bool {
        self.layout.run(HasRoom { table: &self.table, at })
    }

    /// `count`, under the segment's lock: no bucket is just being changed.
    pub(crate) fn count_locked(&self, at: impl ToPlace) -> usize {
        self.layout.run(CountLocked { table: &self.table, at }) as usize
    }

    pub(crate) fn clear(&self) {
        self.layout.run(Clear(&self.table));
    }

    /// Looks up to `BATCH` digests up, in a table whose alternates are selected by whole fingerprints.
    #[inline]
    pub(crate) fn contains_batch(&self, digests: &[Digest], found: &mut [bool]) {
        self.layout.run(ContainsBatch { inner: self, digests, found });
    }

    /// Looks up those of a batch that are `missing`, a bit for each, at their places in this table: which still are. All
    /// buckets are asked for before the first is looked at.
    pub(crate) fn contains_missing<'p>(&self, place: impl Fn(usize) -> Older<'p>, missing: u32) -> u32 {
        ones(missing).for_each(|i| self.prefetch(&place(i)));
        self.layout.run(ContainsMissing { table: &self.table, place, missing })
    }

    /// Starts loading what a look-up of a place reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: impl ToPlace) {
        self.table.prefetch(self.layout.format.bucket_bits(), self.place(at));
    }

    /// Inserts up to `BATCH` digests, in order, up to the first that has no room; how many had. In a table as `contains_batch`
    /// asks for.
    pub(crate) fn insert_batch(&self, digests: &[Digest]) -> usize {
        self.layout.run(InsertBatch { inner: self, digests })
    }

    /// Fills a table that nobody else uses, and orders the digests as that is fastest; with what had no room, or is left
    /// untried ([`put_all`]). An error if there is no memory for a list of its locks.
    pub(crate) fn fill<S: ToPlace + From<Digest>>(
        &self,
        digests: &mut Vec<Digest>,
        gives_up: bool,
    ) -> Result<Vec<Digest>, FilterError> {
        let geometry = self.table.geometry();
        if geometry.segments > 1 && self.table.memory_usage() >= PARTED_BYTES {
            // As they are, if there is no memory to order them.
            if let Ok((parted, _)) = parted(digests, geometry) {
                *digests = parted;
            }
        }
        self.layout.run(Fill { table: &self.table, digests, gives_up, form: PhantomData::<S> })
    }

    /// Fills one segment with digests of it; with those that had no room.
    #[cfg(feature = "rayon")]
    pub(crate) fn fill_segment<S: ToPlace + From<Digest>>(
        &self,
        segment: u32,
        digests: &[Digest],
        gives_up: bool,
    ) -> Vec<Digest> {
        self.layout.run(FillSegment {
            table: &self.table,
            segment,
            digests,
            gives_up,
            form: PhantomData::<S>,
        })
    }
}

#[cfg(feature = "rayon")]
struct FillSegment<'a, S> {
    table: &'a Table,
    segment: u32,
    digests: &'a [Digest],
    gives_up: bool,
    form: PhantomData<S>,
}

#[cfg(feature = "rayon")]
impl<S: ToPlace + From<Digest>> Task for FillSegment<'_, S> {
    type Output = Vec<Digest>;

    fn run<C: Codec>(self, codec: C) -> Vec<Digest> {
        let mut locked = Locked::lock(self.table, self.segment);
        let put = |place| locked.insert_evenly(codec, place);
        put_all::<C, S>(self.table, codec, self.digests, self.gives_up, put)
    }
}

/// Gives the places of all to `put`, in order; with those that it has no room for. Buckets are asked for `BATCH` keys at a
/// time. If it `gives_up`, it tries no more when one in a thousand had no room: a search in vain takes as long as hundreds that
/// find a free slot.
#[inline(always)]
fn put_all<C: Codec, S: ToPlace + From<Digest>>(
    table: &Table,
    codec: C,
    digests: &[Digest],
    gives_up: bool,
    mut put: impl FnMut(Place) -> bool,
) -> Vec<Digest> {
    let most = if gives_up { (digests.len() / 1024).max(64) } else { digests.len() };
    let (mut full, mut rest) = (Vec::new(), digests);
    while !rest.is_empty() && full.len() <= most {
        let (digests, after) = rest.split_at(rest.len().min(BATCH));
        rest = after;
        let mut places = [Place::default(); BATCH];
        for (place, digest) in places.iter_mut().zip(digests) {
            *place = table.place(codec, S::from(*digest));
            table.prefetch(codec.bucket_bits(), *place);
        }
        for (place, digest) in places.iter().zip(digests) {
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

struct CountLocked<'a, S> {
    table: &'a Table,
    at: S,
}

impl<S: ToPlace> Task for CountLocked<'_, S> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        let place = self.table.place(codec, self.at);
        Locked::lock(self.table, place.segment).count(codec, place)
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

struct ContainsBatch<'a> {
    inner: &'a Inner,
    digests: &'a [Digest],
    found: &'a mut [bool],
}

impl Task for ContainsBatch<'_> {
    type Output = ();

    /// All waits for memory overlap: every bucket is asked for before the first is looked at.
    #[inline]
    fn run<C: Codec>(self, codec: C) {
        let table = &self.inner.table;
        let mut places = [Place::default(); BATCH];
        for (place, digest) in places.iter_mut().zip(self.digests) {
            *place = table.place(codec, WholeDigest(*digest));
            table.prefetch(codec.bucket_bits(), *place);
        }
        for ((found, digest), place) in self.found.iter_mut().zip(self.digests).zip(&places) {
            *found = table.contains(codec, WholeDigest(*digest), *place);
        }
    }
}

struct ContainsMissing<'a, F> {
    table: &'a Table,
    place: F,
    missing: u32,
}

impl<'p, F: Fn(usize) -> Older<'p>> Task for ContainsMissing<'_, F> {
    type Output = u32;

    fn run<C: Codec>(self, codec: C) -> u32 {
        ones(self.missing).fold(self.missing, |missing, i| {
            let at = (self.place)(i);
            let is_here = self.table.contains(codec, &at, self.table.place(codec, &at));
            missing & !(u32::from(is_here) << i)
        })
    }
}

/// The numbers of the bits that are set.
#[inline]
fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        lowest
    })
}

struct InsertBatch<'a> {
    inner: &'a Inner,
    digests: &'a [Digest],
}

impl Task for InsertBatch<'_> {
    type Output = usize;

    fn run<C: Codec>(self, codec: C) -> usize {
        let table = &self.inner.table;
        let mut places = [Place::default(); BATCH];
        for (place, digest) in places.iter_mut().zip(self.digests) {
            *place = table.place(codec, WholeDigest(*digest));
            table.prefetch(codec.bucket_bits(), *place);
        }
        let places = &places[..self.digests.len()];
        let full = |place: &Place| !Locked::lock(table, place.segment).insert(codec, *place);
        places.iter().position(full).unwrap_or(places.len())
    }
}

struct Fill<'a, S> {
    table: &'a Table,
    digests: &'a [Digest],
    gives_up: bool,
    form: PhantomData<S>,
}

impl<S: ToPlace + From<Digest>> Task for Fill<'_, S> {
    type Output = Result<Vec<Digest>, FilterError>;

    /// The table's only user takes all its locks once.
    fn run<C: Codec>(self, codec: C) -> Result<Vec<Digest>, FilterError> {
        let locks = self.table.segments().map(|segment| Locked::lock(self.table, segment.index));
        let mut segments: Vec<Locked<'_>> = try_collect(locks)?;
        let put = |place: Place| segments[place.segment as usize].insert_evenly(codec, place);
        Ok(put_all::<C, S>(self.table, codec, self.digests, self.gives_up, put))
    }
}
