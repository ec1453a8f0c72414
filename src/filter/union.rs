//! One filter into another of the same parameters.

use super::codec::Codec;
use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::geometry::Place;
use super::hasher::FilterHasher;
use super::inner::Inner;
use super::layout::Task;
use super::locked::Locked;

impl<S: FilterHasher> CuckooFilter<S> {
    /// Inserts all keys of another filter, which must have been built with the same parameters and seed. Copies add up.
    ///
    /// Others may write to both meanwhile. Keys of `other` that nobody touches are in both afterwards.
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// let build = || CuckooFilter::builder().capacity(100).fingerprint_bits(16).seed(1).build();
    /// let (filter, other) = (build()?, build()?);
    /// filter.insert("ada").unwrap();
    /// other.insert("grace").unwrap();
    /// filter.try_union(&other)?;
    /// assert!(filter.contains("ada") && filter.contains("grace"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FilterError::Mismatch`] if they differ in size, layout, hash function or seed. [`FilterError::Full`] if there
    /// is no room for all: what had been inserted was removed again.
    pub fn try_union(&self, other: &Self) -> Result<(), FilterError> {
        let (mine, theirs) = (self.inner.shape(), other.inner.shape());
        let same = mine.format == theirs.format
            && mine.geometry == theirs.geometry
            && self.hasher.seed() == other.hasher.seed();
        if !same {
            return Err(FilterError::Mismatch);
        }
        // Copied, so that only one lock is held at a time: a filter may be united with itself, or two with each other.
        let mut done = Vec::new();
        let segments = 0..mine.geometry.segments;
        for segment in segments {
            let places = other.inner.layout.run(Collect { inner: &other.inner, segment });
            for place in places {
                if !self.inner.layout.run(InsertPlace { inner: &self.inner, place }) {
                    let inserted = done.len();
                    for place in done {
                        self.inner.layout.run(RemovePlace { inner: &self.inner, place });
                    }
                    return Err(FilterError::Full { inserted });
                }
                done.push(place);
            }
        }
        Ok(())
    }
}

/// The places of all fingerprints in a segment.
struct Collect<'a> {
    inner: &'a Inner,
    segment: u32,
}

impl Task for Collect<'_> {
    type Output = Vec<Place>;

    fn run<C: Codec>(self, codec: C) -> Vec<Place> {
        let geometry = self.inner.table.geometry();
        let mut places = Vec::new();
        Locked::lock(&self.inner.table, self.segment).for_each(codec, |first, fingerprint| {
            let second = geometry.alternate(first, fingerprint);
            places.push(Place { segment: self.segment, first, second, fingerprint });
        });
        places
    }
}

struct InsertPlace<'a> {
    inner: &'a Inner,
    place: Place,
}

impl Task for InsertPlace<'_> {
    type Output = bool;

    fn run<C: Codec>(self, codec: C) -> bool {
        Locked::lock(&self.inner.table, self.place.segment).insert(codec, self.place)
    }
}

struct RemovePlace<'a> {
    inner: &'a Inner,
    place: Place,
}

impl Task for RemovePlace<'_> {
    type Output = bool;

    fn run<C: Codec>(self, codec: C) -> bool {
        Locked::lock(&self.inner.table, self.place.segment).remove(codec, self.place)
    }
}
