//! Uniting two filters of the same parameters.

use super::codec::Codec;
use super::collect::{reserve, with_room};
use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::format::are_same;
use super::geometry::Place;
use super::hasher::FilterHasher;
use super::layout::Task;
use super::locked::Locked;
use super::table::Table;

impl<S: FilterHasher> CuckooFilter<S> {
    /// Inserts all keys of another filter, which must have been built with the same parameters and seed. Copies add up: a key
    /// of both takes two slots, and there must be room for that. So if a key is in very many filters, once in each, only as
    /// many can be united as there may be copies of it, eight or sixteen: where no keys are removed, use
    /// [`CuckooFilter::try_union_unique`]. Meanwhile this takes 16 bytes for each key of the other filter.
    ///
    /// Others may write to both meanwhile. Keys of `other` that nobody touches are in both afterwards. A thread that writes to
    /// a segment of this filter that the union has reached waits for the union's end, so that keys that an error takes out
    /// again were nobody else's. Look-ups wait for nothing, and may see keys that an error takes out again.
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
    /// [`FilterError::Mismatch`] if they differ in size, layout, hash function or seed; a hash function is identified by its
    /// hash of some bytes, as when a filter is read [from bytes](CuckooFilter::from_bytes_as). [`FilterError::Full`] if there
    /// is no room for all, [`FilterError::OutOfMemory`] if there is no memory for a list of them: keys that had been inserted
    /// were removed again.
    #[doc(alias = "union")]
    #[doc(alias = "merge")]
    pub fn try_union(&self, other: &Self) -> Result<(), FilterError> {
        self.unite(other, false).map(drop)
    }

    /// Inserts the keys of another filter that do not seem to be present in this one, and only one of several copies: as
    /// [`CuckooFilter::try_union`] does, with `insert_unique` for each. Returns how many were inserted.
    ///
    /// Remove nothing afterwards: a key that was left out, because it was mistaken for another one, would be removed with that
    /// one.
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// let build = || CuckooFilter::builder().capacity(100).fingerprint_bits(16).seed(1).build();
    /// let seen = build()?;
    /// for worker in 0..20 {
    ///     let by_one = build()?;
    ///     by_one.insert("everybody's").unwrap();
    ///     by_one.insert(&worker).unwrap();
    ///     assert!(seen.try_union_unique(&by_one)? <= 2);
    /// }
    /// assert!(seen.len() <= 21 && seen.contains("everybody's") && seen.contains(&7));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::try_union`].
    #[doc(alias = "union")]
    #[doc(alias = "merge")]
    pub fn try_union_unique(&self, other: &Self) -> Result<usize, FilterError> {
        self.unite(other, true)
    }

    fn unite(&self, other: &Self, is_unique: bool) -> Result<usize, FilterError> {
        let (mine, theirs) = (self.inner.shape(), other.inner.shape());
        let same = mine.format == theirs.format && mine.geometry == theirs.geometry;
        if !same || !are_same(&self.hasher, &other.hasher) {
            return Err(FilterError::Mismatch);
        }
        let places = other.inner.layout.run(Collect(&other.inner.table))?;
        self.inner.layout.run(Unite { table: &self.inner.table, places, is_unique })
    }
}

/// Collects the places of all fingerprints. Segments are locked one by one, and before any of the filter that they are put
/// into: so a filter may be united with itself, and two with each other.
struct Collect<'a>(&'a Table);

impl Task for Collect<'_> {
    type Output = Result<Vec<Place>, FilterError>;

    fn run<C: Codec>(self, codec: C) -> Self::Output {
        let geometry = self.0.geometry();
        let mut places = with_room(self.0.len())?;
        for segment in 0..geometry.segments {
            let locked = Locked::lock(self.0, segment);
            // More may have been added.
            reserve(&mut places, locked.len())?;
            locked.for_each(codec, |first, fingerprint| {
                let second = geometry.alternate(first, fingerprint);
                places.push(Place { segment, first, second, fingerprint });
            });
        }
        Ok(places)
    }
}

/// Inserts fingerprints, all or none; if they are to be unique, only those that are not present. The places are in the order of
/// segments.
struct Unite<'a> {
    table: &'a Table,
    places: Vec<Place>,
    is_unique: bool,
}

impl Task for Unite<'_> {
    type Output = Result<usize, FilterError>;

    /// Locked segments stay locked to the end. Otherwise a fingerprint that is taken out again, because there is no room for
    /// all, might be another thread's: a thread that was told that a key is present has not inserted it, and a thread that has
    /// removed all keys may have inserted it anew.
    fn run<C: Codec>(self, codec: C) -> Self::Output {
        let Unite { table, mut places, is_unique } = self;
        let mut segments = with_room(table.geometry().segments as usize)?;
        // Those that were inserted are at the front.
        let mut inserted = 0;
        for at in 0..places.len() {
            let place = places[at];
            while segments.len() <= place.segment as usize {
                segments.push(Locked::lock(table, segments.len() as u32));
            }
            let segment = &mut segments[place.segment as usize];
            if is_unique && segment.contains(codec, place) {
                continue;
            }
            if !segment.insert(codec, place) {
                for place in &places[..inserted] {
                    segments[place.segment as usize].remove(codec, *place);
                }
                return Err(FilterError::Full { inserted });
            }
            places[inserted] = place;
            inserted += 1;
        }
        Ok(inserted)
    }
}
