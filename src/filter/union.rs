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
    /// Takes 16 bytes for each of them meanwhile.
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
    /// is no room for all, [`FilterError::OutOfMemory`] if there is none for a list of them: what had been inserted was
    /// removed again.
    pub fn try_union(&self, other: &Self) -> Result<(), FilterError> {
        let (mine, theirs) = (self.inner.shape(), other.inner.shape());
        let same = mine.format == theirs.format
            && mine.geometry == theirs.geometry
            && self.hasher.seed() == other.hasher.seed();
        if !same {
            return Err(FilterError::Mismatch);
        }
        let mut done = Vec::new();
        let all = (0..mine.geometry.segments)
            .try_for_each(|segment| unite(&self.inner, &other.inner, segment, &mut done));
        if all.is_err() {
            for place in done {
                self.inner.remove(place);
            }
        }
        all
    }
}

/// Inserts the fingerprints of one segment, and notes which in `done`.
fn unite(inner: &Inner, other: &Inner, segment: u32, done: &mut Vec<Place>) -> Result<(), FilterError> {
    // Copied, so that only one lock is held at a time: a filter may be united with itself, or two with each other.
    let places = other.layout.run(Collect { inner: other, segment })?;
    reserve(done, places.len())?;
    for place in places {
        if !inner.insert(place) {
            return Err(FilterError::Full { inserted: done.len() });
        }
        done.push(place);
    }
    Ok(())
}

fn reserve(places: &mut Vec<Place>, more: usize) -> Result<(), FilterError> {
    let bytes = (places.len() + more).saturating_mul(size_of::<Place>());
    places.try_reserve(more).map_err(|_| FilterError::OutOfMemory { bytes })
}

/// The places of all fingerprints in a segment.
struct Collect<'a> {
    inner: &'a Inner,
    segment: u32,
}

impl Task for Collect<'_> {
    type Output = Result<Vec<Place>, FilterError>;

    fn run<C: Codec>(self, codec: C) -> Self::Output {
        let geometry = self.inner.table.geometry();
        let locked = Locked::lock(&self.inner.table, self.segment);
        let mut places = Vec::new();
        reserve(&mut places, locked.len())?;
        locked.for_each(codec, |first, fingerprint| {
            let second = geometry.alternate(first, fingerprint);
            places.push(Place { segment: self.segment, first, second, fingerprint });
        });
        Ok(places)
    }
}
