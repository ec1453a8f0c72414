//! [`FilterViewOwned`]: a filter in bytes that it owns.

use core::fmt;
use core::hash::Hash;
use core::ops::Range;

use super::collect::try_collect;
use super::error::FilterError;
use super::hasher::{FilterHasher, Xxh3, hash_bytes};
use super::info::ViewInfo;
use super::view::{FilterView, Table, Tables};
use crate::hash::Digest;

/// A [`FilterView`] that owns its bytes, or whatever leads to them: to be kept in a struct, a static or an `Arc`, and to
/// replace another view while a program runs.
///
/// `B` is a `Vec<u8>`, an `Arc<[u8]>`, or a file that is mapped into memory, such as a `memmap2::Mmap`. Its `as_ref` must
/// return the same bytes each time, or look-ups panic or answer wrongly; and nobody may write to the file. So write a newer
/// filter by [`save`](crate::CuckooFilter::save), which leaves the mapped file as it is: `File::create` would truncate it, and
/// a look-up would then end the process.
///
/// A look-up first finds its table in the bytes, which takes some instructions that a `FilterView` does not need.
///
/// ```
/// use std::sync::{Arc, RwLock};
///
/// use koel::{CuckooFilter, FilterViewOwned};
///
/// struct Blocklist {
///     hosts: RwLock<Arc<FilterViewOwned<Vec<u8>>>>,
/// }
///
/// impl Blocklist {
///     fn blocks(&self, host: &str) -> bool {
///         self.hosts.read().unwrap().contains_bytes(host.as_bytes())
///     }
/// }
///
/// let today = CuckooFilter::from_keys_bytes(["ads.example"], 0.001)?.to_bytes();
/// let list = Blocklist { hosts: RwLock::new(Arc::new(FilterViewOwned::from_bytes(today)?)) };
/// assert!(list.blocks("ads.example") && !list.blocks("koel.example"));
///
/// let tomorrow = CuckooFilter::from_keys_bytes(["spam.example"], 0.001)?.to_bytes();
/// *list.hosts.write().unwrap() = Arc::new(FilterViewOwned::from_bytes(tomorrow)?);
/// assert!(list.blocks("spam.example") && !list.blocks("ads.example"));
/// # Ok::<(), koel::FilterError>(())
/// ```
#[derive(Clone)]
pub struct FilterViewOwned<B, S = Xxh3> {
    bytes: B,
    /// The segments of each are a range of the bytes.
    tables: Tables<Range<usize>>,
    hasher: S,
}

impl Table<&[u8]> {
    /// Records where the segments are in these bytes: they are identified by their address.
    fn placed_in(self, bytes: &[u8]) -> Table<Range<usize>> {
        let begin = self.segments.as_ptr().addr() - bytes.as_ptr().addr();
        Table { form: self.form, segments: begin..begin + self.segments.len() }
    }
}

impl Table<Range<usize>> {
    /// Returns the table in its bytes.
    fn within<'b>(&self, bytes: &'b [u8]) -> Table<&'b [u8]> {
        Table { form: self.form, segments: &bytes[self.segments.clone()] }
    }
}

impl<B: AsRef<[u8]>> FilterViewOwned<B> {
    /// Makes a view of the filter in these bytes, as [`FilterView::from_bytes`] does. Reads all of them once. With a hash
    /// function other than the default, use [`from_bytes_as`](Self::from_bytes_as).
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes). In that case the bytes are dropped:
    /// [`try_from_bytes`](Self::try_from_bytes) hands them back.
    pub fn from_bytes(bytes: B) -> Result<Self, FilterError> {
        Self::from_bytes_as(bytes)
    }

    /// As [`from_bytes`](Self::from_bytes), but hands the bytes back if they are not a filter's, or there is no memory for the
    /// list of its tables.
    ///
    /// # Errors
    ///
    /// As [`from_bytes`](Self::from_bytes).
    ///
    /// ```
    /// let (mut bytes, error) = koel::FilterViewOwned::try_from_bytes(vec![0; 1000]).unwrap_err();
    /// assert!(error.to_string().contains("not a koel filter"));
    /// bytes.clear(); // its memory is used again
    /// koel::CuckooFilter::from_keys(["ada"], 0.001)?.write_to(&mut bytes)?;
    /// assert!(koel::FilterViewOwned::from_bytes(bytes)?.contains("ada"));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn try_from_bytes(bytes: B) -> Result<Self, (B, FilterError)> {
        Self::try_from_bytes_as(bytes)
    }
}

impl<B: AsRef<[u8]>, S: FilterHasher> FilterViewOwned<B, S> {
    /// As [`from_bytes`](FilterViewOwned::from_bytes), for a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    pub fn from_bytes_as(bytes: B) -> Result<Self, FilterError> {
        Self::try_from_bytes_as(bytes).map_err(|(_, error)| error)
    }

    /// As [`try_from_bytes`](FilterViewOwned::try_from_bytes), for a filter with this hash function.
    ///
    /// # Errors
    ///
    /// As [`CuckooFilter::from_bytes`](crate::CuckooFilter::from_bytes).
    pub fn try_from_bytes_as(bytes: B) -> Result<Self, (B, FilterError)> {
        match Self::placed(bytes.as_ref()) {
            Ok((tables, hasher)) => Ok(FilterViewOwned { bytes, tables, hasher }),
            Err(error) => Err((bytes, error)),
        }
    }

    /// Returns the tables in these bytes, and the hash function.
    fn placed(all: &[u8]) -> Result<(Tables<Range<usize>>, S), FilterError> {
        let FilterView { tables, hasher } = FilterView::from_bytes_as(all)?;
        let tables = match tables {
            Tables::One(table) => Tables::One(table.placed_in(all)),
            Tables::Chain(tables) => {
                Tables::Chain(try_collect(tables.into_iter().map(|table| table.placed_in(all)))?)
            }
        };
        Ok((tables, hasher))
    }

    /// Returns a view, for all other operations. Allocates some hundred bytes for each table of a growing filter.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::from_keys(["ada", "grace"], 0.001)?;
    /// let kept = koel::FilterViewOwned::from_bytes(filter.to_bytes())?;
    /// let mut found = [false; 3];
    /// kept.view().contains_many(&["ada", "mary", "grace"], &mut found);
    /// assert_eq!((found, kept.view().count("ada")), ([true, false, true], 1));
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn view(&self) -> FilterView<'_, S> {
        let bytes = self.bytes.as_ref();
        let tables = match &self.tables {
            Tables::One(table) => Tables::One(table.within(bytes)),
            Tables::Chain(tables) => Tables::Chain(tables.iter().map(|table| table.within(bytes)).collect()),
        };
        FilterView { tables, hasher: S::from_seed(self.hasher.seed()) }
    }

    /// Returns the hash of a key, for `contains_hash`.
    #[inline]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the hash of bytes, for `contains_hash`.
    #[inline]
    pub fn hash_bytes(&self, key: &[u8]) -> u64 {
        hash_bytes(&self.hasher, key)
    }

    /// Returns whether a key is present: `false` is certain; `true` is wrong at the false-positive rate.
    #[inline]
    pub fn contains<Q: Hash + ?Sized>(&self, key: &Q) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Returns whether the bytes of a key are present.
    #[inline]
    pub fn contains_bytes(&self, key: &[u8]) -> bool {
        self.contains_hash(self.hash_bytes(key))
    }
}

impl<B: AsRef<[u8]>, S> FilterViewOwned<B, S> {
    /// As `contains`, for a key whose hash you have.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let bytes = self.bytes.as_ref();
        self.tables.contains(Digest::new(hash), |segments| &bytes[segments.clone()])
    }
}

impl<B, S> FilterViewOwned<B, S> {
    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Describes the tables that are looked up, as [`FilterView::info`] does.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(0..1000, 0.001)?;
    /// let info = koel::FilterViewOwned::from_bytes(filter.to_bytes())?.info();
    /// assert!(info.scalable && info.tables[0].len == 1000);
    /// # Ok::<(), koel::FilterError>(())
    /// ```
    pub fn info(&self) -> ViewInfo {
        self.tables.info()
    }

    /// Returns the bytes that it was made of.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// Gives back the bytes that it was made of.
    pub fn into_bytes(self) -> B {
        self.bytes
    }
}

impl<B, S> fmt::Debug for FilterViewOwned<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterViewOwned")
            .field("tables", &self.tables.as_slice().len())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
